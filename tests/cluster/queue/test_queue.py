"""The scheduling queue: pools, transitions, times, nominations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from cases import cases
from podium.cluster.queue.entities import Pool, Turn, is_unschedulable, written_time
from podium.cluster.queue.pools import Backoff
from podium.cluster.queue.queue import OF_CONFIGURATIONS, QueueOptions, SchedulingQueue
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import Added, Deleted, MoveRules, Updated
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodCondition, PodStatus
from podium.objects.kinds.storage import StorageClass
from podium.objects.kinds.workloads import Service
from podium.objects.times import NEVER, seconds

START = 1_700_000_000.0


class Clock:
    """A clock that tests turn by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def stamp(offset: float) -> str:
    return datetime.fromtimestamp(START + offset, UTC).isoformat().replace("+00:00", "Z")


def condition(reason: str = "Unschedulable", at: float = 0) -> PodCondition:
    return PodCondition("PodScheduled", "False", reason, stamp(at), stamp(at))


def pod(name: str, priority: int | None = None, created: float = 0, **changes: object) -> Pod:
    """A pod; *changes* may set labels, tried (seconds), reason, nominated, gates, node."""
    status = PodStatus(
        nominated_node_name=str(changes.get("nominated", "")),
        conditions=(
            [condition(str(changes.get("reason", "Unschedulable")), float(str(changes["tried"])))]
            if "tried" in changes
            else None
        ),
    )
    text = {
        "metadata": {
            "name": name,
            "uid": changes.get("uid", f"uid-{name}"),
            "creationTimestamp": stamp(created),
            "labels": changes.get("labels"),
            "resourceVersion": changes.get("version", ""),
        },
        "spec": {
            "priority": priority,
            "nodeName": changes.get("node", ""),
            "schedulingGates": changes.get("gates"),
        },
    }
    return msgspec.structs.replace(msgspec.convert(text, Pod), status=status)


def queue(
    options: QueueOptions | None = None, clock: Clock | None = None
) -> tuple[SchedulingQueue, Clock]:
    clock = clock or Clock()
    return SchedulingQueue(clock, MoveRules(), options or QueueOptions()), clock


def modern(clock: Clock | None = None) -> tuple[SchedulingQueue, Clock]:
    clock = clock or Clock()
    return SchedulingQueue(clock, HintRules(lambda _: {}), OF_CONFIGURATIONS), clock


def popped(waiting: SchedulingQueue) -> Turn:
    attempt = waiting.pop()
    assert attempt is not None
    return attempt


def names(waiting: SchedulingQueue) -> list[str]:
    """Pop until nothing is ready."""
    found = []
    while attempt := waiting.pop():
        found.append(attempt.pod.name)
    return found


def parked(waiting: SchedulingQueue, failed: Pod) -> Pod:
    """Add a pod, try it, and let it fail as unschedulable."""
    waiting.add(failed)
    attempt = popped(waiting)
    tried = msgspec.structs.replace(failed, status=PodStatus(conditions=[condition()]))
    assert waiting.requeue(attempt, tried) is Pool.UNSCHEDULABLE
    return tried


NODE = msgspec.convert({"metadata": {"name": "n"}}, Node)

# --- times ----------------------------------------------------------------------------------


@cases(
    ("text", "expected"),
    {
        "seconds since 1970": ("1970-01-01T00:00:10Z", 10.0),
        "an offset is taken off": ("1970-01-01T02:00:10+02:00", 10.0),
        "fractions count": ("1970-01-01T00:00:10.5Z", 10.5),
        "billionths are cut": ("1970-01-01T00:00:10.123456789Z", 10.123456),
        "an absent time is before all others": (None, NEVER),
        "so is an empty one": ("", NEVER),
    },
)
def test_times_are_read(text: str | None, expected: float) -> None:
    assert seconds(text) == expected


def test_other_text_is_no_time() -> None:
    with pytest.raises(ValueError, match="soon"):
        seconds("soon")


