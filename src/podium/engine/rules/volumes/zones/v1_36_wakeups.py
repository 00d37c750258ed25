"""Which events wake pods that VolumeZone rejected.

Upstream: the queueing hints of volumezone, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import PersistentVolume, StorageClass

_TOPOLOGY_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


def class_waits_for_consumer(_waiting: Pod, _old: object, new: StorageClass) -> bool:
    """Claims of the new class are bound when a pod is scheduled."""
    return new.volume_binding_mode == "WaitForFirstConsumer"


def volume_moved(_waiting: Pod, old: PersistentVolume, new: PersistentVolume) -> bool:
    """The zone or region of a volume changed."""
    return _topology(old) != _topology(new)


def _topology(volume: PersistentVolume) -> dict[str, frozenset[str]]:
    """Zones and regions by label; a label with an empty part counts as absent."""
    found = {}
    for key in _TOPOLOGY_LABELS:
        if key in volume.labels:
            parts = frozenset(part.strip() for part in volume.labels[key].split("__"))
            if "" not in parts:
                found[key] = parts
    return found
