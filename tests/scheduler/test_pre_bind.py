"""Permit and PreBind: what happens between a decision and the binding, and its undo."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import node
from podium.cluster.queue.entities import Pool
from podium.engine.framework.rule import Permission
from podium.objects.kinds.pod import Pod
from podium.profiles.user_rules.adapter import UserPermit, UserReservation, UserReserve
from podium.profiles.user_rules.loading import rules_in
from podium.rules import permit, reserve
from scheduler.fakes import cluster, refused, running, waiting

PATH = "/api/v1/namespaces/default/pods/a"


def reserving(**more: Any) -> UserReserve:
    @reserve("PickGpu", **more)
    def pick(pod: Any, node: Any) -> int:
        return 3

    return UserReserve(rules_in(pick)[0])


def permitting(*answers: Any) -> UserPermit:
    left = list(answers)

    @permit("Window")
    def window(pod: Any, node: Any) -> Any:
        return left.pop(0)

    return UserPermit(rules_in(window)[0])


def test_a_reservation_is_carried_out_before_the_pod_is_bound() -> None:
    calls: list[Any] = []
    rule = reserving(annotation="example.com/gpu", pre_bind=lambda *told: calls.append(told))
    made = cluster(reserves=(rule,))

    made.bind(reservations={"PickGpu": UserReservation(3, rule)})

    patch = {"metadata": {"uid": "a", "annotations": {"example.com/gpu": "3"}}}
    assert made.api.requests[:3] == [
        ("status", "default/a", {"nominatedNodeName": "n1"}),
        ("patch", PATH, patch),
        ("bind", "default/a", "a", "n1", 15.0),
    ]
    assert calls == [("default/a", "n1", 3)]
    assert made.placed() == {"default/a": "n1"}


@pytest.mark.parametrize("fault", ["the rule", "the API server"])
def test_a_reservation_that_fails_is_undone_and_told(fault: str) -> None:
    over: list[Any] = []

    def broken(*told: Any) -> None:
        raise ValueError("no such device")

    more: dict[str, Any] = {"undo": lambda *told: over.append(told)}
    if fault == "the rule":
        rule = reserving(pre_bind=broken, **more)
    else:
        rule = reserving(annotation="example.com/gpu", **more)
    made = cluster(reserves=(rule,))
    made.api.script("patch", refused(403, "forbidden"))

    made.bind(reservations={"PickGpu": UserReservation(3, rule)})

    assert made.api.named("bind") == []
    assert over == [("default/a", "n1", 3)]
    assert made.placed() == {}
    assert made.pool(waiting()) is Pool.BACKOFF
    [(_, _, error)] = made.reports.failures
    assert ("no such device" in error) or ("forbidden" in error)
    [(_, status), *_] = made.api.named("status")[-1:]
    [condition] = status["conditions"]
    assert "DefaultBinder" not in condition["message"]
    assert condition["message"] == error


@pytest.mark.parametrize(
    ("answers", "bound", "error"),
    [
        pytest.param([5, True], True, "", id="allowed at last"),
        pytest.param([5, "closed"], False, "rejected by Window: closed", id="rejected at last"),
        pytest.param([9] * 20, False, "timed out waiting for Window", id="time is up"),
    ],
)
def test_a_waiting_pod_is_asked_about_again(answers: list[Any], bound: bool, error: str) -> None:
    made = cluster(permits=(permitting(*answers),))
    waits = (("Window", Permission(allowed=False, reason="later", wait_seconds=5.0)),)

    made.bind(waits=waits)

    assert bool(made.placed()) is bound
    assert [error in told for _, _, told in made.reports.failures] == ([] if bound else [True])


def test_reservations_are_read_from_pods_that_are_placed_already() -> None:
    """Whoever makes a pod writes its annotations, also such as nobody can read."""
    rule = reserving(annotation="example.com/gpu")

    def placed(name: str, text: str) -> Pod:
        made = running(name)
        return replace(made, metadata=replace(made.metadata, annotations={"example.com/gpu": text}))

    made = cluster(placed("b", "1"), placed("c", "{"), placed("d", "[" * 5000), reserves=(rule,))

    assert made.state.cache.columns.pods.reservations == {
        "b": {"PickGpu": UserReservation(1, rule)}
    }


def test_a_pod_without_reservations_or_waits_is_bound_at_once() -> None:
    made = cluster(node("n2"), reserves=(reserving(annotation="example.com/gpu"),))

    made.bind()

    assert [request[0] for request in made.api.requests] == ["bind"]
