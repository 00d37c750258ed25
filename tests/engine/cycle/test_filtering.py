"""Predicates in order or all of them, and what is curable about their verdicts."""

from __future__ import annotations

from builders import (
    decided,
    gce,
    node,
    pod,
    profile,
    simulation,
    view,
)
from podium.engine.rules.resources.predicates import GeneralPredicates

DISK = ("node(s) had no available disk",)


def test_all_predicates_are_merged_when_asked_for() -> None:
    columns = view(
        node("a", cpu=0, unschedulable=True),
        node("b", cpu=0),
        pod("x", node="b", volumes=[gce("d")]),
    )
    wanted = pod(requests={"cpu": 1}, volumes=[gce("d")])

    short = decided(columns, wanted, profile())
    whole = decided(columns, wanted, profile(always_check_all=True))

    assert short.failed() == {"a": ["node(s) were unschedulable"], "b": ["Insufficient cpu"]}
    assert whole.failed() == {
        "a": ["node(s) were unschedulable", "Insufficient cpu"],
        "b": ["Insufficient cpu", *DISK],
    }
    assert whole.message == (
        "0/2 nodes are available: 1 node(s) had no available disk, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_one_incurable_reason_among_many_rules_preemption_out() -> None:
    low = pod("low", node="a", requests={"cpu": 1}, priority=0)
    columns = view(node("a", cpu=1, unschedulable=True), low)
    wanted = pod(requests={"cpu": 1}, priority=1)

    whole = decided(columns, wanted, profile(GeneralPredicates(), always_check_all=True))
    assert whole.preemption is not None
    assert whole.preemption.potential == ("a",)

    whole = decided(columns, wanted, profile(always_check_all=True))
    assert whole.preemption is not None
    assert whole.preemption.potential == ()


def test_a_placed_pod_is_there_for_the_next_one() -> None:
    made = simulation(node("n", cpu=1))

    steps = list(made.run([pod("a", requests={"cpu": 1}), pod("b", requests={"cpu": 1})]))

    assert [step.decision.node for step in steps] == ["n", None]
