"""The condition that tells whether a pod group was scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.engine.framework.group_decision import ERROR, SUCCESS
from podium.objects.kinds.pod_group import INITIALLY_SCHEDULED, GroupCondition, PodGroup

if TYPE_CHECKING:
    from podium.engine.framework.group_decision import GroupDecision

_REASONS = {SUCCESS: "Scheduled", ERROR: "SchedulerError"}


def condition_after(group: PodGroup, decision: GroupDecision) -> GroupCondition | None:
    """The condition to write after a cycle; None if nothing changes.

    Once a group was scheduled, that is never taken back.
    """
    succeeded = decision.code == SUCCESS
    known = group.condition()
    if known is not None and known.status == "True" and not succeeded:
        return None
    found = GroupCondition(
        INITIALLY_SCHEDULED,
        "True" if succeeded else "False",
        _REASONS.get(decision.code, "Unschedulable"),
        decision.message,
        observed_generation=group.metadata.generation or 0,
    )
    if known is not None and msgspec.structs.replace(known, last_transition_time=None) == found:
        return None
    return found


def with_condition(group: PodGroup, condition: GroupCondition) -> PodGroup:
    """The group with a condition in place of the one of its type."""
    others = [each for each in group.status.conditions or () if each.type != condition.type]
    status = msgspec.structs.replace(group.status, conditions=[*others, condition])
    return msgspec.structs.replace(group, status=status)
