"""The activity of a scheduler: pending pods and their reasons, bindings, decisions per second."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.render.decision import pod_group
from podium.render.decision.analysis import outcome
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.observers import AttemptResult, GroupAttemptResult

Data = dict[str, Any]

#: How many seconds of the past a chart shows.
SECONDS: Final = 300
#: How many entries of the timeline are kept.
TIMELINE: Final = 2000
#: How many pod groups are kept with their last cycle.
GROUPS: Final = 1000


class WaitingPod(msgspec.Struct):
    """A pending pod, and how its last attempt failed."""

    pod: Pod
    #: When it was first seen, in seconds since 1970.
    since: float
    attempts: int = 0
    #: Why the last attempt failed; empty before the first one ended.
    reason: str = ""
    tried_at: float | None = None


class TimelineEntry(msgspec.Struct, frozen=True):
    """Something that happened to a pod: a decision, a binding, an eviction, its end."""

    at: float
    #: `placed`, `unschedulable`, `nominated`, `error`, `bound`, `evicted`, `created` or `deleted`.
    what: str
    pod: str
    labels: Mapping[str, str]
    text: str = ""
    node: str = ""


class ActivityObserver(Observer):
    """The observer that collects the activity of a scheduler."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        #: The names of the schedulers whose pods count as waiting.
        self.schedulers: Callable[[], Collection[str]] = lambda: ("default-scheduler",)
        self.waiting: dict[str, WaitingPod] = {}
        #: uid -> the number of its binding, in the order of bindings.
        self.bound_order: dict[str, int] = {}
        #: The uids of pods that another scheduler placed.
        self.foreign: set[str] = set()
        self.decided = self.placed = self.failed = self.evicted = 0
        #: Raised with every report.
        self.revision = 0
        #: What happened to pods, the newest last.
        self.timeline: deque[TimelineEntry] = deque(maxlen=TIMELINE)
        #: The last cycle of each pod group, the newest last.
        self.cycles: dict[str, Data] = {}
        #: A second, the decisions until its end, the pending pods at its end.
        self._history: deque[tuple[int, int, int]] = deque(maxlen=SECONDS)
        #: Decisions until the end of the last second that was dropped from the history.
        self._forgotten = 0

    # Reports of the scheduler -------------------------------------------------------------------

    def attempted(self, result: AttemptResult) -> None:
        """Count the attempt, and note why it failed if it did."""
        self.revision += 1
        self.decided += 1
        decision = result.decision
        if decision.node is None:
            self.failed += 1
            self._note_failure(result, decision.message)
        self._note(outcome(decision), result.pod, decision.message, decision.node or "")
        self.tick()

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """Keep the cycle of the group."""
        found = result.decision
        self.cycles.pop(found.group, None)
        self.cycles[found.group] = {
            **pod_group.as_json(found),
            "attempt": result.number,
            "at": result.began,
            "told": pod_group.cycle_lines(found),
        }
        while len(self.cycles) > GROUPS:
            del self.cycles[next(iter(self.cycles))]

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:  # noqa: ARG002
        """Count the pod as placed, and remove it from the pending ones."""
        self.revision += 1
        self.placed += 1
        pod = result.pod
        self.waiting.pop(pod.key, None)
        self.bound_order.pop(pod.uid, None)
        self.bound_order[pod.uid] = self.placed
        self._note("bound", pod, node=node)
        self.tick()

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        """Note why the pod is pending again."""
        self.revision += 1
        self._note_failure(result, f"binding to {node} failed: {error}")
        self._note("error", result.pod, f"binding to {node} failed: {error}", node)

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Count the victims."""
        self._evicted(victims, result.pod.key)

    def group_evicting(self, group: str, victims: Sequence[Pod]) -> None:
        """Count the victims."""
        self._evicted([each.key for each in victims], f"pod group {group}")

    def _evicted(self, victims: Sequence[str], favoured: str) -> None:
        self.revision += 1
        self.evicted += len(victims)
        text, now = f"in favour of {favoured}", self._clock()
        self.timeline.extend(TimelineEntry(now, "evicted", key, {}, text) for key in victims)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Add, update or remove a pending pod."""
        self.revision += 1
        if new is None:
            if old is not None:
                self._note("deleted", old, node=old.spec.node_name or "")
                self.waiting.pop(old.key, None)
                self.bound_order.pop(old.uid, None)
                self.foreign.discard(old.uid)
            return
        own = new.spec.scheduler_name in self.schedulers()
        if new.spec.node_name:
            self.waiting.pop(new.key, None)
            if not own:
                self.foreign.add(new.uid)
        elif not own or new.finished or new.terminating:
            self.waiting.pop(new.key, None)
        elif new.key in self.waiting:
            self.waiting[new.key].pod = new
        else:
            self.waiting[new.key] = WaitingPod(new, self._clock())
            self._note("created", new)

    def _note(self, what: str, pod: Pod, text: str = "", node: str = "") -> None:
        """Add an entry to the timeline."""
        labels = pod.metadata.labels or {}
        self.timeline.append(TimelineEntry(self._clock(), what, pod.key, labels, text, node))

    def _note_failure(self, result: AttemptResult, reason: str) -> None:
        """Note why a pod is still pending, unless it was deleted meanwhile."""
        waiting = self.waiting.get(result.pod.key)
        if waiting is not None:
            waiting.attempts, waiting.tried_at = result.number, result.began
            waiting.reason = reason

    # Reading ------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Add the current second to the history, or update it."""
        point = (int(self._clock()), self.decided, len(self.waiting))
        if self._history and self._history[-1][0] == point[0]:
            self._history[-1] = point
        else:
            if len(self._history) == SECONDS:
                self._forgotten = self._history[0][1]
            self._history.append(point)

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pending pods at its end; seconds without any may be missing."""
        before, found = self._forgotten, []
        for second, decided, waiting in self._history:
            found.append([second, decided - before, waiting])
            before = decided
        return found

    def counts(self) -> Data:
        """The numbers that every page shows."""
        return {
            "time": self._clock(),
            "decided": self.decided,
            "placed": self.placed,
            "failed": self.failed,
            "evicted": self.evicted,
            "waiting": len(self.waiting),
        }
