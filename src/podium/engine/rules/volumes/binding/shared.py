"""Claims that wait for their first consumer, and the volumes to bind them to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from podium.engine.framework.causes import ClaimUnserved, Expression, VolumeUnreachable
from podium.engine.rows.node_match import selects
from podium.engine.rows.rows import Flags, K, Rows
from podium.engine.rules.node_affinity.shared import unmet_terms
from podium.engine.rules.volumes.shared import class_name
from podium.objects.quantity import nano
from podium.objects.selectors.selectors import from_label_selector, topology_terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.verdicts import Reason
    from podium.objects.kinds.pod import NodeSelector
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
    from podium.objects.selectors.selectors import FieldSelector

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class Claims:
    """The claims of a pod: bound, and waiting for their first consumer."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)


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
        """Raise `VolumeError` for a claim whose selector cannot be compiled."""
        raise NotImplementedError

    def best(
        self, claim: PersistentVolumeClaim, reachable: tuple[bool, ...], taken: set[str]
    ) -> PersistentVolume | None:
        """The volume to bind the claim to, of those that are reachable and not taken."""
        raise NotImplementedError

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
