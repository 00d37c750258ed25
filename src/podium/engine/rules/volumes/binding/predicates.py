"""v1.13 CheckVolumeBinding: whether the pod's claims can be bound on a node.

The volume of a bound claim must be reachable from the node. A claim that waits for its first
consumer needs a suitable volume that is reachable, or a storage class that provisions on the node.
Any other unbound claim is an error: its volume should have been bound before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PredicateDeclaration, plain
from podium.engine.framework.rule import BitFilter, ReserveRule, Scope, scope_with
from podium.engine.rows.node_match import selects_any
from podium.engine.rows.rows import Flags, Ints, K, OneRow, Rows, as_int
from podium.engine.rules.volumes.binding.shared import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT,
    BaseVolumeMatcher,
    Claims,
    is_suitable,
    same_mode,
    storage,
    unreachable,
    unserved,
)
from podium.engine.rules.volumes.shared import VolumeError, class_name
from podium.engine.state.reservation import VolumePlan
from podium.engine.state.verdicts import Reason
from podium.objects.selectors.selectors import SelectorError, from_label_selector, node_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.causes import Cause
    from podium.engine.framework.rule import Memo
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim

VOLUME_NODE_AFFINITY_CONFLICT = Reason("node(s) had volume node affinity conflict", curable=False)
NO_VOLUME = Reason("node(s) didn't find available persistent volumes to bind", curable=False)


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
            claims = classify(pod, catalog)
        except VolumeError as error:
            at.fail(str(error))
            return at.full(0)
        bits = (self._bound(claims.bound, at) ^ True) * 1
        if claims.delayed:
            bits = bits | PredicateVolumeMatcher(claims.delayed, at).bits() << 1
        return bits

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The volumes out of reach, and the claims that get none."""
        claims = classify(pod, at.view.catalog)
        for claim in claims.bound:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is not None and not as_int(reaches(volume, at)):
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
        claims = classify(pod, at.view.catalog)
        return PredicateVolumeMatcher(claims.delayed, at).plan() if claims.delayed else None

    def _bound(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> Flags[K]:
        reachable = at.flags(True)  # noqa: FBT003 - a column of True
        for claim in claims:
            volume = at.view.catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                missing = f'could not find v1.PersistentVolume "{claim.spec.volume_name}"'
                at.fail_where(reachable, missing)
                break
            reachable = reachable & reaches(volume, at)
        return reachable


def classify(pod: Incoming, catalog: Catalog) -> Claims:
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


def waits_for_consumer(name: str, catalog: Catalog) -> bool:
    """Whether claims of this storage class are bound only once a pod is scheduled."""
    found = catalog.storage_classes.get(name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise VolumeError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found.volume_binding_mode == WAIT


def reaches(volume: PersistentVolume, at: Rows[K]) -> Flags[K]:
    """The rows from which a volume can be reached; node fields read as empty."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return at.flags(True)  # noqa: FBT003 - a column of True
    return selects_any(at, node_terms(affinity.required), fields=False)


class PredicateVolumeMatcher(BaseVolumeMatcher[K]):
    """Matches volumes to waiting claims, once per distinct combination of reachable volumes."""

    def __init__(self, claims: list[PersistentVolumeClaim], at: Rows[K]) -> None:
        catalog: Catalog = at.view.catalog
        names = {claim.spec.storage_class_name or "" for claim in claims}
        found = catalog.volumes.naming(names)
        super().__init__(claims, [v for v in found if v.spec.storage_class_name in names], at)
        self.classes = [catalog.storage_classes.get(class_name(c)) for c in self.claims]

    def bits(self) -> Ints[K]:
        """1 where some claim can neither be bound nor provisioned."""
        flags = [reaches(volume, self.at) for volume in self.volumes]
        flags += [self.allowed(found) for found in self.classes]
        bits = self.at.by_signature(flags, self._outcome)
        for code, text in self.errors.items():
            self.at.fail_where(bits == code, text)
        return (bits != 0) * 1

    def plan(self) -> VolumePlan:
        """The volumes chosen on the single row this was made for."""
        reachable = tuple(bool(reaches(volume, self.at)) for volume in self.volumes)
        chosen, left = self.match(reachable)
        pairs = [(claim.name, volume.name) for claim, volume in chosen]
        bind = dict(reversed(pairs))
        again = tuple(pair for pair in pairs if bind[pair[0]] != pair[1])
        return VolumePlan(bind, tuple(claim.name for claim in left), again)

    def causes(self) -> Iterator[Cause]:
        """The claims that get no volume on the single row this was made for."""
        allowed = tuple(bool(self.allowed(found)) for found in self.classes)
        _, left = self.match(tuple(bool(reaches(volume, self.at)) for volume in self.volumes))
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

    def check_selector(self, claim: PersistentVolumeClaim) -> None:
        """A selector that cannot be compiled is an error, also without any candidate."""
        try:
            from_label_selector(claim.spec.selector, "pod selector")
        except SelectorError as error:
            text = f"error creating internal label selector for claim: {claim.key}: {error}"
            raise VolumeError(text) from error

    def best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The volume reserved for the claim, or else the smallest one that is suitable."""
        best: PersistentVolume | None = None
        for volume, reached in zip(self.volumes, reachable, strict=True):
            if volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
                continue
            if volume.name in taken or not same_mode(claim, volume):
                continue
            if volume.metadata.deletion_timestamp is not None:
                continue
            if self.is_reserved_for(volume, claim):
                if storage(volume) < storage(claim):
                    continue
                return volume if reached else None
            fits = reached and self.is_free(volume) and is_suitable(claim, volume)
            if fits and (best is None or storage(volume) < storage(best)):
                best = volume
        return best


CHECK_VOLUME_BINDING: Final = PredicateDeclaration(
    "CheckVolumeBinding",
    "the pod's claims are bound to volumes that the node reaches, or can be",
    plain(CheckVolumeBinding),
    provided=True,
    effective="VolumeScheduling",
    aliases=("VolumeNodePredicate", "NoVolumeNodeConflict"),
)
