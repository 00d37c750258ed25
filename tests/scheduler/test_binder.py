"""From a decision to a bound pod: every answer of the API server, and the undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders import node
from podium.cluster.queue.entities import Pool
from podium.scheduler.placing.binder import PAUSES
from scheduler.fakes import LOST, VERSIONS, Cluster, as_read, cluster, refused, running, waiting

POD_PATH = "/api/v1/namespaces/default/pods/a"
#: How each version words a failed binding in its event, and the reason of its condition.
TEXTS = {
    "v1.13": ("Binding rejected: {error}", "BindingRejected", ""),
    "v1.37": (
        'running Bind plugin "DefaultBinder": {error}',
        "SchedulerError",
        'running Bind plugin "DefaultBinder": {error}',
    ),
}


def assert_bound(made: Cluster) -> None:
    assert made.placed() == {"default/a": "n1"}
    assert made.pool(waiting()) is None
    assert made.events.written == [
        ("default/a", "Scheduled", "Successfully assigned default/a to n1")
    ]
    assert [(pod, on) for pod, on, _ in made.reports.bound_pods] == [("default/a", "n1")]
    assert made.reports.failures == []
    assert made.api.named("status") == []


def assert_not_bound(made: Cluster, error: str, version: str = "v1.37") -> None:
    event, reason, message = (text.format(error=error) for text in TEXTS[version])
    assert made.placed() == {}
    assert made.pool(waiting()) is Pool.BACKOFF
    assert made.events.written == [("default/a", "FailedScheduling", event)]
    assert made.reports.failures == [("default/a", "n1", error)]
    assert made.reports.bound_pods == []
    [[name, status]] = made.api.named("status")
    [condition] = status["conditions"]
    assert name == "default/a"
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["reason"], condition["message"]) == (reason, message)


def assert_ended(made: Cluster, error: str, *, bound: bool) -> None:
    """The pod is bound, or the binding has failed with an error."""
    if bound:
        assert_bound(made)
    else:
        assert_not_bound(made, error)


def assert_settled_by_reading(made: Cluster, error: str, *, bound: bool) -> None:
    """The pod is read once, and counts as bound or not as the API server has it."""
    made.api.script("get", as_read("a", "a", "n1" * bound))

    made.bind()

    assert len(made.api.named("get")) == 1
    assert_ended(made, error, bound=bound)


def test_a_binding_names_the_uid_and_is_reported() -> None:
    made = cluster()

    made.bind()

    assert made.api.requests == [("bind", "default/a", "a", "n1", 15.0)]
    assert_bound(made)
    assert made.state.cache.is_assumed("a")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_a_refused_binding_is_undone_at_once(version: str, status: int) -> None:
    made = cluster(version=version)
    made.api.script("bind", refused(status, 'pods "a" is forbidden'))

    made.bind()

    assert len(made.api.named("bind")) == 1
    assert made.api.named("get") == []
    assert_not_bound(made, 'pods "a" is forbidden', version)


@pytest.mark.parametrize("status", [409, 500, 503])
@pytest.mark.parametrize(
    ("found", "bound"),
    [
        pytest.param(as_read("a", "a", "n1"), True, id="bound to this node"),
        pytest.param(as_read("a", "a"), False, id="not bound"),
        pytest.param(as_read("a", "a", "n2"), False, id="bound to another node"),
        pytest.param(as_read("a", "other", "n1"), False, id="another pod of that name"),
        pytest.param(refused(404), False, id="deleted"),
    ],
)
def test_after_an_ambiguous_answer_the_pod_is_read(status: int, found: Any, bound: bool) -> None:
    tries = 4 if status in {500, 503} and found == as_read("a", "a") else 1
    made = cluster()
    made.api.script("bind", *[refused(status, "something happened")] * tries)
    made.api.script("get", *[found] * tries)

    made.bind()

    assert len(made.api.named("bind")) == tries
    assert made.api.named("get") == [[POD_PATH]] * tries
    assert_ended(made, "something happened", bound=bound)


@pytest.mark.parametrize("status", [500, 503])
def test_a_binding_that_could_not_be_served_is_sent_again(status: int) -> None:
    """From v1.37 on: four tries, each pause five times the one before."""
    made = cluster()
    made.api.script("bind", refused(status), refused(status), refused(status))
    made.api.script("get", *[as_read("a", "a")] * 3)

    made.bind()

    assert len(made.api.named("bind")) == 4
    assert made.time.slept == [0.01, 0.05, 0.25]
    assert_bound(made)


def test_what_is_not_known_of_a_binding_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often the binding is sent again."""
    made = cluster()
    made.api.script("bind", refused(500), refused(500))
    made.api.script("get", *[refused(503), as_read("a", "a")] * 2)

    made.bind()

    assert caplog.text.count("it is not known whether it was bound to n1: no") == 1
    assert_bound(made)


