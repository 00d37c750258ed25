"""Reservations of pods that are on a node already, as reserve rules read them from the pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cluster.cache.cache import no_reservations
from podium.engine.framework.rule import ReserveRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from podium.engine.framework.profile import Profile
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.pod import Pod


def restoring(profiles: Iterable[Profile]) -> Callable[[Pod], Mapping[str, Reservation]]:
    """What reads reservations from a pod, by the reserve rules of the profiles."""
    rules = [
        rule
        for profile in profiles
        for rule in profile.reserve_rules
        if type(rule).restore is not ReserveRule.restore
    ]
    if not rules:
        return no_reservations

    def restored(pod: Pod) -> Mapping[str, Reservation]:
        found = ((rule.name, rule.restore(pod)) for rule in rules)
        return {name: reserved for name, reserved in found if reserved is not None}

    return restored
