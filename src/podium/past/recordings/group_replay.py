"""Recordings of pod groups, run again by their rules.

All objects exist first. Then the pending pods are created, one millisecond apart, and scheduling
starts. Victims disappear at once, and bound pods run at once: their start time is 2026 and as many
minutes as cycles came before. When nothing else is left to try, the backoff of all entities is over
once, and again after each cycle that bound or evicted something.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from podium.cluster.queue.entities import GroupTurn, Pool
from podium.cluster.queue.group_queue import GroupQueue
from podium.cluster.queue.pools import Backoff
from podium.cluster.queue.queue import QueueOptions
from podium.cluster.wakeups.hints import hint_rules
from podium.cluster.wakeups.wakeups import Added, Deleted
from podium.render.recording import pod_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.queue.entities import Turn
    from podium.cluster.simulation import Simulation
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MILLISECOND, _HOUR = 0.001, 3600.0
#: Gates are asked through the rules of the queue; the rest is never waited for.
_OPTIONS: Final = QueueOptions(
    backoff=Backoff(),
    pod_times=False,
    longest_wait=float("inf"),
    keep_unwritten_nominations=True,
)
#: More cycles than a recording ever has.
MOST_CYCLES: Final = 30
_WAITING: Final = (
    (Pool.ACTIVE, "active"),
    (Pool.BACKOFF, "backoff"),
    (Pool.UNSCHEDULABLE, "unschedulable"),
    (Pool.GATED, "unschedulable"),
    (Pool.INCOMPLETE, "incomplete"),
    (Pool.PENDING, "pending"),
)


class GroupReplay:
    """One scenario with pod groups."""

    def __init__(
        self,
        simulation: Simulation,
        objects: Objects,
        pending: Sequence[Pod],
    ) -> None:
        self._simulation = simulation
        self._now = _START.timestamp()
        rules = hint_rules(tuple(simulation.decider.profiles.values()), self._held_by)
        self._queue = GroupQueue(lambda: self._now, rules, _OPTIONS)
        self._order = [pod.key for pod in pending]
        self._pods = {pod.key: pod for pod in (*objects.pods, *pending)}
        self._keys = {pod.uid: pod.key for pod in self._pods.values()}
        self._nodes: dict[str, str | None] = dict.fromkeys(self._order)
        self._cycles: list[JsonObject] = []
        simulation.load(objects, just_listed=True)
        for group in objects.of("PodGroup"):
            self._queue.put_group(group)
        for pod in pending:
            self._now += _MILLISECOND
            simulation.groups.expect([pod])
            self._queue.add(pod)
        self._groups = [group.key for group in objects.of("PodGroup")]

    def _held_by(self, pod: Pod) -> str:
        held = self._simulation.groups.hold([pod])
        return "" if held is None else held.plugin

    def run(self) -> dict[str, Any]:
        """All cycles, and what is left at the end, in the form of a recording."""
        rests_end = True
        while len(self._cycles) < MOST_CYCLES:
            self._now += _MILLISECOND
            turn = self._queue.pop_entity()
            if turn is None:
                if not rests_end or not self._queue.counts()[Pool.BACKOFF]:
                    break
                rests_end = False
                self._now += _HOUR
                continue
            cycle = self._group(turn) if isinstance(turn, GroupTurn) else self._pod(turn)
            self._cycles.append(cycle)
            bound = any("node" in each for each in cycle["pods"])
            rests_end = rests_end or bound or bool(cycle.get("evicted"))
        return {
            "cycles": self._cycles,
            "placed": self._nodes,
            "groups": {key: pod_groups.conditions(self._group_named(key)) for key in self._groups},
            "queue": self._waiting(),
        }

    def _group_named(self, key: str) -> Any:
        found = self._simulation.groups.named(key)
        assert found is not None
        return found

    def _waiting(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in sorted(self._order):
            pool = self._queue.pool_of(self._pods[key])
            for known, name in _WAITING:
                if pool is known:
                    found.setdefault(name, []).append(key)
        return found

    def _started(self) -> str:
        began = _START + timedelta(minutes=len(self._cycles))
        return began.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _group(self, turn: GroupTurn) -> JsonObject:
        pods = [self._pods[each.pod.key] for each in turn.members]
        group = self._group_named(turn.group.key)
        step = self._simulation.groups.run(group, pods, recording=True, start_time=self._started)
        for pod in step.left:
            self._pods[pod.key] = pod
        turns = {each.pod.key: each for each in turn.members}
        for each in step.steps:
            member = turns[each.pod.key]
            if each.decision.node is not None:
                self._queue.done(member)
                self._bound(each.pod, each.decision.node)
            else:
                rejectors = each.decision.rejected_by
                self._queue.requeue(member, self._pods[each.pod.key], rejected_by=rejectors)
        evicted = self._evicted(step.decision.preemption.uids if step.decision.preemption else ())
        self._queue.requeue_group(turn, step.decision.queue_code)
        self._queue.put_group(self._group_named(turn.group.key))
        return pod_groups.group_cycle(step, self._order, evicted)

    def _pod(self, turn: Turn) -> JsonObject:
        pod = self._pods[turn.pod.key]
        simulation = self._simulation
        decision = simulation.attempt(pod, recording=True)
        step = simulation.step_of(pod, turn.number, decision)
        kept = simulation.settle(step, start_time=self._started)
        if decision.node is not None:
            self._queue.done(turn)
            self._bound(pod, decision.node)
            return pod_groups.pod_cycle(decision, ())
        self._pods[pod.key] = pod if kept is None else kept
        preemption = decision.preemption
        victims = () if preemption is None or preemption.node is None else preemption.victims
        evicted = self._evicted(victims)
        self._queue.requeue(turn, self._pods[pod.key], rejected_by=decision.rejected_by)
        return pod_groups.pod_cycle(decision, evicted)

    def _bound(self, pod: Pod, node: str) -> None:
        """The pod is on its node: the scheduler sees it there."""
        self._nodes[pod.key] = node
        placed = replace(pod, spec=replace(pod.spec, node_name=node))
        self._pods[pod.key] = placed
        self._queue.delete(pod, bound=True)
        self._queue.on_event(Added(placed))

    def _evicted(self, uids: Sequence[str]) -> list[str]:
        """The victims are gone, and whom that may help is woken."""
        keys = [self._keys[uid] for uid in uids]
        for key in keys:
            self._queue.on_event(Deleted(self._pods[key]))
            if key in self._nodes:
                self._nodes[key] = None
        return sorted(keys)
