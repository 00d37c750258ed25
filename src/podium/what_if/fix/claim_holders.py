"""Resource claims that pods hold, and what becomes of the claims when pods are evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.cluster.claim_versions import deallocated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from podium.cluster.cache.cache import Cache
    from podium.objects.kinds.devices import ResourceClaim
    from podium.objects.kinds.pod import Pod


def claim_without(claim: ResourceClaim, gone: Collection[str]) -> ResourceClaim | None:
    """A claim after pods are gone, by their uids; None if it goes with the pod it was made for.

    The controller of claims takes back the devices of a claim that no pod uses any more.
    """
    consumers = claim.status.reserved_for or []
    left = [each for each in consumers if each.uid not in gone]
    if len(left) == len(consumers):
        return claim
    if left:
        return replace(claim, status=replace(claim.status, reserved_for=left))
    owner = claim.metadata.controller()
    if owner is not None and owner.kind == "Pod" and owner.uid in gone:
        return None
    return deallocated(claim)


class ClaimHolders:
    """Evicts pods from the cache of a simulation, together with the claims that they hold."""

    def __init__(self, cache: Cache, claims: Iterable[ResourceClaim]) -> None:
        """*claims* are those of the cluster before any eviction."""
        self._cache = cache
        self._shelf = cache.columns.catalog.resource_claims
        self._held: dict[str, list[ResourceClaim]] = {}
        self._gone: set[str] = set()
        for claim in claims:
            for consumer in claim.status.reserved_for or ():
                self._held.setdefault(consumer.uid, []).append(claim)

    def holds(self, pod: Pod) -> bool:
        """Whether the pod holds any claim."""
        return pod.uid in self._held

    def evict(self, pod: Pod) -> None:
        """Take a pod off its node, and its claims from it."""
        self._cache.remove_pod(pod)
        self._gone.add(pod.uid)
        self._write_claims(pod)

    def bring_back(self, pod: Pod) -> None:
        """Undo `evict`."""
        self._cache.add_pod(pod)
        self._gone.discard(pod.uid)
        self._write_claims(pod)

    def _write_claims(self, pod: Pod) -> None:
        for claim in self._held.get(pod.uid, ()):
            left = claim_without(claim, self._gone)
            if left is None:
                self._shelf.drop(claim)
            else:
                self._shelf.put(left)
