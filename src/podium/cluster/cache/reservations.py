"""What becomes of reservations outside the engine: restored from pods, and over with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cluster.cache.cache import no_reservations
from podium.engine.framework.rule import ReserveRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.cluster.cache.cache import Cache
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod


class Reservations:
    """The reserve rules of some profiles, told by a cache about the pods they reserved for."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._rules: dict[str, ReserveRule] = {
            rule.name: rule for profile in profiles for rule in profile.reserve_rules
        }

        #: Those of them that read anything from a pod.
        self._restoring = {
            name: rule
            for name, rule in self._rules.items()
            if type(rule).restore is not ReserveRule.restore
        }

    def attach(self, cache: Cache) -> None:
        """Let the cache restore reservations from pods, and report those that are over."""
        cache.restored = self.restored if self._restoring else no_reservations
        cache.unreserved = self.unreserved

    def restored(self, pod: Pod) -> Mapping[str, object]:
        """What the rules read from a pod that is on a node already."""
        found = {name: rule.restore(pod) for name, rule in self._restoring.items()}
        return {name: reserved for name, reserved in found.items() if reserved is not None}

    def unreserved(self, pod: str, node: str, reservations: Mapping[str, object]) -> None:
        """Tell the rules that their reservations for a pod are over."""
        for name, reserved in reservations.items():
            if name in self._rules:
                self._rules[name].unreserve(pod, node, reserved)
