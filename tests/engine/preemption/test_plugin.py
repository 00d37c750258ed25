"""DefaultPreemption: eligibility, victims, candidates, messages, and nominated nodes."""

from __future__ import annotations

from typing import Any

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
from cases import cases
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


@cases(
    ("victim", "eligible"),
    {
        "its victim is still leaving": (evicted(filling("p", "a")), False),
        "leaving for other reasons": (filling("p", "a", terminating=True), True),
        "evicted through the eviction API": (
            status_with(filling("p", "a", terminating=True), conditions=[GONE_WRONG]),
            True,
        ),
        "a condition that is not true": (
            status_with(filling("p", "a", terminating=True), conditions=[NOT_YET]),
            True,
        ),
        "not being deleted": (
            status_with(filling("p", "a"), conditions=[evicted(pod()).status.conditions[0]]),  # type: ignore[index]
            True,
        ),
        "not of lower priority": (evicted(filling("p", "a", priority=5)), True),
        "on another node": (evicted(filling("p", "b")), True),
    },
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


@cases(
    ("wanted", "items", "message"),
    {
        "no lower pod, and a node that no eviction helps": (
            wanting(),
            [small("a"), filling("p", "a", priority=5), small("b", taints=[taint()])],
            (
                "1 No preemption victims found for incoming pod, "
                "1 Preemption is not helpful for scheduling"
            ),
        ),
        "not enough even without those below": (
            wanting(),
            [
                small("a"),
                filling("p", "a", requests={"cpu": "500m"}, priority=9),
                filling("q", "a", requests={"cpu": "500m"}),
            ],
            "1 Insufficient cpu",
        ),
        "nodes that are too small": (
            wanting(requests={"cpu": "2"}),
            [small("a"), small("b")],
            "2 Preemption is not helpful for scheduling",
        ),
        "an affinity that those above break": (
            wanting(labels={"app": "a"}, requests={}, anti=[term({"app": "a"}, HOST)]),
            [small("a"), filling("p", "a", labels={"app": "a"}, priority=9), filling("q", "a")],
            "1 node(s) didn't match pod anti-affinity rules",
        ),
    },
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


@cases(
    ("there", "wanted", "victims", "violations"),
    {
        "the pod that started earlier stays": (
            [half("old", "a", 1), half("new", "a", 2)],
            wanting(requests={"cpu": "500m"}),
            ["new"],
            0,
        ),
        "whose priority is higher stays": (
            [half("low", "a", 1, priority=1), half("high", "a", 2, priority=2)],
            wanting(requests={"cpu": "500m"}),
            ["low"],
            0,
        ),
        "no start time counts as now": (
            [half("told", "a", 2), filling("untold", "a", requests={"cpu": "500m"})],
            wanting(requests={"cpu": "500m"}),
            ["untold"],
            0,
        ),
        "victims are told most important first": (
            [half("new", "a", 2), half("old", "a", 1)],
            wanting(),
            ["old", "new"],
            0,
        ),
        "a pod that a budget protects stays, also if it is younger": (
            [half("free", "a", 1), half("kept", "a", 2, labels={"app": "a"})],
            wanting(requests={"cpu": "500m"}),
            ["free"],
            0,
        ),
        "of two protected ones the less important goes": (
            [
                half("kept1", "a", 1, labels={"app": "a"}),
                half("kept2", "a", 2, labels={"app": "a"}),
            ],
            wanting(requests={"cpu": "500m"}),
            ["kept2"],
            1,
        ),
        "a budget of one is spent on the more important, and overdrawn by the other": (
            [
                half("spare", "a", 1, labels={"app": "b"}),
                half("kept", "a", 2, labels={"app": "b"}),
            ],
            wanting(),
            ["spare", "kept"],
            1,
        ),
        "told once more, those without a start time change places again": (
            [
                filling("free", "a", requests={"cpu": "500m"}),
                filling("kept", "a", requests={"cpu": "500m"}, labels={"app": "a"}),
            ],
            wanting(),
            ["free", "kept"],
            1,
        ),
        "pods that are leaving are victims too": (
            [filling("p", "a", terminating=True)],
            wanting(),
            ["p"],
            0,
        ),
    },
)
def test_victims(there: list[Pod], wanted: Pod, victims: list[str], violations: int) -> None:
    budgets = (budget("a", selector({"app": "a"})), budget("b", selector({"app": "b"}), allowed=1))

    found = decision(wanted, small("a"), *there, *budgets)

    assert found.preemption is not None
    chosen = found.preemption.candidates["a"]
    assert [name.partition("/")[2] for name in chosen.pods] == victims
    assert chosen.violations == violations


@cases(
    ("there", "node_name", "criterion"),
    {
        "budgets before priority": (
            [filling("p", "a", labels={"app": "a"}), filling("q", "b", priority=3)],
            "b",
            "fewest budget violations",
        ),
        "priority before number": (
            [filling("p", "a", priority=2), half("q", "b"), half("r", "b")],
            "b",
            "lowest highest priority",
        ),
        "fewer victims weigh less": (
            [half("p", "a"), half("q", "a"), filling("r", "b")],
            "b",
            "lowest sum of priorities",
        ),
        "the latest of the earliest starts": (
            [half("p", "a", 1), half("q", "a", 5), half("r", "b", 2), half("s", "b", 3)],
            "b",
            "latest start of the most important victims",
        ),
        "any": ([filling("p", "a"), filling("q", "b")], "a", "first in node order"),
    },
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


@cases(
    ("args", "count"),
    {
        "a hundred of 120 unless told otherwise": ({}, 100),
        "half": ({"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 1}, 60),
        "seven": ({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 7}, 7),
        "all": ({"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 0}, 120),
    },
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


@cases(
    "nominated",
    {
        "a node that does not exist": "nowhere",
        "a node that is full again": "b",
    },
)
def test_a_nominated_node_that_does_not_fit_is_passed_over(nominated: str) -> None:
    found = decision(wanting(nominated=nominated), node("a"), small("b"), filling("p", "b"))

    assert (found.node, found.nominated) == ("a", None)


@cases(
    ("priority", "node_name"),
    {
        "a lower pod does not get the room": (4, None),
        "nor does an equal one": (5, None),
        "a higher pod does": (6, "a"),
    },
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
