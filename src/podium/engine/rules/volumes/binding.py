"""Whether the pod's claims can be bound on a node: VolumeBinding, and CheckVolumeBinding of v1.13.

The volume of a bound claim must be reachable from the node. A claim that waits for its first
consumer needs a suitable volume that is reachable, or a storage class that provisions on the node
and, for the plugin, has the capacity for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Final, Generic, NamedTuple

from podium.engine.framework.causes import (
    Cause,
    ClaimUnserved,
    Expression,
    VolumeLost,
    VolumeUnreachable,
)
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    PredicateDeclaration,
    arguments_record,
    plain,
)
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
    Watched,
    scope_with,
)
from podium.engine.rows.node_match import selects, selects_any, selects_any_by_labels
from podium.engine.rows.rows import Flags, Ints, K, OneRow, Rows, as_int
from podium.engine.rules.node_affinity import unmet_terms
from podium.engine.rules.plugins import POINT, ShapePoint, always, shape_errors
from podium.engine.rules.volumes.claims import (
    ClaimFacts,
    Claims,
    claim_facts,
    claim_used,
    has_ephemeral,
    volumes_of,
)
from podium.engine.rules.volumes.shared import VolumeError, class_name, told_by_drivers
from podium.engine.state.reservation import VolumePlan
from podium.engine.state.verdicts import Reason
from podium.objects.field_errors import child, invalid
from podium.objects.go_types import INT64, Slice, go_json
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import (
    HANDED_OVER,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    StorageClass,
    UntranslatableError,
    handed_over,
    older_kind,
    reachable_from,
)
from podium.objects.quantity import nano, value
from podium.objects.selectors.selectors import (
    SelectorError,
    from_label_selector,
    node_terms,
    topology_terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import NodeSelector
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim
    from podium.objects.selectors.selectors import FieldSelector


BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def storage(item: PersistentVolume | PersistentVolumeClaim) -> int:
    """The storage that a claim requests or a volume offers, in nano-units."""
    if hasattr(item.spec, "capacity"):
        return nano((item.spec.capacity or {}).get("storage", 0))
    resources = item.spec.resources
    return nano(((resources and resources.requests) or {}).get("storage", 0))


def unreachable(
    reason: Reason,
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    at: OneRow,
    memo: Memo,
    *,
    fields: Callable[[FieldSelector], bool],
    required: NodeSelector | None = None,
) -> VolumeUnreachable:
    """The cause for a bound volume that the node does not reach; *required* replaces its terms."""
    affinity = volume.spec.node_affinity
    wanted = required or (affinity.required if affinity is not None else None)
    where = "nodeAffinity.required.nodeSelectorTerms"
    memo = memo.setdefault((volume.name, required is None), {})
    found = () if wanted is None else unmet_terms(reason, where, wanted, at, memo, fields=fields)
    failed = tuple(each for each in found if isinstance(each, Expression))
    return VolumeUnreachable(reason.text, claim.key, volume.name, failed)


def unserved(
    reason: Reason, claim: PersistentVolumeClaim, made_by: StorageClass | None
) -> ClaimUnserved:
    """The cause for a claim that gets neither a volume nor one provisioned on the node."""
    provisioner = "" if made_by is None else made_by.provisioner
    provisions = provisioner not in ("", NO_PROVISIONER)
    why = "topology" if provisions else "noVolume"
    return ClaimUnserved(
        reason.text, claim.key, class_name(claim), why, provisioner, requested=requested(claim)
    )


def requested(claim: PersistentVolumeClaim) -> str:
    """The storage that a claim requests, as it is written."""
    resources = claim.spec.resources
    return str(((resources and resources.requests) or {}).get("storage", ""))


class BaseVolumeMatcher(Generic[K]):
    """Matches volumes to claims that wait for their first consumer.

    Subclasses say which volumes are candidates, and word the errors of their generation.
    """

    #: What errors call the selector of a claim.
    selector_word: str

    def __init__(
        self, claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume], at: Rows[K]
    ) -> None:
        self.at = at
        self.catalog: Catalog = at.view.catalog
        self.claims = sorted(claims, key=storage)
        self.volumes = volumes
        #: Error texts by the negative numbers that stand for them in a column.
        self.errors: dict[int, str] = {}

    def check_selector(self, claim: PersistentVolumeClaim) -> None:
        """A selector that cannot be compiled is an error, also without any candidate."""
        try:
            from_label_selector(claim.spec.selector, self.selector_word)
        except SelectorError as error:
            text = f"error creating internal label selector for claim: {claim.key}: {error}"
            raise VolumeError(text) from error

    def is_candidate(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """Whether a volume may be bound to a claim, as far as both say so themselves."""
        raise NotImplementedError

    def best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The volume reserved for the claim, or else the smallest one that is suitable."""
        best: PersistentVolume | None = None
        for volume, reached in zip(self.volumes, reachable, strict=True):
            if volume.name in taken or not self.is_candidate(claim, volume):
                continue
            if self.is_reserved_for(volume, claim):
                return volume if reached else None
            fits = reached and self.is_free(volume) and is_suitable(claim, volume)
            if fits and (best is None or storage(volume) < storage(best)):
                best = volume
        return best

    def match(
        self, reachable: tuple[bool, ...]
    ) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
        """Claims with the volumes they would be bound to, and claims left without one."""
        chosen: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        left = []
        for claim in self.claims:
            taken = {volume.name for _, volume in chosen}
            self.check_selector(claim)
            volume = self.best(claim, reachable, taken)
            if volume is None:
                left.append(claim)
            else:
                chosen.append((claim, volume))
        return chosen, left

    def allowed(self, found: StorageClass | None) -> Flags[K]:
        """The rows where a storage class may provision volumes."""
        terms = topology_terms(found.allowed_topologies) if found is not None else None
        if terms is None:
            return self.at.flags(True)  # noqa: FBT003 - a column of True
        allowed = self.at.flags(False)  # noqa: FBT003 - a column of False
        for term in terms:
            allowed = allowed | selects(self.at, term)
        return allowed

    def note(self, text: str) -> int:
        """Keep an error text; returns the negative number that stands for it."""
        self.errors[-1 - len(self.errors)] = text
        return -len(self.errors)

    def is_reserved_for(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume is reserved for the claim, by its claimRef or an assumed binding."""
        promised = self.catalog.promised_volumes.get(volume.name)
        if promised is not None:
            return promised.key == claim.key
        reference = volume.spec.claim_ref
        return (
            reference is not None
            and (reference.name, reference.namespace) == (claim.name, claim.namespace)
            and reference.uid in ("", claim.metadata.uid)
        )

    def is_free(self, volume: PersistentVolume) -> bool:
        """Whether the volume is available and reserved for no claim."""
        return (
            volume.status.phase == "Available"
            and volume.spec.claim_ref is None
            and volume.name not in self.catalog.promised_volumes
        )


def same_mode(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether claim and volume have the same volumeMode."""
    return (claim.spec.volume_mode or "Filesystem") == (volume.spec.volume_mode or "Filesystem")


def is_suitable(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether selector, class, access modes and capacity of a volume suit a claim."""
    chosen = claim.spec.selector
    if chosen is not None and not from_label_selector(chosen).matches(volume.labels):
        return False
    return (
        class_name(claim) == class_name(volume)
        and set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        and storage(volume) >= storage(claim)
    )


VOLUME_NODE_AFFINITY_MISMATCH = Reason(
    "node(s) didn't match PersistentVolume's node affinity", curable=False
)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", curable=False)
NO_STORAGE_CAPACITY = Reason("node(s) did not have enough free storage", curable=False)
LOST_VOLUME = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", curable=False
)
UNBOUND_IMMEDIATE_CLAIMS = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long volumes may take to be bound, and how their capacity is scored."""

    bind_timeout_seconds: int = 600
    #: Not given is not the same as empty.
    shape: tuple[ShapePoint, ...] | None = None


def _complete(found: VolumeBindingArgs, gates: FeatureGates) -> VolumeBindingArgs:
    """A shape only where capacity is scored at all."""
    if found.shape or not gates["StorageCapacityScoring"]:
        return found
    return replace(found, shape=(ShapePoint(0, 10), ShapePoint(100, 0)))


def _check(found: VolumeBindingArgs, path: str, gates: FeatureGates) -> Errors:
    seconds, where = found.bind_timeout_seconds, child(path, "shape")
    if seconds < 0:
        yield invalid(
            child(path, "bindTimeoutSeconds"),
            str(seconds),
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if gates["StorageCapacityScoring"]:
        yield from shape_errors(found.shape or (), where)
    elif found.shape is not None:
        points = [{"Utilization": p.utilization, "Score": p.score} for p in found.shape]
        yield invalid(
            where,
            go_json(points),
            "unexpected field `shape`, remove it or turn on the feature gate "
            "StorageCapacityScoring",
        )


VOLUME_BINDING_ARGUMENTS: Final = Arguments(
    arguments_record(VolumeBindingArgs, bind_timeout_seconds=INT64, shape=Slice(POINT)),
    _check,
    _complete,
)


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
        return Scope.OBJECTS if _has_claims(cls) else Scope.NONE

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
    """Prefers nodes by how much of their storage the claims that wait for a consumer would use.

    Without a shape (feature gate StorageCapacityScoring) it scores nothing.
    """

    kinds = BINDING_KINDS
    name = "VolumeBinding"
    formula = "how much of the storage is used, scored by the line of the shape; mean of classes"

    def __init__(self, shape: tuple[tuple[int, int], ...] = ()) -> None:
        """The *shape* has points of utilization (0 to 100) and score (0 to 10)."""
        self.shape = tuple((x, y * 10) for x, y in shape)
        self.keyed_by_form = not shape

    def scope(self, cls: PodClass) -> Scope:
        """Claims, volumes and capacities, for pods with claims."""
        return Scope.OBJECTS if self.shape and _has_claims(cls) else Scope.NONE

    def watched(self, cls: PodClass) -> Watched:
        """Nothing, for pods without claims."""
        return Watched.ANYTHING if self.shape and _has_claims(cls) else Watched.NOTHING

    def row_key(self, cls: PodClass) -> Hashable:
        """Nothing, where pods are treated alike."""
        return cls.id if self.shape and _has_claims(cls) else ()

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped where no claim waits for its first consumer: all nodes would get 0."""
        if not self.shape or not _has_claims(pod.cls):
            return SKIPPED
        try:
            return None if classify(pod, view.catalog).delayed else SKIPPED
        except VolumeError:
            return SKIPPED

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The score of the volumes that would be bound, else of those that would be provisioned."""
        delayed = classify(pod, at.view.catalog).delayed
        return VolumeMatcher(delayed, at).scores(self.shape)


def _has_claims(cls: PodClass) -> bool:
    return bool(cls.volumes) and (bool(cls.claims) or has_ephemeral(cls))


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

    selector_word = "label selector"

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

    def scores(self, shape: tuple[tuple[int, int], ...]) -> Ints[K]:
        """How much of the storage of each class is used, scored by a line; the mean of classes."""
        at = self.at
        offers = [
            [] if offered is None else offered
            for offered in map(self._offers, self.all_claims, self.classes)
        ]
        flags = [reaches(volume, at) for volume in self.volumes]
        flags += [self._is_near(capacity) for offered in offers for capacity in offered]

        def outcome(signature: tuple[bool, ...]) -> int:
            return self._storage_score(signature, offers, shape)

        return at.by_signature(flags, outcome)

    def _storage_score(
        self,
        flags: tuple[bool, ...],
        offers: list[list[CsiStorageCapacity]],
        shape: tuple[tuple[int, int], ...],
    ) -> int:
        volumes = len(self.volumes)
        try:
            chosen, left = self.match(flags[:volumes])
        except VolumeError:
            return 0  # the filter has failed
        #: Storage class -> what is requested, and what there is.
        used: dict[str, tuple[int, int]] = {}
        for claim, volume in chosen:
            wanted, there = used.get(class_name(volume), (0, 0))
            used[class_name(volume)] = (wanted + _whole(claim), there + _whole(volume))
        near = iter(flags[volumes:])
        accepted = [
            next(compress(offered, [next(near) for _ in offered]), None) for offered in offers
        ]
        for claim in () if chosen else (*self.provisioning, *left):
            capacity = accepted[self.all_claims.index(claim)]
            if capacity is not None:
                wanted, _ = used.get(class_name(claim), (0, 0))
                there = 0 if capacity.capacity is None else value(capacity.capacity)
                used[class_name(claim)] = (wanted + _whole(claim), there)
        if not used:
            return 0
        total = sum(
            _on_line(shape, 100 if not there or wanted > there else wanted * 100 // there)
            for wanted, there in used.values()
        )
        # Rounded, a half upwards.
        return (2 * total + len(used)) // (2 * len(used))

    def _has_capacity(self, claim: PersistentVolumeClaim, found: StorageClass | None) -> Flags[K]:
        """The rows where the storage class has the capacity; all rows where it is not tracked."""
        offers = self._offers(claim, found)
        if offers is None:
            return self.at.flags(True)  # noqa: FBT003 - a column of True
        room = self.at.flags(False)  # noqa: FBT003 - a column of False
        for capacity in offers:
            room = room | self._is_near(capacity)
        return room

    def _offers(
        self, claim: PersistentVolumeClaim, found: StorageClass | None
    ) -> list[CsiStorageCapacity] | None:
        """The capacities that suffice for a claim; None where capacity is not tracked."""
        resources = claim.spec.resources
        request = ((resources and resources.requests) or {}).get("storage")
        driver = self.catalog.csi_drivers.get(found.provisioner) if found is not None else None
        if request is None or driver is None or driver.spec.storage_capacity is not True:
            return None
        offers = []
        for capacity in self.catalog.csi_capacities:
            if capacity.storage_class_name != class_name(claim):
                continue
            largest = _largest(capacity)
            suffices = largest is not None and largest >= value(request)
            if suffices and capacity.node_topology is not None:
                offers.append(capacity)
        return offers

    def _is_near(self, capacity: CsiStorageCapacity) -> Flags[K]:
        """The rows from which a capacity can be used; none if its selector is invalid."""
        try:
            return selects(self.at, from_label_selector(capacity.node_topology))
        except SelectorError:
            return self.at.flags(False)  # noqa: FBT003 - a column of False

    def is_candidate(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """Whether class, size, mode and attributes suit; a volume being deleted does not."""
        return (
            class_name(volume) == class_name(claim)
            and storage(volume) >= storage(claim)
            and same_mode(claim, volume)
            and volume.metadata.deletion_timestamp is None
            and (claim.spec.volume_attributes_class_name or "")
            == (volume.spec.volume_attributes_class_name or "")
        )


def _whole(item: PersistentVolume | PersistentVolumeClaim) -> int:
    """The storage that a claim requests or a volume offers, in bytes."""
    return -(-storage(item) // 10**9)


def _on_line(shape: tuple[tuple[int, int], ...], utilization: int) -> int:
    """The score on the line through points; division truncates toward zero."""
    if utilization <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in pairwise(shape):
        if utilization <= x1:
            return y0 + int((y1 - y0) * (utilization - x0) / (x1 - x0))
    return shape[-1][1]


def migration_changed(_waiting: Pod, old: CsiNode, new: CsiNode) -> bool:
    """Other in-tree plugins are served by CSI drivers now."""
    before, after = (node.metadata.annotations or {} for node in (old, new))
    return before.get(HANDED_OVER, "") != after.get(HANDED_OVER, "")


def topologies_changed(_waiting: Pod, old: StorageClass, new: StorageClass) -> bool:
    """Volumes of the class may be made elsewhere."""
    return (old.allowed_topologies or []) != (new.allowed_topologies or [])


def capacity_unchecked(waiting: Pod, old: CsiDriver, new: CsiDriver) -> bool:
    """A driver of an inline volume no longer reports its capacity.

    Volumes behind claims are not looked at, although they are what capacity matters to.
    """
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return stopped and any(each.csi and each.csi.driver == new.name for each in volumes_of(waiting))


def capacity_grew(_waiting: Pod, old: CsiStorageCapacity, new: CsiStorageCapacity) -> bool:
    """Larger volumes can be made than before."""
    before, after = _largest(old), _largest(new)
    return after is not None and (before is None or after > before)


def _largest(capacity: CsiStorageCapacity) -> int | None:
    raw = capacity.maximum_volume_size
    raw = capacity.capacity if raw is None else raw
    return None if raw is None else value(raw)


def _volume_score(found: VolumeBindingArgs, context: PluginContext) -> VolumeBindingScore:
    if not context.gates["StorageCapacityScoring"]:
        return VolumeBindingScore()
    return VolumeBindingScore(tuple((p.utilization, p.score) for p in found.shape or ()))


VOLUME_BINDING: Final = PluginDeclaration(
    "VolumeBinding",
    "preFilter filter reserve preBind preScore score",
    "claims have volumes that the node can reach, or can get some",
    filter=plain(VolumeBinding),
    score=_volume_score,
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


VOLUME_NODE_AFFINITY_CONFLICT = Reason("node(s) had volume node affinity conflict", curable=False)


class CheckVolumeBinding(BitFilter, ReserveRule):
    """Every claim is bound to a reachable volume, or can be bound or provisioned on the node."""

    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
    name = "CheckVolumeBinding"
    scope = scope_with("claims", Scope.OBJECTS)
    reasons = (VOLUME_NODE_AFFINITY_CONFLICT, NO_VOLUME)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a bound volume is out of reach, 2 where a waiting claim cannot be served."""
        catalog = at.view.catalog
        try:
            claims = bound_or_delayed(pod, catalog)
        except VolumeError as error:
            at.fail(str(error))
            return at.full(0)
        bits = (self._bound(claims.bound, at) ^ True) * 1
        if claims.delayed:
            bits = bits | PredicateVolumeMatcher(claims.delayed, at).bits() << 1
        return bits

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The volumes out of reach, and the claims that get none."""
        claims = bound_or_delayed(pod, at.view.catalog)
        for claim in claims.bound:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is not None and not as_int(reaches_without_fields(volume, at)):
                yield unreachable(
                    VOLUME_NODE_AFFINITY_CONFLICT,
                    claim,
                    volume,
                    at,
                    memo,
                    fields=lambda f: f.matches({}),
                )
        if claims.delayed:
            yield from PredicateVolumeMatcher(claims.delayed, at).causes()

    def reserve(self, pod: Incoming, at: OneRow) -> VolumePlan | None:
        """Volumes for the claims that wait for a consumer; None when all are bound."""
        if not pod.cls.claims:
            return None
        claims = bound_or_delayed(pod, at.view.catalog)
        return PredicateVolumeMatcher(claims.delayed, at).plan() if claims.delayed else None

    def _bound(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> Flags[K]:
        reachable = at.flags(True)  # noqa: FBT003 - a column of True
        for claim in claims:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = f'could not find v1.PersistentVolume "{claim.spec.volume_name}"'
                at.fail_where(reachable, missing)
                break
            reachable = reachable & reaches_without_fields(volume, at)
        return reachable


def bound_or_delayed(pod: Incoming, catalog: Catalog) -> Claims:
    """The pod's claims by state; an unbound claim that does not wait is an error."""
    claims, immediate = Claims(), False
    for name in pod.cls.claims:
        key = f"{pod.cls.namespace}/{name}"
        claim = catalog.claims.get(name, pod.cls.namespace)
        if claim is None:
            missing = f'could not find v1.PersistentVolumeClaim "{key}"'
            raise VolumeError(f'error getting PVC "{key}": {missing}')
        if claim.spec.volume_name and BIND_COMPLETED in (claim.metadata.annotations or {}):
            claims.bound.append(claim)
        elif _waits_for_consumer(claim, catalog) and not claim.spec.volume_name:
            claims.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        raise VolumeError("pod has unbound immediate PersistentVolumeClaims")
    return claims


def _waits_for_consumer(claim: PersistentVolumeClaim, catalog: Catalog) -> bool:
    if SELECTED_NODE in (claim.metadata.annotations or {}) or claim.key in catalog.provisioning:
        return False
    return waits_for_consumer(class_name(claim), catalog)


def reaches_without_fields(volume: PersistentVolume, at: Rows[K]) -> Flags[K]:
    """The rows from which a volume can be reached; node fields read as empty."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return at.flags(True)  # noqa: FBT003 - a column of True
    return selects_any(at, node_terms(affinity.required), fields=False)


class PredicateVolumeMatcher(BaseVolumeMatcher[K]):
    """Matches volumes to waiting claims, once per distinct combination of reachable volumes."""

    selector_word = "pod selector"

    def __init__(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> None:
        catalog: Catalog = at.view.catalog
        names = {claim.spec.storage_class_name or "" for claim in claims}
        found = catalog.volumes.naming(names)
        super().__init__(claims, [v for v in found if v.spec.storage_class_name in names], at)
        self.classes = [catalog.storage_classes.get(class_name(c)) for c in self.claims]

    def bits(self) -> Ints[K]:
        """1 where some claim can neither be bound nor provisioned."""
        flags = [reaches_without_fields(volume, self.at) for volume in self.volumes]
        flags += [self.allowed(found) for found in self.classes]
        bits = self.at.by_signature(flags, self._outcome)
        for code, text in self.errors.items():
            self.at.fail_where(bits == code, text)
        return (bits != 0) * 1

    def plan(self) -> VolumePlan:
        """The volumes chosen on the single row this was made for."""
        reachable = tuple(bool(reaches_without_fields(volume, self.at)) for volume in self.volumes)
        chosen, left = self.match(reachable)
        pairs = [(claim.name, volume.name) for claim, volume in chosen]
        bind = dict(reversed(pairs))
        again = tuple(pair for pair in pairs if bind[pair[0]] != pair[1])
        return VolumePlan(bind, tuple(claim.name for claim in left), again)

    def causes(self) -> Iterator[Cause]:
        """The claims that get no volume on the single row this was made for."""
        allowed = tuple(bool(self.allowed(found)) for found in self.classes)
        _, left = self.match(
            tuple(bool(reaches_without_fields(volume, self.at)) for volume in self.volumes)
        )
        for claim in left:
            if not self._provisionable(claim, allowed):
                made_by = self.catalog.storage_classes.get(class_name(claim))
                yield unserved(NO_VOLUME, claim, made_by)

    def _outcome(self, flags: tuple[bool, ...]) -> int:
        """0 if all claims are served, 1 if not, a negative number for an error."""
        reachable, allowed = flags[: len(self.volumes)], flags[len(self.volumes) :]
        try:
            _, left = self.match(reachable)
            return int(not all(self._provisionable(claim, allowed) for claim in left))
        except VolumeError as error:
            return self.note(str(error))

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

    def is_candidate(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """Whether class, size and mode suit; a volume being deleted does not."""
        return (
            volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
            and storage(volume) >= storage(claim)
            and same_mode(claim, volume)
            and volume.metadata.deletion_timestamp is None
        )


CHECK_VOLUME_BINDING: Final = PredicateDeclaration(
    "CheckVolumeBinding",
    "the pod's claims are bound to volumes that the node reaches, or can be",
    plain(CheckVolumeBinding),
    provided=True,
    effective="VolumeScheduling",
    aliases=("VolumeNodePredicate", "NoVolumeNodeConflict"),
)
