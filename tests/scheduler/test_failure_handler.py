"""What follows a failed attempt: the queue, the status, nominations, evictions, and their undo."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node
from podium.cluster.queue.entities import Pool
from podium.engine.cycle.cycle import NO_NODES
from podium.engine.framework.decision import Preemption, Victims
from podium.engine.framework.group_decision import GroupPreemption
from podium.engine.framework.rule import Refused
from podium.engine.state.verdicts import Verdict, Verdicts
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import PodGroup
from podium.scheduler.placing.status_writers import FailedAttempt
from scheduler.fakes import LOST, VERSIONS, Cluster, cluster, refused, running, waiting

UNSCHEDULABLE = "0/1 nodes are available: 1 Insufficient cpu."


def rejected() -> dict[str, Any]:
    """A decision in which NodeResourcesFit rejected the only node."""
    verdicts = Verdicts()
    code = verdicts.code(Verdict("NodeResourcesFit", ("Insufficient cpu",), curable=True))
    return {"verdicts": verdicts, "histogram": {code: 1}}


def preempting(*victims: Pod, cleared: tuple[Pod, ...] = ()) -> dict[str, Any]:
    """A decision to evict these pods from n1."""
    chosen = Victims(
        tuple(each.key for each in victims),
        tuple(each.uid for each in victims),
        tuple(0 for _ in victims),
    )
    preemption = Preemption(
        eligible=True,
        potential=("n1",),
        candidates={"n1": chosen},
        node="n1",
        cleared=tuple((each.uid, each.key) for each in cleared),
        nomination="n1",
    )
    return rejected() | {"preemption": preemption}


def is_terminating(made: Cluster, pod: Pod) -> bool:
    """Whether the cache counts a pod as terminating."""
    resident = made.state.cache.columns.pods.by_uid.get(pod.uid)
    assert resident is not None
    return resident.terminating


def condition_in(status: dict[str, Any]) -> tuple[str, str, str]:
    [condition] = status["conditions"]
    return condition["type"], condition["reason"], condition["message"]


# Without preemption -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unschedulable_pod_is_parked_and_told(version: str) -> None:
    made = cluster(version=version)

    made.fail(**rejected())

    assert made.pool(waiting()) is Pool.UNSCHEDULABLE
    assert made.reports.queues == ["unschedulable"]
    assert made.events.written == [("default/a", "FailedScheduling", UNSCHEDULABLE)]
    [[name, status]] = made.api.named("status")
    assert name == "default/a"
    assert condition_in(status) == ("PodScheduled", "Unschedulable", UNSCHEDULABLE)
    assert len(made.api.requests) == 1


@pytest.mark.parametrize(
    ("error", "version", "reason"),
    [
        ("something broke", "v1.13", "Unschedulable"),
        ("something broke", "v1.37", "SchedulerError"),
        (NO_NODES, "v1.13", "Unschedulable"),
        (NO_NODES, "v1.37", "Unschedulable"),
    ],
)
def test_an_error_is_told_with_the_reason_of_its_version(
    error: str, version: str, reason: str
) -> None:
    made = cluster(version=version)

    made.fail(error=error)

    [[_, status]] = made.api.named("status")
    assert condition_in(status) == ("PodScheduled", reason, error)
    assert made.events.written == [("default/a", "FailedScheduling", error)]


def test_a_pod_with_an_error_is_tried_again_after_its_backoff() -> None:
    made = cluster()

    made.fail(error="something broke")

    assert made.pool(waiting()) is Pool.BACKOFF


def test_the_rejecting_plugins_decide_which_event_wakes_the_pod() -> None:
    made = cluster()
    made.fail(refused=Refused("NodeAffinity", "conflict"))
    assert made.pool(waiting()) is Pool.UNSCHEDULABLE

    made.put(node("n2"))

    assert made.pool(waiting()) in {Pool.ACTIVE, Pool.BACKOFF}


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "deleted"])
def test_nothing_is_written_for_a_pod_that_was_bound_or_deleted_meanwhile(bound: bool) -> None:
    made = cluster()
    turn, result = made.attempt(**rejected())
    if bound:
        made.put(with_version(running("a"), "2"))
    else:
        made.drop(waiting())

    made.actions.failure_handler.not_decided(turn, result)

    assert made.pool(waiting()) is None
    assert made.api.requests == []
    assert made.events.written == []
    assert made.reports.queues == []


@pytest.mark.parametrize(
    "error",
    [refused(403), refused(409), refused(429), refused(500), LOST],
    ids=["403", "409", "429", "500", "no answer"],
)
def test_after_a_status_that_cannot_be_written_that_pod_alone_is_attempted_again(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    made = cluster()
    parked = waiting("parked", priority=5)
    made.put(parked)
    made.fail(**rejected())
    assert made.pool(parked) is Pool.UNSCHEDULABLE
    made.api.script("status", error)

    made.fail(**rejected())

    assert caplog.text.count(f"pod default/a: {error}") == 1
    assert made.pool(waiting()) is Pool.ACTIVE
    assert made.pool(parked) is Pool.UNSCHEDULABLE
    assert made.time.slept == [1.0]


async def test_outcomes_of_a_pod_are_written_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first request takes long; the second one waits, and its outcome stays."""
    made = cluster()
    handler, written = made.actions.failure_handler, []

    gate = asyncio.Event()

    async def write(_: Pod, outcome: FailedAttempt) -> None:
        if outcome.message == "first":
            await gate.wait()
        written.append(outcome.message)

    monkeypatch.setattr(handler._status, "write", write)
    _, result = made.attempt(**rejected())
    first, second = (
        asyncio.create_task(handler._write(waiting(), FailedAttempt("A", text), result, ()))
        for text in ("first", "second")
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert written == []
    gate.set()
    await asyncio.gather(first, second)
    assert written == ["first", "second"]
    assert handler._writing == {}


def test_pauses_before_a_status_is_tried_again_are_doubled_and_bounded() -> None:
    made = cluster()
    made.api.script("status", *[refused(403)] * 8)

    for _ in range(8):
        made.fail(**rejected())

    assert made.time.slept == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert len(made.api.named("status")) == 8


@pytest.mark.parametrize(("asked", "paused"), [(7.0, 7.0), (3600.0, 30.0)])
def test_the_pause_that_the_api_server_asks_for_is_kept_within_bounds(
    asked: float, paused: float
) -> None:
    made = cluster()
    made.api.script("status", refused(429, retry_after=asked))

    made.fail(**rejected())

    assert made.time.slept == [paused]


def fail_and_drop(made: Cluster) -> None:
    """The pod is deleted while its failure is about to be written again."""
    turn, result = made.attempt(**rejected())

    async def run() -> None:
        made.actions.failure_handler.not_decided(turn, result)
        await until_a_retry_waits(made)
        made.drop(waiting())
        await made.finish()

    asyncio.run(run())


def test_a_pod_that_was_deleted_before_its_retry_is_not_attempted_again() -> None:
    made = cluster()
    made.api.script("status", refused(403))
    fail_and_drop(made)

    assert made.pool(waiting()) is None


async def test_retries_that_have_not_begun_are_cancelled() -> None:
    made = cluster()
    made.api.script("status", refused(403))
    turn, result = made.attempt(**rejected())

    made.actions.failure_handler.not_decided(turn, result)
    await until_a_retry_waits(made)
    await made.actions.failure_handler.cancel()
    assert made.actions.failure_handler.retrying == 0

    assert made.pool(waiting()) is Pool.UNSCHEDULABLE


def test_the_status_of_a_deleted_pod_is_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    made = cluster()
    made.api.script("status", refused(404))
    fail_and_drop(made)

    assert caplog.text == ""
    assert made.pool(waiting()) is None


def test_a_pod_that_is_there_in_spite_of_a_404_is_attempted_again() -> None:
    made = cluster()
    made.api.script("status", refused(404))

    made.fail(**rejected())

    assert made.pool(waiting()) is Pool.ACTIVE


async def test_nothing_is_written_about_a_pod_that_was_deleted_before_its_turn() -> None:
    victim = running("one")
    made = cluster(victim)
    turn, result = made.attempt(**preempting(victim))

    made.actions.failure_handler.not_decided(turn, result)
    made.drop(waiting())
    await made.finish()

    assert made.api.named("status") == []
    assert made.api.named("delete") == []
    resident = made.state.cache.columns.pods.by_uid.get(victim.uid)
    assert resident is not None
    assert not resident.terminating


@pytest.mark.parametrize("error", [refused(404), refused(500), ValueError("a bug")])
@pytest.mark.parametrize("request_", ["status", "delete"])
def test_a_victim_that_was_not_evicted_counts_as_it_is_and_the_pod_tries_again(
    request_: str, error: Exception
) -> None:
    victim = running("one")
    made = cluster(victim)
    made.api.script(request_, *(() if request_ == "delete" else (None,)), error)

    made.fail(**preempting(victim))

    resident = made.state.cache.columns.pods.by_uid.get(victim.uid)
    assert resident is not None
    assert not resident.terminating
    assert made.pool(waiting()) is Pool.ACTIVE


def test_the_loop_is_woken_for_a_pod_whose_binding_failed_late() -> None:
    made = cluster()
    woken: list[bool] = []
    made.state._on_pod_ready = lambda: woken.append(True)
    made.api.script("bind", refused(403))

    made.bind()

    assert made.pool(waiting()) is Pool.BACKOFF
    assert woken


def test_a_status_that_was_not_written_is_written_after_the_next_attempt() -> None:
    made = cluster()
    made.api.script("status", refused(500))
    made.fail(**rejected())
    made.time.now += 60

    made.fail(**rejected())

    assert len(made.api.named("status")) == 2


async def until_a_retry_waits(made: Cluster) -> None:
    while not made.actions.failure_handler.retrying:  # noqa: ASYNC110  the worker takes its turns
        await asyncio.sleep(0)


# With preemption ----------------------------------------------------------------------------------


def test_victims_are_marked_deleted_and_told() -> None:
    one, two = running("one"), running("two")
    made = cluster(one, two)

    made.fail(**preempting(one, two))

    assert [request[:2] for request in made.api.requests] == [
        ("status", "default/a"),
        ("status", "default/one"),
        ("delete", "default/one"),
        ("status", "default/two"),
        ("delete", "default/two"),
    ]
    [own, mark, _] = [status for _, status in made.api.named("status")]
    assert own["nominatedNodeName"] == "n1"
    assert condition_in(mark) == (
        "DisruptionTarget",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert made.api.named("delete") == [["default/one", "one"], ["default/two", "two"]]
    assert made.events.written[1:] == [
        ("default/one", "Preempted", "Preempted by pod a on node n1"),
        ("default/two", "Preempted", "Preempted by pod a on node n1"),
    ]
    assert made.reports.evicted == [("default/a", ["default/one", "default/two"])]
    assert made.state.queue.nominated_node(waiting()) == "n1"
    assert is_terminating(made, one)
    assert is_terminating(made, two)


def test_v1_13_deletes_victims_without_a_mark() -> None:
    victim = running("victim")
    made = cluster(victim, version="v1.13")

    made.fail(**preempting(victim))

    assert [request[:2] for request in made.api.requests] == [
        ("status", "default/a"),
        ("delete", "default/victim"),
    ]
    assert made.events.written[1:] == [
        ("default/victim", "Preempted", "by default/a on node n1"),
    ]


async def test_a_victim_counts_as_terminating_before_any_request_is_sent() -> None:
    victim = running("victim")
    made = cluster(victim)
    turn, result = made.attempt(**preempting(victim))

    made.actions.failure_handler.not_decided(turn, result)
    assert made.api.requests == []
    assert is_terminating(made, victim)
    await made.finish()


def test_a_victim_that_was_replaced_or_is_terminating_is_left_alone() -> None:
    leaving, replaced = running("leaving", terminating=True), running("replaced")
    made = cluster(leaving, replace(replaced, metadata=replace(replaced.metadata, uid="new")))

    made.fail(**preempting(leaving, replaced))

    assert made.api.named("delete") == []
    assert made.reports.evicted == []


@pytest.mark.parametrize("request_name", ["status", "delete"])
def test_a_victim_that_is_gone_does_not_keep_the_others(request_name: str) -> None:
    one, two = running("one"), running("two")
    made = cluster(one, two)
    if request_name == "status":
        made.api.script("status", None, refused(404))
    else:
        made.api.script("delete", refused(404))

    made.fail(**preempting(one, two))

    assert ["default/two", "two"] in made.api.named("delete")
    assert [about for about, reason, _ in made.events.written if reason == "Preempted"] == [
        "default/two"
    ]
    assert made.pool(waiting()) is Pool.ACTIVE  # in case the victim is there after all


@pytest.mark.parametrize("request_name", ["status", "delete"])
async def test_a_victim_of_a_group_that_is_said_to_be_gone_counts_as_it_is_known(
    request_name: str,
) -> None:
    one, two = running("one"), running("two")
    made = cluster(one, two)
    made.api.script(request_name, refused(404))
    group = PodGroup(metadata=ObjectMeta(name="g", uid="g"))
    found = GroupPreemption((one.key, two.key), (one.uid, two.uid), ("n1", "n1"))

    made.actions.failure_handler.evict_for_group(group, found, "default-scheduler")
    assert is_terminating(made, one)
    await made.finish()

    assert ["default/two", "two"] in made.api.named("delete")
    assert not is_terminating(made, one)
    assert is_terminating(made, two)
    assert [about for about, reason, _ in made.events.written if reason == "Preempted"] == [
        "default/two"
    ]


@pytest.mark.parametrize(
    "error",
    [refused(403), refused(409), refused(500), LOST],
    ids=["403", "409", "500", "no answer"],
)
def test_a_failed_eviction_restores_the_victims_that_are_left(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    one, two, three = running("one"), running("two"), running("three")
    made = cluster(one, two, three)
    made.api.script("delete", None, error)

    made.fail(**preempting(one, two, three))

    assert [key for key, _ in made.api.named("delete")] == ["default/one", "default/two"]
    assert is_terminating(made, one)
    assert not is_terminating(made, two)
    assert not is_terminating(made, three)
    assert f"pod default/a: eviction of default/two: {error}" in caplog.text
    assert made.pool(waiting()) in {Pool.ACTIVE, Pool.BACKOFF}


@pytest.mark.parametrize("error", [refused(404), refused(500), LOST], ids=["404", "500", "lost"])
def test_nobody_is_evicted_when_the_outcome_cannot_be_written(error: Exception) -> None:
    victim = running("victim")
    made = cluster(victim)
    made.api.script("status", error)

    made.fail(**preempting(victim))

    assert made.api.named("delete") == []
    assert not is_terminating(made, victim)


async def test_victims_are_restored_as_they_are_by_then() -> None:
    victim = running("victim")
    made = cluster(victim)
    made.api.script("delete", refused(500))
    turn, result = made.attempt(**preempting(victim))

    made.actions.failure_handler.not_decided(turn, result)
    made.drop(victim)
    await made.finish()

    assert made.placed() == {}


# Nominations of other pods ------------------------------------------------------------------------


def test_nominations_that_end_are_removed_before_victims_are_deleted() -> None:
    victim, other = running("victim"), waiting("other", nominated="n1", priority=-1)
    made = cluster(victim, other)

    made.fail(**preempting(victim, cleared=(other,)))

    assert ["default/other", {"nominatedNodeName": None}] in made.api.named("status")
    names = [request[:2] for request in made.api.requests]
    assert names.index(("status", "default/other")) < names.index(("delete", "default/victim"))


def test_a_nominated_pod_that_is_gone_does_not_keep_the_victims() -> None:
    victim, other = running("victim"), waiting("other", nominated="n1", priority=-1)
    made = cluster(victim, other)
    made.api.script("status", None, refused(404))

    made.fail(**preempting(victim, cleared=(other,)))

    assert made.api.named("delete") == [["default/victim", "victim"]]
    assert is_terminating(made, victim)


def test_a_nomination_that_cannot_be_removed_keeps_the_victims() -> None:
    victim, other = running("victim"), waiting("other", nominated="n1", priority=-1)
    made = cluster(victim, other)
    made.api.script("status", None, refused(500))

    made.fail(**preempting(victim, cleared=(other,)))

    assert made.api.named("delete") == []
    assert not is_terminating(made, victim)


def test_the_nomination_of_another_pod_with_that_name_stays() -> None:
    victim, other = running("victim"), waiting("other", nominated="n1", priority=-1)
    made = cluster(victim, other)
    before = replace(other, metadata=replace(other.metadata, uid="before"))

    made.fail(**preempting(victim, cleared=(before,)))

    assert "default/other" not in [key for key, _ in made.api.named("status")]


def with_version(pod: Pod, version: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))
