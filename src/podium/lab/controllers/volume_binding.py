"""The persistent volume controller: binds claims to volumes, and provisions volumes.

Upstream: pkg/controller/volume/persistentvolume, pkg/controller/volume/pvcprotection and
pvprotection, component-helpers/storage/volume.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed, no_listed_pods
from podium.lab.controllers.framework.object_fields import (
    ObjectPlace,
    annotation,
    is_terminating,
    key_of,
    labels_of,
    uid_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.store.selection import compile_selector
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, value

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
#: The provisioner of the lab's own storage classes.
PROVISIONER: Final = "lab.podium/volumes"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"


def storage_class_of(item: JsonObject) -> str:
    """The name of the storage class of a claim or a volume; empty for none."""
    return annotation(item, _BETA_CLASS) or item["spec"].get("storageClassName") or ""


def is_reserved_for(volume: JsonObject, claim: JsonObject) -> bool:
    """Whether the `claimRef` of a volume names this claim."""
    reference = volume["spec"].get("claimRef") or {}
    if (reference.get("namespace"), reference.get("name")) != key_of(claim):
        return False
    return reference.get("uid") in {None, "", uid_of(claim)}


def capacity_of(volume: JsonObject) -> int:
    """The capacity of a volume in bytes."""
    return _bytes((volume["spec"].get("capacity") or {}).get("storage", "0"))


def can_bind(volume: JsonObject, claim: JsonObject) -> bool:
    """Whether a volume is free and has the class, mode, labels and size that the claim asks for."""
    spec = volume["spec"]
    if spec.get("claimRef") or is_terminating(volume):
        return False
    if storage_class_of(volume) != storage_class_of(claim):
        return False
    wanted = claim["spec"]
    if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    selector = wanted.get("selector")
    if selector is not None and not compile_selector(selector).matches(labels_of(volume)):
        return False
    return capacity_of(volume) >= _bytes(_requested(claim))


def provisioned_volume(
    claim: JsonObject, storage_class: JsonObject, node: JsonObject | None
) -> JsonObject:
    """A new volume for a claim; with *node* it can only be used in the zone of that node."""
    name = f"pvc-{uid_of(claim)}"
    spec: JsonObject = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": _requested(claim)},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim["metadata"]["namespace"],
            "name": claim["metadata"]["name"],
            "uid": uid_of(claim),
        },
        "csi": {"driver": storage_class.get("provisioner", ""), "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
    }
    labels = {} if node is None else labels_of(node)
    for key in _ZONE_LABELS:
        if key in labels:
            zone = {"key": key, "operator": "In", "values": [labels[key]]}
            terms = [{"matchExpressions": [zone]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
            break
    annotations = {"pv.kubernetes.io/provisioned-by": storage_class.get("provisioner", "")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def _requested(claim: JsonObject) -> str:
    resources = claim["spec"].get("resources") or {}
    return str((resources.get("requests") or {}).get("storage", "0"))


def _bytes(text: str) -> int:
    try:
        return value(text)
    except QuantityError:
        return 0


class PersistentVolumeController(Controller[ObjectPlace]):
    """Binds claims and volumes to each other, and releases those that are deleted.

    Its keys are claims and volumes.
    """

    name: ClassVar = "persistentvolume-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch claims, volumes, storage classes and pods."""
        super().__init__(cluster)
        #: Names of terminating claims by namespace; they wait for the pods that use them.
        self._terminating: dict[str, dict[str, None]] = {}
        self.watch("PersistentVolumeClaim", self._on_claim)
        self.watch("PersistentVolume", self._on_volume)
        self.watch("StorageClass", self._on_storage_class)
        self.watch_pods(self._on_pod, listed=no_listed_pods)

    def _on_claim(self, old: JsonObject | None, new: JsonObject | None) -> None:
        claim = changed(old, new)
        namespace, name = key_of(claim)
        terminating = self._terminating.setdefault(namespace, {})
        terminating.pop(name, None)
        if new is not None and is_terminating(new):
            terminating[name] = None
        self._enqueue_claim(namespace, name)
        volume = claim["spec"].get("volumeName")
        if new is None and volume:
            self.enqueue(ObjectPlace("PersistentVolume", ("", volume)))

    def _enqueue_claim(self, namespace: str, name: str) -> None:
        self.enqueue(ObjectPlace("PersistentVolumeClaim", (namespace, name)))

    def _on_volume(self, old: JsonObject | None, new: JsonObject | None) -> None:
        volume = changed(old, new)
        self.enqueue(ObjectPlace("PersistentVolume", key_of(volume)))
        reference = (volume["spec"].get("claimRef") or {}) if new is not None else {}
        if reference:
            self._enqueue_claim(reference.get("namespace", ""), reference.get("name", ""))
        elif new is not None:
            self._enqueue_unbound_claims(volume["spec"].get("storageClassName") or "")

    def _on_storage_class(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and old is None:
            self._enqueue_unbound_claims(new["metadata"]["name"])

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is not None and (new is None or new.finished):
            for name in self._terminating.get(old.key[0], ()):
                self._enqueue_claim(old.key[0], name)

    def _enqueue_unbound_claims(self, storage_class: str) -> None:
        for claim in self.cluster.list("PersistentVolumeClaim"):
            if storage_class_of(claim) == storage_class and not claim["spec"].get("volumeName"):
                self._enqueue_claim(*key_of(claim))

    def sync(self, key: ObjectPlace) -> None:
        """Bind or release a claim, or update the phase of a volume."""
        item = self.cluster.get(key.kind, *key.key)
        if item is not None and key.kind == "PersistentVolumeClaim":
            self._sync_claim(item)
        elif item is not None:
            self._sync_volume(item)

    # Claims
    def _sync_claim(self, claim: JsonObject) -> None:
        if is_terminating(claim):
            self._unprotect_claim(claim)
            return
        status = claim.get("status") or {}
        name = claim["spec"].get("volumeName")
        if name:
            volume = self.cluster.get("PersistentVolume", "", name)
            if volume is None:
                if annotation(claim, _BIND_COMPLETED):
                    self.cluster.update_status(claim, {**status, "phase": "Lost"})
            elif is_reserved_for(volume, claim) or not volume["spec"].get("claimRef"):
                self._bind(claim, volume)
            return
        reserved = self._reserved_volume(claim)
        if reserved is not None:
            self._bind(claim, reserved)
            return
        self._find_volume(claim)
        present = self.cluster.get("PersistentVolumeClaim", *key_of(claim))
        if present is not None and not (present.get("status") or {}).get("phase"):
            self.cluster.update_status(present, {"phase": "Pending"})

    def _find_volume(self, claim: JsonObject) -> None:
        """Bind a claim to the smallest volume that fits, or provision one, or record why not."""
        name = storage_class_of(claim)
        storage_class = self.cluster.get("StorageClass", "", name) if name else None
        mode = "" if storage_class is None else storage_class.get("volumeBindingMode")
        node = annotation(claim, SELECTED_NODE)
        waits_for_pod = mode == "WaitForFirstConsumer"
        if waits_for_pod and not node:
            text = "waiting for first consumer to be created before binding"
            self.record(claim, "WaitForFirstConsumer", text)
            return
        if not waits_for_pod:
            volumes = self.cluster.list("PersistentVolume")
            fitting = [each for each in volumes if can_bind(each, claim)]
            if fitting:
                self._bind(claim, min(fitting, key=lambda each: (capacity_of(each), key_of(each))))
                return
        provisioner = "" if storage_class is None else storage_class.get("provisioner", "")
        if storage_class is not None and provisioner != _NO_PROVISIONER:
            selected = self.cluster.get("Node", "", node) if node else None
            volume = provisioned_volume(claim, storage_class, selected)
            made = self.cluster.create("PersistentVolume", volume)
            text = f"Successfully provisioned volume {made['metadata']['name']}"
            self.cluster.events.record(claim, "Normal", "ProvisioningSucceeded", text, provisioner)
            self._bind(claim, made)
        elif name and storage_class is None:
            text = f'storageclass.storage.k8s.io "{name}" not found'
            self.warn(claim, "ProvisioningFailed", text)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self.record(claim, "FailedBinding", text)

    def _reserved_volume(self, claim: JsonObject) -> JsonObject | None:
        volumes = self.cluster.list("PersistentVolume")
        return next((each for each in volumes if is_reserved_for(each, claim)), None)

    def _bind(self, claim: JsonObject, volume: JsonObject) -> None:
        name, key = volume["metadata"]["name"], key_of(claim)
        if (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
            self.cluster.update("PersistentVolume", ("", name), lambda it: _set_claim(it, claim))
        volume = self.cluster.get("PersistentVolume", "", name) or volume
        self.cluster.update_status(volume, {**(volume.get("status") or {}), "phase": "Bound"})
        if claim["spec"].get("volumeName") != name or not annotation(claim, _BIND_COMPLETED):
            self.cluster.update("PersistentVolumeClaim", key, lambda it: _set_volume(it, name))
        present = self.cluster.get("PersistentVolumeClaim", *key) or claim
        status: JsonObject = {
            **(present.get("status") or {}),
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": {"storage": (volume["spec"].get("capacity") or {}).get("storage", "0")},
        }
        self.cluster.update_status(present, status)

    def _unprotect_claim(self, claim: JsonObject) -> None:
        """Remove the protection of a terminating claim that no pod uses."""
        finalizers = claim["metadata"].get("finalizers") or ()
        if _CLAIM_PROTECTION in finalizers and not self._is_used(claim):
            self.cluster.remove_finalizer("PersistentVolumeClaim", key_of(claim), _CLAIM_PROTECTION)

    def _is_used(self, claim: JsonObject) -> bool:
        namespace, name = key_of(claim)
        for info in self.cluster.pods.in_namespace(namespace).values():
            pod = None if info.finished else self.cluster.get("Pod", *info.key)
            for volume in () if pod is None else pod["spec"].get("volumes") or ():
                if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
                    return True
        return False

    # Volumes
    def _sync_volume(self, volume: JsonObject) -> None:
        status, reference = volume.get("status") or {}, volume["spec"].get("claimRef")
        if is_terminating(volume):
            self._unprotect_volume(volume)
        elif not reference or not reference.get("uid"):
            self.cluster.update_status(volume, {**status, "phase": "Available"})
        elif self._claim_of(volume) is None:
            self.cluster.update_status(volume, {**status, "phase": "Released"})
            policy = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
            if policy == "Delete" and annotation(volume, _PROVISIONED_BY):
                present = self.cluster.get("PersistentVolume", *key_of(volume))
                self.cluster.delete(present or volume)

    def _unprotect_volume(self, volume: JsonObject) -> None:
        """Remove the protection of a terminating volume whose claim is gone."""
        finalizers = volume["metadata"].get("finalizers") or ()
        if _VOLUME_PROTECTION in finalizers and self._claim_of(volume) is None:
            self.cluster.remove_finalizer("PersistentVolume", key_of(volume), _VOLUME_PROTECTION)

    def _claim_of(self, volume: JsonObject) -> JsonObject | None:
        reference = volume["spec"].get("claimRef") or {}
        key = reference.get("namespace", ""), reference.get("name", "")
        found = self.cluster.get("PersistentVolumeClaim", *key)
        if found is not None and reference.get("uid") in {None, "", uid_of(found)}:
            return found
        return None


def _set_claim(volume: JsonObject, claim: JsonObject) -> None:
    namespace, name = key_of(claim)
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": name,
        "uid": uid_of(claim),
        "resourceVersion": claim["metadata"].get("resourceVersion", ""),
    }
    volume["metadata"].setdefault("annotations", {})[_BOUND_BY_CONTROLLER] = "yes"


def _set_volume(claim: JsonObject, volume: str) -> None:
    annotations = claim["metadata"].setdefault("annotations", {})
    if claim["spec"].get("volumeName") != volume:
        claim["spec"]["volumeName"] = volume
        annotations[_BOUND_BY_CONTROLLER] = "yes"
    annotations[_BIND_COMPLETED] = "yes"
