"""The stateful set controller: numbered pods that keep their names and claims.

Upstream: pkg/controller/statefulset.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.controller import (
    BURST,
    FAILED_CREATE_SECONDS,
    PodOwningController,
    pod_from_template,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    key_of,
    replicas_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.controllers.workloads.controller_revisions import (
    HASH_LABEL,
    current_revision_hash,
    template_of_revision,
)
from podium.lab.controllers.workloads.replica_sets import seconds_until_available
from podium.objects.kinds.meta import JsonObject

#: Numbers of the status that are written even when they are 0.
_ALWAYS_WRITTEN: Final = frozenset({"replicas", "availableReplicas", "collisionCount"})


class StatefulSetController(PodOwningController[Key]):
    """Creates, replaces and deletes pods in the order of their ordinals."""

    name: ClassVar = "statefulset-controller"
    kind: ClassVar = "StatefulSet"

    def may_adopt(self, owner: JsonObject, pod: PodInfo) -> bool:
        """Whether a pod has the name of one of the set's pods."""
        return pod.key[1].removeprefix(f"{owner['metadata']['name']}-").isdigit()

    def sync(self, key: Key) -> None:
        """Create, replace or delete the next pod, then update the status."""
        owner = self.owner_with_pods(key)
        if owner is None:
            return
        if not is_terminating(owner):
            self._sync_pods(owner)
        self._update_status(key)

    def _pods_by_ordinal(self, owner: JsonObject) -> dict[int, PodInfo]:
        prefix = f"{owner['metadata']['name']}-"
        found = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            ordinal = pod.key[1].removeprefix(prefix)
            if ordinal.isdigit():
                found[int(ordinal)] = pod
        return found

    def _sync_pods(self, owner: JsonObject) -> None:
        spec = owner["spec"]
        pods = self._pods_by_ordinal(owner)
        start = (spec.get("ordinals") or {}).get("start") or 0
        ordinals = range(start, start + replicas_of(owner))
        ordered = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        if not self._create_missing(owner, pods, ordinals, ordered=ordered):
            return
        surplus = sorted((n for n in pods if n not in ordinals), reverse=True)
        for ordinal in surplus:
            if not pods[ordinal].terminating:
                self._delete_pod(owner, pods[ordinal])
            if ordered:
                return
        if not surplus:
            self._replace_outdated(owner, pods, ordinals)

    def _create_missing(
        self, owner: JsonObject, pods: dict[int, PodInfo], ordinals: range, *, ordered: bool
    ) -> bool:
        """Create missing pods in order; whether surplus and outdated pods may be handled now."""
        budget = BURST
        for ordinal in ordinals:
            pod = pods.get(ordinal)
            if pod is not None and pod.finished and not pod.terminating:
                self._delete_pod(owner, pod)
                pod = self._pods_by_ordinal(owner).get(ordinal)
            if pod is None:
                if budget <= 0:
                    self.enqueue(key_of(owner))
                    return False
                budget -= 1
                self._create_pod(owner, ordinal)
            if ordered and (pod is None or pod.terminating or not self._is_available(owner, pod)):
                return False
        return True

    def _is_available(self, owner: JsonObject, pod: PodInfo) -> bool:
        min_ready_seconds = owner["spec"].get("minReadySeconds") or 0
        wait = seconds_until_available(pod, min_ready_seconds, self.cluster.now())
        if wait:
            self.enqueue(key_of(owner), after=wait)
        return wait is not None and wait <= 0

    def _replace_outdated(
        self, owner: JsonObject, pods: dict[int, PodInfo], ordinals: range
    ) -> None:
        """Delete the last pod of an older template, once all pods after it are available."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = _partition(owner)
        tag = self._current_hash(owner)
        for ordinal in reversed(ordinals):
            pod = pods.get(ordinal)
            if pod is None or pod.terminating:
                return
            if ordinal >= ordinals.start + partition and pod.labels.get(HASH_LABEL) != tag:
                self._delete_pod(owner, pod)
                return
            if not self._is_available(owner, pod):
                return

    def _create_pod(self, owner: JsonObject, ordinal: int) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        tag = self._hash_for(owner, ordinal)
        pod = pod_from_template(template_of_revision(self.cluster, owner, tag), owner)
        del pod["metadata"]["generateName"]
        pod["metadata"]["name"] = name
        pod["metadata"]["labels"] |= {
            "apps.kubernetes.io/pod-index": str(ordinal),
            HASH_LABEL: tag,
            "statefulset.kubernetes.io/pod-name": name,
        }
        spec = pod["spec"]
        spec["hostname"] = name
        if owner["spec"].get("serviceName"):
            spec["subdomain"] = owner["spec"]["serviceName"]
        try:
            claims = self._create_claims(owner, name)
            if claims:
                kept = [each for each in spec.get("volumes") or () if each["name"] not in claims]
                spec["volumes"] = kept + [
                    {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                    for volume, claim in claims.items()
                ]
            self.cluster.create("Pod", pod)
        except StatusError as error:
            what = f"create Pod {name} in StatefulSet {owner['metadata']['name']} failed error"
            self.warn(owner, "FailedCreate", f"{what}: {error.message}")
            self.enqueue(key_of(owner), after=FAILED_CREATE_SECONDS)
            return
        text = f"create Pod {name} in StatefulSet {owner['metadata']['name']} successful"
        self.record(owner, "SuccessfulCreate", text)

    def _hash_for(self, owner: JsonObject, ordinal: int) -> str:
        """The template hash of a new pod: below the partition, that of the current revision."""
        start = (owner["spec"].get("ordinals") or {}).get("start") or 0
        before = (owner.get("status") or {}).get("currentRevision")
        if before and ordinal < start + _partition(owner):
            return str(before)
        return self._current_hash(owner)

    def _current_hash(self, owner: JsonObject) -> str:
        return current_revision_hash(self.cluster, owner, prefix=f"{owner['metadata']['name']}-")

    def _create_claims(self, owner: JsonObject, pod: str) -> dict[str, str]:
        """Create the missing claims of a pod; the names of all its claims by volume."""
        names = {}
        namespace = owner["metadata"]["namespace"]
        match_labels = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            metadata = template.get("metadata") or {}
            volume = metadata.get("name") or ""
            name = names[volume] = f"{volume}-{pod}"
            if self.cluster.get("PersistentVolumeClaim", namespace, name) is not None:
                continue
            labels = {**(metadata.get("labels") or {}), **match_labels}
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": template["spec"],
            }
            if metadata.get("annotations"):
                claim["metadata"]["annotations"] = metadata["annotations"]
            where = f"Pod {pod} in StatefulSet {owner['metadata']['name']}"
            try:
                self.cluster.create("PersistentVolumeClaim", claim)
            except StatusError as error:
                text = f"create Claim {name} for {where} failed error: {error.message}"
                self.warn(owner, "FailedCreate", text)
                why = f"failed to create PVC {name}: {error.message}"
                raise StatusError(error.code, error.reason, why) from error
            self.record(owner, "SuccessfulCreate", f"create Claim {name} {where} success")
        return names

    def _delete_pod(self, owner: JsonObject, pod: PodInfo) -> None:
        self.cluster.delete_pod(pod)
        text = f"delete Pod {pod.key[1]} in StatefulSet {owner['metadata']['name']} successful"
        self.record(owner, "SuccessfulDelete", text)

    def _update_status(self, key: Key) -> None:
        owner = self.cluster.get("StatefulSet", *key)
        if owner is None:
            return
        before = owner.get("status") or {}
        pods = [pod for pod in self._pods_by_ordinal(owner).values() if not pod.finished]
        tag = self._current_hash(owner)
        current = before.get("currentRevision") or tag
        staying = [pod for pod in pods if not pod.terminating]
        updated = sum(pod.labels.get(HASH_LABEL) == tag for pod in staying)
        ready = [pod for pod in pods if pod.ready and not pod.terminating]
        if updated == replicas_of(owner) == len(ready) == len(pods):
            current = tag
        status: JsonObject = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "currentReplicas": sum(pod.labels.get(HASH_LABEL) == current for pod in staying),
            "updatedReplicas": updated,
            "availableReplicas": sum(self._is_available(owner, pod) for pod in ready),
            "currentRevision": current,
            "updateRevision": tag,
            "collisionCount": before.get("collisionCount", 0),
        }
        status = {name: n for name, n in status.items() if n or name in _ALWAYS_WRITTEN}
        self.cluster.update_status(owner, status)


def _partition(owner: JsonObject) -> int:
    """The ordinal, counted from the first, below which pods keep the previous template."""
    strategy = owner["spec"].get("updateStrategy") or {}
    return (strategy.get("rollingUpdate") or {}).get("partition") or 0
