"""A volume with zone labels is used only in its zones.

VolumeZone, and NoVolumeZoneConflict of v1.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import VolumeElsewhere
from podium.engine.framework.declaration import PluginDeclaration, PredicateDeclaration, plain
from podium.engine.framework.missing_points import PreFilterPerNode
from podium.engine.framework.rule import Activity, BitFilter, Refused, Scope, scope_with
from podium.engine.rows.rows import Flags, Ints, K, Rows, as_int
from podium.engine.rules.plugins import always
from podium.engine.rules.volumes.binding import waits_for_consumer
from podium.engine.rules.volumes.claims import claim_facts, claim_named
from podium.engine.rules.volumes.shared import VolumeError, class_name
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import PersistentVolume, StorageClass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.storage import PersistentVolumeClaim


VOLUME_ZONE_CONFLICT = Reason("node(s) had no available volume zone", curable=False)
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"
#: The older label keys, each with the one that may stand in for it on a node.
BETA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*BETA_LABELS, *BETA_LABELS.values())
Zone = tuple[str, frozenset[str]]  #: label key, and the values that it may have


class VolumeZone(BitFilter):
    """A node with zone labels must have those of the volumes behind the claims."""

    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
    name = "VolumeZone"
    scope = scope_with("claims", Scope.OBJECTS)
    reasons = (VOLUME_ZONE_CONFLICT,)

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """Every claim must have a volume, or a storage class that waits for a consumer."""
        try:
            _zone_labels(pod.cls, view.catalog)
        except VolumeError as error:
            return Refused(self.name, str(error))
        return None

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped if no volume has zone labels."""
        try:
            zoned = bool(_zone_labels(pod.cls, view.catalog))
        except VolumeError:
            zoned = False  # `pre_filter` refuses the pod
        return Activity.ACTIVE if zoned else Activity.SKIPPED

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a volume is of another zone."""
        labelled = at.flags(False)  # noqa: FBT003 - a column of False
        for key in ZONE_LABELS:
            labelled = labelled | at.has_label(key)
        elsewhere = at.flags(False)  # noqa: FBT003 - a column of False
        for key, zones in _zone_labels(pod.cls, at.view.catalog):
            elsewhere = elsewhere | (_in_zones(key, zones, at) ^ True)
        return (labelled & elsewhere) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The zone labels of volumes that the node does not match."""
        catalog = at.view.catalog
        claims = claim_facts(pod.cls, catalog).claims
        for name, found in zip(pod.cls.claims, claims, strict=True):
            volume = _volume_of_claim(name, found, catalog)
            for key, zones in _zones_of(volume):
                if not as_int(_in_zones(key, zones, at)):
                    labels = at.node_labels
                    value = labels.get(key, labels.get(BETA_LABELS.get(key, key)))
                    yield _elsewhere(f"{pod.cls.namespace}/{name}", volume, (key, zones), value)


def _elsewhere(
    claim: str, volume: PersistentVolume | None, zone: Zone, value: str | None
) -> VolumeElsewhere:
    """The cause for a volume that is of other zones than a node with this value."""
    (key, zones), named = zone, "" if volume is None else volume.name
    text = VOLUME_ZONE_CONFLICT.text
    return VolumeElsewhere(text, claim, named, key, tuple(sorted(zones)), value)


def _in_zones(key: str, zones: frozenset[str], at: Rows[K]) -> Flags[K]:
    inside, newer = _has_one_of(key, zones, at), BETA_LABELS.get(key)
    if newer is None:
        return inside
    has = at.has_label(key)
    return (has & inside) | ((has ^ True) & _has_one_of(newer, zones, at))


def _has_one_of(key: str, values: frozenset[str], at: Rows[K]) -> Flags[K]:
    return at.flag(at.view.nodes.label_column(key), values.__contains__)


def _zone_labels(cls: PodClass, catalog: Catalog) -> list[Zone]:
    """Label key and allowed values of each zone label on the volumes of the pod's claims."""
    facts = claim_facts(cls, catalog)
    found = facts.zones
    if found is None:
        found = []
        for name, claim in zip(cls.claims, facts.claims, strict=True):
            found += _zones_of(_volume_of_claim(name, claim, catalog))
        facts.zones = found
    return found


def _zones_of(volume: PersistentVolume | None, keys: Iterable[str] = ZONE_LABELS) -> Iterator[Zone]:
    """The zone labels of a volume with the zones that each allows; none with an empty part."""
    if volume is None or not volume.metadata.labels:
        return
    for key in keys:
        if key in volume.labels:
            zones = frozenset(zone.strip() for zone in volume.labels[key].split("__"))
            if "" not in zones:
                yield key, zones


