"""Which placements would change with other profiles: the same pods are placed again by both.

Both runs start with the same nodes and pods and place the same pods in the same order, so every
difference comes from the profiles. The real placements may differ from both runs, since nodes have
changed meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from podium.cluster.simulation import Simulation
from podium.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.scheduler.state.cluster_copy import LiveCopy

Data = dict[str, Any]

#: How many changed placements are listed.
MOST_TOLD: Final = 1000
_REASON: Final = 300


class ReplayComparison:
    """Two replays of a cluster, run by a thread; `done` of `total` is its progress."""

    def __init__(
        self, cluster: LiveCopy, before: Sequence[Profile], after: Sequence[Profile]
    ) -> None:
        for profile in (*before, *after):
            if profile.extenders:
                raise ConfigError(
                    f"{profile.name} asks extenders, which are not asked just to compare",
                    hint="take the extenders out of the text to compare the rest",
                )
        self._cluster = cluster
        self._profiles = (before, after)
        self.total = 2 * (len(cluster.replayed) + len(cluster.waiting))
        self.done = 0
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make `run` end early, because its result is not needed any more."""
        self._stopped.set()

    def run(self) -> Data | None:
        """The differences; None when stopped."""
        before, after = (self._replay(profiles) for profiles in self._profiles)
        return None if self._stopped.is_set() else self._compared(before, after)

    def _replay(self, profiles: Sequence[Profile]) -> dict[str, tuple[str | None, str]]:
        """Pod -> its node, or none and the reason."""
        found: dict[str, tuple[str | None, str]] = {}
        if self._stopped.is_set():
            return found
        now = self._cluster.decided_at
        simulation = Simulation(profiles[0], others=profiles[1:], now=now)
        simulation.load(self._cluster.objects())
        keys = {each.uid: each.key for each in self._cluster.replayed}
        for step in simulation.run(self._cluster.pods()):
            if self._stopped.is_set():
                break
            decision = step.decision
            found[step.pod.key] = (decision.node, decision.message[:_REASON])
            preemption = decision.preemption
            if preemption is not None and preemption.node is not None:
                for uid in preemption.candidates[preemption.node].uids:
                    if uid in keys:
                        found[keys[uid]] = (None, f"evicted for {step.pod.key}")
            self.done += step.attempt == 1
        return found

    def _compared(
        self,
        before: dict[str, tuple[str | None, str]],
        after: dict[str, tuple[str | None, str]],
    ) -> Data:
        actual = {each.key: each.node for each in self._cluster.replayed}
        changes = list(_changes(before, after, actual))
        kinds = ["moved", "placed", "lost"]
        counts = {kind: sum(each["kind"] == kind for each in changes) for kind in kinds}
        as_now = sum(before[key][0] == node for key, node in actual.items() if key in before)
        return {
            "pods": len(after),
            "unchanged": len(after) - len(changes),
            **counts,
            "fixed": len(self._cluster.fixed),
            "leftOut": self._cluster.left_out,
            "asNow": as_now,
            "replayed": len(actual),
            "changes": changes[:MOST_TOLD],
            "nodes": _per_node(before, after),
        }


def _changes(
    before: dict[str, tuple[str | None, str]],
    after: dict[str, tuple[str | None, str]],
    actual: dict[str, str],
) -> Iterator[Data]:
    for key, (new, reason) in after.items():
        old, old_reason = before.get(key, (None, ""))
        if new == old:
            continue
        kind = "moved" if old and new else "placed" if new else "lost"
        yield {
            "pod": key,
            "kind": kind,
            "before": old,
            "after": new,
            "reason": old_reason if new else reason,
            "actual": actual.get(key),
        }


def _per_node(
    before: dict[str, tuple[str | None, str]], after: dict[str, tuple[str | None, str]]
) -> list[Data]:
    """The nodes with the largest change in their number of pods."""
    counts: dict[str, list[int]] = {}
    for index, placements in enumerate((before, after)):
        for node, _ in placements.values():
            if node is not None:
                counts.setdefault(node, [0, 0])[index] += 1
    changed = [(name, old, new) for name, (old, new) in counts.items() if old != new]
    changed.sort(key=lambda each: (-abs(each[2] - each[1]), each[0]))
    return [{"node": name, "before": old, "after": new} for name, old, new in changed[:20]]
