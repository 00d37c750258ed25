"""Which volume suits which claim, and what a volume made for a claim looks like.

Upstream: component-helpers/storage/volume and pkg/controller/volume/persistentvolume.
"""

from __future__ import annotations

from typing import Final

from podium.lab.controllers.framework.controller_ref import selector
from podium.lab.controllers.framework.object_fields import (
    annotation,
    is_leaving,
    key_of,
    labels_of,
    uid_of,
)
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, value

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def class_of(item: JsonObject) -> str:
    """The storage class of a claim or a volume; empty for none."""
    return annotation(item, _BETA_CLASS) or item["spec"].get("storageClassName") or ""


def refers(volume: JsonObject, claim: JsonObject) -> bool:
    """Whether a volume is kept for a claim, and for this one under that name."""
    wanted = volume["spec"].get("claimRef") or {}
    if (wanted.get("namespace"), wanted.get("name")) != key_of(claim):
        return False
    return wanted.get("uid") in {None, "", uid_of(claim)}


def room(volume: JsonObject) -> int:
    """How much a volume holds."""
    return _amount((volume["spec"].get("capacity") or {}).get("storage", "0"))


def wish(claim: JsonObject) -> int:
    """How much a claim asks for."""
    return _amount(_requested(claim))


def fits(volume: JsonObject, claim: JsonObject) -> bool:
    """Whether a volume that nobody has suits a claim."""
    spec = volume["spec"]
    if spec.get("claimRef") or is_leaving(volume) or class_of(volume) != class_of(claim):
        return False
    wanted = claim["spec"]
    if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    labels = wanted.get("selector")
    if labels is not None and not selector(labels).matches(labels_of(volume)):
        return False
    return room(volume) >= wish(claim)


def provisioned(claim: JsonObject, kind: JsonObject, node: JsonObject | None) -> JsonObject:
    """A new volume for a claim, in the zone of the node where it is wanted."""
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
        "csi": {"driver": kind.get("provisioner", ""), "volumeHandle": name},
        "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy") or "Delete",
        "storageClassName": kind["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
    }
    near = {} if node is None else labels_of(node)
    for key in _ZONES:
        if key in near:
            zone = {"key": key, "operator": "In", "values": [near[key]]}
            terms = [{"matchExpressions": [zone]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
            break
    annotations = {"pv.kubernetes.io/provisioned-by": kind.get("provisioner", "")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def _requested(claim: JsonObject) -> str:
    resources = claim["spec"].get("resources") or {}
    return str((resources.get("requests") or {}).get("storage", "0"))


def _amount(text: str) -> int:
    try:
        return value(text)
    except QuantityError:
        return 0