def _check_waits(claim: PersistentVolumeClaim, catalog: Catalog) -> None:
    name = class_name(claim)
    if not name:
        raise VolumeError("PersistentVolumeClaim had no pv name and storageClass name")
    if catalog.storage_classes.get(name) is None:
        raise VolumeError(f'storageclass.storage.k8s.io "{name}" not found')
    if not waits_for_consumer(name, catalog):
        raise VolumeError("PersistentVolume had no name")


def _volume_of_claim(
    name: str,
    claim: PersistentVolumeClaim | None,
    catalog: Catalog,
    check_unbound: Callable[[PersistentVolumeClaim, Catalog], None] = _check_waits,
) -> PersistentVolume | None:
    """The volume of a claim; None for a claim that waits for its first consumer.

    *check_unbound* raises `VolumeError` for an unbound claim that does not wait.
    """
    if not name:
        raise VolumeError(NO_CLAIM_NAME)
    if claim is None:
        raise VolumeError(f'persistentvolumeclaim "{name}" not found')
    if not claim.spec.volume_name:
        check_unbound(claim, catalog)
        return None
    volume = catalog.volumes.get(claim.spec.volume_name)
    if volume is None:
        raise VolumeError(f'persistentvolume "{claim.spec.volume_name}" not found')
    return volume


def class_waits_for_consumer(_waiting: Pod, _old: object, new: StorageClass) -> bool:
    """Claims of the new class are bound when a pod is scheduled."""
    return new.volume_binding_mode == "WaitForFirstConsumer"


def volume_moved(_waiting: Pod, old: PersistentVolume, new: PersistentVolume) -> bool:
    """The zone or region of a volume changed."""
    return dict(_zones_of(old)) != dict(_zones_of(new))


VOLUME_ZONE: Final = PluginDeclaration(
    "VolumeZone",
    "preFilter filter",
    "volumes are in the zone of the node",
    filter=plain(VolumeZone),
    without_pre_filter=PreFilterPerNode,
    events={
        "StorageClass Add": class_waits_for_consumer,
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "PersistentVolumeClaim Add": claim_named,
        "PersistentVolumeClaim Update": claim_named,
        "PersistentVolume Add": always,
        "PersistentVolume Update": volume_moved,
    },
)


class NoVolumeZoneConflict(BitFilter):
    """A node with zone labels must have those of the volumes behind the claims."""

    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
    name = "NoVolumeZoneConflict"
    scope = scope_with("claims", Scope.OBJECTS)
    reasons = (VOLUME_ZONE_CONFLICT,)

    def __init__(self, *, waits: bool = True) -> None:
        #: Whether claims may wait for their first consumer.
        self.waits = waits

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a volume is of another zone."""
        zone, region = map(at.has_label, BETA_LABELS)
        checked = zone | region
        wrong = at.flags(False)  # noqa: FBT003 - a column of False
        for name in pod.cls.claims:
            try:
                volume = self._volume(name, pod.cls, at.view.catalog)
            except VolumeError as error:
                at.fail_where(checked & (wrong ^ True), str(error))
                break
            for key, zones in _zones_of(volume, BETA_LABELS):
                wrong = wrong | (checked & (_has_one_of(key, zones, at) ^ True))
        return wrong * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The zone labels of volumes that the node does not match."""
        for name in pod.cls.claims:
            try:
                volume = self._volume(name, pod.cls, at.view.catalog)
            except VolumeError:
                return  # rejected for an earlier claim
            for key, zones in _zones_of(volume, BETA_LABELS):
                value = at.node_labels.get(key)
                if value not in zones:
                    yield _elsewhere(f"{pod.cls.namespace}/{name}", volume, (key, zones), value)

    def _volume(self, name: str, cls: PodClass, catalog: Catalog) -> PersistentVolume | None:
        claim = catalog.claims.get(name, cls.namespace)
        return _volume_of_claim(name, claim, catalog, self._check_unbound)

    def _check_unbound(self, claim: PersistentVolumeClaim, catalog: Catalog) -> None:
        if not (self.waits and waits_for_consumer(class_name(claim), catalog)):
            raise VolumeError(f'PersistentVolumeClaim is not bound: "{claim.name}"')


NO_VOLUME_ZONE_CONFLICT: Final = PredicateDeclaration(
    "NoVolumeZoneConflict",
    "the node is in the zone of the pod's volumes",
    lambda args: NoVolumeZoneConflict(waits=args.gates["VolumeScheduling"]),
    provided=True,
    aliases=("VolumeZonePredicate",),
)
