"""The claim controller: makes claims from templates, and releases claims that no pod needs.

A claim is made for each entry of a pod that names a template, and noted in the status of the pod.
A claim loses the reservations of pods that are gone or finished; with the last of them it is
deallocated and its finalizer is removed. A claim that was made for a pod is deleted with the pod,
or when the pod is finished.

Upstream: pkg/controller/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster, deep_copy
from podium.lab.controllers.framework.controller import Controller, changed
from podium.lab.controllers.framework.object_fields import (
    Key,
    ObjectPlace,
    annotation,
    is_terminating,
    key_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import FINISHED, LabPods, PodInfo
from podium.objects.kinds.devices import CLAIM_FINALIZER
from podium.objects.kinds.meta import JsonObject

#: Names the entry of the pod that a claim was made for.
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
_COMPONENT: Final = "resource_claim"
_MOST_CONSUMERS: Final = 256
#: Room for five random characters in a name of 63.
_LONGEST_PREFIX: Final = 57


class ResourceClaimController(Controller[ObjectPlace]):
    """Makes and releases claims. Its keys are pods, whose claims it makes, and claims."""

    name: ClassVar = "resource-claim-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch pods, claims and templates."""
        super().__init__(cluster)
        #: Pods by the claims that they use, and by the templates that they name.
        self._by_claim: dict[Key, dict[Key, None]] = {}
        self._by_template: dict[Key, dict[Key, None]] = {}
        #: The claims that were made for a pod, by its uid.
        self._made: dict[str, dict[Key, None]] = {}
        self.watch("Pod", self._on_pod)
        self.watch_pods(None, listed=self._on_listed_pods)
        self.watch("ResourceClaim", self._on_claim)
        self.watch("ResourceClaimTemplate", self._on_template)

    # Changes
    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        pod = changed(old, new)
        if not pod["spec"].get("resourceClaims") and not _extended_claim(pod):
            return
        self._follow(old, new)
        if new is None or not _may_run(new):
            for key in _claims_of(pod):
                self.enqueue(ObjectPlace("ResourceClaim", key))
        if new is not None and not is_terminating(new):
            self.enqueue(ObjectPlace("Pod", key_of(new)))

    def _on_listed_pods(self, pods: LabPods) -> None:
        for pod in pods.all.values():
            if pod.uses_claims:
                self._on_pod(None, self.cluster.get("Pod", *pod.key))

    def _follow(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Keep the pods by claim and by template up to date."""
        for index, keys in ((self._by_claim, _claims_of), (self._by_template, _templates_of)):
            if old is not None:
                for key in keys(old):
                    users = index.get(key, {})
                    users.pop(key_of(old), None)
                    if not users:
                        index.pop(key, None)
            if new is not None:
                for key in keys(new):
                    index.setdefault(key, {})[key_of(new)] = None

    def _on_claim(self, old: JsonObject | None, new: JsonObject | None) -> None:
        item = changed(old, new)
        key, owner = key_of(item), _owning_pod(item)
        if owner is not None:
            made = self._made.setdefault(owner[1], {})
            if new is None:
                made.pop(key, None)
            else:
                made[key] = None
            if not made:
                del self._made[owner[1]]
        if new is not None:
            self.enqueue(ObjectPlace("ResourceClaim", key))
        for pod in self._by_claim.get(key, ()):
            self.enqueue(ObjectPlace("Pod", pod))

    def _on_template(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None and new is not None:
            for pod in self._by_template.get(key_of(new), ()):
                self.enqueue(ObjectPlace("Pod", pod))

    def sync(self, key: ObjectPlace) -> None:
        """Make the claims of a pod, or release a claim that is not needed."""
        if key.kind == "Pod":
            self._sync_pod(key.key)
        else:
            self._sync_claim(key.key)

    # Pods
    def _sync_pod(self, key: Key) -> None:
        pod = self.cluster.get("Pod", *key)
        if pod is None or is_terminating(pod) or not _may_run(pod):
            return
        made: dict[str, str] = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            try:
                name = self._make(pod, entry)
            except StatusError as error:
                text = f"PodResourceClaim {entry['name']}: {error.message}"
                events = self.cluster.events
                events.record(pod, "Warning", "FailedResourceClaimCreation", text, _COMPONENT)
                return
            if name:
                made[entry["name"]] = name
        if made:
            self.cluster.update("Pod", key, lambda it: _note_claims(it, made), "status")
            pod = self.cluster.get("Pod", *key) or pod
        if pod["spec"].get("nodeName"):
            self._reserve(pod)

    def _make(self, pod: JsonObject, entry: JsonObject) -> str:
        """The name of the claim of an entry, if it is new to the pod; it is made if need be."""
        template = entry.get("resourceClaimTemplateName")
        if not template:
            return ""
        noted = _noted_claims(pod)
        if entry["name"] in noted:
            name = noted[entry["name"]]
            claim = self.cluster.get("ResourceClaim", key_of(pod)[0], name or "")
            if not name or (claim is not None and _is_of(claim, pod)):
                return ""
        for key in self._made.get(uid_of(pod), ()):
            claim = self.cluster.get("ResourceClaim", *key)
            if claim is not None and annotation(claim, POD_CLAIM_ANNOTATION) == entry["name"]:
                return key[1]
        source = self.cluster.get("ResourceClaimTemplate", key_of(pod)[0], template)
        if source is None:
            text = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            raise StatusError(404, "NotFound", f'resource claim template "{template}": {text}')
        made = self.cluster.create("ResourceClaim", _claim_for(pod, entry["name"], source))
        return str(made["metadata"]["name"])

    def _reserve(self, pod: JsonObject) -> None:
        """Reserve allocated claims for a pod that was bound without a scheduler."""
        consumer = {"resource": "pods", "name": key_of(pod)[1], "uid": uid_of(pod)}
        for key in _claims_of(pod):
            claim = self.cluster.get("ResourceClaim", *key)
            status = {} if claim is None else claim.get("status") or {}
            known = status.get("reservedFor") or []
            reserved = any(each.get("uid") == consumer["uid"] for each in known)
            if claim is None or not status.get("allocation") or reserved:
                continue
            if len(known) < _MOST_CONSUMERS and not is_terminating(claim):
                self.cluster.update_status(claim, {**status, "reservedFor": [*known, consumer]})

    # Claims
    def _sync_claim(self, key: Key) -> None:
        claim = self.cluster.get("ResourceClaim", *key)
        if claim is None:
            return
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        left = [each for each in reserved if self._is_needed(key[0], each)]
        protected = CLAIM_FINALIZER in (claim["metadata"].get("finalizers") or ())
        if len(left) < len(reserved):
            after = {**status, "reservedFor": left}
            if not left:
                del after["reservedFor"]
                if protected:
                    after.pop("allocation", None)
            self.cluster.update_status(claim, after)
            claim = self.cluster.get("ResourceClaim", *key) or claim
            if protected and not (claim.get("status") or {}).get("allocation"):
                self.cluster.remove_finalizer("ResourceClaim", key, CLAIM_FINALIZER)
        elif protected and is_terminating(claim) and not left:
            if status.get("allocation"):
                after = {name: each for name, each in status.items() if name != "allocation"}
                self.cluster.update_status(claim, after)
            self.cluster.remove_finalizer("ResourceClaim", key, CLAIM_FINALIZER)
        if not left:
            self._delete_if_finished(key)

    def _is_needed(self, namespace: str, consumer: JsonObject) -> bool:
        """Whether the pod that a claim is reserved for may still run; others are never removed."""
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return True
        pod = self.cluster.pods.all.get((namespace, consumer.get("name", "")))
        return pod is not None and pod.uid == consumer.get("uid") and not _is_done(pod)

    def _delete_if_finished(self, key: Key) -> None:
        """Delete a claim that was made for a pod which will not run (again)."""
        claim = self.cluster.get("ResourceClaim", *key)
        owner = None if claim is None else _owning_pod(claim)
        if claim is None or owner is None or is_terminating(claim):
            return
        pod = self.cluster.pods.all.get((key[0], owner[0]))
        # Claims of pods that are gone are left to the garbage collector.
        if pod is not None and (pod.uid != owner[1] or _is_done(pod)):
            self.cluster.delete(claim)


def _may_run(pod: JsonObject) -> bool:
    """Whether a pod that exists may need its claims."""
    if (pod.get("status") or {}).get("phase") in FINISHED:
        return False
    return not is_terminating(pod) or bool(pod["spec"].get("nodeName"))


def _is_done(pod: PodInfo) -> bool:
    return pod.finished or (pod.terminating and not pod.node)


def _extended_claim(pod: JsonObject) -> str:
    """The name of the claim that the scheduler made for the extended resources of a pod."""
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return str(status.get("resourceClaimName") or "")


def _noted_claims(pod: JsonObject) -> dict[str, str | None]:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {each["name"]: each.get("resourceClaimName") for each in statuses}


def _claims_of(pod: JsonObject) -> Iterable[Key]:
    """The keys of the claims that a pod uses, as far as they are known."""
    namespace, noted = key_of(pod)[0], _noted_claims(pod)
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or noted.get(entry["name"])
        if name:
            yield namespace, name
    extended = _extended_claim(pod)
    if extended:
        yield namespace, extended


def _templates_of(pod: JsonObject) -> Iterable[Key]:
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimTemplateName"):
            yield key_of(pod)[0], entry["resourceClaimTemplateName"]


def _owning_pod(claim: JsonObject) -> tuple[str, str] | None:
    """Name and uid of the pod that a claim was made for."""
    for each in claim["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each.get("apiVersion") == "v1" and each["kind"] == "Pod":
            return each["name"], each["uid"]
    return None


def _is_of(claim: JsonObject, pod: JsonObject) -> bool:
    owner = _owning_pod(claim)
    return owner is not None and owner[1] == uid_of(pod)


def _note_claims(pod: JsonObject, made: dict[str, str]) -> None:
    """Note the claims of a pod in its status, in the order of its entries."""
    noted = {**_noted_claims(pod), **made}
    entries = pod["spec"].get("resourceClaims") or ()
    pod.setdefault("status", {})["resourceClaimStatuses"] = [
        {"name": each["name"], "resourceClaimName": noted[each["name"]]}
        if noted[each["name"]]
        else {"name": each["name"]}
        for each in entries
        if each["name"] in noted
    ]


def _claim_for(pod: JsonObject, entry: str, template: JsonObject) -> JsonObject:
    """A claim for an entry of a pod, from a template; the API server generates its name."""
    spec = template["spec"]
    written = spec.get("metadata") or {}
    namespace, name = key_of(pod)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid_of(pod)}
    metadata: JsonObject = {
        "generateName": _name_prefix(name, entry),
        "namespace": namespace,
        "ownerReferences": [{**owner, "controller": True}],
        "annotations": {**(written.get("annotations") or {}), POD_CLAIM_ANNOTATION: entry},
    }
    if written.get("labels"):
        metadata["labels"] = written["labels"]
    return {"metadata": metadata, "spec": deep_copy(spec.get("spec") or {})}


def _name_prefix(pod: str, entry: str) -> str:
    """The beginning of the name of a claim; of long names, a part of each that fits."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _LONGEST_PREFIX:
        return whole
    kept_pod = pod[: len(pod) * _LONGEST_PREFIX // len(whole)]
    kept_entry = entry[: len(entry) * _LONGEST_PREFIX // len(whole)]
    return f"{kept_pod}-{kept_entry}"
