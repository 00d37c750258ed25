"""Which events wake pods that NodeVolumeLimits rejected.

Upstream: the queueing hints of nodevolumelimits, Kubernetes v1.36.
"""

from __future__ import annotations

from podium.engine.rules.v1_36_wakeups import holds_place
from podium.engine.rules.volumes.v1_36_wakeups import volumes_of
from podium.engine.state.in_tree_volumes import SUCCESSORS, older_kind
from podium.objects.kinds.pod import Pod, Volume
from podium.objects.kinds.storage import CsiNode, VolumeAttachment


def frees_attachments(_waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod with attached volumes went."""
    return holds_place(old) and any(
        volume.persistent_volume_claim or volume.ephemeral or _driver(volume)
        for volume in volumes_of(old)
    )


def detached(waiting: Pod, old: VolumeAttachment, _new: None) -> bool:
    """A volume was detached, and the pod has a claim or a disk of the same driver."""
    drivers = {old.spec.attacher} - {""}
    return any(
        volume.persistent_volume_claim or _driver(volume) in drivers
        for volume in volumes_of(waiting)
    )


def _driver(volume: Volume) -> str:
    """The CSI driver that serves an inline disk of an older kind; empty for other volumes."""
    kind = older_kind(volume)
    return SUCCESSORS[kind].driver if kind else ""


def limit_grew(_waiting: Pod, old: CsiNode, new: CsiNode) -> bool:
    """A node takes more volumes of some driver."""
    before = _limits(old)
    return any(limit > before.get(name, 0) for name, limit in _limits(new).items())


def _limits(node: CsiNode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable and driver.allocatable.count) or 0
        for driver in node.spec.drivers or ()
    }
