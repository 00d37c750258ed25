"""What the queue says about a pod that waits."""

from __future__ import annotations

import msgspec

from builders import pod
from podium.cluster.queue.entities import Pool
from podium.cluster.queue.queue import OF_CONFIGURATIONS, OF_POLICIES, SchedulingQueue
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import Added, MoveRules
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import SchedulingGate
from podium.serving.page_data.waiting import waiting_data


class Clock:
    time = 1000.0

    def __call__(self) -> float:
        return self.time


def queue(clock: Clock) -> SchedulingQueue:
    return SchedulingQueue(clock, HintRules(lambda _: {}), OF_CONFIGURATIONS)


def test_a_rejected_pod_waits_for_the_events_of_its_plugins() -> None:
    clock = Clock()
    pods = queue(clock)
    pods.add(pod("p"))
    assert pods.waiting("default/p") is not None
    turn = pods.pop()
    assert turn is not None
    assert pods.waiting("default/p") is None, "it is being tried"
    pods.requeue(turn, rejected_by=["NodeResourcesFit", "TaintToleration", "Mine"])
    found = pods.waiting("default/p")
    assert found is not None
    assert (found.pool, found.since, found.attempts) == (Pool.UNSCHEDULABLE, 1000.0, 1)
    assert found.retried_at == 1300.0
    assert found.backoff_until == 1002.0
    assert "Node Add" in found.awaited["NodeResourcesFit"]
    assert "Pod Delete" in found.awaited["NodeResourcesFit"]
    assert "Node UpdateNodeTaint" in found.awaited["TaintToleration"]
    assert "Node *" in found.awaited["Mine"]


def test_every_event_that_is_named_is_one_that_wakes() -> None:
    """The names are those of the requests that an event makes."""
    rules = HintRules(lambda _: {})
    made = rules.requests(Added(Node()), 1)
    assert {request.action for request in made} == {"Add"}
    clock = Clock()
    pods = queue(clock)
    pods.add(pod("p"))
    turn = pods.pop()
    assert turn is not None
    pods.requeue(turn, rejected_by=["NodeUnschedulable"])
    found = pods.waiting("default/p")
    assert found is not None
    for name, events in found.awaited.items():
        registered = {event for event in events if name in rules._by_event.get(event, {})}
        assert registered == set(events)


def test_a_pod_that_rests_says_until_when() -> None:
    clock = Clock()
    pods = queue(clock)
    pods.add(pod("p"))
    turn = pods.pop()
    assert turn is not None
    pods.requeue(turn)
    found = pods.waiting("default/p")
    assert found is not None
    assert (found.pool, found.backoff_until, found.awaited) == (Pool.BACKOFF, 1002.0, {})
    data = waiting_data(pods, "default/p")
    assert data is not None
    assert data["backoffUntil"] == "1970-01-01T00:16:42.000Z"
    clock.time = 1002.0
    later = pods.waiting("default/p")
    assert later is not None
    assert (later.pool, later.backoff_until) == (Pool.ACTIVE, None)


def test_a_gated_pod_waits_for_the_end_of_its_gates() -> None:
    pods = queue(Clock())
    plain = pod("p")
    gates = [SchedulingGate(name="hold")]
    spec = msgspec.structs.replace(plain.spec, scheduling_gates=gates)
    pods.add(msgspec.structs.replace(plain, spec=spec))
    found = pods.waiting("default/p")
    assert found is not None
    assert (found.pool, found.gated_by, found.retried_at) == (Pool.GATED, "SchedulingGates", None)
    assert found.awaited["SchedulingGates"] == ["Pod UpdatePodSchedulingGatesEliminated"]


def test_in_v1_13_most_changes_wake_every_pod() -> None:
    pods = SchedulingQueue(Clock(), MoveRules(), OF_POLICIES)
    pods.add(pod("p"))
    found = pods.waiting("default/p")
    assert found is not None
    assert found.pool is Pool.ACTIVE
    turn = pods.pop()
    assert turn is not None
    waiting = MoveRules().awaited(turn.queued)
    assert "Node Add" in waiting["*"]
    assert "Pod Add" not in waiting["*"]
