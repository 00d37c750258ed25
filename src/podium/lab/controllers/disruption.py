"""Disruption budgets: how many pods may be evicted just now.

Upstream: pkg/controller/disruption.
"""

from __future__ import annotations

from math import ceil
from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.controller_ref import selector
from podium.lab.controllers.framework.object_fields import controller_of, moment, replicas_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.framework.pod_selecting_controller import SelectsPods
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector

#: How long an eviction that was allowed may take to show, in seconds.
_PATIENCE: Final = 120.0
_SCALED: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "Deployment")


class Budgets(SelectsPods):
    """Keeps the status of disruption budgets."""

    name: ClassVar = "disruption-controller"
    kind: ClassVar = "PodDisruptionBudget"

    def selects(self, item: JsonObject) -> Selector:
        """Which pods a budget is about."""
        return selector(item["spec"].get("selector"))

    def matters(self, old: PodFacts, new: PodFacts) -> bool:
        """Only readiness, leaving and labels count."""
        return (
            old.ready != new.ready
            or old.active != new.active
            or old.labels is not new.labels
            or old.owner != new.owner
        )

    def sync(self, key: Any) -> None:
        """Count again."""
        budget = self.cluster.get("PodDisruptionBudget", *key)
        if budget is None or _says_nothing(budget["spec"]):
            return
        pods = [pod for pod in self.selected(budget) if not pod.finished]
        evicted = self._evicted(budget, pods)
        healthy = sum(pod.ready and not pod.leaving and pod.key[1] not in evicted for pod in pods)
        expected, wanted = self._wanted(budget, pods)
        allowed = max(healthy - wanted, 0) if expected > 0 else 0
        before = budget.get("status") or {}
        status: JsonObject = {
            "currentHealthy": healthy,
            "desiredHealthy": wanted,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "conditions": [self._condition(budget, allowed)],
        }
        if evicted:
            status["disruptedPods"] = evicted
            self.add(key, after=_PATIENCE)
        if status != before:
            self.cluster.report(budget, status)

    def _evicted(self, budget: JsonObject, pods: list[PodFacts]) -> dict[str, str]:
        """Pods whose eviction was allowed and does not show yet."""
        told = (budget.get("status") or {}).get("disruptedPods") or {}
        if not told:
            return {}
        staying = {pod.key[1] for pod in pods if not pod.leaving}
        now = self.cluster.now()
        return {
            name: at
            for name, at in told.items()
            if name in staying and now < (moment(at) or 0.0) + _PATIENCE
        }

    def _wanted(self, budget: JsonObject, pods: list[PodFacts]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must stay healthy."""
        spec = budget["spec"]
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most is not None:
            expected = self._expected(pods)
            return expected, max(expected - _share(most, expected), 0)
        if isinstance(least, str) and least.endswith("%"):
            expected = self._expected(pods)
            return expected, _share(least, expected)
        return len(pods), int(1 if least is None else least)

    def _expected(self, pods: list[PodFacts]) -> int:
        """The wishes of all who manage the pods; pods that nobody manages count as they are."""
        total = 0
        counted: set[tuple[str, str]] = set()
        for pod in pods:
            owner = self._scaled(pod)
            if owner is None:
                total += 1
            elif (who := (owner["kind"], owner["metadata"]["name"])) not in counted:
                counted.add(who)
                total += replicas_of(owner)
        return total

    def _scaled(self, pod: PodFacts) -> JsonObject | None:
        """Who says how many pods of this kind there should be."""
        if pod.owner is None or pod.owner[0] not in _SCALED:
            return None
        owner = self.cluster.get(pod.owner[0], pod.key[0], pod.owner[1])
        above = None if owner is None else controller_of(owner)
        if above is not None and above["kind"] == "Deployment":
            return self.cluster.get("Deployment", pod.key[0], above["name"]) or owner
        return owner

    def _condition(self, budget: JsonObject, allowed: int) -> JsonObject:
        value = "True" if allowed > 0 else "False"
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        present: JsonObject = next(iter((budget.get("status") or {}).get("conditions") or ()), {})
        same = present.get("status") == value
        at = present["lastTransitionTime"] if same else self.cluster.timestamp()
        return {
            "type": "DisruptionAllowed",
            "status": value,
            "observedGeneration": budget["metadata"].get("generation", 1),
            "lastTransitionTime": at,
            "reason": reason,
            "message": "",
        }


def _says_nothing(spec: JsonObject) -> bool:
    """Whether a budget does not tell how many: one from a snapshot, which keeps what it allowed."""
    return spec.get("minAvailable") is None and spec.get("maxUnavailable") is None


def _share(amount: Any, total: int) -> int:
    """A number, or a percentage of *total*, rounded up."""
    if isinstance(amount, str) and amount.endswith("%"):
        return ceil(int(amount[:-1]) * total / 100)
    return int(amount)
