"""The controllers of replica sets and replication controllers.

Upstream: pkg/controller/replicaset and pkg/controller/replication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from podium.lab.api.encoding import parse_time
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.controller import (
    BURST,
    FAILED_CREATE_SECONDS,
    PodOwningController,
    pod_from_template,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    condition,
    is_terminating,
    key_of,
    new_condition,
    replicas_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import OwnedPods, PodInfo
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector, from_map_literal

_PHASE_ORDER: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController(PodOwningController[Key]):
    """Creates and deletes pods until there are as many as `spec.replicas` asks for."""

    name: ClassVar = "replicaset-controller"
    kind: ClassVar = "ReplicaSet"

    def sync(self, key: Key) -> None:
        """Adopt and release pods, create or delete the difference, then update the status."""
        owner = self.owner_with_pods(key)
        if owner is None:
            return
        owned = self.cluster.pods.of_owner(uid_of(owner))
        failure = None
        if not is_terminating(owner):
            missing = replicas_of(owner) - owned.active
            if missing > 0:
                failure = self._create_pods(owner, missing)
            elif missing < 0:
                self._delete_pods(owner, owned, -missing)
        self._update_status(key, owned, failure)

    def _create_pods(self, owner: JsonObject, missing: int) -> StatusError | None:
        """Create pods; the error if one was refused."""
        pod = pod_from_template(owner["spec"].get("template") or {}, owner)
        for _ in range(min(missing, BURST)):
            try:
                self.create_pod(owner, pod)
            except StatusError as error:
                self.warn(owner, "FailedCreate", f"Error creating: {error.message}")
                self.enqueue(key_of(owner), after=FAILED_CREATE_SECONDS)
                return error
        if missing > BURST:
            self.enqueue(key_of(owner))
        return None

    def _delete_pods(self, owner: JsonObject, owned: OwnedPods, surplus: int) -> None:
        for pod in deletion_order(owned.active_pods())[: min(surplus, BURST)]:
            self.cluster.delete_pod(pod)
            self.record(owner, "SuccessfulDelete", f"Deleted pod: {pod.key[1]}")
        if surplus > BURST:
            self.enqueue(key_of(owner))

    def _update_status(self, key: Key, owned: OwnedPods, failure: StatusError | None) -> None:
        owner = self.cluster.get(self.kind, *key)
        if owner is None:
            return
        spec = owner["spec"]
        template_labels = from_map_literal(
            ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        )
        labelled = owned.active
        if labelled <= BURST:
            labelled = _count_matching(template_labels, owned.active_pods())
        available = self._available(key, owned, spec.get("minReadySeconds") or 0)
        status: JsonObject = {
            "replicas": owned.active,
            "fullyLabeledReplicas": labelled,
            "readyReplicas": owned.ready,
            "availableReplicas": available,
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        status = {name: number for name, number in status.items() if number or name == "replicas"}
        conditions = self._conditions(owner, failure)
        if conditions:
            status["conditions"] = conditions
        self.cluster.update_status(owner, status)

    def _available(self, key: Key, owned: OwnedPods, min_ready_seconds: int) -> int:
        if not min_ready_seconds:
            return owned.ready
        now, available, soonest = self.cluster.now(), 0, None
        for pod in owned.active_pods():
            wait = seconds_until_available(pod, min_ready_seconds, now)
            if wait is not None and wait <= 0:
                available += 1
            elif wait is not None:
                soonest = wait if soonest is None else min(soonest, wait)
        if soonest is not None:
            self.enqueue(key, after=soonest)
        return available

    def _conditions(self, owner: JsonObject, failure: StatusError | None) -> list[JsonObject]:
        if failure is None:
            return []
        before = condition(owner, "ReplicaFailure")
        if before.get("reason") == "FailedCreate":  # the message names another pod every time
            return [before]
        at, message = self.cluster.timestamp(), failure.message
        return [new_condition({}, "ReplicaFailure", "True", "FailedCreate", message, at=at)]


class ReplicationManager(ReplicaSetController):
    """Does the same for replication controllers, whose selector is a plain map."""

    name: ClassVar = "replication-controller"
    kind: ClassVar = "ReplicationController"

    def selector_of(self, owner: JsonObject) -> Selector:
        """The `spec.selector` of a replication controller."""
        return from_map_literal(owner["spec"].get("selector"))


def _count_matching(selector: Selector, pods: Iterable[PodInfo]) -> int:
    """The number of pods that a selector matches; pods with equal labels share one dictionary."""
    count, labels, matches = 0, None, False
    for pod in pods:
        if pod.labels is not labels:
            labels = pod.labels
            matches = selector.matches(labels)
        count += matches
    return count


def seconds_until_available(pod: PodInfo, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a ready pod counts as available, 0 if it does; None if it is not ready."""
    if not pod.ready:
        return None
    if not min_ready_seconds:
        return 0.0
    return max((parse_time(pod.ready_since) or now) + min_ready_seconds - now, 0.0)


def deletion_order(pods: list[PodInfo]) -> list[PodInfo]:
    """Active pods in the order in which a surplus is deleted.

    First come pods without a node, then those that do not run, that are not ready, and those of
    lower deletion cost. Then come pods with more pods of the owner on their node, those that have
    been ready for a shorter time, those that restarted more often, and younger ones.
    """
    on_node = Counter(pod.node for pod in pods)

    def rank(pod: PodInfo) -> tuple[Any, ...]:
        return (
            bool(pod.node),
            _PHASE_ORDER.get(pod.phase, 2),
            pod.ready,
            pod.deletion_cost,
            -on_node[pod.node],
            -(parse_time(pod.ready_since) or 0.0),
            -pod.restarts,
            -(parse_time(pod.created) or 0.0),
        )

    return sorted(pods, key=rank)
