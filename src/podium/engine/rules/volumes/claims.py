"""What several plugins for volumes ask about the claims of a pod, and which claims wake pods.

Every one of these rules looks up the same claims, volumes and storage classes, at several stages of
a decision. What they find is kept with the pod class until one of these objects changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.state.pod_class import KeptPerClass, once_per_form
from podium.objects.kinds.pod import Pod, Volume
from podium.objects.kinds.storage import PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.rules.volumes.volume_ledger import Looked
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import PodClass


@dataclass(slots=True)
class Claims:
    """The claims of a pod: bound, and waiting for their first consumer."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)


class ClaimFacts:
    """What was found about the claims of one class of pods; each rule fills in what it finds.

    None stands for what was not asked for yet. Errors are not kept.
    """

    __slots__ = (
        "by_state",
        "claims",
        "exclusive",
        "looked_up",
        "reached",
        "used",
        "wanted",
        "zones",
    )

    def __init__(self, claims: Sequence[PersistentVolumeClaim | None]) -> None:
        #: The claims of `PodClass.claims`, in order; None for one that does not exist.
        self.claims = claims
        #: The claims by their state, where VolumeBinding accepts all of them.
        self.by_state: Claims | None = None
        #: Whether all claims are bound to volumes that every node reaches.
        self.reached: bool | None = None
        #: The zone labels of the volumes.
        self.zones: list[tuple[str, frozenset[str]]] | None = None
        #: The names of ReadWriteOncePod claims.
        self.exclusive: frozenset[str] | None = None
        #: Driver and handle of each volume that counts for a limit, and how many each driver has.
        self.wanted: frozenset[tuple[str, str]] | None = None
        self.used: tuple[tuple[str, int], ...] = ()
        #: The keys of the objects that were looked up for these volumes.
        self.looked_up: tuple[Looked, ...] = ()


#: Kept while no claim, volume or storage class changes.
_KEPT: KeptPerClass[ClaimFacts] = KeptPerClass()


def claim_facts(cls: PodClass, catalog: Catalog) -> ClaimFacts:
    """The facts of a class, new ones after a change.

    The claims of ephemeral volumes are named after the pod: of such pods nothing is kept.
    """

    def found() -> ClaimFacts:
        return ClaimFacts([catalog.claims.get(name, cls.namespace) for name in cls.claims])

    return found() if has_ephemeral(cls) else _KEPT.of(cls, catalog.claim_changes(), found)


@once_per_form
def has_ephemeral(cls: PodClass) -> bool:
    """Whether pods of the class have ephemeral volumes."""
    return any(each.ephemeral is not None for each in cls.volumes)


def volumes_of(pod: Pod) -> list[Volume]:
    """The volumes of a pod."""
    return pod.spec.volumes or []


def claim_names(pod: Pod, *, ephemeral: bool) -> Iterator[str]:
    """The names of a pod's claims; *ephemeral*: those of generic ephemeral volumes, too."""
    for volume in volumes_of(pod):
        if volume.persistent_volume_claim:
            yield volume.persistent_volume_claim.claim_name
        elif ephemeral and volume.ephemeral:
            yield f"{pod.name}-{volume.name}"


def claim_used(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod uses the claim, directly or through an ephemeral volume."""
    return new.namespace == waiting.namespace and new.name in claim_names(waiting, ephemeral=True)


def claim_named(waiting: Pod, _old: object, new: PersistentVolumeClaim) -> bool:
    """The pod names the claim itself."""
    return new.namespace == waiting.namespace and new.name in claim_names(waiting, ephemeral=False)
