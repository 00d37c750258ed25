"""v1.36 VolumeBinding: whether the pod's claims can be served from this node.

Bound claims need a node their volume can be reached from. Claims that wait for a consumer need a
fitting volume, or a class that can make one here and has the room for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import (
    SKIPPED,
    AttemptError,
    BitFilter,
    Everywhere,
    Refused,
    ReserveRule,
    Scope,
    ScoreRule,
)
from podium.engine.rows.node_match import selects, selects_any_by_labels
from podium.engine.rows.rows import Flags, Ints, K, OneRow, Rows
from podium.engine.rules.volumes.binding.shared import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT,
    ClaimMatching,
    Claims,
    same_mode,
    storage,
    suits,
)
from podium.engine.rules.volumes.shared import VolumeError, class_name, told_by_drivers
from podium.engine.state.in_tree_volumes import (
    UntranslatableError,
    handed_over,
    older_kind,
    reachable_from,
)
from podium.engine.state.verdicts import Reason
from podium.engine.state.volume_plan import VolumePlan
from podium.objects.quantity import value
from podium.objects.selectors.selectors import SelectorError, from_label_selector, node_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import NodeSelector
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

UNREACHABLE = Reason("node(s) didn't match PersistentVolume's node affinity", curable=False)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", curable=False)
NO_SPACE = Reason("node(s) did not have enough free storage", curable=False)
LOST_VOLUME = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", curable=False
)
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class BindingModeError(VolumeError):
    """A storage class does not say when its volumes are bound."""


def reached_by(volume: PersistentVolume, at: Rows[K]) -> Flags[K]:
    """From which rows a volume can be reached; what it says of node fields is passed over."""
    affinity = volume.spec.node_affinity
    return selected_by(affinity.required if affinity is not None else None, at)


def selected_by(required: NodeSelector | None, at: Rows[K]) -> Flags[K]:
    """Which rows carry the labels asked for, if any are."""
    if required is None:
        return at.flags(True)  # noqa: FBT003 - a column of True
    return selects_any_by_labels(at, node_terms(required))


def claim_names(pod: Incoming) -> Iterator[tuple[str, bool]]:
    """The claims of the pod's volumes, and whether each is made for the pod itself."""
    for volume in pod.cls.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            yield f"{pod.pod.name}-{volume.name}", True


class VolumeBinding(BitFilter, ReserveRule):
    """Every claim is bound to a reachable volume, or one can be found or made for it here."""

    name = "VolumeBinding"
    reasons = (UNREACHABLE, NO_VOLUME, NO_SPACE, LOST_VOLUME)

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with claims."""
        claims = cls.claims or any(volume.ephemeral is not None for volume in cls.volumes)
        return Scope.OBJECTS if claims else Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """A claim that is missing, lost or late refuses the pod."""
        return self.scope(cls) is not Scope.NONE

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """Claims must exist, be alive, belong to the pod, and not be late."""
        try:
            for name, ephemeral in claim_names(pod):
                _check_claim(pod, name, view.catalog, ephemeral=ephemeral)
            classify(pod, view.catalog)
        except BindingModeError as error:
            raise AttemptError(str(error)) from error
        except VolumeError as error:
            return Refused(self.name, str(error))
        return None

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """What does not work out."""
        try:
            claims = classify(pod, at.view.catalog)
        except VolumeError as error:
            raise AttemptError(str(error)) from error
        bits = self._bound(claims.bound, at)
        return bits | Finding(claims.delayed, at).bits() if claims.delayed else bits

    def reserve(self, pod: Incoming, at: OneRow) -> VolumePlan | None:
        """Volumes for the claims that wait for a consumer; None when all are bound."""
        if self.scope(pod.cls) is Scope.NONE:
            return None
        delayed = classify(pod, at.view.catalog).delayed
        return Finding(delayed, at).plan() if delayed else None

    def _bound(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> Ints[K]:
        bits = at.full(0)
        for claim in claims:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            # The first claim that fails a node is the last one looked at there.
            failing = at.full(8) if volume is None else self._unreached(volume, at, bits == 0)
            bits = at.where(bits == 0, failing, bits)
        return bits

    def _unreached(self, volume: PersistentVolume, at: Rows[K], asked: Flags[K]) -> Ints[K]:
        """1 where a bound volume cannot be reached; disks of older kinds in the driver's words."""
        unreached = (reached_by(volume, at) ^ True) * 1
        kind = older_kind(volume.spec)
        if not kind or not len(at.view.catalog.csi_nodes):
            return unreached
        moved = told_by_drivers(at, handed_over(kind))
        try:
            now = selected_by(reachable_from(volume), at)
        except UntranslatableError as error:
            text = f'running "{self.name}" filter plugin: could not translate pv: {error}'
            at.fail_where(asked & moved, text)
            return at.where(moved, 0, unreached)
        return at.where(moved, (now ^ True) * 1, unreached)


class VolumeBindingScore(ScoreRule):
    """Gives no scores: scoring by storage capacity is off."""

    name = "VolumeBinding"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Skipped for every pod."""
        return SKIPPED


def _check_claim(pod: Incoming, name: str, catalog: Catalog, *, ephemeral: bool) -> None:
    claim = catalog.claims.get(name, pod.cls.namespace)
    if claim is None:
        missing = f'persistentvolumeclaim "{name}" not found'
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        raise VolumeError(f'{waiting} "{name}"' if ephemeral else missing)
    if claim.status.phase == "Lost":
        lost = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
        raise VolumeError(f'{lost} "{claim.spec.volume_name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
    owner = claim.metadata.controller()
    if ephemeral and (owner is None or owner.uid != pod.uid):
        raise VolumeError(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")


def classify(pod: Incoming, catalog: Catalog) -> Claims:
    """The pod's claims by state; one that should be bound by now refuses the pod."""
    claims, immediate = Claims(), False
    for name, _ in claim_names(pod):
        claim = catalog.claims.get(name, pod.cls.namespace)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        if claim.spec.volume_name and BIND_COMPLETED in (claim.metadata.annotations or {}):
            claims.bound.append(claim)
        elif waits_for_consumer(class_name(claim), catalog) and not claim.spec.volume_name:
            claims.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise VolumeError(IMMEDIATE)
    return claims


