"""Replica sets and replication controllers: as many equal pods as they ask for.

Upstream: pkg/controller/replicaset.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Final

from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.controller_ref import claim, selector
from podium.lab.controllers.framework.object_fields import (
    condition,
    is_leaving,
    key_of,
    moment,
    replicas_of,
    uid_of,
)
from podium.lab.controllers.framework.pod_index import Group
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.lab.controllers.framework.pod_template import from_template
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector, from_map_literal

#: Pods made or deleted in one go; the rest follows when others had their turn.
BURST: Final = 100
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(Controller):
    """Keeps the wished number of pods."""

    name: ClassVar = "replicaset-controller"
    kind: ClassVar = "ReplicaSet"
    hears_pods = True

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._relabelled: dict[Key, set[Key]] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of its own kind."""
        return {self.kind: self.hear_own}

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod changed: its owner counts again; nobody's pod may be adopted."""
        pod = new or old
        assert pod is not None
        namespace, owner = pod.key[0], pod.owner
        relabelled = old is not None and new is not None and old.labels is not new.labels
        if old is not None and old.owner != owner and old.owner and old.owner[0] == self.kind:
            self.add((namespace, old.owner[1]))
        if owner is not None:
            if owner[0] == self.kind:
                key = (namespace, owner[1])
                if relabelled:
                    self._relabelled.setdefault(key, set()).add(pod.key)
                self.add(key)
        elif new is not None and (old is None or relabelled or old.owner is not None):
            for each in self.cluster.within(self.kind, namespace):
                if self.selects(each).matches(pod.labels):
                    self.add(key_of(each))

    def selects(self, owner: JsonObject) -> Selector:
        """Which pods are the owner's."""
        return selector(owner["spec"].get("selector"))

    def sync(self, key: Any) -> None:
        """Make or delete pods, then write down how many there are."""
        owner = self.cluster.get(self.kind, *key)
        if owner is None:
            self._relabelled.pop(key, None)
            return
        claim(self.cluster, owner, self.selects(owner), self._relabelled.pop(key, set()))
        group = self.cluster.pods.of_owner(uid_of(owner))
        failure = None
        if not is_leaving(owner):
            missing = replicas_of(owner) - group.active
            if missing > 0:
                failure = self._make(owner, missing)
            elif missing < 0:
                self._delete(owner, group, -missing)
        self._report(key, group, failure)

    def _make(self, owner: JsonObject, missing: int) -> StatusError | None:
        pod = from_template(owner["spec"].get("template") or {}, owner)
        for _ in range(min(missing, BURST)):
            try:
                made = self.cluster.create("Pod", pod)
            except StatusError as error:
                text = f"Error creating: {error.message}"
                self.cluster.events.warning(owner, "FailedCreate", text, self.name)
                self.add(key_of(owner), after=1.0)
                return error
            text = f"Created pod: {made['metadata']['name']}"
            self.cluster.events.normal(owner, "SuccessfulCreate", text, self.name)
        if missing > BURST:
            self.add(key_of(owner))
        return None

    def _delete(self, owner: JsonObject, group: Group, surplus: int) -> None:
        for pod in first_to_go(group.active_pods())[: min(surplus, BURST)]:
            self.cluster.delete_pod(pod)
            text = f"Deleted pod: {pod.key[1]}"
            self.cluster.events.normal(owner, "SuccessfulDelete", text, self.name)
        if surplus > BURST:
            self.add(key_of(owner))

    def _report(self, key: Any, group: Group, failure: StatusError | None) -> None:
        owner = self.cluster.get(self.kind, *key)
        if owner is None:
            return
        spec = owner["spec"]
        wanted = from_map_literal(
            ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        )
        labelled = group.active
        if labelled <= BURST:
            labelled = sum(wanted.matches(pod.labels) for pod in group.active_pods())
        available = self._available(key, group, spec.get("minReadySeconds") or 0)
        status: JsonObject = {
            "replicas": group.active,
            "fullyLabeledReplicas": labelled,
            "readyReplicas": group.ready,
            "availableReplicas": available,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        status = {name: number for name, number in status.items() if number or name == "replicas"}
        conditions = self._conditions(owner, failure)
        if conditions:
            status["conditions"] = conditions
        self.cluster.report(owner, status)

    def _available(self, key: Any, group: Group, min_ready: int) -> int:
        if not min_ready:
            return group.ready
        now, available, soonest = self.cluster.now(), 0, None
        for pod in group.active_pods():
            wait = available_in(pod, min_ready, now)
            if wait is not None and wait <= 0:
                available += 1
            elif wait is not None:
                soonest = wait if soonest is None else min(soonest, wait)
        if soonest is not None:
            self.add(key, after=soonest)
        return available

    def _conditions(self, owner: JsonObject, failure: StatusError | None) -> list[JsonObject]:
        if failure is None:
            return []
        before = condition(owner, "ReplicaFailure")
        if before.get("reason") == "FailedCreate":  # the message names another pod every time
            return [before]
        return [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": self.cluster.timestamp(),
                "reason": "FailedCreate",
                "message": failure.message,
            }
        ]


class ReplicationControllers(ReplicaSets):
    """The same with a plain map as selector."""

    name: ClassVar = "replication-controller"
    kind: ClassVar = "ReplicationController"

    def selects(self, owner: JsonObject) -> Selector:
        """Which pods are the owner's."""
        return from_map_literal(owner["spec"].get("selector"))


def available_in(pod: PodFacts, min_ready: int, now: float) -> float | None:
    """Seconds until a ready pod counts as available, 0 if it does now; None if not ready."""
    if not pod.ready:
        return None
    if not min_ready:
        return 0.0
    return max((moment(pod.ready_since) or now) + min_ready - now, 0.0)


def first_to_go(pods: list[PodFacts]) -> list[PodFacts]:
    """Active pods in the order in which they are deleted when there are too many.

    Without a node first, then not running, not ready, of lower deletion cost, in company on their
    node, ready for a shorter time, restarted more often, younger.
    """
    company = Counter(pod.node for pod in pods)

    def order(pod: PodFacts) -> tuple[Any, ...]:
        return (
            bool(pod.node),
            _PHASES.get(pod.phase, 2),
            pod.ready,
            pod.cost,
            -company[pod.node],
            -(moment(pod.ready_since) or 0.0),
            -pod.restarts,
            -(moment(pod.created) or 0.0),
        )

    return sorted(pods, key=order)
