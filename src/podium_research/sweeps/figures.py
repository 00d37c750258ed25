"""The figures of a run where the experiment has no measure of its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from podium.engine.state.accounting import amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.cluster.simulation import Step
    from podium.objects.kinds.pod import Pod
    from podium_research.traces.trace import Trace


class Measure(Protocol):
    """Makes the figures of a run from its steps; made anew for each run."""

    def step(self, step: Step) -> None:
        """Take note of a decision that was just carried out."""

    def figures(self) -> Mapping[str, float]:
        """Name -> number, the same names in every run."""


class PlacementFigures:
    """How many pods were placed, how many evicted, and how full the cluster is in the end."""

    def __init__(self, trace: Trace) -> None:
        self._room: Counter[str] = Counter()
        for each in trace.nodes:
            for name, quantity in (each.node.status.allocatable or {}).items():
                self._room[name] += amount(name, quantity)
        self._requested: Counter[str] = Counter()
        self._pods: dict[str, Pod] = {}
        self._tried: set[str] = set()
        self._evicted = 0
        for pod in trace.others.pods:
            self._add(pod, 1)

    def _add(self, pod: Pod, sign: int) -> None:
        if sign > 0:
            self._pods[pod.uid] = pod
        for container in pod.spec.containers or ():
            requests = (container.resources.requests if container.resources else None) or {}
            for name, quantity in requests.items():
                self._requested[name] += sign * amount(name, quantity)

    def step(self, step: Step) -> None:
        """Count a pod that was placed, and its victims."""
        self._tried.add(step.pod.uid)
        if step.decision.node is not None:
            self._add(step.pod, 1)
        preemption = step.decision.preemption
        if preemption is not None and preemption.node is not None:
            for uid in preemption.candidates[preemption.node].uids:
                if (victim := self._pods.pop(uid, None)) is not None:
                    self._add(victim, -1)
                    self._evicted += 1

    def figures(self) -> dict[str, float]:
        """Pods that arrived and that were placed, and the share of each resource requested."""
        placed = sum(uid in self._pods for uid in self._tried)
        used = {
            f"{name}_percent": round(100 * self._requested[name] / room, 4)
            for name, room in sorted(self._room.items())
            if room and name != "pods"
        }
        return {"pods": len(self._tried), "placed": placed, "evicted": self._evicted, **used}