@cases(
    ("conditions", "expected"),
    {
        "the time of creation if it was never tried": (None, 5.0),
        "other conditions do not count": (
            [PodCondition("Ready", "False", "", stamp(9), stamp(9))],
            5.0,
        ),
        "the last probe": ([PodCondition("PodScheduled", "False", "", stamp(7), stamp(6))], 7.0),
        "the last transition if there was no probe": (
            [PodCondition("PodScheduled", "False", "", None, stamp(6))],
            6.0,
        ),
    },
)
def test_the_time_that_orders_a_pod(conditions: list[PodCondition] | None, expected: float) -> None:
    tried = msgspec.structs.replace(pod("p", created=5), status=PodStatus(conditions=conditions))

    assert written_time(tried) - START == expected


@cases(
    ("status", "reason", "expected"),
    {
        "it says so": ("False", "Unschedulable", True),
        "the status is not False": ("True", "Unschedulable", False),
        "another reason": ("False", "SchedulerError", False),
    },
)
def test_unschedulable_by_its_own_status(status: str, reason: str, *, expected: bool) -> None:
    conditions = [PodCondition("PodScheduled", status, reason)]

    assert (
        is_unschedulable(msgspec.structs.replace(pod("p"), status=PodStatus(conditions=conditions)))
        is expected
    )
    assert not is_unschedulable(pod("p"))


# --- order ----------------------------------------------------------------------------------


@cases(
    ("pods", "expected"),
    {
        "the higher priority first": ([pod("a", 1), pod("b", 2)], "ba"),
        "no priority is priority 0": ([pod("a"), pod("b", 1), pod("c", -1)], "bac"),
        "then the older time first": ([pod("a", created=2), pod("b", created=1)], "ba"),
        "a pod that was tried counts from then": (
            [pod("a", created=0, tried=9), pod("b", created=5)],
            "ba",
        ),
        "priority goes before time": ([pod("a", 1, created=9), pod("b", 0, created=1)], "ab"),
        "equals in the order of arrival": ([pod(name) for name in "abcd"], "abcd"),
    },
)
def test_order(pods: Sequence[Pod], expected: str) -> None:
    waiting, _ = queue()
    for each in pods:
        waiting.add(each)

    assert names(waiting) == list(expected)


def test_without_the_order_of_arrival_the_heap_decides() -> None:
    waiting, _ = queue(QueueOptions(arrival_order=False))
    for name in "abcd":
        waiting.add(pod(name))

    assert names(waiting) == ["a", "d", "c", "b"]


def test_a_pod_that_comes_back_keeps_its_place_in_the_order_of_arrival() -> None:
    waiting, _ = queue()
    for name in "abc":
        waiting.add(pod(name))
    attempts = [popped(waiting) for _ in "abc"]
    for attempt in reversed(attempts):
        waiting.requeue(attempt, pod(attempt.pod.name, tried=3))

    waiting.move_all()

    assert names(waiting) == ["a", "b", "c"]


def test_by_the_clock_pods_go_in_the_order_of_queueing_not_of_creation() -> None:
    waiting, clock = modern()
    waiting.add(pod("young", created=9))
    clock.now += 1
    waiting.add(pod("old", created=1))

    assert names(waiting) == ["young", "old"]


# --- add, update, delete ---------------------------------------------------------------------


def test_an_added_pod_replaces_one_of_the_same_name_wherever_it_is() -> None:
    waiting, _ = queue()
    parked(waiting, pod("p"))

    assert waiting.add(pod("p", 7, uid="other")) is Pool.ACTIVE

    assert waiting.counts()[Pool.UNSCHEDULABLE] == 0
    assert popped(waiting).pod.priority == 7
    assert waiting.pop() is None


def test_an_update_of_an_active_pod_moves_it_in_the_order() -> None:
    waiting, _ = queue()
    waiting.add(pod("a"))
    waiting.add(pod("b"))
    waiting.update(pod("b"), pod("b", 1))

    assert names(waiting) == ["b", "a"]


@cases(
    ("change", "pool"),
    {
        "labels wake it": ({"labels": {"a": "b"}}, Pool.ACTIVE),
        "a resource version does not": ({"version": "7"}, Pool.UNSCHEDULABLE),
        "a condition does not": ({"tried": 9}, Pool.UNSCHEDULABLE),
        "a nomination does not": ({"nominated": "n"}, Pool.UNSCHEDULABLE),
        "anything in the specification does": ({"priority": 4}, Pool.ACTIVE),
    },
)
def test_which_own_update_wakes_a_waiting_pod(change: dict[str, object], pool: Pool) -> None:
    waiting, _ = queue(QueueOptions(backoff=Backoff()))
    old = parked(waiting, pod("p"))
    new = pod("p", **{"tried": 0, **change})  # type: ignore[arg-type]

    waiting.update(old, new)

    assert waiting.pool_of(new) is pool


