"""Stateful sets: numbered pods that keep their names and claims, made and replaced in order.

Upstream: pkg/controller/statefulset.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import is_leaving, key_of, replicas_of, uid_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.framework.pod_template import from_template
from podium.lab.controllers.workloads.controller_revisions import (
    HASH,
    present_revision,
    template_of,
)
from podium.lab.controllers.workloads.replica_sets import available_in
from podium.objects.kinds.meta import JsonObject

#: Pods made in one go when they need not wait for each other.
_BURST: Final = 100


class StatefulSets(Controller):
    """Keeps numbered pods."""

    name: ClassVar = "statefulset-controller"
    hears_pods = True

    def hears(self) -> dict[str, Hearing]:
        """Of stateful sets."""
        return {"StatefulSet": self.hear_own}

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod of a stateful set changed."""
        pod = new or old
        assert pod is not None
        if pod.owner is not None and pod.owner[0] == "StatefulSet":
            self.add((pod.key[0], pod.owner[1]))

    def sync(self, key: Any) -> None:
        """One step: make, replace or delete what comes next."""
        owner = self.cluster.get("StatefulSet", *key)
        if owner is None:
            return
        if not is_leaving(owner):
            self._step(owner)
        self._report(key)

    def _numbered(self, owner: JsonObject) -> dict[int, PodFacts]:
        stem = f"{owner['metadata']['name']}-"
        found = {}
        for pod in self.cluster.pods.of_owner(uid_of(owner)):
            number = pod.key[1].removeprefix(stem)
            if number.isdigit():
                found[int(number)] = pod
        return found

    def _step(self, owner: JsonObject) -> None:
        spec = owner["spec"]
        pods = self._numbered(owner)
        start = (spec.get("ordinals") or {}).get("start") or 0
        numbers = range(start, start + replicas_of(owner))
        ordered = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        if not self._fill(owner, pods, numbers, ordered=ordered):
            return
        surplus = sorted((n for n in pods if n not in numbers), reverse=True)
        for number in surplus:
            if not pods[number].leaving:
                self._delete(owner, pods[number])
            if ordered:
                return
        if not surplus:
            self._roll(owner, pods, numbers)

    def _fill(
        self, owner: JsonObject, pods: dict[int, PodFacts], numbers: range, *, ordered: bool
    ) -> bool:
        """Make missing pods, the lowest number first; whether one may go on with the rest."""
        budget = _BURST
        for number in numbers:
            pod = pods.get(number)
            if pod is not None and pod.finished and not pod.leaving:
                self._delete(owner, pod)
                pod = self._numbered(owner).get(number)
            if pod is None:
                if budget <= 0:
                    self.add(key_of(owner))
                    return False
                budget -= 1
                self._make(owner, number)
            if ordered and (pod is None or pod.leaving or not self._available(owner, pod)):
                return False
        return True

    def _available(self, owner: JsonObject, pod: PodFacts) -> bool:
        wait = available_in(pod, owner["spec"].get("minReadySeconds") or 0, self.cluster.now())
        if wait:
            self.add(key_of(owner), after=wait)
        return wait is not None and wait <= 0

    def _roll(self, owner: JsonObject, pods: dict[int, PodFacts], numbers: range) -> None:
        """Replace pods of an older template, the highest number first, one at a time."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        tag = self._revision(owner)
        for number in reversed(numbers):
            pod = pods.get(number)
            if pod is None or pod.leaving:
                return
            if number >= numbers.start + partition and pod.labels.get(HASH) != tag:
                self._delete(owner, pod)
                return
            if not self._available(owner, pod):
                return

    def _make(self, owner: JsonObject, number: int) -> None:
        name = f"{owner['metadata']['name']}-{number}"
        tag = self._revision_for(owner, number)
        pod = from_template(template_of(self.cluster, owner, tag), owner)
        del pod["metadata"]["generateName"]
        pod["metadata"]["name"] = name
        pod["metadata"]["labels"] |= {
            "apps.kubernetes.io/pod-index": str(number),
            HASH: tag,
            "statefulset.kubernetes.io/pod-name": name,
        }
        claims = self._claims(owner, name)
        spec = pod["spec"]
        if claims:
            kept = [each for each in spec.get("volumes") or () if each["name"] not in claims]
            spec["volumes"] = kept + [
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                for volume, claim in claims.items()
            ]
        spec["hostname"] = name
        if owner["spec"].get("serviceName"):
            spec["subdomain"] = owner["spec"]["serviceName"]
        self.cluster.create("Pod", pod)
        text = f"create Pod {name} in StatefulSet {owner['metadata']['name']} successful"
        self.cluster.events.normal(owner, "SuccessfulCreate", text, self.name)

    def _revision_for(self, owner: JsonObject, number: int) -> str:
        """Pods below the partition stay with the template of before."""
        strategy = owner["spec"].get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        start = (owner["spec"].get("ordinals") or {}).get("start") or 0
        before = (owner.get("status") or {}).get("currentRevision")
        return before if before and number < start + partition else self._revision(owner)

    def _revision(self, owner: JsonObject) -> str:
        """The name of the present template."""
        return present_revision(self.cluster, owner, prefix=f"{owner['metadata']['name']}-")

    def _claims(self, owner: JsonObject, pod: str) -> dict[str, str]:
        """Make the claims of one pod that do not exist; the answer names them by volume."""
        names = {}
        namespace = owner["metadata"]["namespace"]
        matched = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            metadata = template["metadata"]
            name = names[metadata["name"]] = f"{metadata['name']}-{pod}"
            if self.cluster.get("PersistentVolumeClaim", namespace, name) is not None:
                continue
            labels = {**(metadata.get("labels") or {}), **matched}
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": template["spec"],
            }
            if metadata.get("annotations"):
                claim["metadata"]["annotations"] = metadata["annotations"]
            self.cluster.create("PersistentVolumeClaim", claim)
            text = (
                f"create Claim {name} Pod {pod} in StatefulSet {owner['metadata']['name']} success"
            )
            self.cluster.events.normal(owner, "SuccessfulCreate", text, self.name)
        return names

    def _delete(self, owner: JsonObject, pod: PodFacts) -> None:
        self.cluster.delete_pod(pod)
        text = f"delete Pod {pod.key[1]} in StatefulSet {owner['metadata']['name']} successful"
        self.cluster.events.normal(owner, "SuccessfulDelete", text, self.name)

    def _report(self, key: Any) -> None:
        owner = self.cluster.get("StatefulSet", *key)
        if owner is None:
            return
        before = owner.get("status") or {}
        pods = [pod for pod in self._numbered(owner).values() if not pod.finished]
        tag = self._revision(owner)
        current = before.get("currentRevision") or tag
        staying = [pod for pod in pods if not pod.leaving]
        updated = sum(pod.labels.get(HASH) == tag for pod in staying)
        ready = [pod for pod in pods if pod.ready and not pod.leaving]
        wish = replicas_of(owner)
        if updated == wish == len(ready) == len(pods):
            current = tag
        status: JsonObject = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "currentReplicas": sum(pod.labels.get(HASH) == current for pod in staying),
            "updatedReplicas": updated,
            "availableReplicas": sum(self._available(owner, pod) for pod in ready),
            "currentRevision": current,
            "updateRevision": tag,
            "collisionCount": before.get("collisionCount", 0),
        }
        always = {"replicas", "availableReplicas", "collisionCount"}
        status = {name: n for name, n in status.items() if n or name in always}
        self.cluster.report(owner, status)
