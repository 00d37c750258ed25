"""How many volumes a node can attach: NodeVolumeLimits, and the limits of v1.13.

The plugin goes by what the CSINode says of each CSI driver. In v1.13 cloud disks have default
limits, and CSI volumes are limited by what the node reports; a claim whose volume cannot be found
counts against the limit of every kind of cloud disk.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.causes import VolumeLimit
from podium.engine.framework.declaration import (
    FactoryArgs,
    PluginDeclaration,
    PredicateDeclaration,
    plain,
)
from podium.engine.framework.rule import (
    Activity,
    BatchTrials,
    BitFilter,
    Scope,
    no_rows,
    scope_with,
)
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, as_array, as_int
from podium.engine.rules.plugins import always, holds_place
from podium.engine.rules.volumes.claims import ClaimFacts, claim_facts, claim_used, volumes_of
from podium.engine.rules.volumes.shared import VolumeError, class_name, told_by_drivers
from podium.engine.rules.volumes.volume_ledger import (
    NO_LIMIT,
    Held,
    HeldByPods,
    Lookups,
    VolumeLedger,
    VolumesOfPods,
    exceeded_limits,
    ledger,
)
from podium.engine.state.pod_class import once_per_form
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.pod import Pod, Volume
from podium.objects.kinds.storage import (
    SUCCESSORS,
    CsiNode,
    UntranslatableError,
    VolumeAttachment,
    handle,
    handle_of,
    made_by,
    nameless,
    older_kind,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass, Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.storage import (
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeSpec,
    )


TOO_MANY_VOLUMES = Reason("node(s) exceed max volume count")
CsiVolume = tuple[str, str]  #: driver, handle
NONE: CsiVolume = ("", "")


class NodeVolumeLimits(BitFilter):
    """Counts the volumes of the node's pods, and those of VolumeAttachments without a pod."""

    kinds = (
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
    )
    name = "NodeVolumeLimits"
    scope = scope_with("volumes", Scope.CLUSTER)
    reasons = (TOO_MANY_VOLUMES,)

    def __init__(self, *, requires_drivers: bool = False) -> None:
        """*requires_drivers*: a driver may keep pods with its volumes off nodes without it."""
        self.requires_drivers = requires_drivers

    def reasons_of(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """The limit, and each driver that must be on the node."""
        required = self._required(pod, view.catalog)
        missing = (Reason(f"{each} CSI driver is not installed on the node") for each in required)
        return (TOO_MANY_VOLUMES, *missing)

    def _required(self, pod: Incoming, catalog: Catalog) -> list[str]:
        """The drivers of the pod's volumes that nodes must have, by name."""
        if not self.requires_drivers or not len(catalog.csi_drivers):
            return []
        try:
            wanted = {driver for driver, _ in _wanted_volumes(pod, catalog)}
        except VolumeError:
            return []
        known = ((name, catalog.csi_drivers.get(name)) for name in sorted(wanted))
        return [
            name
            for name, driver in known
            if driver is not None and driver.spec.prevent_pod_scheduling_if_missing
        ]

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On rows below the limit with all pods there: removals cannot change the answer."""
        try:
            used = _wanted(pod, at.view.catalog).used
        except VolumeError:
            return no_rows(at)
        known = _ledger(at.view)
        limits = ((driver, number, known.limits(driver)[at.index]) for driver, number in used)
        return _trials_with_room(known, limits, at)

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Idle while every node has room for all volumes of the pod."""
        if not pod.cls.volumes or not _counts_any(pod.cls):
            return Activity.SKIPPED
        if not len(view.catalog.csi_nodes) and not self._required(pod, view.catalog):
            return Activity.IDLE
        known = _ledger(view)
        if known.errors or self._required(pod, view.catalog):
            return Activity.ACTIVE
        cls = pod.cls
        if _never_fails(cls) and known.has_room_by_any(len(cls.volumes)):
            return Activity.IDLE  # whichever volumes they are
        try:
            used = _wanted(pod, view.catalog).used
        except VolumeError:
            return Activity.ACTIVE
        room = all(known.has_room(driver, number) for driver, number in used)
        return Activity.IDLE if room else Activity.ACTIVE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a limit is exceeded, another bit where a driver is missing that must be there."""
        bits = self._over(pod, at)
        # Of several missing drivers the first by name; kube-scheduler takes any.
        for place, driver in reversed(list(enumerate(self._required(pod, at.view.catalog)))):
            there = told_by_drivers(at, f"has {driver}", partial(_has_driver, driver))
            bits = at.where(there, bits, 2 << place)
        return bits

    def _over(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the limit of some driver is exceeded; drivers may have no limit."""
        catalog = at.view.catalog
        if not len(catalog.csi_nodes):
            return at.full(0)
        try:
            wanted = _wanted_volumes(pod, catalog)
        except VolumeError as error:
            text = f'running "{self.name}" filter plugin: {error}'
            at.fail_where(told_by_drivers(at, "any", lambda _: True), text)
            return at.full(0)
        if not wanted:
            return at.full(0)
        return at.either(
            lambda rows: _exceed_limits(wanted, rows), lambda row: _exceeds_limits(wanted, row)
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The limits that are exceeded, with the volumes on the node and those of the pod."""
        if int(as_int(self.bits(pod, at))) > 1:
            return  # the reason names the driver
        wanted = _wanted_volumes(pod, at.view.catalog)
        held = _held(at, Lookups())
        new = Counter(driver for driver, _ in wanted.difference(held.volumes))
        yield from exceeded_limits(TOO_MANY_VOLUMES, new, held.counts, held.limits)


def _has_driver(name: str, node: CsiNode) -> bool:
    return any(driver.name == name for driver in node.spec.drivers or ())


def _wanted(pod: Incoming, catalog: Catalog) -> ClaimFacts:
    """The facts with the volumes of the pod that count for a limit, found once for its class."""
    facts = claim_facts(pod.cls, catalog)
    if facts.wanted is None:
        lookups = Lookups()
        facts.wanted = frozenset(_volumes(pod.cls, pod.pod.name, lookups, catalog))
        facts.used = tuple(Counter(driver for driver, _ in facts.wanted).items())
        facts.looked_up = tuple(lookups.noted)
    return facts


def _wanted_volumes(pod: Incoming, catalog: Catalog) -> frozenset[CsiVolume]:
    return _wanted(pod, catalog).wanted or frozenset()


def _ledger(view: View) -> VolumeLedger:
    return ledger(view, NodeVolumeLimits.name, _held, all_rows=True, by_pod=_BY_POD)


def _of_pod(resident: Resident, lookups: Lookups, catalog: Catalog) -> Iterable[CsiVolume]:
    """Driver and handle of each volume of a placed pod; mostly known since it was decided about."""
    facts = claim_facts(resident.cls, catalog)
    if facts.wanted is not None:
        lookups.noted.update(facts.looked_up)
        return facts.wanted
    name = resident.key.partition("/")[2]
    return _volumes(resident.cls, name, lookups, catalog, resident)


@once_per_form
def _counts_any(cls: PodClass) -> bool:
    """Whether some volume of such pods may count for a limit."""
    return any(map(_is_counted, cls.volumes))


@once_per_form
def _never_fails(cls: PodClass) -> bool:
    """Whether the volumes of all pods of a class are found without an error."""
    return not any(map(_may_fail, cls.volumes))


def _may_fail(volume: Volume) -> bool:
    return volume.ephemeral is not None or bool(nameless(volume))


_BY_POD: Final = VolumesOfPods(_of_pod, _never_fails)


def _exceed_limits(wanted: frozenset[CsiVolume], at: ManyRows) -> np.ndarray:
    known = _ledger(at.view)
    for row, text in known.errors.items():
        at.fail_where(at.index == row, text)
    over = np.zeros(len(at), np.bool_)
    for driver in sorted({driver for driver, _ in wanted}):
        volumes = [volume for volume in wanted if volume[0] == driver]
        over = over | _is_over(known, driver, volumes, known.limits(driver)[at.index], at)
    return over * 1


def _is_over(
    known: VolumeLedger,
    limit: str,
    volumes: Sequence[Hashable],
    limits: np.ndarray,
    at: ManyRows,
) -> np.ndarray:
    """The rows where those of the volumes that are new there exceed a limit."""
    new = len(volumes) - known.holding(volumes)[at.index]
    found: np.ndarray = (new > 0) & (known.counts(limit)[at.index] + new > limits)
    return found


def _trials_with_room(
    known: VolumeLedger, used: Iterable[tuple[str, int, np.ndarray]], at: ManyRows
) -> BatchTrials:
    """The rows below all limits with all pods there; *used* are names, numbers and limits."""
    room = known.failing()[at.index] ^ True
    for name, number, limits in used:
        room = room & (known.counts(name)[at.index] + number <= limits)
    return BatchTrials(room, constant=True)


def _exceeds_limits(wanted: frozenset[CsiVolume], row: OneRow) -> int:
    held = _held(row, Lookups())
    if held.error:
        row.fail(held.error)
        return 0
    limits = held.limits
    new = Counter(driver for driver, _ in wanted.difference(held.volumes))
    return int(any(held.counts[d] + n > limits[d] for d, n in new.items() if d in limits))


def _held(row: OneRow, lookups: Lookups) -> Held:
    """The volumes of the row's pods and those attached to the node; nothing without limits."""
    catalog = row.view.catalog
    limits = _limits(row.name, lookups, catalog)
    if not limits:
        return Held()
    volumes: set[CsiVolume] = set()
    pods = [resident for resident in row.residents() if resident.cls.volumes]
    for resident in pods:
        try:
            volumes.update(_of_pod(resident, lookups, catalog))
        except VolumeError as error:
            return Held(error=f'running "{NodeVolumeLimits.name}" filter plugin: {error}')
    attached = frozenset(_attached(row.name, lookups, catalog))
    counts = Counter(driver for driver, _ in volumes.union(attached))
    return HeldByPods(volumes, counts, limits, attached=attached, pods=set(pods))


def _is_counted(volume: Volume) -> bool:
    claims = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return claims or bool(older_kind(volume))


def _limits(node: str, lookups: Lookups, catalog: Catalog) -> dict[str, int]:
    found = lookups.get(catalog.csi_nodes, node)
    drivers = (found.spec.drivers if found is not None else None) or ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _volumes(
    cls: PodClass,
    pod_name: str,
    lookups: Lookups,
    catalog: Catalog,
    resident: Resident | None = None,
) -> Iterator[CsiVolume]:
    """Driver and handle of each volume; claims of ephemeral volumes must belong to their pod."""
    for volume in cls.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod_name}-{volume.name}"
        else:
            yield from _inline(volume)
            continue
        claim = lookups.get(catalog.claims, name, cls.namespace)
        if claim is None:
            continue
        if volume.ephemeral is not None and resident is not None:
            _check_owner(claim, resident)
        driver, handle = _volume_of_claim(claim, lookups, catalog)
        if driver and handle:
            yield driver, handle


def _inline(volume: Volume) -> Iterator[CsiVolume]:
    kind = older_kind(volume)
    if not kind:
        return
    if wrong := nameless(volume):
        raise VolumeError(f"converting volume({volume.name}) from inline to csi: {wrong}")
    yield SUCCESSORS[kind].driver, handle(volume)


def _check_owner(claim: PersistentVolumeClaim, resident: Resident) -> None:
    owner = claim.metadata.controller()
    if owner is None or owner.uid != resident.uid:
        not_owned = f"was not created for pod {resident.key} (pod is not owner)"
        raise VolumeError(f"PVC {claim.key} {not_owned}")


def _volume_of_claim(claim: PersistentVolumeClaim, lookups: Lookups, catalog: Catalog) -> CsiVolume:
    """Driver and handle of the claim's volume; an unbound claim counts for its class's driver."""
    bound_to = claim.spec.volume_name
    bound = lookups.get(catalog.volumes, bound_to) if bound_to else None
    if bound is not None:
        return _volume_of(bound)
    named = class_name(claim)
    found = lookups.get(catalog.storage_classes, named) if named else None
    return (made_by(found.provisioner), f"unbound {claim.key}") if found is not None else NONE


def _volume_of(volume: PersistentVolume) -> CsiVolume:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    kind = older_kind(volume.spec)
    try:
        return (SUCCESSORS[kind].driver, handle_of(volume)) if kind else NONE
    except UntranslatableError:
        return NONE


def _attached(node: str, lookups: Lookups, catalog: Catalog) -> Iterator[CsiVolume]:
    for attachment in lookups.attached(catalog.attachments, node):
        if attachment.spec.attacher:
            name = attachment.spec.source.persistent_volume_name or ""
            volume = lookups.get(catalog.volumes, name)
            if volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle


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
    before = _limits_on(old)
    return any(limit > before.get(name, 0) for name, limit in _limits_on(new).items())


def _limits_on(node: CsiNode) -> dict[str, int]:
    return {
        driver.name: (driver.allocatable and driver.allocatable.count) or 0
        for driver in node.spec.drivers or ()
    }


NODE_VOLUME_LIMITS: Final = PluginDeclaration(
    "NodeVolumeLimits",
    "preFilter filter",
    "how many volumes a node can attach",
    filter=lambda _, context: NodeVolumeLimits(
        requires_drivers=context.gates["VolumeLimitScaling"]
    ),
    events={
        "CSINode Add": always,
        "CSINode Update": limit_grew,
        "Pod Delete": frees_attachments,
        "PersistentVolumeClaim Add": claim_used,
        "VolumeAttachment Delete": detached,
    },
)


NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
#: Alternation binds loosely: any instance type with "t3" or "z1d" anywhere in it matches.
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
CSI_PREFIX = "attachable-volumes-csi-"
_LONGEST_NAME = 63


class _NamelessClaimError(Exception):
    """A volume refers to a claim with an empty name."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A kind of cloud disk: where its ids stand, and its limits on nodes that report none."""

    limit_name: str
    #: The field of volumes, and the field of that with the id.
    field: str
    id_field: str
    most: int
    most_on_nitro: int

    def id_in(self, source: Volume | PersistentVolumeSpec) -> str | None:
        """The id of the disk of a volume; None for other kinds."""
        disk = getattr(source, self.field)
        return None if disk is None else getattr(disk, self.id_field)

    def default_limit(self, instance_type: str | None) -> int:
        """The limit for nodes that report none."""
        return self.most_on_nitro if NITRO.search(instance_type or "") else self.most


EBS: Final = Disk(
    "attachable-volumes-aws-ebs", "aws_elastic_block_store", "volume_id", 39, most_on_nitro=25
)
GCE_PD: Final = Disk(
    "attachable-volumes-gce-pd", "gce_persistent_disk", "pd_name", 16, most_on_nitro=16
)
AZURE: Final = Disk(
    "attachable-volumes-azure-disk", "azure_disk", "disk_name", 16, most_on_nitro=16
)


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

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
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
            inline = self.disk.id_in(volume)
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
        bound = self.disk.id_in(volume.spec)
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
        used = Counter(wanted.values()).items()
        limits = ((limit, number, as_array(_node_limit(limit, at))) for limit, number in used)
        return _trials_with_room(ledger(at.view, self.name, _csi_held), limits, at)

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

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
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
        over = over | _is_over(known, limit, handles, as_array(_node_limit(limit, at)), at)
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
    _counted("MaxEBSVolumeCount", EBS),
    provided=True,
    aliases=("MaxPDVolumeCountPredicate",),
)

MAX_GCEPD_VOLUME_COUNT: Final = PredicateDeclaration(
    "MaxGCEPDVolumeCount",
    "the node can attach the pod's GCE disks besides those it has",
    _counted("MaxGCEPDVolumeCount", GCE_PD),
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
    _counted("MaxAzureDiskVolumeCount", AZURE),
    provided=True,
    aliases=("MaxPDVolumeCountPredicate",),
)