def test_a_status_update_replaces_the_waiting_pod() -> None:
    waiting, _ = queue()
    old = parked(waiting, pod("p"))
    new = pod("p", tried=42)
    waiting.update(old, new)
    waiting.move_all()

    assert popped(waiting).pod is new


def test_an_update_of_an_unknown_pod_queues_it() -> None:
    waiting, _ = queue()
    waiting.update(pod("p"), pod("p"))

    assert names(waiting) == ["p"]


def test_an_update_of_a_pod_in_flight_queues_it_again() -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    waiting.update(pod("p"), pod("p", 5))

    again = popped(waiting)

    assert again.pod.priority == 5
    assert again.number == 2
    assert waiting.requeue(attempt, pod("p", tried=1)) is Pool.UNSCHEDULABLE


def test_a_failed_pod_that_is_queued_already_stays_as_it_is() -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    waiting.update(pod("p"), pod("p", 5))

    assert waiting.requeue(attempt, pod("p", tried=1)) is Pool.ACTIVE
    assert popped(waiting).pod.priority == 5


def test_newer_versions_keep_an_update_in_flight_until_the_attempt_fails() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    new = pod("p", labels={"a": "b"})
    waiting.update(pod("p"), new)

    assert waiting.pool_of(new) is None
    pool = waiting.requeue(attempt, new, rejected_by=["InterPodAffinity"])
    assert pool is Pool.BACKOFF


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable", "nowhere"])
def test_a_deleted_pod_is_gone_from_every_pool(place: str) -> None:
    waiting, _ = queue(QueueOptions(backoff=Backoff()))
    gone = pod("p")
    if place == "active":
        waiting.add(gone)
    elif place == "unschedulable":
        gone = parked(waiting, gone)
    elif place == "backoff":
        gone = parked(waiting, gone)
        waiting.move_all()
        assert waiting.pool_of(gone) is Pool.BACKOFF

    waiting.delete(gone)

    assert waiting.pool_of(gone) is None
    assert sum(waiting.counts().values()) == 0


# --- attempts and cycles ----------------------------------------------------------------------


def test_an_empty_queue_gives_no_pod() -> None:
    waiting, _ = queue()

    assert waiting.pop() is None
    assert waiting.scheduling_cycle == 0
    assert waiting.next_ready_at() is None


@cases(
    ("reason", "moved", "pool"),
    {
        "it waits for an event": ("Unschedulable", False, Pool.UNSCHEDULABLE),
        "something moved meanwhile": ("Unschedulable", True, Pool.ACTIVE),
        "its status names an error": ("SchedulerError", False, Pool.ACTIVE),
        "its status was not written yet": ("", False, Pool.ACTIVE),
    },
)
def test_where_a_failed_pod_goes(reason: str, moved: bool, pool: Pool) -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    if moved:
        waiting.move_all()
    failed = pod("p", tried=1, reason=reason) if reason else pod("p")

    assert waiting.requeue(attempt, failed) is pool


def test_a_move_before_the_attempt_does_not_count() -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    waiting.move_all()
    attempt = popped(waiting)

    assert waiting.move_request_cycle < attempt.cycle
    assert waiting.requeue(attempt, pod("p", tried=1)) is Pool.UNSCHEDULABLE


def test_a_move_counts_for_every_pod_in_flight() -> None:
    waiting, _ = queue()
    waiting.add(pod("a"))
    waiting.add(pod("b"))
    first, second = popped(waiting), popped(waiting)
    waiting.on_event(Added(NODE))

    assert waiting.requeue(first, pod("a", tried=1)) is Pool.ACTIVE
    assert waiting.requeue(second, pod("b", tried=1)) is Pool.ACTIVE


