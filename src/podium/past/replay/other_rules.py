"""Goes on from a moment of a history with other rules, and compares what follows.

Pods come, change and go as they did, and so do nodes and all other objects. Pods that had no node
at that moment are placed by the other rules, at the pace of the recorded scheduler. With each
decision in the history one pod is taken from the queue; all of them when the recorded queue was
empty. Victims of the other rules are gone at once. What would have happened otherwise in the
cluster (a controller that replaces a victim) is not in a history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from podium.past.format.reading import ObjectChange, SegmentStart
from podium.past.format.records import Checkpoint, Decided, Evicting
from podium.past.replay.replay import HistoryReplay, is_read
from podium.scheduler.decider import decider_on
from podium.scheduler.placing.failure_handler import nomination_of
from podium.scheduler.state.observers import AttemptResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.cluster.decider import Decider
    from podium.cluster.queue.entities import Turn
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import Entry
    from podium.past.replay.replay import Rules, RulesOf


@dataclass(slots=True)
class Side:
    """What became of the pods by one set of rules."""

    placed: int = 0
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class ComparedMoment:
    """Both sides at a time: pods placed since the start, pods evicted, pods on the same node."""

    time: float
    recorded: tuple[int, int]
    other: tuple[int, int]
    same: int
    different: int
    pending: int

    def as_json(self) -> dict[str, Any]:
        """The moment as plain data."""
        return {
            "time": self.time,
            "recorded": {"placed": self.recorded[0], "evicted": self.recorded[1]},
            "other": {"placed": self.other[0], "evicted": self.other[1], "pending": self.pending},
            "sameNode": self.same,
            "differentNode": self.different,
        }


class Continuation:
    """A history that goes on with other rules."""

    def __init__(self, rules_of: RulesOf, other: Rules, start: float) -> None:
        """Follow the recorded rules up to the time *start*, then the *other* ones."""
        self._replay, self._other, self._start = HistoryReplay(rules_of), other, start
        self._decider: Decider | None = None
        self._in_checkpoint = False
        #: Pods that the other rules place, and the nodes of both sides.
        self._tracked: set[str] = set()
        self.theirs: dict[str, str] = {}
        self.ours: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._evicted: set[str] = set()
        self.recorded, self.other = Side(), Side()
        self.moments: list[ComparedMoment] = []

    def run(self, entries: Iterable[Entry], *, moments: int = 20) -> None:
        """Follow all entries; about so many moments are noted."""
        kept = list(entries)
        times = [each.time for each in kept if isinstance(each, ObjectChange | Decided)]
        first = max(self._start, times[0]) if times else 0.0
        last = times[-1] if times else 0.0
        step = max((last - first) / moments, 1e-3)
        due = first + step
        for entry in kept:
            now = entry.time if isinstance(entry, ObjectChange | Decided) else 0.0
            while self._decider is not None and now > due and due < last - step / 2:
                self._note(due)
                due += step
            self._follow(entry)
        if self._decider is not None:
            self._schedule(1 << 62)
            self._note(last)

    def differences(self) -> list[tuple[str, str | None, str | None]]:
        """Pods with another node than recorded: name, recorded node, node by the other rules."""
        return [
            (self._names[uid], self.theirs.get(uid), self.ours.get(uid))
            for uid in self._names
            if self.theirs.get(uid) != self.ours.get(uid)
        ]

    def _note(self, time: float) -> None:
        both = [uid for uid in self.ours if uid in self.theirs]
        same = sum(self.ours[uid] == self.theirs[uid] for uid in both)
        self.moments.append(
            ComparedMoment(
                time,
                (self.recorded.placed, self.recorded.evicted),
                (self.other.placed, self.other.evicted),
                same,
                len(both) - same,
                sum(self._replay.state.queue.counts().values()),
            )
        )

    # Entries ------------------------------------------------------------------------------------

    def _follow(self, entry: Entry) -> None:
        if self._decider is None:
            if self._pass(entry):
                self._replay.apply(entry)
                return
            self._take_over()
        if isinstance(entry, SegmentStart):
            self._in_checkpoint = True  # it says what is known already, or is of another run
        elif isinstance(entry, Checkpoint):
            self._in_checkpoint = False
        elif self._in_checkpoint:
            return
        elif isinstance(entry, ObjectChange) and is_read(entry.kind):
            self._replay.now = entry.time
            self._follow_object(entry)
        elif isinstance(entry, Decided):
            self._replay.now = entry.time
            self._schedule(1 if entry.queues[0] else 1 << 62)
        elif isinstance(entry, Evicting):
            self.recorded.evicted += len(entry.victims)

    def _pass(self, entry: Entry) -> bool:
        """Note whether a checkpoint begins or ends; True if the entry lies before the start."""
        in_checkpoint = self._in_checkpoint
        if isinstance(entry, SegmentStart):
            self._in_checkpoint = not entry.empty
        elif isinstance(entry, Checkpoint):
            self._in_checkpoint = False
        late = isinstance(entry, ObjectChange | Decided) and entry.time >= self._start
        return in_checkpoint or not late

    def _take_over(self) -> None:
        """Let the other rules decide from now on."""
        state, other = self._replay.state, self._other
        state.change_profiles(other.profiles, other.behaviour)
        self._decider = decider_on(state, other.profiles)
        placed = state.cache.columns.pods.by_uid
        self._tracked = {pod.uid for pod in state.pods() if pod.uid not in placed}

    def _follow_object(self, entry: ObjectChange) -> None:
        state = self._replay.state
        if entry.kind != "Pod":
            index = state.index(entry.kind)
            if entry.new is not None:
                index.put(entry.new)
            elif entry.old is not None:
                index.drop(entry.old)
            return
        old, new = cast("Pod | None", entry.old), cast("Pod | None", entry.new)
        if new is None:
            known = None if old is None else state.pod(old)
            if known is not None:
                state.index("Pod").drop(known)
            return
        if new.uid in self._evicted:
            return
        self._follow_pod(old, new)

    def _follow_pod(self, old: Pod | None, new: Pod) -> None:
        state = self._replay.state
        if old is None and not new.spec.node_name and state.is_responsible_for(new):
            self._tracked.add(new.uid)
        if new.uid in self._tracked:
            self._names[new.uid] = new.key
            if new.spec.node_name and new.uid not in self.theirs:
                self.theirs[new.uid] = new.spec.node_name
                self.recorded.placed += 1
            spec = replace(new.spec, node_name=self.ours.get(new.uid, ""))
            status = replace(new.status, nominated_node_name="")
            new = replace(new, spec=spec, status=status)
        state.index("Pod").put(new)

    # Deciding -----------------------------------------------------------------------------------

    def _schedule(self, most: int) -> None:
        """Take pods from the queue, and place each by the other rules."""
        assert self._decider is not None
        queue = self._replay.state.queue
        for _ in range(most):
            turn = queue.pop()
            if turn is None:
                return
            profile = self._other.profiles[turn.pod.spec.scheduler_name]
            decision = self._decider.decide(turn.pod, profile)
            now = self._replay.now
            result = AttemptResult(turn.pod, decision, profile, turn.number, now, 0.0, 0.0)
            if decision.node is None:
                self._failed(turn, result)
            else:
                queue.clear_nomination(turn.pod)
                self._replay.state.cache.assume(turn.pod, decision.node, decision.reservations)
                queue.done(turn)
                self.ours[turn.pod.uid] = decision.node
                self.other.placed += 1
                self._bind(turn.pod, decision.node)

    def _bind(self, pod: Pod, node: str) -> None:
        known = self._replay.state.pod(pod)
        if known is not None:
            version = f"{known.metadata.resource_version}-bound"
            metadata = replace(known.metadata, resource_version=version)
            spec = replace(known.spec, node_name=node)
            self._replay.state.index("Pod").put(replace(known, metadata=metadata, spec=spec))

    def _failed(self, turn: Turn, result: AttemptResult) -> None:
        state, decision = self._replay.state, result.decision
        nomination = nomination_of(decision, result.profile)
        state.queue.requeue(turn, turn.pod, rejected_by=result.rejected_by)
        if nomination is not None:
            state.queue.nominate(turn.pod, nomination)
        preemption = decision.preemption
        if preemption is None or preemption.node is None:
            return
        for key in preemption.candidates[preemption.node].pods:
            victim = state.pod_named(key)
            if victim is not None:
                self._evicted.add(victim.uid)
                self.other.evicted += 1
                state.index("Pod").drop(victim)
