"""The Reserve and Permit stages: what the pod takes on the chosen node, and whether it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.cycle.class_rules import rules_for
from podium.engine.framework.rule import Refused
from podium.engine.rows.rows import OneRow

if TYPE_CHECKING:
    from podium.engine.cycle.attempt import Attempt
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.rule import Permission
    from podium.engine.state.view import View


def reserve(view: View, attempt: Attempt, decision: Decision, row: int) -> None:
    """Note in the decision the node and what is reserved there, or which permit rule rejects it.

    Nothing of the cluster changes: the caller keeps the reservations with the assumed pod, waits
    until the pod is permitted, carries the reservations out, binds the pod, and drops the
    reservations with the pod.
    """
    pod, profile = attempt.pod, attempt.profile
    rules = rules_for(pod, profile).reserving
    if not rules and not profile.permits:
        decision.node = view.nodes.names[row]
        return
    at = OneRow(view, row)
    reservations: dict[str, object] = {}
    waits: list[tuple[str, Permission]] = []
    for reserving in rules:
        reserved = reserving.reserve(pod, at)
        if reserved is not None:
            reservations[reserving.name] = reserved
    for permitting in profile.permits:
        permission = permitting.permit(pod, at)
        if permission.allowed:
            continue
        if permission.wait_seconds <= 0:
            decision.refused = Refused(permitting.name, permission.reason)
            return
        waits.append((permitting.name, permission))
    decision.reservations, decision.waits = reservations, tuple(waits)
    decision.node = view.nodes.names[row]