def test_a_late_failure_is_judged_by_the_cycle_in_which_it_happened() -> None:
    waiting, _ = queue()
    waiting.add(pod("a"))
    waiting.add(pod("b"))
    late = popped(waiting)
    waiting.move_all()
    popped(waiting)

    pool = waiting.requeue(late, pod("a", tried=1), cycle=waiting.scheduling_cycle)

    assert pool is Pool.UNSCHEDULABLE


def test_a_request_that_moves_nobody_still_counts() -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)

    assert waiting.on_event(Added(pod("other", node="n"))) == {}
    assert waiting.requeue(attempt, pod("p", tried=1)) is Pool.ACTIVE


def test_a_pod_bound_or_gone_is_done() -> None:
    waiting, _ = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    waiting.done(attempt)
    waiting.done(attempt)

    assert waiting.pop() is None
    assert sum(waiting.counts().values()) == 0


def test_without_a_newer_version_the_popped_one_goes_back() -> None:
    waiting, _ = queue()
    waiting.add(pod("p", tried=1))
    attempt = popped(waiting)
    waiting.requeue(attempt)
    waiting.move_all()

    assert popped(waiting).pod is attempt.pod


# --- waiting too long ---------------------------------------------------------------------------


def test_a_pod_that_waited_longer_than_a_minute_is_tried_again_at_the_next_look() -> None:
    waiting, clock = queue()
    parked(waiting, pod("p"))

    clock.now = START + 60
    assert waiting.counts()[Pool.UNSCHEDULABLE] == 1, "60 s is not longer than 60 s"
    clock.now = START + 89
    assert waiting.counts()[Pool.UNSCHEDULABLE] == 1, "it is looked at every 30 s"
    clock.now = START + 90
    assert names(waiting) == ["p"]


def test_a_time_that_is_ahead_does_not_park_a_pod_for_longer() -> None:
    """The wall clock was set forward, or back since another leader wrote the condition."""
    waiting, clock = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    assert waiting.requeue(attempt, pod("p", tried=3000)) is Pool.UNSCHEDULABLE

    clock.now = START + 90
    assert names(waiting) == ["p"]


def test_looks_that_nobody_asked_for_happened_at_their_own_time() -> None:
    waiting, clock = queue()
    clock.now = START + 10
    waiting.add(pod("p"))
    tried = popped(waiting)
    waiting.requeue(tried, pod("p", tried=31))

    clock.now = START + 100
    assert waiting.pop() is None, "at second 90 it had waited 59 s"
    clock.now = START + 120
    assert names(waiting) == ["p"]


def test_a_look_that_finds_nobody_is_no_move_request() -> None:
    waiting, clock = queue()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    clock.now += 100

    assert waiting.requeue(attempt, pod("p", tried=99)) is Pool.UNSCHEDULABLE
    assert waiting.move_request_cycle == -1


def test_pods_that_time_has_woken_are_not_woken_again() -> None:
    waiting, clock = queue()
    parked(waiting, pod("p"))
    clock.now += 100

    assert waiting.move_all() == 0
    assert names(waiting) == ["p"]


def test_a_pod_whose_status_was_not_renewed_is_late_again_at_once() -> None:
    waiting, clock = queue()
    tried = parked(waiting, pod("p"))
    clock.now = START + 90
    waiting.requeue(popped(waiting), tried)

    clock.now = START + 120
    assert names(waiting) == ["p"]


def test_a_pod_without_any_time_is_never_late() -> None:
    waiting, clock = queue()
    timeless = msgspec.convert({"metadata": {"name": "p"}}, Pod)
    waiting.add(timeless)
    attempt = popped(waiting)
    status = PodStatus(conditions=[PodCondition("PodScheduled", "False", "Unschedulable")])
    waiting.requeue(attempt, msgspec.structs.replace(timeless, status=status))
    clock.now += 10_000

    assert waiting.counts()[Pool.UNSCHEDULABLE] == 1


def test_newer_versions_wait_five_minutes_by_the_clock() -> None:
    waiting, clock = modern()
    waiting.add(pod("p", created=-9999))
    waiting.requeue(popped(waiting), rejected_by=["NodeName"])

    clock.now = START + 300
    assert waiting.counts()[Pool.UNSCHEDULABLE] == 1
    clock.now = START + 330
    assert names(waiting) == ["p"]


