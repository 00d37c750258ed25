"""The disruption controller: keeps the status of pod disruption budgets.

Upstream: pkg/controller/disruption.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.encoding import parse_time
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import PodSelectingController
from podium.lab.controllers.framework.object_fields import (
    Key,
    condition,
    controller_of,
    int_or_percent,
    new_condition,
    replicas_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.store.selection import compile_selector
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector

#: Seconds after which an allowed eviction that did not delete its pod is forgotten.
_DISRUPTION_TIMEOUT: Final = 120.0
_SCALED_KINDS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Deployment")


class DisruptionController(PodSelectingController):
    """Counts healthy pods of disruption budgets and the disruptions that this allows."""

    name: ClassVar = "disruption-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch budgets and pods."""
        super().__init__(cluster, "PodDisruptionBudget")

    def selector_of(self, item: JsonObject) -> Selector:
        """The `spec.selector` of a budget."""
        return compile_selector((item.get("spec") or {}).get("selector"))

    def is_relevant(self, old: PodInfo, new: PodInfo) -> bool:
        """Readiness, deletion, labels and owner of a pod decide whether it counts as healthy."""
        return (
            old.ready != new.ready
            or old.active != new.active
            or old.labels is not new.labels
            or old.owner != new.owner
        )

    def sync(self, key: Key) -> None:
        """Count the pods of a budget and update its status.

        A budget without a number comes from a snapshot and keeps its imported status.
        """
        budget = self.cluster.get("PodDisruptionBudget", *key)
        if budget is None or not _has_number(budget.get("spec") or {}):
            return
        pods = [pod for pod in self.selected_pods(budget) if not pod.finished]
        disrupted = self._disrupted(budget, pods)
        healthy = sum(
            pod.ready and not pod.terminating and pod.key[1] not in disrupted for pod in pods
        )
        expected, desired = self._expected_and_desired(budget, pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: JsonObject = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "conditions": [self._condition(budget, allowed)],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
            self.enqueue(key, after=_DISRUPTION_TIMEOUT)
        self.cluster.update_status(budget, status)

    def _disrupted(self, budget: JsonObject, pods: list[PodInfo]) -> dict[str, str]:
        """The pods whose eviction was allowed lately and which are not terminating yet."""
        recorded = (budget.get("status") or {}).get("disruptedPods") or {}
        if not recorded:
            return {}
        staying = {pod.key[1] for pod in pods if not pod.terminating}
        now = self.cluster.now()
        return {
            name: at
            for name, at in recorded.items()
            if name in staying and now < (parse_time(at) or 0.0) + _DISRUPTION_TIMEOUT
        }

    def _expected_and_desired(self, budget: JsonObject, pods: list[PodInfo]) -> tuple[int, int]:
        """How many pods there should be, and how many of them have to be healthy."""
        spec = budget["spec"]
        max_unavailable, min_available = spec.get("maxUnavailable"), spec.get("minAvailable")
        if max_unavailable is not None:
            expected = self._expected(pods)
            unavailable = int_or_percent(max_unavailable, expected, round_up=True)
            return expected, max(expected - unavailable, 0)
        if isinstance(min_available, str) and min_available.endswith("%"):
            expected = self._expected(pods)
            return expected, int_or_percent(min_available, expected, round_up=True)
        return len(pods), int(1 if min_available is None else min_available)

    def _expected(self, pods: list[PodInfo]) -> int:
        """The sum of the replicas of all workloads behind the pods; other pods count as one."""
        total = 0
        counted: set[Key] = set()
        for pod in pods:
            owner = self._scaled_owner(pod)
            if owner is None:
                total += 1
            elif (identity := (owner["kind"], owner["metadata"]["name"])) not in counted:
                counted.add(identity)
                total += replicas_of(owner)
        return total

    def _scaled_owner(self, pod: PodInfo) -> JsonObject | None:
        """The workload whose `replicas` tell how many pods like this there should be."""
        if pod.owner is None or pod.owner[0] not in _SCALED_KINDS:
            return None
        owner = self.cluster.get(pod.owner[0], pod.key[0], pod.owner[1])
        above = None if owner is None else controller_of(owner)
        if above is not None and above["kind"] == "Deployment":
            return self.cluster.get("Deployment", pod.key[0], above["name"]) or owner
        return owner

    def _condition(self, budget: JsonObject, allowed: int) -> JsonObject:
        value = "True" if allowed > 0 else "False"
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        before, at = condition(budget, "DisruptionAllowed"), self.cluster.timestamp()
        made = new_condition(before, "DisruptionAllowed", value, reason, "", at=at)
        return made | {"observedGeneration": budget["metadata"].get("generation", 1)}


def _has_number(spec: JsonObject) -> bool:
    return spec.get("minAvailable") is not None or spec.get("maxUnavailable") is not None
