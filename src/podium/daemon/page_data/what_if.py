"""Which placements other rules would change: the same pods, placed again by both.

Both runs begin with the same nodes and pods and place the same pods in the same order, so what
differs between them is the work of the rules alone. Where the pods really run may differ from
both, since nodes came and went meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from podium.cluster.simulation import Simulation
from podium.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.daemon.page_data.cluster_copy import Scene
    from podium.engine.framework.profile import Profile

Data = dict[str, Any]

#: How many changed placements are told one by one.
MOST_TOLD: Final = 1000
_REASON: Final = 300


class Comparison:
    """Two replays of a scene, run by a thread; others read how far it is."""

    def __init__(self, scene: Scene, before: Sequence[Profile], after: Sequence[Profile]) -> None:
        for profile in (*before, *after):
            if profile.extenders:
                raise ConfigError(
                    f"{profile.name} asks extenders, which are not asked just to compare",
                    hint="take the extenders out of the text to compare the rest",
                )
        self._scene = scene
        self._rules = (before, after)
        self.total = 2 * (len(scene.replayed) + len(scene.waiting))
        self.done = 0
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Nobody waits for the answer any more."""
        self._stopped.set()

    def run(self) -> Data | None:
        """What changes; None when stopped."""
        before, after = (self._replay(profiles) for profiles in self._rules)
        return None if self._stopped.is_set() else self._compared(before, after)

    def _replay(self, profiles: Sequence[Profile]) -> dict[str, tuple[str | None, str]]:
        """Pod -> its node, or none and why."""
        found: dict[str, tuple[str | None, str]] = {}
        if self._stopped.is_set():
            return found
        simulation = Simulation(profiles[0], others=profiles[1:])
        simulation.load(self._scene.objects())
        keys = {each.uid: each.key for each in self._scene.replayed}
        for step in simulation.run(self._scene.pods()):
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
        actual = {each.key: each.node for each in self._scene.replayed}
        changes = list(_changes(before, after, actual))
        kinds = ["moved", "placed", "lost"]
        counts = {kind: sum(each["kind"] == kind for each in changes) for kind in kinds}
        as_now = sum(before[key][0] == node for key, node in actual.items() if key in before)
        return {
            "pods": len(after),
            "unchanged": len(after) - len(changes),
            **counts,
            "fixed": len(self._scene.fixed),
            "leftOut": self._scene.left_out,
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
    """The nodes whose number of pods changes most."""
    counts: dict[str, list[int]] = {}
    for index, placements in enumerate((before, after)):
        for node, _ in placements.values():
            if node is not None:
                counts.setdefault(node, [0, 0])[index] += 1
    changed = [(name, old, new) for name, (old, new) in counts.items() if old != new]
    changed.sort(key=lambda each: (-abs(each[2] - each[1]), each[0]))
    return [{"node": name, "before": old, "after": new} for name, old, new in changed[:20]]
