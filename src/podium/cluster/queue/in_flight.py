"""Pods that are being scheduled or bound right now, and what happened since they left the queue.

An event that arrives while a pod is being tried may be the very one that would have woken it. The
events are kept, once for all pods in flight, and shown to the pod if its attempt fails.

Upstream: backend/queue/active_queue.go, Kubernetes v1.36.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from podium.cluster.queue.queued_pod import QueuedPod, Turn
from podium.cluster.wakeups.wakeups import MoveRequest
from podium.objects.kinds.pod import Pod


class InFlight:
    """Turns in the order in which they began, and the move requests since the oldest."""

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
