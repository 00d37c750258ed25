"""DefaultPreemption: eligibility, victims, candidates, messages, and nominated nodes."""

from __future__ import annotations

from typing import Any

import pytest

from builders import budget, node, nodes, pod, selector, taint, term
from builders_v1_36 import (
    HOST,
    configured,
    current,
    decision,
    evicted,
    spec_with,
    spread,
    status_with,
    with_args,
)
from podium.engine.preemption.plugin import DefaultPreemption
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, PodCondition

FIRST = "no new claims to deallocate, "


def filling(name: str, where: str, **fields: Any) -> Pod:
    return pod(name, node=where, **{"requests": {"cpu": "1"}, **fields})


def wanting(**fields: Any) -> Pod:
    return pod("wanted", **{"requests": {"cpu": "1"}, "priority": 5, **fields})


def small(name: str, **fields: Any) -> Any:
    return node(name, **{"cpu": "1", "labels": {HOST: name}, **fields})


# Eligibility --------------------------------------------------------------------------------------


def test_a_pod_that_must_not_preempt() -> None:
    found = decision(wanting(preemption_policy="Never"), small("a"), filling("p", "a"))

    assert found.message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        f"{FIRST}preemption: not eligible due to preemptionPolicy=Never."
    )
    assert found.preemption is not None
    assert (found.preemption.eligible, found.preemption.nomination) == (False, None)


LEAVING = "not eligible due to a terminating pod on the nominated node."
GONE_WRONG = PodCondition("DisruptionTarget", "True", "EvictionByEvictionAPI")
NOT_YET = PodCondition("DisruptionTarget", "False", "PreemptionByScheduler")


@pytest.mark.parametrize(
    ("victim", "eligible"),
    [
        pytest.param(evicted(filling("p", "a")), False, id="its victim is still leaving"),
        pytest.param(filling("p", "a", terminating=True), True, id="leaving for other reasons"),
        pytest.param(
            status_with(filling("p", "a", terminating=True), conditions=[GONE_WRONG]),
            True,
            id="evicted through the eviction API",
        ),
        pytest.param(
            status_with(filling("p", "a", terminating=True), conditions=[NOT_YET]),
            True,
            id="a condition that is not true",
        ),
        pytest.param(
            status_with(filling("p", "a"), conditions=[evicted(pod()).status.conditions[0]]),  # type: ignore[index]
            True,
            id="not being deleted",
        ),
        pytest.param(evicted(filling("p", "a", priority=5)), True, id="not of lower priority"),
        pytest.param(evicted(filling("p", "b")), True, id="on another node"),
    ],
)
def test_a_pod_whose_node_is_being_freed(victim: Pod, eligible: bool) -> None:
    items = (small("a"), small("b"), filling("q", "a", priority=9), filling("r", "b"), victim)

    found = decision(wanting(nominated="a"), *items)

    assert found.preemption is not None
    assert found.preemption.eligible is eligible
    if not eligible:
        assert found.post_message == f"{FIRST}preemption: {LEAVING}"
        assert found.preemption.nomination is None


def test_a_nominated_node_that_no_eviction_helps_does_not_make_it_wait() -> None:
    items = (
        small("a", taints=[taint()]),
        small("b"),
        evicted(filling("p", "a")),
        filling("r", "b"),
    )

    found = decision(wanting(nominated="a"), *items)

    assert found.preemption is not None
    assert found.preemption.node == "b"


def test_priority_0_may_evict_what_is_below() -> None:
    found = decision(wanting(priority=None), small("a"), filling("p", "a", priority=-1))

    assert found.preemption is not None
    assert found.preemption.node == "a"


# Messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "items", "message"),
    [
        pytest.param(
            wanting(),
            [small("a"), filling("p", "a", priority=5), small("b", taints=[taint()])],
            "1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling",
            id="no lower pod, and a node that no eviction helps",
        ),
        pytest.param(
            wanting(),
            [
                small("a"),
                filling("p", "a", requests={"cpu": "500m"}, priority=9),
                filling("q", "a", requests={"cpu": "500m"}),
            ],
            "1 Insufficient cpu",
            id="not enough even without those below",
        ),
        pytest.param(
            wanting(requests={"cpu": "2"}),
            [small("a"), small("b")],
            "2 Preemption is not helpful for scheduling",
            id="nodes that are too small",
        ),
        pytest.param(
            wanting(labels={"app": "a"}, requests={}, anti=[term({"app": "a"}, HOST)]),
            [small("a"), filling("p", "a", labels={"app": "a"}, priority=9), filling("q", "a")],
            "1 node(s) didn't match pod anti-affinity rules",
            id="an affinity that those above break",
        ),
    ],
)
def test_what_is_said_when_nothing_helps(wanted: Pod, items: list[Object], message: str) -> None:
    found = decision(wanted, *items)

    count = found.nodes
    expected = f"{FIRST}preemption: 0/{count} nodes are available: {message}."
    assert found.post_message == expected
    assert found.message.endswith(f". {expected}")
    assert found.preemption is not None
    assert (found.preemption.node, found.preemption.nomination) == (None, "")


