"""Which kinds of objects are watched for the rules of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.rule import ALL_KINDS
from podium.objects.kinds.registry import KINDS, NODE, PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.profile import Profile

_ALWAYS: Final = frozenset({NODE.name, POD.name})


def watched_kinds(profiles: Iterable[Profile]) -> frozenset[str]:
    """Nodes, pods, and every kind that a rule of these profiles looks up."""
    found = set(_ALWAYS)
    for profile in profiles:
        scores = (weighted.priority for weighted in profile.priorities)
        filters = (*profile.predicates, *profile.pre_filters, *profile.reserve_rules)
        for rule in (*filters, *scores, *profile.pre_scores, *profile.permits):
            found.update(rule.kinds)
        for step in profile.post_filters:
            found.update(step.kinds)
        if profile.schedules_groups:
            found.add(POD_GROUP.name)
        if profile.checks:  # basic checks look up the claims of a pod
            found.add(PERSISTENT_VOLUME_CLAIM.name)
    if found.issuperset(ALL_KINDS):
        found.difference_update(ALL_KINDS)
        found.update(kind.name for kind in KINDS.values() if kind.looked_up)
    return frozenset(found)
