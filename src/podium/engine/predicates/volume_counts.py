"""How many volumes of a kind a node can hold.

The three cloud disks have limits of their own; CSI volumes are limited by what the node says.
A claim that cannot be resolved to a volume counts against every cloud limit at once.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Protocol

from podium.engine.contracts import Scope
from podium.engine.predicates import reasons as why
from podium.engine.predicates.base import BitPredicate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from podium.engine.catalog import Catalog
    from podium.engine.pod_class import Incoming, PodClass
    from podium.engine.rows import OneRow, Rows
    from podium.engine.tallies import Ints
    from podium.engine.verdicts import Reason
    from podium.engine.view import View
    from podium.objects.pod import Volume
    from podium.objects.storage import PersistentVolume

NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
#: Alternation binds loosely: any instance type with "t3" or "z1d" anywhere in it matches.
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
CSI_PREFIX = "attachable-volumes-csi-"
_MAX_NAME = 63


class _NamelessClaimError(Exception):
    """A volume names a claim without a name."""


class Disk(Protocol):
    """A kind of cloud disk: how to recognise it and how many fit a node."""

    limit_name: str

    def inline(self, volume: Volume) -> str | None:
        """Its id, if the pod names such a disk itself."""

    def bound(self, volume: PersistentVolume) -> str | None:
        """Its id, if the persistent volume is such a disk."""

    def default_limit(self, instance_type: str | None) -> int:
        """How many a node takes when nobody says otherwise."""


class Ebs:
    """Elastic Block Store."""

    limit_name = "attachable-volumes-aws-ebs"

    def inline(self, volume: Volume) -> str | None:
        """The volume id."""
        source = volume.aws_elastic_block_store
        return source.volume_id if source is not None else None

    def bound(self, volume: PersistentVolume) -> str | None:
        """The volume id."""
        source = volume.spec.aws_elastic_block_store
        return source.volume_id if source is not None else None

    def default_limit(self, instance_type: str | None) -> int:
        """Fewer on newer machines."""
        return 25 if NITRO.search(instance_type or "") else 39


class GcePd:
    """GCE persistent disks."""

    limit_name = "attachable-volumes-gce-pd"

    def inline(self, volume: Volume) -> str | None:
        """The disk name."""
        source = volume.gce_persistent_disk
        return source.pd_name if source is not None else None

    def bound(self, volume: PersistentVolume) -> str | None:
        """The disk name."""
        source = volume.spec.gce_persistent_disk
        return source.pd_name if source is not None else None

    def default_limit(self, instance_type: str | None) -> int:  # noqa: ARG002
        """The same everywhere."""
        return 16


class Azure:
    """Azure disks."""

    limit_name = "attachable-volumes-azure-disk"

    def inline(self, volume: Volume) -> str | None:
        """The disk name."""
        source = volume.azure_disk
        return source.disk_name if source is not None else None

    def bound(self, volume: PersistentVolume) -> str | None:
        """The disk name."""
        source = volume.spec.azure_disk
        return source.disk_name if source is not None else None

    def default_limit(self, instance_type: str | None) -> int:  # noqa: ARG002
        """The same everywhere."""
        return 16


class _VolumeCount(BitPredicate):
    """What the limits have in common."""

    def scope(self, cls: PodClass) -> Scope:
        """Claims are looked up, so the answer depends on more than the node and its pods."""
        return Scope.CLUSTER if cls.volumes else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.VOLUME_COUNT,)


class MaxVolumeCount(_VolumeCount):
    """A node takes only so many disks of one kind."""

    def __init__(
        self, name: str, disk: Disk, *, node_limits: bool = True, limit: int | None = None
    ) -> None:
        self.name = name
        self.disk = disk
        #: Whether what the node says overrides everything else.
        self.node_limits = node_limits
        #: A limit for all nodes, set by the operator.
        self.limit = limit

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Too many with the pod's own."""
        try:
            wanted = self._ids(pod.cls, at.view.catalog)
        except _NamelessClaimError:
            at.fail(NO_CLAIM_NAME)
            return at.full(0)
        if not wanted:
            return at.full(0)
        together = at.sparse(
            at.view.volume_rows, lambda row: self._together(wanted, row), len(wanted)
        )
        return (together > self._limits(at)) * 1

    def _together(self, wanted: set[Hashable], row: OneRow) -> int:
        ids = set(wanted)
        try:
            for resident in row.residents():
                if resident.cls.volumes:
                    ids |= self._ids(resident.cls, row.view.catalog)
        except _NamelessClaimError:
            row.fail(NO_CLAIM_NAME)
        return len(ids)

    def _limits(self, at: Rows) -> Ints:
        limit = self.limit
        if limit is not None and limit > 0:
            general = at.full(limit)
        else:
            general = at.fact(at.view.label_column(INSTANCE_TYPE), self.disk.default_limit)
        if not self.node_limits:
            return general
        own = at.fact(
            at.view.facts.attach_limits, lambda limits: dict(limits).get(self.disk.limit_name, -1)
        )
        said = at.fact(
            at.view.facts.attach_limits, lambda limits: self.disk.limit_name in dict(limits)
        )
        return at.where(said, own, general)

    def _ids(self, cls: PodClass, catalog: Catalog) -> set[Hashable]:
        ids: set[Hashable] = set()
        for volume in cls.volumes:
            inline = self.disk.inline(volume)
            if inline is not None:
                ids.add(inline)
            elif volume.persistent_volume_claim is not None:
                ids.update(self._claimed(volume.persistent_volume_claim.claim_name, cls, catalog))
        return ids

    def _claimed(self, name: str, cls: PodClass, catalog: Catalog) -> Iterable[Hashable]:
        if not name:
            raise _NamelessClaimError
        claim = catalog.claims.get(name, cls.namespace)
        volume = catalog.volumes.get(claim.spec.volume_name) if claim else None
        if volume is None:
            return [("unresolved", cls.namespace, name)]
        bound = self.disk.bound(volume)
        return [] if bound is None else [bound]