def test_success_says_nothing() -> None:
    found = decision(wanting(), small("a"), filling("p", "a"))

    assert found.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert (found.post_code, found.post_message) == ("Success", "")


def test_alone_its_words_stand_alone() -> None:
    [alone] = configured({"plugins": {"postFilter": {"disabled": [{"name": "DynamicResources"}]}}})

    found = decision(wanting(), small("a"), filling("p", "a", priority=5), profile=alone)

    assert found.post_message == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


# Victims ------------------------------------------------------------------------------------------


def started(made: Pod, minute: int) -> Pod:
    return status_with(made, start_time=f"2026-01-01T00:{minute:02}:00Z")


def half(name: str, where: str, minute: int = 0, **fields: Any) -> Pod:
    return started(filling(name, where, **{"requests": {"cpu": "500m"}, **fields}), minute)


@pytest.mark.parametrize(
    ("there", "wanted", "victims", "violations"),
    [
        pytest.param(
            [half("old", "a", 1), half("new", "a", 2)],
            wanting(requests={"cpu": "500m"}),
            ["new"],
            0,
            id="the pod that started earlier stays",
        ),
        pytest.param(
            [half("low", "a", 1, priority=1), half("high", "a", 2, priority=2)],
            wanting(requests={"cpu": "500m"}),
            ["low"],
            0,
            id="whose priority is higher stays",
        ),
        pytest.param(
            [half("told", "a", 2), filling("untold", "a", requests={"cpu": "500m"})],
            wanting(requests={"cpu": "500m"}),
            ["untold"],
            0,
            id="no start time counts as now",
        ),
        pytest.param(
            [half("new", "a", 2), half("old", "a", 1)],
            wanting(),
            ["old", "new"],
            0,
            id="victims are told most important first",
        ),
        pytest.param(
            [half("free", "a", 1), half("kept", "a", 2, labels={"app": "a"})],
            wanting(requests={"cpu": "500m"}),
            ["free"],
            0,
            id="a pod that a budget protects stays, also if it is younger",
        ),
        pytest.param(
            [
                half("kept1", "a", 1, labels={"app": "a"}),
                half("kept2", "a", 2, labels={"app": "a"}),
            ],
            wanting(requests={"cpu": "500m"}),
            ["kept2"],
            1,
            id="of two protected ones the less important goes",
        ),
        pytest.param(
            [
                half("spare", "a", 1, labels={"app": "b"}),
                half("kept", "a", 2, labels={"app": "b"}),
            ],
            wanting(),
            ["spare", "kept"],
            1,
            id="a budget of one is spent on the more important, and overdrawn by the other",
        ),
        pytest.param(
            [
                filling("free", "a", requests={"cpu": "500m"}),
                filling("kept", "a", requests={"cpu": "500m"}, labels={"app": "a"}),
            ],
            wanting(),
            ["free", "kept"],
            1,
            id="told once more, those without a start time change places again",
        ),
        pytest.param(
            [filling("p", "a", terminating=True)],
            wanting(),
            ["p"],
            0,
            id="pods that are leaving are victims too",
        ),
    ],
)
def test_victims(there: list[Pod], wanted: Pod, victims: list[str], violations: int) -> None:
    budgets = (budget("a", selector({"app": "a"})), budget("b", selector({"app": "b"}), allowed=1))

    found = decision(wanted, small("a"), *there, *budgets)

    assert found.preemption is not None
    chosen = found.preemption.candidates["a"]
    assert [name.partition("/")[2] for name in chosen.pods] == victims
    assert chosen.violations == violations