def test_older_releases_give_up_a_binding_that_could_not_be_served() -> None:
    made = cluster(version="v1.36")
    made.api.script("bind", refused(500, "no"))
    made.api.script("get", as_read("a", "a"))

    made.bind()

    assert len(made.api.named("bind")) == 1
    assert_not_bound(made, "no")


def test_a_lost_answer_is_sent_again_after_a_pause() -> None:
    made = cluster()
    made.api.script("bind", LOST, LOST)

    made.bind()

    assert len(made.api.named("bind")) == 3
    assert made.time.slept == [PAUSES[0], PAUSES[1]]
    assert_bound(made)
    assert made.reports.bound_pods[0][2] == pytest.approx(0.7)


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_after_a_lost_answer_is_not_believed(status: int, bound: bool) -> None:
    """The request whose answer got lost may have been carried out."""
    made = cluster()
    made.api.script("bind", LOST, refused(status))
    assert_settled_by_reading(made, "no", bound=bound)


@pytest.mark.parametrize("bound", [True, False])
def test_when_all_answers_get_lost_the_pod_is_read_until_that_is_answered(
    bound: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made = cluster()
    made.api.script("bind", *[LOST] * len(PAUSES))
    made.api.script("get", LOST, refused(503), refused(429), as_read("a", "a", "n1" * bound))

    made.bind()

    asked = made.time.slept[len(PAUSES) :]
    assert all(half <= each <= 2 * half for each, half in zip(asked, (0.5, 1, 2), strict=True))
    told = (
        "pod default/a: it is not known whether it was bound to n1: the API server does not answer"
    )
    assert caplog.text.count(told) == 1
    assert_ended(made, "the API server does not answer", bound=bound)


@pytest.mark.parametrize(("retry_after", "pause"), [(7.0, 7.0), (None, PAUSES[0])])
def test_too_many_requests_are_sent_again_when_the_server_says(
    retry_after: float | None, pause: float
) -> None:
    made = cluster()
    made.api.script("bind", refused(429, retry_after=retry_after))

    made.bind()

    assert made.time.slept == [pause]
    assert_bound(made)


@pytest.mark.parametrize("bound", [True, False])
def test_an_exception_ends_as_bound_or_not_bound(
    bound: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made = cluster()
    made.api.script("bind", ZeroDivisionError("a bug"))
    made.api.script("get", as_read("a", "a", "n1" * bound))

    made.bind()

    assert "binding pod default/a to n1" in caplog.text
    assert_ended(made, "a bug", bound=bound)


@pytest.mark.parametrize("answer", [ZeroDivisionError("a bug"), {}], ids=["a bug", "no pod"])
def test_a_pod_stays_assumed_until_an_answer_shows_it(answer: Any) -> None:
    made = cluster()
    made.api.script("bind", refused(409))
    made.api.script("get", answer, as_read("a", "a", "n1"))

    made.bind()

    assert len(made.time.slept) == 1
    assert_bound(made)


def test_a_missing_right_does_not_mean_that_the_pod_is_not_bound() -> None:
    made = cluster()
    made.api.script("bind", refused(409))
    made.api.script("get", refused(403), refused(401), as_read("a", "a", "n1"))

    made.bind()

    assert_bound(made)


def test_questions_whether_a_pod_was_bound_become_rare() -> None:
    made = cluster()
    made.api.script("bind", refused(409))
    made.api.script("get", *[refused(500)] * 30, as_read("a", "a", "n1"))

    made.bind()

    assert_bound(made)
    assert 30 <= made.time.slept[-1] <= 60
    assert len(set(made.time.slept)) == 30, "with jitter"


def test_a_watch_that_shows_the_pod_ends_the_questions() -> None:
    made = cluster()
    made.api.script("bind", refused(409))
    made.api.script("get", *[refused(500)] * 30)
    sleep = made.time.sleep
    bound = running("a")
    metadata = msgspec.structs.replace(bound.metadata, resource_version="2")
    seen = msgspec.structs.replace(bound, metadata=metadata)

    async def seen_meanwhile(seconds: float) -> None:
        await sleep(seconds)
        made.put(seen)

    made.actions.binder._clocks = replace(made.actions.binder._clocks, sleep=seen_meanwhile)

    made.bind()

    assert len(made.api.named("get")) == 1
    assert made.placed() == {"default/a": "n1"}


def test_a_pause_of_hours_is_cut_short() -> None:
    made = cluster()
    made.api.script("bind", refused(429, retry_after=3600.0))

    made.bind()

    assert made.time.slept == [30.0]
    assert_bound(made)


def test_nothing_is_sent_for_a_node_that_was_deleted() -> None:
    made = cluster()
    turn, result = made.attempt(node="n1")
    made.drop(node("n1"))

    made.carry_out(turn, result)

    assert made.api.named("bind") == []
    assert_not_bound(made, 'node "n1" not found')


def test_nothing_is_sent_for_a_pod_that_was_deleted() -> None:
    made = cluster()
    turn, result = made.attempt(node="n1")
    made.drop(waiting())

    made.carry_out(turn, result)

    assert made.api.requests == []
    assert made.events.written == []
    assert made.placed() == {}
    assert made.pool(waiting()) is None
    [(_, _, error)] = made.reports.failures
    assert error == "the pod was deleted or placed meanwhile"


def test_the_undo_wakes_pods_that_the_resources_could_help() -> None:
    big, small = waiting("big", requests={"cpu": "9"}), node("n1", cpu="10")
    made = Cluster(small, waiting(requests={"cpu": "9"}), big)
    made.api.script("bind", refused(403))
    turn, result = made.attempt(node="n1")
    blocked = made.state.queue.pop()
    assert blocked is not None
    made.state.queue.requeue(blocked, rejected_by=["NodeResourcesFit"])
    assert made.pool(big) is Pool.UNSCHEDULABLE

    made.carry_out(turn, result)

    assert made.pool(big) in {Pool.ACTIVE, Pool.BACKOFF}


async def test_the_undo_waits_while_the_state_is_frozen() -> None:
    made = cluster()
    made.api.script("bind", refused(403))

    made.state.freeze()
    made.actions.binder.start(*made.attempt(node="n1"))
    await made.finish()
    assert made.placed() == {"default/a": "n1"}
    made.state.thaw()
    await made.finish()

    assert_not_bound(made, "no")


@pytest.mark.parametrize(
    ("answer", "bindings", "error"),
    [
        pytest.param("", 0, "", id="an extender has bound it"),
        pytest.param("no quota", 0, "no quota", id="an extender refuses"),
        pytest.param(None, 1, "", id="no extender binds it"),
        pytest.param(ValueError("broken"), 0, "broken", id="an extender cannot be asked"),
    ],
)
def test_extenders_bind_in_place_of_the_api_server(
    answer: str | Exception | None, bindings: int, error: str
) -> None:
    asked: list[tuple[str, str]] = []

    async def by_extender(_: object, pod: Any, on: str) -> str | None:
        asked.append((pod.key, on))
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = cluster(by_extender=by_extender)
    made.api.script("get", as_read("a", "a"))

    made.bind()

    assert asked == [("default/a", "n1")]
    assert len(made.api.named("bind")) == bindings
    assert_ended(made, error, bound=not error)


@pytest.mark.parametrize("bound", [True, False])
def test_after_an_extender_has_failed_the_pod_is_read(bound: bool) -> None:
    """Its answer may have got lost after it had bound the pod."""

    async def by_extender(*_: object) -> str:
        return 'Post "http://extender/bind": no answer within 5 s'

    made = cluster(by_extender=by_extender)
    made.api.script("get", as_read("a", "a", "n1" * bound))

    made.bind()

    assert made.api.named("bind") == []
    assert_ended(made, 'Post "http://extender/bind": no answer within 5 s', bound=bound)


@pytest.mark.parametrize("bound", [True, False])
def test_a_refusal_is_not_believed_after_an_ignorable_extender_has_failed(bound: bool) -> None:
    """The extender is passed over, and may have bound the pod before it failed."""

    async def by_extender(*_: object) -> None:
        return None

    made = cluster(by_extender=by_extender, ignorable=True)
    made.api.script("bind", refused(403, "forbidden"))
    assert_settled_by_reading(made, "forbidden", bound=bound)
