"""How many nodes are looked at, in which order, and where the next pod begins."""

from __future__ import annotations

from typing import Any

import pytest

from builders import expression, node, node_term, nodes, pod
from builders_v1_36 import ZONE, configured, current, default_profile
from podium.cluster.simulation import Simulation
from podium.engine.cycle.searching import wanted_nodes
from podium.engine.framework.decision import Decision
from podium.objects.kinds.node import Node


@pytest.mark.parametrize(
    ("count", "percentage", "expected"),
    [
        pytest.param(0, 0, 0, id="no nodes"),
        pytest.param(99, 1, 99, id="fewer than a hundred are all looked at"),
        pytest.param(100, 1, 100, id="a hundred is the least"),
        pytest.param(100, 0, 100, id="50 percent of a hundred is less than a hundred"),
        pytest.param(250, 0, 120, id="250 nodes: 50 - 2 percent"),
        pytest.param(1000, 0, 420, id="1000 nodes: 50 - 8 percent"),
        pytest.param(1124, 0, 472, id="the share shrinks in steps of 125 nodes"),
        pytest.param(1125, 0, 461, id="here is the next step"),
        pytest.param(5000, 0, 500, id="5000 nodes: 50 - 40 percent"),
        pytest.param(6000, 0, 300, id="never less than 5 percent"),
        pytest.param(10_000, 0, 500, id="5 percent of many"),
        pytest.param(1000, 30, 300, id="a given share"),
        pytest.param(1000, 3, 100, id="a given share of less than a hundred nodes"),
        pytest.param(999, 33, 329, id="a given share is rounded down"),
        pytest.param(1000, 100, 1000, id="all of them"),
    ],
)
def test_how_many_feasible_nodes_are_enough(count: int, percentage: int, expected: int) -> None:
    assert wanted_nodes(count, percentage, adaptive=True) == expected


def sampling(*made: Node, percentage: int = 0, **options: Any) -> Simulation:
    return current(
        *made,
        profile=default_profile(percentage_of_nodes_to_score=percentage),
        listed_order=False,
        **options,
    )


def looked_at(decision: Decision) -> tuple[str, str, int]:
    return decision.examined[0], decision.examined[-1], decision.feasible_count


def test_each_pod_takes_up_the_list_where_the_last_one_stopped() -> None:
    made = sampling(*nodes(150), percentage=1)

    found = [looked_at(made.attempt(pod(f"p{i}"), recording=True)) for i in range(4)]

    assert found == [
        ("n000", "n099", 100),
        ("n100", "n049", 100),
        ("n050", "n149", 100),
        ("n000", "n099", 100),
    ]


def test_nodes_that_fail_are_counted_but_the_feasible_one_too_many_is_not() -> None:
    # Every second node is cordoned: 200 are needed for 100 feasible ones, the 201st is met.
    plain = nodes(300)
    made = sampling(
        *(node(each.name, unschedulable=number % 2 == 1) for number, each in enumerate(plain)),
        percentage=1,
    )

    first = made.attempt(pod("p"), recording=True)
    second = made.attempt(pod("q"), recording=True)

    assert looked_at(first) == ("n000", "n199", 100)
    assert sum(first.histogram.values()) == 100
    assert second.examined[0] == "n200"


def test_a_search_that_finds_too_few_looks_at_every_node() -> None:
    cordoned = [node(each.name, unschedulable=True) for each in nodes(200)]
    made = sampling(*cordoned[:150], *nodes(200)[150:], percentage=1)

    found = made.attempt(pod("p"), recording=True)

    assert looked_at(found) == ("n000", "n199", 50)


def test_zones_take_turns_in_the_list() -> None:
    made = sampling(
        node("a1", labels={ZONE: "a"}),
        node("a2", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}),
        node("c1", labels={ZONE: "c"}),
        node("a3", labels={ZONE: "a"}),
    )

    found = made.attempt(pod("p"), recording=True)

    assert list(found.examined) == ["a1", "b1", "c1", "a2", "a3"]


def test_a_zone_that_changes_keeps_its_place_until_nodes_come_or_go() -> None:
    made = sampling(*(node(name, labels={ZONE: name[0]}) for name in ("a1", "a2", "b1")))
    made.attempt(pod("p"))

    made.cache.put_node(node("a1", labels={ZONE: "b"}))
    before = list(made.attempt(pod("q"), recording=True).examined)
    made.cache.put_node(node("c1", labels={ZONE: "c"}))
    after = list(made.attempt(pod("r"), recording=True).examined)

    assert before == ["a1", "b1", "a2"]
    assert after == ["a2", "b1", "c1", "a1"]


def test_a_node_that_went_and_came_back_is_the_node_that_is_looked_at() -> None:
    made = sampling(node("a"), node("b", cpu="1"))
    made.attempt(pod("p"))

    made.cache.drop_node(node("a"))
    made.cache.add_pod(pod("lost", node="nowhere"))
    made.cache.put_node(node("a"))
    found = made.attempt(pod("q", requests={"cpu": "10"}), recording=True)

    assert found.node == "a"
    assert list(found.examined) == ["a", "b"]


NAMED = [node_term(fields=[expression("metadata.name", "In", f"n{i:03}")]) for i in (7, 150, 20)]


def test_only_the_named_nodes_count_when_some_are_named() -> None:
    made = sampling(*nodes(200), percentage=1)

    found = made.attempt(pod("p", node_affinity=NAMED), recording=True)

    assert found.feasible_count == 3
    assert set(found.feasible) == {"n007", "n020", "n150"}


def test_named_nodes_are_sampled_too_when_there_are_many_of_them() -> None:
    many = [node_term(fields=[expression("metadata.name", "In", f"n{i:03}")]) for i in range(150)]
    made = sampling(*nodes(200), percentage=1)

    assert made.attempt(pod("p", node_affinity=many), recording=True).feasible_count == 100


def test_after_named_nodes_the_list_is_taken_up_as_many_nodes_further() -> None:
    made = sampling(*nodes(200), percentage=1)

    made.attempt(pod("p", node_affinity=NAMED))
    found = made.attempt(pod("q"), recording=True)

    assert found.examined[0] == "n003"


def test_a_promised_node_that_is_taken_moves_nothing() -> None:
    made = sampling(*nodes(200), percentage=1)

    taken = made.attempt(pod("p", nominated="n150"))
    found = made.attempt(pod("q"), recording=True)

    assert taken.node == "n150"
    assert found.examined[0] == "n000"


def test_without_scores_the_first_feasible_node_is_enough() -> None:
    [unscored] = configured({"plugins": {"score": {"disabled": [{"name": "*"}]}}})
    made = current(*nodes(3), profile=unscored, listed_order=False)

    placed = [step.decision.node for step in made.run(pod(f"p{i}") for i in range(4))]

    assert placed == ["n000", "n001", "n002", "n000"]
