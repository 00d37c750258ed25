"""v1.13 limits on attached volumes: per kind of cloud disk, and per CSI driver.

Cloud disks have default limits; CSI volumes are limited by what the node reports. A claim whose
volume cannot be found counts against the limit of every kind of cloud disk.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from podium.engine.framework.causes import VolumeLimit
from podium.engine.framework.declaration import FactoryArgs, PredicateDeclaration, plain
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, no_rows, scope_with
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, as_array, as_int
from podium.engine.rules.volumes.limits.shared import (
    NO_LIMIT,
    Held,
    Lookups,
    exceeded_limits,
    ledger,
)
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.objects.kinds.pod import Volume
    from podium.objects.kinds.storage import PersistentVolume

TOO_MANY_VOLUMES = Reason("node(s) exceed max volume count")
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
#: Alternation binds loosely: any instance type with "t3" or "z1d" anywhere in it matches.
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
CSI_PREFIX = "attachable-volumes-csi-"
_LONGEST_NAME = 63


class _NamelessClaimError(Exception):
    """A volume refers to a claim with an empty name."""


class Disk(Protocol):
    """A kind of cloud disk: its ids, and its default limit per node."""

    limit_name: str

    def inline(self, volume: Volume) -> str | None:
        """The id of the disk in a pod volume; None for other kinds."""

    def bound(self, volume: PersistentVolume) -> str | None:
        """The id of the disk in a persistent volume; None for other kinds."""

    def default_limit(self, instance_type: str | None) -> int:
        """The limit for nodes that report none."""


class Ebs:
    """AWS Elastic Block Store."""

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
        """25 on Nitro instance types, 39 on others."""
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
        """16 on every instance type."""
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
        """16 on every instance type."""
        return 16


class _VolumeLimit(BitFilter):
    """The common part of the limits."""

    kinds = ("PersistentVolume", "PersistentVolumeClaim")
    reasons = (TOO_MANY_VOLUMES,)
    scope = scope_with("volumes", Scope.CLUSTER)


class MaxVolumeCount(_VolumeLimit):
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

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On rows below the limit with all pods there: removals cannot change the answer."""
        fits = as_array(self.bits(pod, at) == 0)
        return BatchTrials(fits & ~_take_failed_rows(at), constant=True)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node's volumes and the pod's together exceed the limit."""
        try:
            wanted = self._ids(pod.cls, Lookups(), at.view.catalog)
        except _NamelessClaimError:
            at.fail(NO_CLAIM_NAME)
            return at.full(0)
        if not wanted:
            return at.full(0)
        together = at.either(
            lambda rows: self._counted(wanted, rows), lambda row: self._count_with(wanted, row)
        )
        return (together > self._limits(at)) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The limit, the disks on the node and those that the pod adds."""
        wanted = self._ids(pod.cls, Lookups(), at.view.catalog)
        held, limit = set(self._held(at, Lookups()).volumes), as_int(self._limits(at))
        new = len(wanted - held)
        if wanted and len(held) + new > limit:
            name = self.disk.limit_name
            yield VolumeLimit(TOO_MANY_VOLUMES.text, name, limit, len(held), new)

    def _counted(self, wanted: set[Hashable], at: ManyRows) -> np.ndarray:
        known = ledger(at.view, self.disk.limit_name, self._held)
        at.fail_where(known.failing()[at.index], NO_CLAIM_NAME)
        held = known.counts("") - known.holding(wanted)
        found: np.ndarray = held[at.index] + len(wanted)
        return found

    def _held(self, row: OneRow, lookups: Lookups) -> Held:
        ids: set[Hashable] = set()
        try:
            for resident in row.residents():
                if resident.cls.volumes:
                    ids |= self._ids(resident.cls, lookups, row.view.catalog)
        except _NamelessClaimError:
            return Held(error=NO_CLAIM_NAME)
        return Held(ids, Counter({"": len(ids)}))

    def _count_with(self, wanted: set[Hashable], row: OneRow) -> int:
        held = self._held(row, Lookups())
        if held.error:
            row.fail(held.error)
        return len(wanted.union(held.volumes))

    def _limits(self, at: Rows[K]) -> Ints[K]:
        limit = self.limit
        if limit is not None and limit > 0:
            general = at.full(limit)
        else:
            general = at.fact(at.view.nodes.label_column(INSTANCE_TYPE), self.disk.default_limit)
        if not self.node_limits:
            return general
        own = at.fact(
            at.view.nodes.facts.attach_limits,
            lambda limits: dict(limits).get(self.disk.limit_name, -1),
        )
        said = at.flag(
            at.view.nodes.facts.attach_limits, lambda limits: self.disk.limit_name in dict(limits)
        )
        return at.where(said, own, general)

    def _ids(self, cls: PodClass, lookups: Lookups, catalog: Catalog) -> set[Hashable]:
        ids: set[Hashable] = set()
        for volume in cls.volumes:
            inline = self.disk.inline(volume)
            if inline is not None:
                ids.add(inline)
            elif volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                ids.update(self._claimed(name, cls, lookups, catalog))
        return ids

    def _claimed(
        self, name: str, cls: PodClass, lookups: Lookups, catalog: Catalog
    ) -> Iterable[Hashable]:
        if not name:
            raise _NamelessClaimError
        claim = lookups.get(catalog.claims, name, cls.namespace)
        volume = lookups.get(catalog.volumes, claim.spec.volume_name) if claim else None
        if volume is None:
            return [("unresolved", cls.namespace, name)]
        bound = self.disk.bound(volume)
        return [] if bound is None else [bound]


