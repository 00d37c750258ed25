"""v1.36 VolumeBinding: whether the pod's claims can be bound on a node.

The volume of a bound claim must be reachable from the node. A claim that waits for its first
consumer needs a suitable volume that is reachable, or a storage class that provisions on the node
and has the capacity for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from podium.engine.framework.causes import Cause, ClaimUnserved, VolumeLost
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    BitFilter,
    Everywhere,
    Refused,
    ReserveRule,
    Scope,
    ScoreRule,
)
from podium.engine.rows.node_match import selects, selects_any_by_labels
from podium.engine.rows.rows import Flags, Ints, K, OneRow, Rows, as_int
from podium.engine.rules.v1_36_wakeups import always
from podium.engine.rules.volumes.binding.shared import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT,
    BaseVolumeMatcher,
    Claims,
    is_suitable,
    requested,
    same_mode,
    storage,
    unreachable,
    unserved,
)
from podium.engine.rules.volumes.binding.v1_36_arguments import VOLUME_BINDING_ARGUMENTS
from podium.engine.rules.volumes.binding.v1_36_wakeups import (
    capacity_grew,
    capacity_unchecked,
    migration_changed,
    topologies_changed,
)
from podium.engine.rules.volumes.shared import VolumeError, class_name, told_by_drivers
from podium.engine.rules.volumes.v1_36_claims import ClaimFacts, claim_facts, has_ephemeral
from podium.engine.rules.volumes.v1_36_wakeups import claim_used
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
    from collections.abc import Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import NodeSelector
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

VOLUME_NODE_AFFINITY_MISMATCH = Reason(
    "node(s) didn't match PersistentVolume's node affinity", curable=False
)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", curable=False)
NO_STORAGE_CAPACITY = Reason("node(s) did not have enough free storage", curable=False)
LOST_VOLUME = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", curable=False
)
UNBOUND_IMMEDIATE_CLAIMS = "pod has unbound immediate PersistentVolumeClaims"


class BindingModeError(VolumeError):
    """A storage class has no volumeBindingMode."""


def reaches(volume: PersistentVolume, at: Rows[K]) -> Flags[K]:
    """The rows from which a volume can be reached; requirements on node fields are ignored."""
    affinity = volume.spec.node_affinity
    return matches_node_affinity(affinity.required if affinity is not None else None, at)


def matches_node_affinity(required: NodeSelector | None, at: Rows[K]) -> Flags[K]:
    """The rows whose labels match the terms; all rows without terms."""
    if required is None:
        return at.flags(True)  # noqa: FBT003 - a column of True
    return selects_any_by_labels(at, node_terms(required))


class NamedClaim(NamedTuple):
    """A claim as a pod names it."""

    name: str
    #: None if there is none of this name.
    claim: PersistentVolumeClaim | None
    #: Whether it is that of an ephemeral volume.
    ephemeral: bool


def named_claims(pod: Incoming, facts: ClaimFacts, catalog: Catalog) -> list[NamedClaim]:
    """The claims of the pod, in the order of its volumes."""
    cls = pod.cls
    if not has_ephemeral(cls):
        return [
            NamedClaim(name, claim, ephemeral=False)
            for name, claim in zip(cls.claims, facts.claims, strict=True)
        ]
    found = []
    for volume in cls.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.pod.name}-{volume.name}"
        else:
            continue
        claim = catalog.claims.get(name, cls.namespace)
        found.append(NamedClaim(name, claim, ephemeral=volume.ephemeral is not None))
    return found


#: What VolumeBinding looks up, for its filter and its score.
BINDING_KINDS = (
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
)


class VolumeBinding(BitFilter, ReserveRule):
    """Every claim is bound to a reachable volume, or can be bound or provisioned on the node."""

    kinds = BINDING_KINDS
    name = "VolumeBinding"
    reasons = (VOLUME_NODE_AFFINITY_MISMATCH, NO_VOLUME, NO_STORAGE_CAPACITY, LOST_VOLUME)

    def scope(self, cls: PodClass) -> Scope:
        """Claims, volumes and storage classes, for pods with claims."""
        return Scope.OBJECTS if cls.claims or has_ephemeral(cls) else Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """A claim that is missing, lost, being deleted or unbound refuses the pod."""
        return self.scope(cls) is not Scope.NONE

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """Every claim must exist and be bound, or wait for its first consumer."""
        facts = claim_facts(pod.cls, view.catalog)
        if facts.by_state is not None:
            return None  # they were accepted before
        claims = named_claims(pod, facts, view.catalog)
        try:
            for each in claims:
                _check_claim(pod, each)
            facts.by_state = _classified(claims, view.catalog)
        except BindingModeError as error:
            raise AttemptError(str(error)) from error
        except VolumeError as error:
            return Refused(self.name, str(error))
        return None

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Idle if all claims are bound to volumes that are reached from everywhere."""
        if self.scope(pod.cls) is Scope.NONE:
            return Activity.SKIPPED
        catalog = view.catalog
        facts = claim_facts(pod.cls, catalog)
        if facts.reached is None:
            try:
                claims = _by_state(pod, facts, catalog)
            except VolumeError:
                return Activity.ACTIVE
            volumes = (catalog.volumes.get(claim.spec.volume_name) for claim in claims.bound)
            facts.reached = not claims.delayed and all(map(_is_reached_from_everywhere, volumes))
        return Activity.IDLE if facts.reached else Activity.ACTIVE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The reasons of the first bound claim that fails, and of the waiting claims."""
        try:
            claims = classify(pod, at.view.catalog)
        except VolumeError as error:
            raise AttemptError(str(error)) from error
        bits = self._bound(claims.bound, at)
        return bits | VolumeMatcher(claims.delayed, at).bits() if claims.delayed else bits

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The volumes that are lost or out of reach, and the claims that get none."""
        claims = classify(pod, at.view.catalog)
        for claim in claims.bound:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                yield VolumeLost(LOST_VOLUME.text, claim.key, claim.spec.volume_name)
            elif as_int(self._not_reachable(volume, at, at.flags(True))):  # noqa: FBT003
                kind = older_kind(volume.spec)
                moved = bool(kind) and told_by_drivers(at, kind, handed_over(kind))
                yield unreachable(
                    VOLUME_NODE_AFFINITY_MISMATCH,
                    claim,
                    volume,
                    at,
                    memo,
                    fields=lambda _: True,
                    required=reachable_from(volume) if moved else None,
                )
        if claims.delayed:
            yield from VolumeMatcher(claims.delayed, at).causes()

    def reserve(self, pod: Incoming, at: OneRow) -> VolumePlan | None:
        """Volumes for the claims that wait for a consumer; None when all are bound."""
        if self.scope(pod.cls) is Scope.NONE:
            return None
        delayed = classify(pod, at.view.catalog).delayed
        return VolumeMatcher(delayed, at).plan() if delayed else None

    def _bound(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> Ints[K]:
        bits = at.full(0)
        for claim in claims:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            # The first claim that fails a node is the last one looked at there.
            failing = at.full(8) if volume is None else self._not_reachable(volume, at, bits == 0)
            bits = at.where(bits == 0, failing, bits)
        return bits

    def _not_reachable(self, volume: PersistentVolume, at: Rows[K], asked: Flags[K]) -> Ints[K]:
        """1 where a bound volume cannot be reached.

        In-tree volumes are translated on nodes that have handed them over to a CSI driver.
        """
        unreached = (reaches(volume, at) ^ True) * 1
        kind = older_kind(volume.spec)
        if not kind or not len(at.view.catalog.csi_nodes):
            return unreached
        moved = told_by_drivers(at, kind, handed_over(kind))
        try:
            now = matches_node_affinity(reachable_from(volume), at)
        except UntranslatableError as error:
            text = f'running "{self.name}" filter plugin: could not translate pv: {error}'
            at.fail_where(asked & moved, text)
            return at.where(moved, 0, unreached)
        return at.where(moved, (now ^ True) * 1, unreached)


def _is_reached_from_everywhere(volume: PersistentVolume | None) -> bool:
    """Whether no node can fail to reach a volume, also where a CSI driver took it over."""
    if volume is None:
        return False
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        return False
    try:
        return not older_kind(volume.spec) or reachable_from(volume) is None
    except UntranslatableError:
        return False


class VolumeBindingScore(ScoreRule):
    """Scores nothing: scoring by storage capacity (StorageCapacityScoring) is off by default."""

    kinds = BINDING_KINDS
    name = "VolumeBinding"
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: pods are treated alike."""
        return ()

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Skipped for every pod."""
        return SKIPPED


def _check_claim(pod: Incoming, named: NamedClaim) -> None:
    name, claim, ephemeral = named
    if claim is None:
        missing = f'persistentvolumeclaim "{name}" not found'
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        raise VolumeError(f'{waiting} "{name}"' if ephemeral else missing)
    if claim.status.phase == "Lost":
        lost = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
        raise VolumeError(f'{lost} "{claim.spec.volume_name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
    if ephemeral:
        owner = claim.metadata.controller()
        if owner is None or owner.uid != pod.uid:
            not_owned = f"was not created for pod {pod.key} (pod is not owner)"
            raise VolumeError(f"PVC {claim.key} {not_owned}")


def classify(pod: Incoming, catalog: Catalog) -> Claims:
    """The pod's claims by state; an unbound claim that does not wait refuses the pod."""
    return _by_state(pod, claim_facts(pod.cls, catalog), catalog)


def _by_state(pod: Incoming, facts: ClaimFacts, catalog: Catalog) -> Claims:
    return facts.by_state or _classified(named_claims(pod, facts, catalog), catalog)


def _classified(named: Iterable[NamedClaim], catalog: Catalog) -> Claims:
    claims, immediate = Claims(), False
    for name, claim, _ in named:
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        if claim.spec.volume_name and BIND_COMPLETED in (claim.metadata.annotations or {}):
            claims.bound.append(claim)
        elif waits_for_consumer(class_name(claim), catalog) and not claim.spec.volume_name:
            claims.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise VolumeError(UNBOUND_IMMEDIATE_CLAIMS)
    return claims


def waits_for_consumer(name: str, catalog: Catalog) -> bool:
    """Whether claims of this storage class are bound only once a pod is scheduled."""
    found = catalog.storage_classes.get(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise BindingModeError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found.volume_binding_mode == WAIT


def selected_node(claim: PersistentVolumeClaim, catalog: Catalog) -> str | None:
    """The node where a volume for the claim is already being provisioned."""
    annotations = claim.metadata.annotations or {}
    return annotations.get(SELECTED_NODE) or catalog.provisioning.get(claim.key)


class VolumeMatcher(BaseVolumeMatcher[K]):
    """Matches volumes to waiting claims, once per distinct combination of what rows offer."""

    def __init__(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> None:
        catalog = at.view.catalog
        self.provisioning = [claim for claim in claims if selected_node(claim, catalog)]
        others = [claim for claim in claims if claim not in self.provisioning]
        names = {class_name(claim) for claim in others}
        found = catalog.volumes.naming(names)
        super().__init__(others, [v for v in found if class_name(v) in names], at)
        self.all_claims = [*self.provisioning, *self.claims]
        self.classes = [catalog.storage_classes.get(class_name(c)) for c in self.all_claims]

    def bits(self) -> Ints[K]:
        """2 where a claim can neither be bound nor provisioned, 4 where only capacity lacks."""
        at = self.at
        flags = [reaches(volume, at) for volume in self.volumes]
        flags += [self.allowed(found) for found in self.classes]
        flags += [
            self._has_capacity(c, f) for c, f in zip(self.all_claims, self.classes, strict=True)
        ]
        bits = at.by_signature(flags, self._outcome)
        for code, text in self.errors.items():
            at.fail_where(bits == code, f'running "{VolumeBinding.name}" filter plugin: {text}')
        bits = at.where(bits < 0, 0, bits)
        for claim in self.provisioning:
            node = selected_node(claim, self.catalog) or ""
            bits = at.where(at.is_node(node), bits, 2)
        return bits

    def plan(self) -> VolumePlan:
        """The volumes chosen on the single row this was made for."""
        reachable = tuple(bool(reaches(volume, self.at)) for volume in self.volumes)
        chosen, left = self.match(reachable)
        made = (*self.provisioning, *left)
        return VolumePlan({claim.name: v.name for claim, v in chosen}, tuple(c.name for c in made))

    def causes(self) -> Iterator[Cause]:
        """The claims that get no volume on the single row this was made for."""
        _, left = self.match(tuple(bool(reaches(volume, self.at)) for volume in self.volumes))
        for claim in self.provisioning:
            node = selected_node(claim, self.catalog) or ""
            if not bool(self.at.is_node(node)):
                text, kind = NO_VOLUME.text, class_name(claim)
                yield ClaimUnserved(text, claim.key, kind, "otherNode", node=node)
        for claim in (*self.provisioning, *left):
            made_by = self.classes[self.all_claims.index(claim)]
            provisions = made_by is not None and made_by.provisioner not in ("", NO_PROVISIONER)
            if made_by is None or not provisions or not bool(self.allowed(made_by)):
                yield unserved(NO_VOLUME, claim, made_by)
            elif not bool(self._has_capacity(claim, made_by)):
                yield ClaimUnserved(
                    NO_STORAGE_CAPACITY.text,
                    claim.key,
                    made_by.name,
                    "capacity",
                    made_by.provisioner,
                    requested=requested(claim),
                )

    def _outcome(self, flags: tuple[bool, ...]) -> int:
        volumes, claims = len(self.volumes), len(self.all_claims)
        try:
            _, left = self.match(flags[:volumes])
        except VolumeError as error:
            return self.note(str(error))
        for claim in (*self.provisioning, *left):
            i = self.all_claims.index(claim)
            made_by = self.classes[i]
            if made_by is None or made_by.provisioner in ("", NO_PROVISIONER):
                return 2
            if not flags[volumes + i]:
                return 2
            if not flags[volumes + claims + i]:
                return 4
        return 0

    def _has_capacity(self, claim: PersistentVolumeClaim, found: StorageClass | None) -> Flags[K]:
        """The rows where the storage class has the capacity; all rows where it is not tracked."""
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
        """A selector that cannot be compiled is an error, also without any candidate."""
        try:
            from_label_selector(claim.spec.selector, "label selector")
        except SelectorError as error:
            text = f"error creating internal label selector for claim: {claim.key}: {error}"
            raise VolumeError(text) from error

    def best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The volume reserved for the claim, or else the smallest one that is suitable."""
        best: PersistentVolume | None = None
        for volume, reached in zip(self.volumes, reachable, strict=True):
            meant = self.is_reserved_for(volume, claim)
            if (
                volume.name in taken
                or not _is_candidate(claim, volume)
                or not (meant or self._is_unclaimed(volume))
            ):
                continue
            if meant:
                return volume if reached else None
            fits = reached and self.is_free(volume) and is_suitable(claim, volume)
            if fits and (best is None or storage(volume) < storage(best)):
                best = volume
        return best

    def _is_unclaimed(self, volume: PersistentVolume) -> bool:
        return volume.spec.claim_ref is None and volume.name not in self.catalog.promised_volumes


def _is_candidate(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        class_name(volume) == class_name(claim)
        and storage(volume) >= storage(claim)
        and same_mode(claim, volume)
        and volume.metadata.deletion_timestamp is None
        and (claim.spec.volume_attributes_class_name or "")
        == (volume.spec.volume_attributes_class_name or "")
    )


VOLUME_BINDING: Final = PluginDeclaration(
    "VolumeBinding",
    "preFilter filter reserve preBind preScore score",
    "claims have volumes that the node can reach, or can get some",
    filter=plain(VolumeBinding),
    score=plain(VolumeBindingScore),
    arguments=VOLUME_BINDING_ARGUMENTS,
    pre_filter_error="not found",
    events={
        "StorageClass Add": always,
        "StorageClass Update": topologies_changed,
        "PersistentVolumeClaim Add": claim_used,
        "PersistentVolumeClaim Update": claim_used,
        "PersistentVolume Add": always,
        "PersistentVolume Update": always,
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "CSINode Add": always,
        "CSINode Update": migration_changed,
        "CSIDriver Update": capacity_unchecked,
        "CSIStorageCapacity Add": always,
        "CSIStorageCapacity Update": capacity_grew,
    },
)
