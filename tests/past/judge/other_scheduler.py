"""Another scheduler and its API server in memory: bindings arrive late and overtake each other.

It is the state, the queue and the decider of `podium run` with ties at random. Time passes only as
events are due; everything that the API server shows is in `log`, as a watch reports it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace as with_options
from itertools import count
from random import Random

from msgspec.structs import replace

from podium.cluster.queue.entities import Turn
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, PodCondition
from podium.past.format.reading import ObjectChange
from podium.past.judge.agreement import Agreement
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from podium.scheduler.decider import decider_on
from podium.scheduler.placing.failure_handler import as_victim, nomination_of
from podium.scheduler.state.behaviour import Behaviour
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import AttemptResult

NOON = 1_800_000_000.0
#: How long a decision takes.
DECIDING = 0.002


class OtherScheduler:
    """Places the pods that are created, as time passes."""

    def __init__(
        self,
        profile: Profile,
        behaviour: Behaviour,
        seed: int,
        *,
        slowest: float = 0.4,
        refused: float = 0.0,
        started: bool = True,
    ) -> None:
        """A binding takes up to *slowest* seconds; a share of them is *refused*.

        Unless it has *started* it sees nothing before `start`.
        """
        self.now = NOON
        self.started = started
        self.dice = Random(seed)  # noqa: S311  a seed
        self._slowest, self._refused = slowest, refused
        self.profile = with_options(profile, ties=f"random:{seed}")
        self.behaviour = behaviour
        profiles = {profile.scheduler_name: self.profile}
        self.state = ClusterState(profiles, behaviour, lambda: self.now)
        self.decider = decider_on(self.state, profiles)
        self.log: list[ObjectChange] = []
        self._known: dict[tuple[str, str], Object] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    # The API server ---------------------------------------------------------------------------

    def put(self, item: Object) -> None:
        """Create or change an object; everybody is told at once."""
        key = (item.kind, item.key)
        metadata = replace(item.metadata, resource_version=str(len(self.log) + 1))
        new = replace(item, metadata=metadata)
        self.log.append(ObjectChange(self.now, item.kind, self._known.get(key), new))
        self._known[key] = new
        if self.started:
            self.state.index(item.kind).put(new)

    def start(self, listed: Callable[[list[Object]], None]) -> None:
        """List what is there, in the order into which *listed* brings it, and schedule."""
        self.started = True
        items = list(self._known.values())
        listed(items)
        for item in items:
            self.state.index(item.kind).put(item)

    def delete(self, kind: str, key: str) -> None:
        found = self._known.pop((kind, key), None)
        if found is not None:
            self.log.append(ObjectChange(self.now, kind, found, None))
            self.state.index(kind).drop(found)

    def pod(self, key: str) -> Pod | None:
        return self._known.get(("Pod", key))  # type: ignore[return-value]

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Do something at a time."""
        heapq.heappush(self._due, (time, next(self._numbers), act))

    def soon(self, act: Callable[[], None]) -> None:
        """Do something after the time that a request takes."""
        slow = self.dice.random() ** 3 * self._slowest
        self.at(self.now + 0.001 + slow, act)

    def burst(self, pods: Iterable[Pod]) -> None:
        """Create pods faster than they are decided, and let time pass until all is done."""
        for number, made in enumerate(pods):
            self.at(self.now + number * 0.0008, lambda made=made: self.put(made))  # type: ignore[misc]
        self.run()

    # The loop ---------------------------------------------------------------------------------

    def run(self, seconds: float = 600.0) -> None:
        """Let time pass until nothing is due any more, or for so many seconds."""
        end = self.now + seconds
        while self.now < end:
            while self._due and self._due[0][0] <= self.now:
                heapq.heappop(self._due)[2]()
            turn = self.state.queue.pop()
            if turn is not None:
                self._attempt(turn)
                continue
            times = [self._due[0][0]] if self._due else []
            ready = self.state.queue.next_ready_at()
            if ready is not None and ready < end:
                times.append(max(ready, self.now + 1e-6))
            if not times:
                return
            self.now = max(self.now, min(times))

    def _attempt(self, turn: Turn) -> None:
        pod = turn.pod
        decision = self.decide(pod)
        result = AttemptResult(pod, decision, self.profile, turn.number, self.now, 0.0, 0.0)
        if decision.node is None:
            self._failed(turn, result)
        else:
            self.state.queue.clear_nomination(pod)
            self.state.cache.assume(pod, decision.node, decision.reservations)
            self.state.queue.done(turn)
            refused = self.dice.random() < self._refused
            self.soon(lambda: self._refuse(turn) if refused else self._bind(pod, decision.node))
        self.now += DECIDING

    def decide(self, pod: Pod) -> Decision:
        """Decide about a pod in the state as it is."""
        return self.decider.decide(pod, self.profile)

    def _bind(self, pod: Pod, node: str | None) -> None:
        known = self.pod(pod.key)
        assert node is not None
        if known is not None and known.uid == pod.uid and not known.terminating:
            self.put(replace(known, spec=replace(known.spec, node_name=node)))
            self.soon(lambda: self._start(pod))
        else:
            self.state.forget(pod)  # the API server refuses to bind it

    def _start(self, pod: Pod) -> None:
        known = self.pod(pod.key)
        if known is not None and known.uid == pod.uid:
            status = replace(known.status, phase="Running", start_time="2026-01-01T00:00:00Z")
            self.put(replace(known, status=status))

    def _refuse(self, turn: Turn) -> None:
        known = self.pod(turn.pod.key)
        self.state.forget(turn.pod)
        if known is not None:
            cycle = self.state.queue.scheduling_cycle
            self.state.queue.requeue(turn, known, rejected_by=(), cycle=cycle)

    def _failed(self, turn: Turn, result: AttemptResult) -> None:
        decision = result.decision
        nomination = nomination_of(decision, self.profile)
        known = self.pod(turn.pod.key) or turn.pod
        condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
        status = replace(known.status, conditions=[condition])
        if nomination is not None:
            status = replace(status, nominated_node_name=nomination)
        updated = replace(known, status=status)
        self.state.queue.requeue(turn, updated, rejected_by=result.rejected_by)
        if nomination is not None:
            self.state.queue.nominate(updated, nomination)
        if known.status != status:
            self.soon(lambda: self._write_status(updated))
        preemption = decision.preemption
        if preemption is not None and preemption.node is not None:
            for key in preemption.candidates[preemption.node].pods:
                victim = self.pod(key)
                if victim is not None and not victim.terminating:
                    gone = as_victim(victim, self.behaviour, self.now)
                    self.state.mark_victim(victim, gone)
                    self.soon(lambda key=key: self._evict(key))  # type: ignore[misc]

    def _write_status(self, updated: Pod) -> None:
        known = self.pod(updated.key)
        if known is not None and known.uid == updated.uid and not known.spec.node_name:
            self.put(replace(known, status=updated.status))

    def _evict(self, key: str) -> None:
        victim = self.pod(key)
        if victim is not None and not victim.spec.node_name:
            self.delete("Pod", key)  # no kubelet has to end it first
        elif victim is not None and not victim.terminating:
            self.put(as_victim(victim, self.behaviour, self.now))
            self.soon(lambda: self.delete("Pod", key))


def judged(other: OtherScheduler, by: Profile) -> Agreement:
    """The placements of another scheduler, judged by the rules of a profile."""
    found = Agreement(None)
    judge = Judge(Rules({by.scheduler_name: by}, other.behaviour), found.judged)
    found.missed = lambda: judge.missed
    for change in other.log:
        judge.feed(change)
        judge.advance()
    judge.finish()
    return found