def _take_failed_rows(at: ManyRows) -> np.ndarray:
    """The rows with an error; the errors are cleared."""
    found = np.zeros(len(at), np.bool_)
    found[list(at.errors)] = True
    at.errors = {}
    return found


class MaxCSIVolumeCount(_VolumeLimit):
    """A node takes only as many volumes of a CSI driver as it reports."""

    name = "MaxCSIVolumeCountPred"

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On rows below the limit with all pods there: removals cannot change the answer."""
        try:
            wanted = _csi_volumes(pod.cls, Lookups(), at.view.catalog)
        except _NamelessClaimError:
            return no_rows(at)
        known = ledger(at.view, self.name, _csi_held)
        room = known.failing()[at.index] ^ True
        for limit, number in Counter(wanted.values()).items():
            room = room & (known.counts(limit)[at.index] + number <= _node_limit(limit, at))
        return BatchTrials(room, constant=True)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the limit of some driver is exceeded. Nodes without any limit take any number."""
        try:
            wanted = _csi_volumes(pod.cls, Lookups(), at.view.catalog)
        except _NamelessClaimError:
            # Only nodes with limits get as far as looking at claims.
            limited = at.flag(at.view.nodes.facts.attach_limits, bool)
            at.fail_where(limited, NO_CLAIM_NAME)
            return at.full(0)
        if not wanted:
            return at.full(0)
        return at.either(
            lambda rows: _exceed_csi_limits(wanted, rows),
            lambda row: self._exceeds_limit(wanted, row),
        )

    def _exceeds_limit(self, wanted: dict[str, str], row: OneRow) -> int:
        limits = dict(row.fact(row.view.nodes.facts.attach_limits, lambda limits: limits))
        if not limits:
            return 0
        held = _csi_held(row, Lookups())
        if held.error:
            row.fail(held.error)
        new = Counter(limit for handle, limit in wanted.items() if handle not in held.volumes)
        return int(any(held.counts[n] + k > limits[n] for n, k in new.items() if n in limits))

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The limits that are exceeded, with the volumes on the node and those of the pod."""
        wanted = _csi_volumes(pod.cls, Lookups(), at.view.catalog)
        limits, held = dict(at.view.nodes.facts.attach_limits.on(at.row)), _csi_held(at, Lookups())
        new = Counter(limit for handle, limit in wanted.items() if handle not in held.volumes)
        yield from exceeded_limits(TOO_MANY_VOLUMES, new, held.counts, limits)


def _exceed_csi_limits(wanted: dict[str, str], at: ManyRows) -> np.ndarray:
    """The same for many rows. Equal handles of different drivers count as one volume."""
    known = ledger(at.view, MaxCSIVolumeCount.name, _csi_held)
    if known.errors:
        limited = at.flag(at.view.nodes.facts.attach_limits, bool)
        at.fail_where(known.failing()[at.index] & limited, NO_CLAIM_NAME)
    over = np.zeros(len(at), np.bool_)
    for limit in sorted(set(wanted.values())):
        handles = [handle for handle, name in wanted.items() if name == limit]
        new = len(handles) - known.holding(handles)[at.index]
        full = known.counts(limit)[at.index] + new > _node_limit(limit, at)
        over = over | ((new > 0) & full)
    return over * 1


def _node_limit(limit: str, at: Rows[K]) -> Ints[K]:
    """The limits that nodes report; larger than any count where they report none."""
    return at.fact(
        at.view.nodes.facts.attach_limits, lambda limits: dict(limits).get(limit, NO_LIMIT)
    )


def _csi_held(row: OneRow, lookups: Lookups) -> Held:
    attached: dict[str, str] = {}
    try:
        for resident in row.residents():
            if resident.cls.volumes:
                attached.update(_csi_volumes(resident.cls, lookups, row.view.catalog))
    except _NamelessClaimError:
        return Held(error=NO_CLAIM_NAME)
    return Held(attached, Counter(attached.values()))


def _csi_volumes(cls: PodClass, lookups: Lookups, catalog: Catalog) -> dict[str, str]:
    """Volume handles, each with the name of the limit it counts against."""
    found: dict[str, str] = {}
    for name in cls.claims:
        if not name:
            raise _NamelessClaimError
        claim = lookups.get(catalog.claims, name, cls.namespace)
        volume = lookups.get(catalog.volumes, claim.spec.volume_name) if claim else None
        if volume is not None and volume.spec.csi is not None:
            found[volume.spec.csi.volume_handle] = csi_limit_name(volume.spec.csi.driver)
    return found


def csi_limit_name(driver: str) -> str:
    """The resource name of the limit for a driver; long names are shortened by a hash."""
    name = CSI_PREFIX + driver
    if len(name) < _LONGEST_NAME:
        return name
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return CSI_PREFIX + driver[:23] + digest[:16]


def _counted(name: str, disk: Disk) -> Callable[[FactoryArgs], MaxVolumeCount]:
    return lambda args: MaxVolumeCount(
        name,
        disk,
        node_limits=args.gates["AttachVolumeLimit"],
        limit=args.max_volumes,
    )


MAX_EBS_VOLUME_COUNT: Final = PredicateDeclaration(
    "MaxEBSVolumeCount",
    "the node can attach the pod's EBS volumes besides those it has",
    _counted("MaxEBSVolumeCount", Ebs()),
    provided=True,
    aliases=("MaxPDVolumeCountPredicate",),
)

MAX_GCEPD_VOLUME_COUNT: Final = PredicateDeclaration(
    "MaxGCEPDVolumeCount",
    "the node can attach the pod's GCE disks besides those it has",
    _counted("MaxGCEPDVolumeCount", GcePd()),
    provided=True,
    aliases=("MaxPDVolumeCountPredicate",),
)

MAX_CSI_VOLUME_COUNT_PRED: Final = PredicateDeclaration(
    "MaxCSIVolumeCountPred",
    "the node can attach the pod's CSI volumes besides those it has",
    plain(MaxCSIVolumeCount),
    provided=True,
    effective="AttachVolumeLimit",
    aliases=("MaxCSIVolumeCount",),
)

MAX_AZURE_DISK_VOLUME_COUNT: Final = PredicateDeclaration(
    "MaxAzureDiskVolumeCount",
    "the node can attach the pod's Azure disks besides those it has",
    _counted("MaxAzureDiskVolumeCount", Azure()),
    provided=True,
    aliases=("MaxPDVolumeCountPredicate",),
)