@pytest.mark.parametrize(
    ("there", "node_name", "criterion"),
    [
        pytest.param(
            [filling("p", "a", labels={"app": "a"}), filling("q", "b", priority=3)],
            "b",
            "fewest budget violations",
            id="budgets before priority",
        ),
        pytest.param(
            [filling("p", "a", priority=2), half("q", "b"), half("r", "b")],
            "b",
            "lowest highest priority",
            id="priority before number",
        ),
        pytest.param(
            [half("p", "a"), half("q", "a"), filling("r", "b")],
            "b",
            "lowest sum of priorities",
            id="fewer victims weigh less",
        ),
        pytest.param(
            [half("p", "a", 1), half("q", "a", 5), half("r", "b", 2), half("s", "b", 3)],
            "b",
            "latest start of the most important victims",
            id="the latest of the earliest starts",
        ),
        pytest.param([filling("p", "a"), filling("q", "b")], "a", "first in node order", id="any"),
    ],
)
def test_choosing_the_node(there: list[Pod], node_name: str, criterion: str) -> None:
    found = decision(wanting(), small("a"), small("b"), *there, budget("a", selector({"app": "a"})))

    assert found.preemption is not None
    assert (found.preemption.node, found.preemption.criterion) == (node_name, criterion)


def test_spread_sees_victims_only_through_its_counts() -> None:
    # The pod that is leaving is not counted, but subtracted: its node seems emptier than empty.
    wanted = spec_with(
        wanting(requests={}, labels={"app": "a"}),
        topology_spread_constraints=[spread(HOST, 1, selector({"app": "a"}))],
    )
    items = (
        small("a"),
        small("b"),
        filling("p", "a", labels={"app": "a"}, requests={}),
        filling("q", "b", labels={"app": "a"}, requests={}, priority=9),
    )

    found = decision(wanted, *items, filling("r", "b", labels={"app": "a"}, requests={}))

    assert found.node == "a"


# Candidates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "count"),
    [
        pytest.param({}, 100, id="a hundred of 120 unless told otherwise"),
        pytest.param(
            {"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 1}, 60, id="half"
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 7}, 7, id="seven"
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0}, 120, id="all"
        ),
    ],
)
def test_how_many_candidates_are_looked_for(args: dict[str, int], count: int) -> None:
    [profile] = configured({"pluginConfig": [with_args("DefaultPreemption", **args)]})
    made = nodes(120, cpu="1")

    found = decision(
        wanting(), *made, *(filling(f"p{n.name}", n.name) for n in made), profile=profile
    )

    assert found.preemption is not None
    assert len(found.preemption.candidates) == count
    assert len(found.preemption.potential) == 120


def test_the_defaults_are_those_of_the_arguments() -> None:
    rule = DefaultPreemption()

    assert (rule.percentage, rule.absolute) == (10, 100)


# Nominations --------------------------------------------------------------------------------------


def test_the_nominated_node_is_filtered_first_and_taken_without_the_others() -> None:
    found = decision(wanting(nominated="b"), node("a"), small("b"), node("c"))

    assert (found.node, found.nominated, found.feasible_count) == ("b", "b", 1)
    assert list(found.examined) == []


@pytest.mark.parametrize(
    "nominated",
    [
        pytest.param("nowhere", id="a node that does not exist"),
        pytest.param("b", id="a node that is full again"),
    ],
)
def test_a_nominated_node_that_does_not_fit_is_passed_over(nominated: str) -> None:
    found = decision(wanting(nominated=nominated), node("a"), small("b"), filling("p", "b"))

    assert (found.node, found.nominated) == ("a", None)


@pytest.mark.parametrize(
    ("priority", "node_name"),
    [
        pytest.param(4, None, id="a lower pod does not get the room"),
        pytest.param(5, None, id="nor does an equal one"),
        pytest.param(6, "a", id="a higher pod does"),
    ],
)
def test_room_of_a_nominated_pod(priority: int, node_name: str | None) -> None:
    nominated = pod("first", requests={"cpu": "1"}, priority=5, nominated="a")

    assert decision(wanting(priority=priority), small("a"), nominated).node == node_name


def test_success_moves_the_nomination() -> None:
    placed = decision(wanting(nominated="b"), small("a"), small("b"), filling("p", "b", priority=9))
    preempting = decision(
        wanting(nominated="b"),
        small("a"),
        small("b"),
        filling("p", "b", priority=9),
        filling("q", "a"),
    )

    assert placed.node == "a"
    assert preempting.preemption is not None
    assert preempting.preemption.nomination == "a"


def test_lower_nominations_on_the_node_are_cleared() -> None:
    lower = pod("lower", requests={"cpu": "1"}, priority=2, nominated="a")
    higher = pod("higher", requests={}, priority=7, nominated="a")

    found = decision(wanting(), small("a"), filling("p", "a"), lower, higher)

    assert found.preemption is not None
    assert [key for _, key in found.preemption.cleared] == ["default/lower"]


def test_after_eviction_the_pod_gets_its_node() -> None:
    made = current(small("a"), small("b", taints=[taint()]), filling("p", "a"))

    first, second = made.run([wanting()])

    assert (first.decision.node, second.decision.node) == (None, "a")
    assert second.decision.nominated == "a"
