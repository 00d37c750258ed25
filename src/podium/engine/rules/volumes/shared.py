"""Claims and volumes as the volume rules of both generations read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.state.catalog import CLASS_ANNOTATION

if TYPE_CHECKING:
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim


class VolumeError(Exception):
    """The claims cannot be judged at all; the attempt fails with this text."""


def class_name(item: PersistentVolume | PersistentVolumeClaim) -> str:
    """The storage class; the old annotation comes first."""
    annotations = item.metadata.annotations or {}
    if CLASS_ANNOTATION in annotations:
        return annotations[CLASS_ANNOTATION]
    return item.spec.storage_class_name or ""
