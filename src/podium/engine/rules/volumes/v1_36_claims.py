"""What the volume rules of v1.36 find out about the claims of a pod, once for all of them.

Every one of these rules looks up the same claims, volumes and storage classes, at several stages of
a decision. What they find is kept with the pod class until one of these objects changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.rules.volumes.binding.shared import Claims
    from podium.engine.rules.volumes.limits.shared import Looked
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.storage import PersistentVolumeClaim

#: The keys in the memo of a class, and in that of a form.
_MEMO, _EPHEMERAL = "claims", "ephemeral"


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
        "version",
        "wanted",
        "zones",
    )

    def __init__(self, version: int, claims: Sequence[PersistentVolumeClaim | None]) -> None:
        #: The version of claims, volumes and storage classes that this is true for.
        self.version = version
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


def claim_facts(cls: PodClass, catalog: Catalog) -> ClaimFacts:
    """The facts of a class, new ones after a change.

    The claims of ephemeral volumes are named after the pod: of such pods nothing is kept.
    """
    version = catalog.claim_changes()
    known: ClaimFacts | None = cls.memo.get(_MEMO)
    if known is None or known.version != version:
        get, namespace = catalog.claims.get, cls.namespace
        known = ClaimFacts(version, [get(name, namespace) for name in cls.claims])
        if not has_ephemeral(cls):
            cls.memo[_MEMO] = known
    return known


def has_ephemeral(cls: PodClass) -> bool:
    """Whether pods of the class have ephemeral volumes."""
    memo = cls.form.memo
    found: bool | None = memo.get(_EPHEMERAL)
    if found is None:
        found = memo[_EPHEMERAL] = any(each.ephemeral is not None for each in cls.volumes)
    return found
