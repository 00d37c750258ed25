"""Pods that are being scheduled or bound right now, and what happened since they left the queue.

An event that arrives while a pod is being tried may be the very one that would have woken it. The
events are kept, once for all pods in flight, and shown to the pod if its attempt fails.

Upstream: backend/queue/active_queue.go, Kubernetes v1.36.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from podium.cluster.queued_pod import Attempt, QueuedPod
from podium.cluster.wakeups import MoveRequest
from podium.objects.pod import Pod


class InFlight:
    """Attempts in the order in which they began, and the move requests since the oldest."""

    def __init__(self, *, keep_requests: bool) -> None:
        """Nothing in flight. Without *keep_requests*, nothing is remembered but the attempts."""
        self._keep_requests = keep_requests
        # Ordered: the oldest of a plain dictionary takes long to find after many deletions.
        self._attempts: OrderedDict[str, Attempt] = OrderedDict()
        self._requests: list[MoveRequest] = []
        #: How many requests were forgotten before the first of the list.
        self._forgotten = 0

    def __len__(self) -> int:
        """The number of pods in flight."""
        return len(self._attempts)

    def __contains__(self, pod: Pod) -> bool:
        """Whether the pod is in flight."""
        return pod.uid in self._attempts

    def queued(self, pod: Pod) -> QueuedPod | None:
        """What the queue remembers about a pod in flight."""
        attempt = self._attempts.get(pod.uid)
        return attempt.queued if attempt else None

    def begin(self, queued: QueuedPod, cycle: int) -> Attempt:
        """Let a pod take off."""
        start = self._forgotten + len(self._requests)
        attempt = Attempt(queued, queued.pod, cycle, queued.attempts, start)
        self._attempts.pop(queued.pod.uid, None)
        self._attempts[queued.pod.uid] = attempt
        return attempt

    def record(self, request: MoveRequest) -> None:
        """Keep a request for the pods in flight."""
        if self._keep_requests and self._attempts:
            self._requests.append(request)

    def since(self, attempt: Attempt) -> Sequence[MoveRequest]:
        """The requests since the pod took off."""
        if self._attempts.get(attempt.pod.uid) is not attempt:
            return ()
        return self._requests[attempt.start - self._forgotten :]

    def end(self, attempt: Attempt) -> None:
        """Let a pod land, and forget the requests that no pod in flight needs any more."""
        if self._attempts.get(attempt.pod.uid) is not attempt:
            return  # it landed before
        del self._attempts[attempt.pod.uid]
        if self._requests:
            oldest = next(iter(self._attempts.values()), None)
            stale = oldest.start - self._forgotten if oldest else len(self._requests)
            del self._requests[:stale]
            self._forgotten += stale
