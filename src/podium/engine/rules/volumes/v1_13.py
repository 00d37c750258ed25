"""CheckVolumeBinding and NoVolumeZoneConflict: whether claims can be served here.

A bound claim needs a node that its volume can be reached from. A claim that waits for its first
consumer needs a volume that fits and is reachable, or a class that can make one here. Any other
unbound claim is an error: the pod came too early.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rows.node_match import selects, selects_any
from podium.engine.rules import reasons as why
from podium.engine.rules.predicates import BitPredicate
from podium.engine.rules.volumes.v1_13_limits import NO_CLAIM_NAME
from podium.engine.state.catalog import CLASS_ANNOTATION
from podium.objects.quantity import nano
from podium.objects.selectors.selectors import (
    SelectorError,
    from_label_selector,
    node_terms,
    topology_terms,
)

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


class VolumeError(Exception):
    """The claims cannot be judged at all; the attempt fails with this text."""


class BindingModeError(VolumeError):
    """A storage class does not say when its volumes are bound."""


@dataclass(slots=True)
class Claims:
    """A pod's claims by state."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What becomes of a pod's waiting claims on the chosen node."""

    bind: dict[str, str]  #: claim -> volume
    provision: tuple[str, ...]  #: claims to make a volume for
    #: Claims that the pod mounts twice take a second volume, which nobody else gets.
    again: tuple[tuple[str, str], ...] = ()


def class_name(item: PersistentVolume | PersistentVolumeClaim) -> str:
    """The storage class; the old annotation comes first."""
    annotations = item.metadata.annotations or {}
    if CLASS_ANNOTATION in annotations:
        return annotations[CLASS_ANNOTATION]
    return item.spec.storage_class_name or ""


def storage(item: PersistentVolume | PersistentVolumeClaim) -> int:
    """The storage a claim requests or a volume offers, exactly."""
    if hasattr(item.spec, "capacity"):
        return nano((item.spec.capacity or {}).get("storage", 0))
    resources = item.spec.resources
    return nano(((resources and resources.requests) or {}).get("storage", 0))


class CheckVolumeBinding(BitPredicate):
    """Every claim is bound to a reachable volume, or one can be found or made for it here."""

    name = "CheckVolumeBinding"
    settled = True

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with claims."""
        return Scope.CLUSTER if cls.claims else Scope.NONE

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: other pods do not matter."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """Bound claims first."""
        return (why.VOLUME_NODE_AFFINITY, why.VOLUME_BINDING)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Which of the two does not work out."""
        catalog = at.view.catalog
        try:
            claims = classify(pod, catalog)
        except VolumeError as error:
            at.fail(str(error))
            return at.full(0)
        bits = (self._bound(claims.bound, at) ^ True) * 1
        if claims.delayed:
            bits = bits | Matching(claims.delayed, at).bits() << 1
        return bits

    def plan(self, pod: Incoming, at: Rows) -> VolumePlan | None:
        """What to promise for the pod's waiting claims on the one row; None when all are bound."""
        if not pod.cls.claims:
            return None
        claims = classify(pod, at.view.catalog)
        return Matching(claims.delayed, at).plan() if claims.delayed else None

    def _bound(self, claims: list[PersistentVolumeClaim], at: Rows) -> Flags:
        reachable = at.full(True)  # noqa: FBT003 - a column of True
        for claim in claims:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = f'could not find v1.PersistentVolume "{claim.spec.volume_name}"'
                at.fail_where(reachable, missing)
                break
            reachable = reachable & reaches(volume, at)
        return reachable


def classify(pod: Incoming, catalog: Catalog) -> Claims:
    """The pod's claims by state; a claim that should be bound by now is an error."""
    claims, immediate = Claims(), False
    for name in pod.cls.claims:
        key = f"{pod.cls.namespace}/{name}"
        claim = catalog.claims.get(name, pod.cls.namespace)
        if claim is None:
            missing = f'could not find v1.PersistentVolumeClaim "{key}"'
            raise VolumeError(f'error getting PVC "{key}": {missing}')
        if claim.spec.volume_name and BIND_COMPLETED in (claim.metadata.annotations or {}):
            claims.bound.append(claim)
        elif _waits(claim, catalog) and not claim.spec.volume_name:
            claims.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise VolumeError("pod has unbound immediate PersistentVolumeClaims")
    return claims