class MaxCSIVolumeCount(_VolumeCount):
    """A node takes only as many volumes of a CSI driver as it says."""

    name = "MaxCSIVolumeCountPred"

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Too many for some driver. Nodes that name no limit at all take any number."""
        try:
            wanted = _csi_volumes(pod.cls, at.view.catalog)
        except _NamelessClaimError:
            # Only nodes with limits get as far as looking at claims.
            limited = at.fact(at.view.facts.attach_limits, bool)
            at.fail_where(limited, NO_CLAIM_NAME)
            return at.full(0)
        if not wanted:
            return at.full(0)
        alone = at.fact(at.view.facts.attach_limits, lambda limits: _over(wanted, {}, dict(limits)))
        crowded = at.sparse(at.view.volume_rows, lambda row: self._crowded(wanted, row), -1)
        return at.where(crowded < 0, alone, crowded)

    def _crowded(self, wanted: dict[str, str], row: OneRow) -> int:
        limits = row.fact(row.view.facts.attach_limits, lambda limits: limits)
        if not limits:
            return 0
        attached: dict[str, str] = {}
        try:
            for resident in row.residents():
                if resident.cls.volumes:
                    attached.update(_csi_volumes(resident.cls, row.view.catalog))
        except _NamelessClaimError:
            row.fail(NO_CLAIM_NAME)
        return _over(wanted, attached, dict(limits))


def _over(wanted: dict[str, str], attached: dict[str, str], limits: dict[str, int]) -> int:
    # Handles are not qualified by driver: equal handles of two drivers are one volume.
    new = [limit for handle, limit in wanted.items() if handle not in attached]
    held = list(attached.values())
    return int(any(held.count(n) + new.count(n) > limits[n] for n in set(new) if n in limits))


def _csi_volumes(cls: PodClass, catalog: Catalog) -> dict[str, str]:
    """Volume handle -> name of the limit it counts against."""
    found: dict[str, str] = {}
    for name in cls.claims:
        if not name:
            raise _NamelessClaimError
        claim = catalog.claims.get(name, cls.namespace)
        volume = catalog.volumes.get(claim.spec.volume_name) if claim else None
        if volume is not None and volume.spec.csi is not None:
            found[volume.spec.csi.volume_handle] = csi_limit_name(volume.spec.csi.driver)
    return found


def csi_limit_name(driver: str) -> str:
    """The resource by which a node tells its limit for a driver; long names are shortened."""
    name = CSI_PREFIX + driver
    if len(name) < _MAX_NAME:
        return name
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return CSI_PREFIX + driver[:23] + digest[:16]
