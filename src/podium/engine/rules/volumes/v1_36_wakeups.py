"""Which claims wake pods: what several plugins for volumes ask.

Upstream: the queueing hints of volumerestrictions, nodevolumelimits, volumebinding and volumezone,
Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.objects.kinds.pod import Pod, Volume
from podium.objects.kinds.storage import PersistentVolumeClaim


def volumes_of(pod: Pod) -> list[Volume]:
    """The volumes of a pod."""
    return pod.spec.volumes or []


def claim_names(pod: Pod, *, ephemeral: bool) -> Iterator[str]:
    """The names of a pod's claims; *ephemeral*: those of generic ephemeral volumes, too."""
    for volume in volumes_of(pod):
        if volume.persistent_volume_claim:
            yield volume.persistent_volume_claim.claim_name
        elif ephemeral and volume.ephemeral:
            yield f"{pod.name}-{volume.name}"


def claim_used(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod uses the claim, directly or through an ephemeral volume."""
    return new.namespace == waiting.namespace and new.name in claim_names(waiting, ephemeral=True)


def claim_named(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod names the claim itself."""
    return new.namespace == waiting.namespace and new.name in claim_names(waiting, ephemeral=False)