def _waits(claim: PersistentVolumeClaim, catalog: Catalog) -> bool:
    if SELECTED_NODE in (claim.metadata.annotations or {}) or claim.key in catalog.provisioning:
        return False
    return waits_for_consumer(class_name(claim), catalog)


def waits_for_consumer(name: str, catalog: Catalog) -> bool:
    """Whether volumes of this class are bound only once a pod is placed."""
    found = catalog.storage_classes.get(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise BindingModeError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found.volume_binding_mode == WAIT


def reaches(volume: PersistentVolume, at: Rows) -> Flags:
    """From which rows a volume can be reached. Fields of the node are not looked at."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return at.full(True)  # noqa: FBT003 - a column of True
    return selects_any(at, node_terms(affinity.required), fields=False)


class Matching:
    """Finds volumes for waiting claims, once per distinct combination of reachable volumes."""

    #: What a claim's selector is called when it is refused.
    selector_kind = "pod selector"

    def __init__(self, claims: list[PersistentVolumeClaim], at: Rows) -> None:
        self.at = at
        self.catalog: Catalog = at.view.catalog
        self.claims = sorted(claims, key=storage)
        names = {claim.spec.storage_class_name or "" for claim in claims}
        found = self.catalog.volumes.naming(names)
        self.volumes = [v for v in found if v.spec.storage_class_name in names]
        self.classes = [self.catalog.storage_classes.get(class_name(c)) for c in self.claims]
        self.errors: dict[int, str] = {}

    def bits(self) -> Ints:
        """1 where some claim can be served in no way."""
        flags = [reaches(volume, self.at) for volume in self.volumes]
        flags += [self._allowed(found) for found in self.classes]
        bits = self.at.by_signature(flags, self._outcome)
        for code, text in self.errors.items():
            self.at.fail_where(bits == code, text)
        return (bits != 0) * 1

    def plan(self) -> VolumePlan:
        """What is chosen on the single row this was made for."""
        reachable = tuple(bool(reaches(volume, self.at)) for volume in self.volumes)
        chosen, left = self._match(reachable)
        pairs = [(claim.name, volume.name) for claim, volume in chosen]
        bind = dict(reversed(pairs))
        again = tuple(pair for pair in pairs if bind[pair[0]] != pair[1])
        return VolumePlan(bind, tuple(claim.name for claim in left), again)

    def _allowed(self, found: StorageClass | None) -> Flags:
        terms = topology_terms(found.allowed_topologies) if found is not None else None
        if terms is None:
            return self.at.full(True)  # noqa: FBT003 - a column of True
        allowed = self.at.full(False)  # noqa: FBT003 - a column of False
        for term in terms:
            allowed = allowed | selects(self.at, term)
        return allowed

    def _outcome(self, flags: tuple[bool, ...]) -> int:
        """0 served, 1 not served, a negative number for an error."""
        reachable, allowed = flags[: len(self.volumes)], flags[len(self.volumes) :]
        try:
            _, left = self._match(reachable)
            return int(not all(self._provisionable(claim, allowed) for claim in left))
        except VolumeError as error:
            return self._note(str(error))

    def _note(self, text: str) -> int:
        """Remember an error; the number that stands for it."""
        self.errors[-1 - len(self.errors)] = text
        return -len(self.errors)

    def _provisionable(self, claim: PersistentVolumeClaim, allowed: tuple[bool, ...]) -> bool:
        name = class_name(claim)
        if not name:
            raise VolumeError(f'no class for claim "{claim.key}"')
        found = self.catalog.storage_classes.get(name)
        if found is None:
            raise VolumeError(f'failed to find storage class "{name}"')
        if found.provisioner in ("", NO_PROVISIONER):
            return False
        return allowed[self.claims.index(claim)]

    def _match(
        self, reachable: tuple[bool, ...]
    ) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
        chosen: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        left = []
        for claim in self.claims:
            taken = {volume.name for _, volume in chosen}
            check_selector(claim, self.selector_kind)
            volume = self._best(claim, reachable, taken)
            if volume is None:
                left.append(claim)
            else:
                chosen.append((claim, volume))
        return chosen, left

    def _best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The smallest volume that fits, or the one that is meant for this very claim."""
        best: PersistentVolume | None = None
        for volume, reached in zip(self.volumes, reachable, strict=True):
            if volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
                continue
            if volume.name in taken or not same_mode(claim, volume):
                continue
            if volume.metadata.deletion_timestamp is not None:
                continue
            if self._meant_for(volume, claim):
                if storage(volume) < storage(claim):
                    continue
                return volume if reached else None
            fits = reached and self._free(volume) and suits(claim, volume)
            if fits and (best is None or storage(volume) < storage(best)):
                best = volume
        return best

    def _meant_for(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        promised = self.catalog.promised_volumes.get(volume.name)
        if promised is not None:
            return promised.key == claim.key
        reference = volume.spec.claim_ref
        return (
            reference is not None
            and (reference.name, reference.namespace) == (claim.name, claim.namespace)
            and reference.uid in ("", claim.metadata.uid)
        )

    def _free(self, volume: PersistentVolume) -> bool:
        return (
            volume.status.phase == "Available"
            and volume.spec.claim_ref is None
            and volume.name not in self.catalog.promised_volumes
        )


def same_mode(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether both are meant as a file system, or both as a block device."""
    return (claim.spec.volume_mode or "Filesystem") == (volume.spec.volume_mode or "Filesystem")


def check_selector(claim: PersistentVolumeClaim, kind: str) -> None:
    """A claim whose selector cannot be compiled is an error, whatever volumes there are."""
    try:
        from_label_selector(claim.spec.selector, kind)
    except SelectorError as error:
        text = f"error creating internal label selector for claim: {claim.key}: {error}"
        raise VolumeError(text) from error


def suits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether selector, class, access modes and size of a free volume suit a claim."""
    chosen = claim.spec.selector
    if chosen is not None and not from_label_selector(chosen).matches(volume.labels):
        return False
    return (
        class_name(claim) == class_name(volume)
        and set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        and storage(volume) >= storage(claim)
    )


class NoVolumeZoneConflict(BitPredicate):
    """A volume with zone labels is used only in its zones. Nodes without zone labels take all."""

    name = "NoVolumeZoneConflict"
    settled = True

    def __init__(self, *, waits: bool = True) -> None:
        #: Whether claims may wait for their first consumer.
        self.waits = waits

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with claims."""
        return Scope.CLUSTER if cls.claims else Scope.NONE

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: other pods do not matter."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.VOLUME_ZONE,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some volume lives in another zone."""
        checked = at.has_label(ZONE_LABELS[0]) | at.has_label(ZONE_LABELS[1])
        wrong = at.full(False)  # noqa: FBT003 - a column of False
        for name in pod.cls.claims:
            try:
                volume = _zoned_volume(name, pod.cls, at.view.catalog, waits=self.waits)
            except VolumeError as error:
                at.fail_where(checked & (wrong ^ True), str(error))
                break
            if volume is not None:
                wrong = wrong | (checked & self._elsewhere(volume, at))
        return wrong * 1

    def _elsewhere(self, volume: PersistentVolume, at: Rows) -> Flags:
        elsewhere = at.full(False)  # noqa: FBT003 - a column of False
        for key in ZONE_LABELS:
            zones = (
                {zone.strip() for zone in volume.labels[key].split("__")}
                if key in volume.labels
                else set()
            )
            if zones and "" not in zones:
                column = at.view.label_column(key)
                inside = at.fact(column, lambda value, zones=zones: (value or "") in zones)
                elsewhere = elsewhere | (inside ^ True)
        return elsewhere


def _zoned_volume(
    name: str, cls: PodClass, catalog: Catalog, *, waits: bool
) -> PersistentVolume | None:
    """The volume behind a claim; None when it may still come to be anywhere."""
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
