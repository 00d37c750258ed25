"""v1.13 NoVolumeZoneConflict: a volume with zone labels is used only in its zones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import VolumeElsewhere
from podium.engine.framework.declaration import PredicateDeclaration
from podium.engine.framework.rule import BitFilter, Scope, scope_with
from podium.engine.rows.rows import Flags, Ints, K, Rows
from podium.engine.rules.volumes.binding.predicates import waits_for_consumer
from podium.engine.rules.volumes.shared import VolumeError, class_name
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.objects.kinds.storage import PersistentVolume

VOLUME_ZONE_CONFLICT = Reason("node(s) had no available volume zone", curable=False)
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
NO_CLAIM_NAME = "PersistentVolumeClaim had no name"


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
        checked = at.has_label(ZONE_LABELS[0]) | at.has_label(ZONE_LABELS[1])
        wrong = at.flags(False)  # noqa: FBT003 - a column of False
        for name in pod.cls.claims:
            try:
                volume = _volume_of_claim(name, pod.cls, at.view.catalog, waits=self.waits)
            except VolumeError as error:
                at.fail_where(checked & (wrong ^ True), str(error))
                break
            if volume is not None:
                wrong = wrong | (checked & self._in_other_zone(volume, at))
        return wrong * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The zone labels of volumes that the node does not match."""
        for name in pod.cls.claims:
            try:
                volume = _volume_of_claim(name, pod.cls, at.view.catalog, waits=self.waits)
            except VolumeError:
                return  # rejected for an earlier claim
            for key, zones in () if volume is None else _zones_of(volume):
                value = at.node_labels.get(key)
                if not _is_in(zones, value):
                    claim = f"{pod.cls.namespace}/{name}"
                    text, where = VOLUME_ZONE_CONFLICT.text, tuple(sorted(zones))
                    named = "" if volume is None else volume.name
                    yield VolumeElsewhere(text, claim, named, key, where, value)

    def _in_other_zone(self, volume: PersistentVolume, at: Rows[K]) -> Flags[K]:
        elsewhere = at.flags(False)  # noqa: FBT003 - a column of False
        for key, zones in _zones_of(volume):
            inside = at.flag(at.view.nodes.label_column(key), partial(_is_in, zones))
            elsewhere = elsewhere | (inside ^ True)
        return elsewhere


def _zones_of(volume: PersistentVolume) -> Iterator[tuple[str, set[str]]]:
    """The zone labels of a volume with the zones that each allows; none with an empty part."""
    for key in ZONE_LABELS:
        if key in volume.labels:
            zones = {zone.strip() for zone in volume.labels[key].split("__")}
            if "" not in zones:
                yield key, zones


def _volume_of_claim(
    name: str, cls: PodClass, catalog: Catalog, *, waits: bool
) -> PersistentVolume | None:
    """The volume of a claim; None for a claim that waits for its first consumer."""
    if not name:
        raise VolumeError(NO_CLAIM_NAME)
    claim = catalog.claims.get(name, cls.namespace)
    if claim is None:
        raise VolumeError(f'persistentvolumeclaim "{name}" not found')
    if not claim.spec.volume_name:
        if waits and waits_for_consumer(class_name(claim), catalog):
            return None
        raise VolumeError(f'PersistentVolumeClaim is not bound: "{name}"')
    volume = catalog.volumes.get(claim.spec.volume_name)
    if volume is None:
        raise VolumeError(f'persistentvolume "{claim.spec.volume_name}" not found')
    return volume


def _is_in(zones: set[str], value: str | None) -> bool:
    return (value or "") in zones


NO_VOLUME_ZONE_CONFLICT: Final = PredicateDeclaration(
    "NoVolumeZoneConflict",
    "the node is in the zone of the pod's volumes",
    lambda args: NoVolumeZoneConflict(waits=args.gates["VolumeScheduling"]),
    provided=True,
    aliases=("VolumeZonePredicate",),
)