# --- backoff ------------------------------------------------------------------------------------


@cases(
    ("failures", "rest"),
    {
        "no failure, no rest": (0, 0),
        "one second at first": (1, 1),
        "then twice as long": (2, 2),
        "and again": (4, 8),
        "not longer than the maximum": (5, 10),
        "ever": (500, 10),
    },
)
def test_how_long_a_pod_rests(failures: int, rest: float) -> None:
    assert Backoff().duration(failures) == rest


def test_odd_backoffs() -> None:
    assert Backoff(0.3, 1.0).duration(2) == 0.6
    assert Backoff(0.3, 1.0).duration(3) == 1.0
    assert Backoff(5.0, 2.0).duration(1) == 2.0
    assert Backoff(0.0, 2.0).duration(9) == 0.0


def test_a_rest_ends_with_the_second_after_the_one_it_ends_in() -> None:
    waiting, clock = queue(QueueOptions(backoff=Backoff()))
    clock.now = START + 0.5
    parked(waiting, pod("p"))
    waiting.move_all()

    assert waiting.counts()[Pool.BACKOFF] == 1
    assert waiting.next_ready_at() == START + 2
    clock.now = START + 1.9
    assert waiting.pop() is None
    clock.now = START + 2
    assert names(waiting) == ["p"]


def test_a_pod_that_rested_while_it_waited_is_tried_at_once() -> None:
    waiting, clock = queue(QueueOptions(backoff=Backoff()))
    parked(waiting, pod("p"))
    clock.now += 2
    waiting.move_all()

    assert names(waiting) == ["p"]


def test_a_maximum_of_nothing_means_no_rest() -> None:
    waiting, _ = queue(QueueOptions(backoff=Backoff(1.0, 0.0)))
    parked(waiting, pod("p"))
    waiting.move_all()

    assert names(waiting) == ["p"]


def test_the_rest_grows_with_every_rejection() -> None:
    waiting, clock = queue(QueueOptions(backoff=Backoff()))
    waiting.add(pod("p"))
    rests = []
    for _ in range(5):
        waiting.requeue(popped(waiting), pod("p", tried=clock.now - START))
        waiting.move_all()
        ready = waiting.next_ready_at()
        assert ready is not None
        rests.append(ready - clock.now)
        clock.now = ready

    assert rests == [2, 3, 5, 9, 11]


def test_an_error_counts_errors_alone_and_a_rejection_forgets_them() -> None:
    waiting, clock = modern()
    waiting.add(pod("p"))
    rests = []
    for rejected in ([], [], ["NodeName"], []):
        waiting.requeue(popped(waiting), rejected_by=rejected)
        if rejected:
            waiting.move_all()
        ready = waiting._resting.next_ready_at()
        assert ready is not None
        rests.append(ready - clock.now)
        clock.now = ready

    assert rests == [2, 3, 2, 2]


def test_pods_whose_rest_ends_in_the_same_second_go_by_priority() -> None:
    waiting, clock = queue(QueueOptions(backoff=Backoff()))
    parked(waiting, pod("low", 1))
    clock.now += 0.4
    parked(waiting, pod("high", 2))
    waiting.move_all()
    clock.now = START + 5

    assert names(waiting) == ["high", "low"]


def test_a_resting_pod_that_changes_goes_on_resting() -> None:
    waiting, _ = queue(QueueOptions(backoff=Backoff()))
    old = parked(waiting, pod("p"))
    waiting.move_all()
    waiting.update(old, pod("p", labels={"a": "b"}))

    assert waiting.pool_of(old) is Pool.BACKOFF


def test_with_nothing_else_to_do_newer_versions_try_a_resting_pod_early() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    waiting.requeue(popped(waiting), rejected_by=["NodeName"])
    waiting.on_event(Added(NODE))
    assert waiting.counts()[Pool.BACKOFF] == 1

    assert waiting.next_ready_at() == START
    waiting.add(pod("q"))
    assert names(waiting) == ["q", "p"]


def test_a_pod_that_met_an_error_is_not_tried_early() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    waiting.requeue(popped(waiting))

    assert waiting.pop() is None
    assert waiting.next_ready_at() == START + 2


