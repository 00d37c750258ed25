"""What is remembered of the loop at work: who waits and why, who was bound when, how fast it is."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from podium.daemon.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from podium.daemon.observers import Attempted
    from podium.objects.kinds.pod import Pod

Data = dict[str, Any]

#: How many seconds of the past a chart shows.
SECONDS: Final = 300


@dataclass(slots=True)
class Waiting:
    """A pod that has no node yet."""

    pod: Pod
    #: Seconds since 1970 when it was first seen.
    since: float
    attempts: int = 0
    #: Why the last attempt did not place it.
    reason: str = ""
    tried_at: float | None = None


class Pulse(Observer):
    """Listens to the loop, and remembers."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        #: The names of the schedulers whose pods count as waiting.
        self.schedulers: Callable[[], Collection[str]] = lambda: ("default-scheduler",)
        self.waiting: dict[str, Waiting] = {}
        #: uid -> the place of its binding in the order of all.
        self.bound_order: dict[str, int] = {}
        #: Placed pods that some other scheduler placed.
        self.foreign: set[str] = set()
        self.decided = self.placed = self.failed = self.evicted = 0
        #: What the counter of ties stands at.
        self.cursor = 0
        #: Raised with everything that is heard.
        self.beats = 0
        #: Second, decisions until its end, pods waiting at its end.
        self._history: deque[tuple[int, int, int]] = deque(maxlen=SECONDS)
        #: Decisions until the end of the last second that is not remembered.
        self._forgotten = 0

    # What the loop tells ------------------------------------------------------------------------

    def attempted(self, attempted: Attempted) -> None:
        """An attempt was decided."""
        self.beats += 1
        self.decided += 1
        decision = attempted.decision
        if decision.tied:
            self.cursor = decision.cursor + 1
        if decision.node is None:
            self.failed += 1
            self._blame(attempted, decision.message)
        self.tick()

    def bound(self, attempted: Attempted, node: str, seconds: float) -> None:  # noqa: ARG002
        """A pod has got its node."""
        self.beats += 1
        self.placed += 1
        pod = attempted.pod
        self.waiting.pop(pod.key, None)
        self.bound_order.pop(pod.uid, None)
        self.bound_order[pod.uid] = self.placed
        self.tick()

    def bind_failed(self, attempted: Attempted, node: str, error: str) -> None:
        """A binding was refused: the pod waits again."""
        self.beats += 1
        self._blame(attempted, f"binding to {node} failed: {error}")

    def evicting(self, attempted: Attempted, victims: Any) -> None:  # noqa: ARG002
        """Pods have to go."""
        self.beats += 1
        self.evicted += len(victims)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went."""
        self.beats += 1
        if new is None:
            if old is not None:
                self.waiting.pop(old.key, None)
                self.bound_order.pop(old.uid, None)
                self.foreign.discard(old.uid)
            return
        ours = new.spec.scheduler_name in self.schedulers()
        if new.spec.node_name:
            self.waiting.pop(new.key, None)
            if not ours:
                self.foreign.add(new.uid)
        elif not ours or new.finished or new.terminating:
            self.waiting.pop(new.key, None)
        elif new.key in self.waiting:
            self.waiting[new.key].pod = new
        else:
            self.waiting[new.key] = Waiting(new, self._clock())

    def _blame(self, attempted: Attempted, reason: str) -> None:
        """Note why a pod still waits; one that is gone meanwhile does not."""
        waiting = self.waiting.get(attempted.pod.key)
        if waiting is not None:
            waiting.attempts, waiting.tried_at = attempted.number, attempted.began
            waiting.reason = reason

    # What others ask ----------------------------------------------------------------------------

    def tick(self) -> None:
        """Note how far the loop is, at the end of this second."""
        point = (int(self._clock()), self.decided, len(self.waiting))
        if self._history and self._history[-1][0] == point[0]:
            self._history[-1] = point
        else:
            if len(self._history) == SECONDS:
                self._forgotten = self._history[0][1]
            self._history.append(point)

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pods waiting at its end; quiet seconds may be missing."""
        before, found = self._forgotten, []
        for second, decided, waiting in self._history:
            found.append([second, decided - before, waiting])
            before = decided
        return found

    def counts(self) -> Data:
        """The numbers that a page shows all the time."""
        return {
            "time": self._clock(),
            "decided": self.decided,
            "placed": self.placed,
            "failed": self.failed,
            "evicted": self.evicted,
            "waiting": len(self.waiting),
        }
