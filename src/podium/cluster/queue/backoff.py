"""Resting between attempts: how long, and the pool of the pods that rest.

The rest doubles with every failure up to a maximum. Its end is cut to whole seconds, and a pod
still rests during the second in which it ends, so that pods whose rest ends within the same second
wake together and the best of them goes first.

Upstream: backend/queue/backoff_queue.go, Kubernetes v1.36. v1.13 with pod priority has no backoff.
"""

from __future__ import annotations

import math

import msgspec

from podium.cluster.queue.heap import KeyedHeap, Rank
from podium.cluster.queue.queued_group import Entity
from podium.objects.times import NEVER

_NANOS = 10**9


class Backoff(msgspec.Struct, frozen=True):
    """How long a pod rests after a failure; a maximum of 0 means not at all."""

    initial: float = 1.0
    maximum: float = 10.0

    def duration(self, failures: int, size: int = 1) -> float:
        """Seconds of rest of *size* pods together, after so many failures."""
        if failures <= 0:
            return 0.0
        first, most = round(self.initial * _NANOS), round(self.maximum * _NANOS)
        if size > 1:
            most = int(most * math.sqrt(size))
        doublings = failures - 1
        # Compared by shifting the maximum down: shifting the other way would overflow upstream.
        if first > most >> doublings:
            return most / _NANOS
        return (first << doublings) / _NANOS

    def expiry(self, queued: Entity) -> float:
        """The second in which the rest ends; `NEVER` if there is none.

        Errors in a row count alone; without one, all the times it was found unschedulable.
        """
        failures = queued.errors or queued.rejections
        if not failures or not self.maximum:
            return NEVER
        return float(math.floor(queued.failed_at + self.duration(failures, queued.size)))

    @staticmethod
    def rests(expiry: float, now: float) -> bool:
        """Whether a rest that ends in the second *expiry* goes on."""
        return expiry >= math.floor(now)

    @staticmethod
    def ready_at(expiry: float) -> float:
        """When a rest that ends in the second *expiry* is over."""
        return expiry + 1.0


class BackoffPool:
    """Resting pods, the first to wake in front. Pods that met an error rest apart.

    Only those that were rejected may be tried before their rest is over (`pop_early`).
    """

    def __init__(self, backoff: Backoff) -> None:
        """An empty pool."""
        self._backoff = backoff
        self._rejected: KeyedHeap[Entity] = KeyedHeap()
        self._failed: KeyedHeap[Entity] = KeyedHeap()

    def __len__(self) -> int:
        """The number of resting pods."""
        return len(self._rejected) + len(self._failed)

    def expiry(self, queued: Entity) -> float:
        """The second in which the pod's rest ends; `NEVER` if it need not rest."""
        return self._backoff.expiry(queued)

    def must_rest(self, queued: Entity, now: float) -> bool:
        """Whether the pod's rest is not over."""
        return self._backoff.rests(self._backoff.expiry(queued), now)

    def get(self, key: str) -> Entity | None:
        """The resting pod under this key."""
        return self._rejected.get(key) or self._failed.get(key)

    def put(self, queued: Entity, rank: Rank) -> None:
        """Let a pod rest; *rank* orders those that wake in the same second."""
        expiry = self._backoff.expiry(queued)
        if queued.rests_apart:
            # The order of arrival alone: a failed pod's priority does not shorten its rest.
            self._failed.put(queued.key, queued, (expiry, *rank[2:]))
        else:
            self._rejected.put(queued.key, queued, (expiry, *rank))

    def remove(self, key: str) -> Entity | None:
        """Take a pod out before its time."""
        return self._rejected.remove(key) or self._failed.remove(key)

    @property
    def any(self) -> bool:
        """Whether any pod rests."""
        return bool(self._rejected.members or self._failed.members)

    def pop_rested(self, now: float) -> list[Entity]:
        """Take out every pod whose rest is over."""
        rested = []
        for heap in (self._rejected, self._failed):
            while (first := heap.peek()) and not self.must_rest(first, now):
                heap.pop()
                rested.append(first)
        return rested

    def pop_early(self) -> Entity | None:
        """Take out the rejected pod that would wake first, although its rest goes on."""
        return self._rejected.pop()

    def has_early(self) -> bool:
        """Whether `pop_early` would find a pod."""
        return bool(self._rejected)

    def next_ready_at(self) -> float | None:
        """When the first rest is over."""
        firsts = [heap.peek() for heap in (self._rejected, self._failed)]
        ends = [self._backoff.ready_at(self._backoff.expiry(first)) for first in firsts if first]
        return min(ends, default=None)