def waits_for_consumer(name: str, catalog: Catalog) -> bool:
    """Whether volumes of this class are bound only once a pod is placed."""
    found = catalog.storage_classes.get(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise BindingModeError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found.volume_binding_mode == WAIT


def selected_node(claim: PersistentVolumeClaim, catalog: Catalog) -> str | None:
    """The node a volume is already being made on for the claim."""
    annotations = claim.metadata.annotations or {}
    return annotations.get(SELECTED_NODE) or catalog.provisioning.get(claim.key)


class Finding(ClaimMatching[K]):
    """Finds volumes for waiting claims, once per distinct combination of what a row offers."""

    def __init__(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> None:
        catalog = at.view.catalog
        self.promised = [claim for claim in claims if selected_node(claim, catalog)]
        others = [claim for claim in claims if claim not in self.promised]
        names = {class_name(claim) for claim in others}
        found = catalog.volumes.naming(names)
        super().__init__(others, [v for v in found if class_name(v) in names], at)
        self.everyone = [*self.promised, *self.claims]
        self.everyones = [catalog.storage_classes.get(class_name(c)) for c in self.everyone]

    def bits(self) -> Ints[K]:
        """2 where some claim can be served in no way, 4 where only the room is missing."""
        at = self.at
        flags = [reached_by(volume, at) for volume in self.volumes]
        flags += [self.allowed(found) for found in self.everyones]
        flags += [self._room(c, f) for c, f in zip(self.everyone, self.everyones, strict=True)]
        bits = at.by_signature(flags, self._found)
        for code, text in self.errors.items():
            at.fail_where(bits == code, f'running "{VolumeBinding.name}" filter plugin: {text}')
        bits = at.where(bits < 0, 0, bits)
        for claim in self.promised:
            node = selected_node(claim, self.catalog) or ""
            bits = at.where(at.is_node(node), bits, 2)
        return bits

    def plan(self) -> VolumePlan:
        """What is chosen on the single row this was made for."""
        reachable = tuple(bool(reached_by(volume, self.at)) for volume in self.volumes)
        chosen, left = self.match(reachable)
        made = (*self.promised, *left)
        return VolumePlan({claim.name: v.name for claim, v in chosen}, tuple(c.name for c in made))

    def _found(self, flags: tuple[bool, ...]) -> int:
        volumes, claims = len(self.volumes), len(self.everyone)
        try:
            _, left = self.match(flags[:volumes])
        except VolumeError as error:
            return self.note(str(error))
        for claim in (*self.promised, *left):
            i = self.everyone.index(claim)
            made_by = self.everyones[i]
            if made_by is None or made_by.provisioner in ("", NO_PROVISIONER):
                return 2
            if not flags[volumes + i]:
                return 2
            if not flags[volumes + claims + i]:
                return 4
        return 0

    def _room(self, claim: PersistentVolumeClaim, found: StorageClass | None) -> Flags[K]:
        """Whether the class has the capacity here, where capacity is tracked."""
        at = self.at
        resources = claim.spec.resources
        request = ((resources and resources.requests) or {}).get("storage")
        driver = self.catalog.csi_drivers.get(found.provisioner) if found is not None else None
        if request is None or driver is None or driver.spec.storage_capacity is not True:
            return at.flags(True)  # noqa: FBT003 - a column of True
        room = at.flags(False)  # noqa: FBT003 - a column of False
        for capacity in self.catalog.csi_capacities:
            limit = capacity.maximum_volume_size
            limit = capacity.capacity if limit is None else limit
            if capacity.storage_class_name != class_name(claim) or limit is None:
                continue
            if value(limit) < value(request) or capacity.node_topology is None:
                continue
            try:
                room = room | selects(at, from_label_selector(capacity.node_topology))
            except SelectorError:
                continue
        return room

    def check_selector(self, claim: PersistentVolumeClaim) -> None:
        """A selector that cannot be compiled is an error, whatever volumes there are."""
        try:
            from_label_selector(claim.spec.selector, "label selector")
        except SelectorError as error:
            text = f"error creating internal label selector for claim: {claim.key}: {error}"
            raise VolumeError(text) from error

    def best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The smallest volume that fits, or the one that is meant for this very claim."""
        best: PersistentVolume | None = None
        for volume, reached in zip(self.volumes, reachable, strict=True):
            meant = self.is_meant_for(volume, claim)
            if (
                volume.name in taken
                or not _in_question(claim, volume)
                or not (meant or self._unclaimed(volume))
            ):
                continue
            if meant:
                return volume if reached else None
            fits = reached and self.is_free(volume) and suits(claim, volume)
            if fits and (best is None or storage(volume) < storage(best)):
                best = volume
        return best

    def _unclaimed(self, volume: PersistentVolume) -> bool:
        return volume.spec.claim_ref is None and volume.name not in self.catalog.promised_volumes


def _in_question(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        class_name(volume) == class_name(claim)
        and storage(volume) >= storage(claim)
        and same_mode(claim, volume)
        and volume.metadata.deletion_timestamp is None
        and (claim.spec.volume_attributes_class_name or "")
        == (volume.spec.volume_attributes_class_name or "")
    )
