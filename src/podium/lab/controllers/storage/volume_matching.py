"""Which volume a claim can be bound to, and the volume that is provisioned for it.

Upstream: component-helpers/storage/volume and pkg/controller/volume/persistentvolume.
"""

from __future__ import annotations

from typing import Final

from podium.lab.controllers.framework.object_fields import (
    annotation,
    is_terminating,
    key_of,
    labels_of,
    uid_of,
)
from podium.lab.controllers.framework.workload_pods import compile_selector
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, value

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


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
