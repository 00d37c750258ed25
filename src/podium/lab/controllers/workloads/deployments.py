"""The deployment controller: a replica set per version of the template, and rollouts between them.

First come pure functions of numbers, which say how a rollout scales the replica sets. Then come the
counts and conditions of the status, which `kubectl rollout status` reads, and the controller.

Upstream: pkg/controller/deployment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from podium.lab.api.encoding import format_time, parse_time
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import (
    Controller,
    adopt,
    changed_key,
    controller_ref,
    no_listed_pods,
    template_hash,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    annotation,
    condition,
    controller_of,
    int_or_percent,
    is_terminating,
    key_of,
    labels_of,
    replicas_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.store.selection import compile_selector
from podium.objects.kinds.meta import JsonObject

_SUMMED: Final = ("replicas", "readyReplicas", "availableReplicas")
HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
_MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
#: Annotations of a deployment that its replica sets do not inherit.
_NOT_INHERITED: Final = frozenset({REVISION, _DESIRED_REPLICAS, _MAX_REPLICAS, _LAST_APPLIED})


class ReplicaCounts(NamedTuple):
    """The numbers of one replica set: `spec.replicas`, its pods, and its available pods."""

    desired: int
    pods: int
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """`maxSurge` and `maxUnavailable` as numbers of pods."""

    surge: int
    unavailable: int


def rollout_limits(replicas: int, strategy: Any) -> RolloutLimits:
    """The limits of a rolling update, a quarter by default; not both of them can be 0."""
    rolling = (strategy or {}).get("rollingUpdate") or {}
    surge = int_or_percent(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = int_or_percent(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(surge, min(unavailable, replicas))


def rolling_step(
    replicas: int, new: ReplicaCounts, old: Sequence[ReplicaCounts], limits: RolloutLimits
) -> list[int]:
    """The next replicas of the new set and the old ones: the new set grows before old ones shrink.

    The result starts with the new set.
    """
    desired = [new.desired, *(each.desired for each in old)]
    scaled_up = _scaled_up(replicas, new.desired, sum(desired), limits)
    if scaled_up != new.desired:
        return [scaled_up, *desired[1:]]
    return [new.desired, *_scaled_down(replicas, new, old, limits)]


def _scaled_up(replicas: int, desired: int, total: int, limits: RolloutLimits) -> int:
    if desired > replicas:
        return replicas
    spare = replicas + limits.surge - total
    return desired + max(min(spare, replicas - desired), 0)


def _scaled_down(
    replicas: int, new: ReplicaCounts, old: Sequence[ReplicaCounts], limits: RolloutLimits
) -> list[int]:
    """Old sets lose unavailable pods first, then as many as may be unavailable."""
    total = new.desired + sum(each.desired for each in old)
    min_available = replicas - limits.unavailable
    starting = new.desired - new.available
    surplus = total - min_available - starting
    desired = [each.desired for each in old]
    if surplus <= 0 or not any(desired):
        return desired
    for index, each in enumerate(old):
        unavailable = min(surplus, each.desired - each.available)
        if unavailable > 0:
            desired[index] -= unavailable
            surplus -= unavailable
    surplus = min(surplus, sum(each.available for each in (new, *old)) - min_available)
    for index in range(len(old)):
        removed = min(max(surplus, 0), desired[index])
        desired[index] -= removed
        surplus -= removed
    return desired


def recreate_step(
    replicas: int, new: ReplicaCounts | None, old: Sequence[ReplicaCounts]
) -> list[int]:
    """The next replicas under `Recreate`: the new set starts when no old pod is left."""
    if any(each.desired for each in old) or any(each.pods for each in old):
        return [new.desired if new else 0, *(0 for _ in old)]
    return [replicas, *(0 for _ in old)]


def scale_proportionally(replicas: int, desired: Sequence[int], surge: int) -> list[int]:
    """The replicas of all sets after a deployment was scaled during a rollout.

    The largest set takes the remainder of the rounding.
    """
    total = sum(desired)
    allowed = replicas + surge if replicas > 0 else 0
    if total in {0, allowed}:
        return list(desired)
    scaled = [each * allowed // total for each in desired]
    remainder = allowed - sum(scaled)
    largest = max(range(len(scaled)), key=scaled.__getitem__)
    scaled[largest] += remainder
    return scaled


class _State(NamedTuple):
    """Status, reason and message of a condition."""

    status: str
    reason: str
    message: str


_AVAILABLE: Final = _State(
    "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
)
_UNAVAILABLE: Final = _State(
    "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
)
_PAUSED: Final = _State("Unknown", "DeploymentPaused", "Deployment is paused")


def deployment_status(
    deployment: JsonObject, new: JsonObject | None, sets: Sequence[JsonObject], now: float
) -> tuple[JsonObject, float | None]:
    """The status, and the seconds after which it changes without any event, if it does.

    *new* is the replica set of the present template, *sets* are all replica sets.
    """
    before = deployment.get("status") or {}
    found: JsonObject = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    for name in _SUMMED:
        found[name] = sum((each.get("status") or {}).get(name, 0) for each in sets)
    found["updatedReplicas"] = 0 if new is None else (new.get("status") or {}).get("replicas", 0)
    desired = sum(each["spec"].get("replicas", 1) for each in sets)
    found["unavailableReplicas"] = max(desired - found["availableReplicas"], 0)
    if before.get("collisionCount"):
        found["collisionCount"] = before["collisionCount"]
    found = {name: number for name, number in found.items() if number}
    available = _available(deployment, found.get("availableReplicas", 0), now)
    progressing, wait = _progressing(deployment, new, found, now)
    conditions = [available, *([progressing] if progressing else [])]
    order = [each.get("type") for each in before.get("conditions") or ()]
    if order[:1] == ["Progressing"]:
        conditions.reverse()
    found["conditions"] = conditions
    return found, wait


def _available(deployment: JsonObject, available: int, now: float) -> JsonObject:
    spec = deployment["spec"]
    replicas = spec.get("replicas", 1)
    strategy = spec.get("strategy") or {}
    unavailable = 0
    if strategy.get("type") != "Recreate":
        unavailable = rollout_limits(replicas, strategy).unavailable
    state = _AVAILABLE if available >= replicas - unavailable else _UNAVAILABLE
    return _condition(deployment, "Available", state, now)


def _progressing(
    deployment: JsonObject, new: JsonObject | None, found: JsonObject, now: float
) -> tuple[JsonObject | None, float | None]:
    """The condition Progressing, and the seconds until its deadline."""
    present = condition(deployment, "Progressing")
    if deployment["spec"].get("paused"):
        return _condition(deployment, "Progressing", _PAUSED, now), None
    if new is None:
        return dict(present) or None, None
    subject = f'ReplicaSet "{new["metadata"]["name"]}"'
    same = subject in present.get("message", "")
    if _is_complete(deployment, found):
        state = _State("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
        return _condition(deployment, "Progressing", state, now), None
    if same and present.get("reason") == "NewReplicaSetAvailable":
        return present, None  # a completed rollout stays complete when pods are lost later
    deadline = _deadline(deployment["spec"])
    if not same or _has_progressed(deployment.get("status") or {}, found):
        state = _State("True", "ReplicaSetUpdated", f"{subject} is progressing.")
        updated = _condition(deployment, "Progressing", state, now)
        return {**updated, "lastUpdateTime": format_time(now)}, deadline
    return _stalled(deployment, subject, deadline, now)


def _stalled(
    deployment: JsonObject, subject: str, deadline: float | None, now: float
) -> tuple[JsonObject, float | None]:
    """The condition of a rollout without progress: it fails when the deadline has passed."""
    present = condition(deployment, "Progressing")
    if deadline is None:
        return present, None
    left = (parse_time(present.get("lastUpdateTime")) or now) + deadline - now
    if left > 0 and present.get("status") == "True":
        return present, left
    state = _State("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
    return _condition(deployment, "Progressing", state, now), None


def _is_complete(deployment: JsonObject, found: JsonObject) -> bool:
    replicas = deployment["spec"].get("replicas", 1)
    numbers = ("updatedReplicas", "replicas", "availableReplicas")
    return all(found.get(name, 0) == replicas for name in numbers)


def _deadline(spec: JsonObject) -> float | None:
    seconds = spec["progressDeadlineSeconds"]
    return None if seconds >= 2**31 - 1 else float(seconds)


def _has_progressed(before: JsonObject, found: JsonObject) -> bool:
    """Whether there are more new pods or fewer old ones than before."""

    def old_pods(status: JsonObject) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    more = any(
        found.get(name, 0) > before.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old_pods(found) < old_pods(before)


def _condition(deployment: JsonObject, kind: str, state: _State, now: float) -> JsonObject:
    """The condition in a state; as far as it is unchanged it keeps its times."""
    present, at = condition(deployment, kind), format_time(now)
    same = present.get("status") == state.status
    unchanged = (
        same and present.get("reason") == state.reason and present.get("message") == state.message
    )
    return {
        "type": kind,
        "status": state.status,
        "lastUpdateTime": present["lastUpdateTime"] if unchanged else at,
        "lastTransitionTime": present["lastTransitionTime"] if same else at,
        "reason": state.reason,
        "message": state.message,
    }


class DeploymentController(Controller[Key]):
    """Moves pods from old replica sets to that of the present template, step by step."""

    name: ClassVar = "deployment-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch deployments, replica sets and pods."""
        super().__init__(cluster)
        #: Replica sets by the uid of their deployment.
        self._sets: dict[str, dict[Key, JsonObject]] = {}
        self.watch("Deployment", lambda old, new: self.enqueue(changed_key(old, new)))
        self.watch("ReplicaSet", self._on_replica_set)
        self.watch_pods(self._on_pod, listed=no_listed_pods)

    def _on_replica_set(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for each in (old, new):
            owner = None if each is None else controller_of(each)
            if each is not None and owner is not None and owner["kind"] == "Deployment":
                sets = self._sets.setdefault(owner["uid"], {})
                sets.pop(key_of(each), None)
                if each is new:
                    sets[key_of(each)] = each
                elif not sets:
                    del self._sets[owner["uid"]]
                self.enqueue((each["metadata"]["namespace"], owner["name"]))
            elif each is not None and each is new:
                self._enqueue_adopters(each)

    def _enqueue_adopters(self, orphan: JsonObject) -> None:
        for each in self.cluster.list_in_namespace("Deployment", orphan["metadata"]["namespace"]):
            if compile_selector(each["spec"].get("selector")).matches(labels_of(orphan)):
                self.enqueue(key_of(each))

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        """Enqueue the deployment of a pod that is gone: `Recreate` waits for that."""
        if new is None and old is not None and old.owner and old.owner[0] == "ReplicaSet":
            owner = self.cluster.get("ReplicaSet", old.key[0], old.owner[1])
            above = None if owner is None else controller_of(owner)
            if above is not None and above["kind"] == "Deployment":
                self.enqueue((old.key[0], above["name"]))

    def sync(self, key: Key) -> None:
        """Take one step of the rollout, then update the status."""
        deployment = self.cluster.get("Deployment", *key)
        if deployment is None:
            return
        if not is_terminating(deployment):
            self._adopt_replica_sets(deployment)
            self._roll_out(deployment)
        self._update_status(key)

    def replica_sets(self, deployment: JsonObject) -> list[JsonObject]:
        """The replica sets of a deployment, oldest first."""
        found = self._sets.get(uid_of(deployment), {}).values()
        return sorted(found, key=_age)

    def _adopt_replica_sets(self, deployment: JsonObject) -> None:
        selector = compile_selector(deployment["spec"].get("selector"))
        namespace = deployment["metadata"]["namespace"]
        for each in list(self.cluster.list_in_namespace("ReplicaSet", namespace)):
            is_orphan = controller_of(each) is None and not is_terminating(each)
            if is_orphan and selector.matches(labels_of(each)):
                self.cluster.update("ReplicaSet", key_of(each), lambda it: adopt(it, deployment))

    def _roll_out(self, deployment: JsonObject) -> None:
        sets = self.replica_sets(deployment)
        new = current_replica_set(deployment, sets)
        spec = deployment["spec"]
        replicas = replicas_of(deployment)
        strategy = spec.get("strategy") or {}
        recreate = strategy.get("type") == "Recreate"
        limits = rollout_limits(replicas, strategy)
        if new is not None:
            new = self._renew_revision(deployment, new, sets)
            sets = self.replica_sets(deployment)
        old = [each for each in sets if new is None or each is not new]
        if spec.get("paused") or self._was_scaled(replicas, sets):
            self._scale_without_rollout(deployment, new, sets, 0 if recreate else limits.surge)
            return
        counts = [_counts(each) for each in old]
        if recreate:
            pods = sum(len(self.cluster.pods.of_owner(uid_of(each)).pods) for each in old)
            if pods and counts:
                counts[0] = counts[0]._replace(pods=pods)
            desired = recreate_step(replicas, None if new is None else _counts(new), counts)
            if new is None and any(each.desired or each.pods for each in counts):
                self._scale(deployment, old, desired[1:])
                return
            new = new or self._create_replica_set(deployment, sets, desired[0])
        else:
            if new is None:
                total = sum(each.desired for each in counts)
                spare = max(replicas + limits.surge - total, 0)
                new = self._create_replica_set(deployment, sets, min(spare, replicas))
            desired = rolling_step(replicas, _counts(new), counts, limits)
        self._scale(deployment, [new, *old], desired)
        self._delete_old_revisions(deployment, old)

    def _was_scaled(self, replicas: int, sets: list[JsonObject]) -> bool:
        return any(
            replicas_of(each) > 0 and annotation(each, _DESIRED_REPLICAS) not in {"", str(replicas)}
            for each in sets
        )

    def _scale_without_rollout(
        self, deployment: JsonObject, new: JsonObject | None, sets: list[JsonObject], surge: int
    ) -> None:
        """Follow a change of `spec.replicas` while the rollout is paused or half done."""
        if not sets:
            return
        replicas = replicas_of(deployment)
        active = [each for each in sets if replicas_of(each) > 0]
        if len(active) <= 1:
            only = active[0] if active else new or sets[-1]
            self._scale(deployment, [only], [replicas])
            return
        counts = None if new is None else _counts(new)
        if counts and counts.desired == replicas == counts.available:
            old = [each for each in active if each is not new]
            self._scale(deployment, old, [0] * len(old))
            return
        desired = [replicas_of(each) for each in active]
        self._scale(deployment, active, scale_proportionally(replicas, desired, surge))

    def _scale(self, deployment: JsonObject, sets: list[JsonObject], desired: list[int]) -> None:
        for each, replicas in zip(sets, desired, strict=True):
            before = replicas_of(each)
            wanted = self._replica_annotations(deployment)
            annotations = each["metadata"].get("annotations") or {}
            if replicas == before and wanted.items() <= annotations.items():
                continue

            def scale(
                it: JsonObject, wanted: JsonObject = wanted, replicas: int = replicas
            ) -> None:
                it["metadata"].setdefault("annotations", {}).update(wanted)
                it["spec"]["replicas"] = replicas

            self.cluster.update("ReplicaSet", key_of(each), scale)
            if replicas != before:
                self._record_scaling(deployment, each["metadata"]["name"], before, replicas)

    def _record_scaling(self, deployment: JsonObject, name: str, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {after}"
        self.record(deployment, "ScalingReplicaSet", text)

    def _replica_annotations(self, deployment: JsonObject) -> dict[str, str]:
        replicas = replicas_of(deployment)
        strategy = deployment["spec"].get("strategy") or {}
        surge = 0
        if strategy.get("type") != "Recreate":
            surge = rollout_limits(replicas, strategy).surge
        return {_DESIRED_REPLICAS: str(replicas), _MAX_REPLICAS: str(replicas + surge)}

    def _create_replica_set(
        self, deployment: JsonObject, sets: list[JsonObject], replicas: int
    ) -> JsonObject:
        template = deployment["spec"]["template"]
        collisions = (deployment.get("status") or {}).get("collisionCount", 0)
        hash_label = {HASH_LABEL: template_hash([template, collisions])}
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), **hash_label}
        selector = deployment["spec"].get("selector") or {}
        match_labels = {**(selector.get("matchLabels") or {}), **hash_label}
        revision = str(max((_revision(each) for each in sets), default=0) + 1)
        spec: JsonObject = {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": match_labels},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        }
        if deployment["spec"].get("minReadySeconds"):
            spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        annotations = self._inherited_annotations(deployment)
        annotations |= self._replica_annotations(deployment) | {REVISION: revision}
        made = self.cluster.create(
            "ReplicaSet",
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{deployment['metadata']['name']}-{hash_label[HASH_LABEL]}",
                    "namespace": deployment["metadata"]["namespace"],
                    "labels": labels,
                    "annotations": annotations,
                    "ownerReferences": [controller_ref(deployment)],
                },
                "spec": spec,
            },
        )
        if replicas:
            self._record_scaling(deployment, made["metadata"]["name"], 0, replicas)
        self._set_revision(deployment, revision)
        return made

    def _renew_revision(
        self, deployment: JsonObject, new: JsonObject, sets: list[JsonObject]
    ) -> JsonObject:
        """Give the present replica set the highest revision and the deployment's annotations."""
        others = (_revision(each) for each in sets if each is not new)
        revision = str(max(_revision(new), max(others, default=0) + 1))
        annotations = new["metadata"].get("annotations") or {}
        wanted = self._inherited_annotations(deployment) | {REVISION: revision}
        min_ready_seconds = deployment["spec"].get("minReadySeconds") or 0
        if not wanted.items() <= annotations.items() or min_ready_seconds != (
            new["spec"].get("minReadySeconds") or 0
        ):

            def renew(it: JsonObject) -> None:
                it["metadata"].setdefault("annotations", {}).update(wanted)
                it["spec"]["minReadySeconds"] = min_ready_seconds

            new = self.cluster.update("ReplicaSet", key_of(new), renew) or new
        self._set_revision(deployment, revision)
        return new

    def _inherited_annotations(self, deployment: JsonObject) -> dict[str, str]:
        written = deployment["metadata"].get("annotations") or {}
        return {name: text for name, text in written.items() if name not in _NOT_INHERITED}

    def _set_revision(self, deployment: JsonObject, revision: str) -> None:
        present = self.cluster.get("Deployment", *key_of(deployment))
        if present is not None and annotation(present, REVISION) != revision:

            def set_revision(it: JsonObject) -> None:
                it["metadata"].setdefault("annotations", {})[REVISION] = revision

            self.cluster.update("Deployment", key_of(deployment), set_revision)

    def _delete_old_revisions(self, deployment: JsonObject, old: list[JsonObject]) -> None:
        limit = deployment["spec"]["revisionHistoryLimit"]
        unused = [
            each
            for each in sorted(old, key=_revision)
            if not replicas_of(each)
            and not (each.get("status") or {}).get("replicas")
            and not is_terminating(each)
        ]
        for each in unused[: max(len(unused) - limit, 0)]:
            self.cluster.delete(each)

    def _update_status(self, key: Key) -> None:
        deployment = self.cluster.get("Deployment", *key)
        if deployment is None:
            return
        sets = self.replica_sets(deployment)
        new = current_replica_set(deployment, sets)
        status, wait = deployment_status(deployment, new, sets, self.cluster.now())
        self.cluster.update_status(deployment, status)
        if wait is not None:
            self.enqueue(key, after=wait)


def current_replica_set(deployment: JsonObject, sets: list[JsonObject]) -> JsonObject | None:
    """The oldest replica set with the present template of the deployment."""
    template = deployment["spec"].get("template") or {}
    found = (each for each in sets if _without_hash(each["spec"]["template"]) == template)
    return next(found, None)


def _without_hash(template: JsonObject) -> JsonObject:
    metadata = template.get("metadata") or {}
    labels = {
        name: text for name, text in (metadata.get("labels") or {}).items() if name != HASH_LABEL
    }
    return {**template, "metadata": {**metadata, "labels": labels}}


def _counts(replica_set: JsonObject) -> ReplicaCounts:
    status = replica_set.get("status") or {}
    return ReplicaCounts(
        replicas_of(replica_set), status.get("replicas", 0), status.get("availableReplicas", 0)
    )


def _revision(replica_set: JsonObject) -> int:
    text = annotation(replica_set, REVISION)
    return int(text) if text.isdigit() else 0


def _age(replica_set: JsonObject) -> tuple[float, int, str]:
    metadata = replica_set["metadata"]
    return (
        parse_time(metadata.get("creationTimestamp")) or 0.0,
        _revision(replica_set),
        metadata["name"],
    )
