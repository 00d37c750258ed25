"""Defaults of claims, volumes, storage classes and CSI drivers.

Upstream: pkg/apis/core/v1/defaults.go, pkg/apis/storage/v1/defaults.go.
"""

from __future__ import annotations

from podium.objects.kinds.meta import JsonObject


def set_claim_defaults(item: JsonObject) -> None:
    """Set the defaults of a persistent volume claim."""
    item.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def pending_status(_item: JsonObject) -> JsonObject:
    """The status of a new claim or volume."""
    return {"phase": "Pending"}


def set_volume_defaults(item: JsonObject) -> None:
    """Set the defaults of a persistent volume."""
    spec = item.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")


def set_storage_class_defaults(item: JsonObject) -> None:
    """Set the defaults of a storage class."""
    item.setdefault("reclaimPolicy", "Delete")
    item.setdefault("volumeBindingMode", "Immediate")


def set_csi_driver_defaults(item: JsonObject) -> None:
    """Set the defaults of a CSI driver."""
    spec = item.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
