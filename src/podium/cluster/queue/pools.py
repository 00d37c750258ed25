"""The pools of the queue: pods in backoff, pods that wait for an event, and pods tried right now.

The backoff of a pod doubles with every failure up to a maximum. Its end is cut to whole seconds,
and that second still belongs to it: pods whose backoff ends within the same second become active
together, and the best of them goes first.

Upstream: backend/queue/backoff_queue.go, active_queue.go, Kubernetes v1.36. v1.13 with pod priority
has no backoff.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Sequence

import msgspec

from podium.cluster.queue.entities import Entity, QueuedPod, Turn
from podium.cluster.queue.heap import KeyedHeap, Rank
from podium.cluster.wakeups.wakeups import MoveRequest
from podium.objects.kinds.pod import Pod
from podium.objects.times import NEVER

_NANOS = 10**9


class Backoff(msgspec.Struct, frozen=True):
    """How long a pod backs off after a failure; a maximum of 0 means not at all."""

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
        """The number of pods in backoff."""
        return len(self._rejected) + len(self._failed)

    def expiry(self, queued: Entity) -> float:
        """The second in which the pod's backoff ends; `NEVER` if it has none."""
        return self._backoff.expiry(queued)

    def must_rest(self, queued: Entity, now: float) -> bool:
        """Whether the pod's backoff is not over."""
        return self._backoff.rests(self._backoff.expiry(queued), now)

    def get(self, key: str) -> Entity | None:
        """The pod in backoff under this key."""
        return self._rejected.get(key) or self._failed.get(key)

    def put(self, queued: Entity, rank: Rank) -> None:
        """Let a pod back off; *rank* orders those whose backoff ends in the same second."""
        expiry = self._backoff.expiry(queued)
        if queued.rests_apart:
            # The order of arrival alone: a failed pod's priority does not shorten its backoff.
            self._failed.put(queued.key, queued, (expiry, *rank[2:]))
        else:
            self._rejected.put(queued.key, queued, (expiry, *rank))

    def remove(self, key: str) -> Entity | None:
        """Take a pod out before its time."""
        return self._rejected.remove(key) or self._failed.remove(key)

    @property
    def any(self) -> bool:
        """Whether any pod is in backoff."""
        return bool(self._rejected.members or self._failed.members)

    def pop_rested(self, now: float) -> list[Entity]:
        """Take out every pod whose backoff is over."""
        rested = []
        for heap in (self._rejected, self._failed):
            while (first := heap.peek()) and not self.must_rest(first, now):
                heap.pop()
                rested.append(first)
        return rested

    def pop_early(self) -> Entity | None:
        """Take out the rejected pod whose backoff ends first, although it goes on."""
        return self._rejected.pop()

    def has_early(self) -> bool:
        """Whether `pop_early` would find a pod."""
        return bool(self._rejected)

    def next_ready_at(self) -> float | None:
        """When the first rest is over."""
        firsts = [heap.peek() for heap in (self._rejected, self._failed)]
        ends = [self._backoff.ready_at(self._backoff.expiry(first)) for first in firsts if first]
        return min(ends, default=None)


class WaitingPool:
    """Pods that wait for an event, by key and by the topics that could wake them.

    An event concerns few of the waiting pods, of which there may be a hundred thousand.
    """

    def __init__(self) -> None:
        """An empty pool."""
        self._pods: dict[str, Entity] = {}
        self._topics: dict[str, Collection[str]] = {}
        self._by_topic: dict[str, dict[str, Entity]] = {}
        self._gated: set[str] = set()

    def __len__(self) -> int:
        """The number of waiting pods, gated ones included."""
        return len(self._pods)

    @property
    def gated(self) -> int:
        """How many of them are gated."""
        return len(self._gated)

    def get(self, key: str) -> Entity | None:
        """The waiting pod under this key."""
        return self._pods.get(key)

    def put(self, queued: Entity, topics: Collection[str]) -> None:
        """Let a pod wait, or list a waiting one under other topics."""
        key = queued.key
        self._unlist(key)
        self._pods[key] = queued
        self._topics[key] = topics
        for topic in topics:
            self._by_topic.setdefault(topic, {})[key] = queued
        if queued.gated_by:
            self._gated.add(key)

    def remove(self, key: str) -> Entity | None:
        """Take a pod out."""
        self._unlist(key)
        return self._pods.pop(key, None)

    def _unlist(self, key: str) -> None:
        for topic in self._topics.pop(key, ()):
            self._by_topic[topic].pop(key, None)
        self._gated.discard(key)

    def about(self, topics: Collection[str] | None) -> list[Entity]:
        """The pods listed under any of the *topics* (`None`: all), in the order of arrival."""
        if not self._pods:
            return []
        if topics is None:
            found = self._pods
        else:
            found = {}
            for topic in topics:
                found |= self._by_topic.get(topic, {})
        return sorted(found.values(), key=lambda queued: queued.arrival)


class InFlight:
    """Pods that are being scheduled or bound, and the move requests since the oldest turn began.

    An event that arrives while a pod is being tried may be the one that would have woken it. The
    requests are kept once for all pods in flight, and shown to a pod whose attempt fails.
    """

    def __init__(self, *, keep_requests: bool) -> None:
        """Nothing in flight. Without *keep_requests*, nothing is remembered but the turns."""
        self._keep_requests = keep_requests
        # Ordered: the oldest of a plain dictionary takes long to find after many deletions.
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._requests: list[MoveRequest] = []
        #: How many requests were forgotten before the first of the list.
        self._forgotten = 0

    def __len__(self) -> int:
        """The number of pods in flight."""
        return len(self._turns)

    def __contains__(self, pod: Pod) -> bool:
        """Whether the pod is in flight."""
        return pod.uid in self._turns

    def queued(self, pod: Pod) -> QueuedPod | None:
        """What the queue remembers about a pod in flight."""
        turn = self._turns.get(pod.uid)
        return turn.queued if turn else None

    def begin(self, queued: QueuedPod, cycle: int) -> Turn:
        """Let a pod take off."""
        start = self._forgotten + len(self._requests)
        pod = queued.pod
        turn = Turn(queued, pod, cycle, queued.attempts, start)
        uid = pod.uid
        self._turns.pop(uid, None)
        self._turns[uid] = turn
        return turn

    def record(self, request: MoveRequest) -> None:
        """Keep a request for the pods in flight."""
        if self._keep_requests and self._turns:
            self._requests.append(request)

    def since(self, turn: Turn) -> Sequence[MoveRequest]:
        """The requests since the pod took off."""
        if self._turns.get(turn.pod.uid) is not turn:
            return ()
        return self._requests[turn.start - self._forgotten :]

    def end(self, turn: Turn) -> None:
        """Let a pod land, and forget the requests that no pod in flight needs any more."""
        uid = turn.pod.uid
        if self._turns.get(uid) is not turn:
            return  # it landed before
        del self._turns[uid]
        if self._requests:
            oldest = next(iter(self._turns.values()), None)
            stale = oldest.start - self._forgotten if oldest else len(self._requests)
            del self._requests[:stale]
            self._forgotten += stale