# --- gates --------------------------------------------------------------------------------------


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    waiting, _ = modern()
    gated = pod("p", gates=[{"name": "g"}], nominated="n")

    assert waiting.add(gated) is Pool.GATED
    assert waiting.nominated_on("n") == ()
    waiting.on_event(Added(NODE))
    assert waiting.counts() == {
        Pool.ACTIVE: 0,
        Pool.BACKOFF: 0,
        Pool.UNSCHEDULABLE: 0,
        Pool.GATED: 1,
    }
    free = pod("p", nominated="n")
    waiting.update(gated, free)
    assert names(waiting) == ["p"]
    assert waiting.nominated_on("n") == (free,)


def test_the_nomination_of_a_gated_pod_counts_where_the_queue_holds_entities() -> None:
    options = replace(OF_CONFIGURATIONS, nominates_gated=True)
    waiting = SchedulingQueue(Clock(), HintRules(lambda _: {}), options)
    gated = pod("p", gates=[{"name": "g"}], nominated="n")

    assert waiting.add(gated) is Pool.GATED
    assert waiting.nominated_on("n") == (gated,)


def test_a_gated_pod_that_is_looked_at_stays_gated() -> None:
    waiting, clock = modern()
    waiting.add(pod("p", gates=[{"name": "g"}]))
    clock.now += 1000

    assert waiting.counts()[Pool.GATED] == 1
    waiting.move_all()
    assert waiting.counts()[Pool.GATED] == 1


def test_a_gated_pod_replaces_an_active_one_of_the_same_name() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    waiting.add(pod("p", gates=[{"name": "g"}], uid="other"))

    assert waiting.pop() is None


# --- in flight ----------------------------------------------------------------------------------


def test_events_during_an_attempt_are_shown_to_the_pod_if_it_fails() -> None:
    waiting, _ = modern()
    for name in "abc":
        waiting.add(pod(name))
    first = popped(waiting)
    waiting.on_event(Added(NODE))
    second = popped(waiting)
    waiting.on_event(Updated(Service(), Service()))
    third = popped(waiting)

    assert waiting.requeue(first, rejected_by=["NodeName"]) is Pool.BACKOFF
    assert waiting.requeue(second, rejected_by=["NodeName"]) is Pool.UNSCHEDULABLE
    assert waiting.requeue(third, rejected_by=["NodeName"]) is Pool.UNSCHEDULABLE


def test_events_nobody_needs_any_more_are_forgotten() -> None:
    waiting, _ = modern()
    for name in "ab":
        waiting.add(pod(name))
    first, second = popped(waiting), popped(waiting)
    for _ in range(3):
        waiting.on_event(Added(NODE))
    waiting.done(second)
    assert len(waiting._in_flight._requests) == 3
    waiting.done(first)
    waiting.on_event(Added(NODE))

    assert waiting._in_flight._requests == []


def test_a_younger_attempt_sees_all_of_its_events_after_an_older_one_ended() -> None:
    waiting, _ = modern()
    for name in "ab":
        waiting.add(pod(name))
    first = popped(waiting)
    waiting.on_event(Added(StorageClass()))
    second = popped(waiting)
    waiting.on_event(Added(NODE))
    waiting.on_event(Added(StorageClass()))
    waiting.done(first)

    assert waiting.requeue(second, rejected_by=["NodeName"]) is Pool.BACKOFF


def test_a_plugin_that_only_asked_for_patience_skips_the_rest() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    attempt = popped(waiting)
    waiting.on_event(Added(NODE))

    assert waiting.requeue(attempt, pending_on=["NodeName"]) is Pool.ACTIVE


def test_newer_versions_never_try_a_pod_twice_at_a_time() -> None:
    waiting, _ = modern()
    waiting.add(pod("p"))
    popped(waiting)
    waiting.add(pod("p"))

    assert waiting.pop() is None


# --- nominations --------------------------------------------------------------------------------


