"""A scheduler in steps, recorded: the real state, decider and recorder, without an event loop."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from podium.cluster.queue.entities import Turn
from podium.cluster.queue.queue import SchedulingQueue
from podium.engine.cycle.ties import Ties
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.past.format.writing import HistoryWriter, Limits
from podium.past.recorder.recorder import HistoryRecorder
from podium.scheduler.decider import decider_on
from podium.scheduler.placing.failure_handler import as_victim, nomination_of
from podium.scheduler.state.behaviour import Behaviour
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import AttemptResult
from podium.scheduler.state.options import SchedulerOptions

NOON = 1_800_000_000.0


class Driver:
    """Does what the scheduling loop does, one call at a time."""

    def __init__(
        self,
        folder: Path,
        profile: Profile,
        behaviour: Behaviour,
        *,
        limits: Limits = Limits(batch_records=1),  # noqa: B008  immutable
        recorded_nodes: int = 0,
    ) -> None:
        self.now = NOON
        self.profile, self.behaviour = profile, behaviour
        self.writer = HistoryWriter(folder, limits=limits, clock=lambda: self.now)
        self.recorder = HistoryRecorder(self.writer, lambda: self.now)
        profiles = {profile.scheduler_name: profile}
        self.state = ClusterState(profiles, behaviour, lambda: self.now, [self.recorder])
        self.decider = decider_on(self.state, profiles)
        self.recorded_nodes = recorded_nodes
        scheduler: Any = self
        self.recorder.scheduler = scheduler
        self.options = SchedulerOptions()
        self.versions = 0
        #: Every decision, with its number of the attempt.
        self.decisions: list[tuple[int, Decision]] = []

    @property
    def queue(self) -> SchedulingQueue:
        return self.state.queue

    @property
    def ties(self) -> Ties:
        return self.decider.ties

    def put(self, item: Object) -> None:
        """Report an object, as a new version."""
        self.versions += 1
        metadata = replace(item.metadata, resource_version=str(self.versions))
        self.state.index(item.kind).put(replace(item, metadata=metadata))

    def drop(self, item: Object) -> None:
        self.state.index(item.kind).drop(item)

    def turn(self) -> tuple[Turn, Decision] | None:
        """Take a pod from the queue and decide; a pod with a node is assumed there."""
        self.now += 0.001
        turn = self.queue.pop()
        if turn is None:
            return None
        nodes = len(self.state.cache.columns.nodes.order)
        decision = self.decider.decide(
            turn.pod, self.profile, recording=nodes <= self.recorded_nodes
        )
        result = AttemptResult(turn.pod, decision, self.profile, turn.number, self.now, 0.0, 0.0)
        self.recorder.attempted(result)
        self.decisions.append((turn.number, decision))
        if decision.node is None:
            self._requeue(turn, result)
        else:
            self.queue.clear_nomination(turn.pod)
            self.state.cache.assume(turn.pod, decision.node, decision.reservations)
            self.queue.done(turn)
        return turn, decision

    def _requeue(self, turn: Turn, result: AttemptResult) -> None:
        decision = result.decision
        nomination = nomination_of(decision, self.profile)
        pod = turn.pod
        if nomination is not None:
            pod = replace(pod, status=replace(pod.status, nominated_node_name=nomination))
        self.queue.requeue(turn, pod, rejected_by=result.rejected_by)
        if nomination is not None:
            self.queue.nominate(pod, nomination)
        preemption = decision.preemption
        if preemption is not None and preemption.node is not None:
            keys = preemption.candidates[preemption.node].pods
            for key in keys:
                victim = self.state.pod_named(key)
                if victim is not None:
                    self.state.mark_victim(victim, as_victim(victim, self.behaviour, self.now))
            self.recorder.evicting(result, keys)

    def bind(self, pod: Pod, dice: Random) -> None:
        """Report that an assumed pod was bound, perhaps with a change of another field."""
        resident = self.state.cache.columns.pods.by_uid.get(pod.uid)
        if resident is None or not self.state.cache.is_assumed(pod.uid):
            return
        node = self.state.cache.columns.nodes.names[resident.row]
        status = pod.status
        if dice.random() < 0.3:
            status = replace(status, start_time="2026-01-01T00:00:00Z")
        self.put(replace(pod, spec=replace(pod.spec, node_name=node), status=status))