def test_nominations_are_listed_per_node_in_order() -> None:
    waiting, _ = queue()
    first, second, elsewhere = pod("a"), pod("b"), pod("c")
    waiting.nominate(second, "n")
    waiting.nominate(first, "n")
    waiting.nominate(elsewhere, "m")

    assert waiting.nominated_on("n") == (second, first)
    assert waiting.nominated_nodes() == ("n", "m")
    assert waiting.nominated_node(elsewhere) == "m"
    waiting.nominate(second, "n")
    assert waiting.nominated_on("n") == (first, second), "a new nomination goes to the end"
    waiting.nominate(second, "m")
    assert waiting.nominated_on("n") == (first,), "a pod has one node at a time"
    waiting.clear_nomination(first)
    waiting.clear_nomination(first)
    assert waiting.nominated_nodes() == ("m",)


@pytest.mark.parametrize("step", ["add", "requeue", "update"])
def test_the_status_of_a_pod_tells_its_nomination(step: str) -> None:
    waiting, _ = queue()
    told = pod("p", tried=1, nominated="n")
    if step == "add":
        waiting.add(told)
    else:
        waiting.add(pod("p"))
        if step == "requeue":
            waiting.requeue(popped(waiting), told)
        else:
            waiting.update(pod("p"), told)

    assert waiting.nominated_on("n") == (told,)


def test_an_update_under_way_undoes_a_nomination() -> None:
    waiting, _ = queue()
    old = parked(waiting, pod("p"))
    waiting.nominate(old, "n")
    waiting.update(old, pod("p", tried=2))

    assert waiting.nominated_on("n") == ()


@cases(
    ("before", "after", "expected"),
    {
        "an update that does not know of it keeps it": ("", "", "memory"),
        "a written one replaces it": ("", "new", "new"),
        "one that was cleared is gone": ("old", "", ""),
    },
)
def test_newer_versions_keep_an_unwritten_nomination(
    before: str, after: str, expected: str
) -> None:
    waiting, _ = modern()
    old, new = pod("p", nominated=before), pod("p", nominated=after)
    waiting.add(old)
    waiting.nominate(old, "memory")
    waiting.update(old, new)

    assert waiting.nominated_node(new) == expected


def test_a_pod_made_anew_under_the_same_name_does_not_inherit_a_nomination() -> None:
    waiting, _ = queue()
    old, new = pod("p", uid="old"), pod("p", uid="new")
    waiting.add(old)
    waiting.nominate(old, "n")
    waiting.update(old, new)

    assert waiting.nominated_on("n") == ()


def test_a_deleted_pod_is_no_longer_nominated() -> None:
    waiting, _ = queue()
    gone = pod("p", nominated="n")
    waiting.add(gone)
    waiting.delete(gone)

    assert waiting.nominated_on("n") == ()


@cases(
    ("change", "priority", "expected"),
    {
        "the nominated pod was deleted": ("delete", 5, True),
        "its nomination ended": ("clear", 5, True),
        "it got its node": ("bound", 5, False),
        "it was deleted before that was written": ("delete unwritten", 5, True),
        "only pods of at most its priority are woken": ("delete", 4, False),
    },
)
def test_a_lost_nomination_wakes_pods_that_made_room_for_it(
    change: str, priority: int, *, expected: bool
) -> None:
    waiting, clock = modern()
    waiting.add(pod("w", 5))
    waiting.requeue(popped(waiting), rejected_by=["NodeResourcesFit"])
    clock.now += 60
    holder = pod("h", priority, nominated="" if change == "delete unwritten" else "n")
    waiting.nominate(holder, "n")
    if change == "clear":
        waiting.update(holder, pod("h", priority))
    else:
        waiting.delete(holder, bound=change == "bound")

    assert (waiting.pool_of(pod("w")) is Pool.ACTIVE) is expected


# --- size ---------------------------------------------------------------------------------------


def test_many_waiting_pods_do_not_slow_down_unrelated_events() -> None:
    waiting, _ = queue()
    count = 20_000
    for number in range(count):
        waiting.add(pod(f"p{number}", tried=1))
    for _ in range(count):
        waiting.requeue(popped(waiting))
    assert waiting.counts()[Pool.UNSCHEDULABLE] == count

    assert waiting._waiting.about(frozenset({"pod affinity"})) == []
    assert waiting.on_event(Added(pod("assigned", node="n"))) == {}
    assert waiting.on_event(Deleted(pod("assigned", node="n"))) == {"AssignedPodDelete": count}
