"""Enough feasible nodes: how many, where the search stops, and what lies beyond."""

from __future__ import annotations

from typing import Any

from builders import decided, node, nodes, pod, profile, simulation, view
from cases import cases
from podium.engine.cycle.searching import wanted_nodes
from podium.engine.cycle.ties import RoundRobin
from podium.engine.framework.rule import BitFilter, Scope
from podium.engine.rules.nodes import EqualPriority
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.state.verdicts import Reason

CPU = {"cpu": "1"}


@cases(
    ("count", "percentage", "wanted"),
    {
        "no nodes": (0, 50, 0),
        "below a hundred nodes all are looked at": (99, 50, 99),
        "a hundred is the least that is sampled": (100, 50, 100),
        "never fewer than a hundred": (150, 50, 100),
        "half of an odd number rounds down": (199, 50, 100),
        "half of two hundred": (200, 50, 100),
        "half of a little more": (202, 50, 101),
        "half of many": (250, 50, 125),
        "half of many, rounded down": (251, 50, 125),
        "one percent of many is a hundred at least": (5000, 1, 100),
        "one percent of very many": (20000, 1, 200),
        "nearly all": (5000, 99, 4950),
        "all": (5000, 100, 5000),
        "zero means all": (5000, 0, 5000),
        "so does anything above all": (5000, 101, 5000),
        "and anything below zero": (5000, -1, 5000),
    },
)
def test_how_many_feasible_nodes_are_enough(count: int, percentage: int, wanted: int) -> None:
    assert wanted_nodes(count, percentage) == wanted


class FailsOn(BitFilter):
    """Cannot judge some nodes."""

    name = "FailsOn"
    always = Scope.CLUSTER
    reasons = (Reason("never"),)

    def __init__(self, *names: str) -> None:
        self.names = names

    def bits(self, _: Any, at: Any) -> Any:
        for position, row in at.each():
            if row.name in self.names:
                at.errors[position] = f"cannot judge {row.name}"
        return at.full(0)


def test_the_search_stops_at_the_first_node_too_many() -> None:
    decision = decided(view(*nodes(150)), pod(), profile(percentage=50))

    assert decision.feasible_count == 100
    assert list(decision.feasible) == [f"n{number:03}" for number in range(100)]
    assert list(decision.examined) == list(decision.feasible)
    assert decision.consumed == 101


def test_full_nodes_are_passed_by_until_enough_are_found() -> None:
    ground = nodes(150)
    ground[:10] = nodes(10, cpu=0)

    decision = decided(view(*ground), pod(requests=CPU), profile(percentage=50))

    assert decision.feasible_count == 100
    assert len(decision.examined) == 110
    assert decision.consumed == 111
    assert set(decision.failed()) == {f"n{number:03}" for number in range(10)}


def test_the_node_too_many_may_lie_far_behind() -> None:
    # The hundredth feasible node ends nothing; the search goes on to the next feasible one.
    ground = [*nodes(100), *(node(f"z{n}", cpu=0) for n in range(30)), node("last")]

    decision = decided(view(*ground), pod(requests=CPU), profile(percentage=50))

    assert decision.feasible_count == 100
    assert len(decision.failed()) == 30
    assert decision.consumed == 131


def test_exactly_enough_nodes_means_all_were_looked_at() -> None:
    ground = [*nodes(100), *(node(f"z{n}", cpu=0) for n in range(30))]

    decision = decided(view(*ground), pod(requests=CPU), profile(percentage=50))

    assert decision.feasible_count == 100
    assert decision.consumed == 130


def test_reasons_beyond_the_stop_do_not_count() -> None:
    ground = nodes(150)
    ground[0], ground[120] = node("n000", cpu=0), node("n120", cpu=0)

    decision = decided(view(*ground), pod(requests=CPU), profile(percentage=50))

    assert decision.failed() == {"n000": ["Insufficient cpu"]}
    assert decision.reasons == {"Insufficient cpu": 1}


@cases(
    ("names", "error"),
    {
        "an error on the way fails the attempt": (["n000"], "cannot judge n000"),
        "the erring node is no feasible one, so the search goes one further": (
            ["n100", "n003"],
            "[cannot judge n003, cannot judge n100]",
        ),
        "an error beyond the stop was never seen": (["n102"], ""),
        "not even right behind it": (["n101"], ""),
    },
)
def test_errors_count_as_far_as_the_search_went(names: list[str], error: str) -> None:
    rules = profile(GeneralPredicates(), FailsOn(*names), percentage=50)

    decision = decided(view(*nodes(150)), pod(), rules)

    assert decision.error == error
    assert (decision.node is None) == bool(error)
    assert decision.preemption is None


def test_equal_errors_are_merged() -> None:
    class Always(FailsOn):
        def bits(self, _: Any, at: Any) -> Any:
            at.fail("out of order")
            return at.full(0)

    decision = decided(view(*nodes(3)), pod(), profile(Always()))

    assert decision.error == "out of order (repeated 3 times)"
    assert decision.message == "out of order (repeated 3 times)"


def test_the_next_pod_goes_on_where_the_search_stopped() -> None:
    made = simulation(*nodes(150), profile=profile(percentage=50, priorities=[EqualPriority()]))

    first = made.attempt(pod("a"), recording=True)
    second = made.attempt(pod("b"), recording=True)

    assert (first.examined[0], first.consumed) == ("n000", 101)
    # The 101st node was taken from the tree, and is not looked at again.
    assert second.examined[0] == "n101"
    assert second.examined[48:50] == ["n149", "n000"]
    assert second.consumed == 101
    assert made.attempt(pod("c"), recording=True).examined[0] == "n052"


def test_the_listed_order_starts_afresh_for_every_pod() -> None:
    made = simulation(*nodes(150), profile=profile(percentage=50), listed_order=True)

    starts = [made.attempt(pod(name), recording=True).examined[0] for name in "abc"]

    assert starts == ["n000"] * 3


def test_scores_are_compared_among_the_sample_only() -> None:
    # The best node of all is not among the first hundred.
    ground = [node(f"n{number:03}", cpu=2, memory="2Gi") for number in range(150)]
    ground[120] = node("n120")
    rules = profile(percentage=50, priorities=[EqualPriority()])

    decision = decided(view(*ground), pod(), rules, ties=RoundRobin(7))

    assert decision.tied == 100
    assert decision.node == "n007"


def test_a_row_named_twice_is_feasible_twice() -> None:
    columns = view(node("a"), node("b"), node("skipped"))

    decision = decided(columns, pod(), profile(), order=["a", "b", "a"], ties=RoundRobin(2))

    assert decision.feasible == ["a", "b", "a"]
    assert decision.tied == 3
    assert decision.node == "a"


def test_no_nodes_is_an_error_and_not_a_misfit() -> None:
    decision = decided(view(), pod(), profile())

    assert decision.error == "no nodes available to schedule pods"
    assert decision.preemption is None


def test_no_nodes_but_a_pod_on_an_unknown_one_is_the_same_error() -> None:
    decision = decided(view(pod("x", node="ghost")), pod(), profile())

    assert decision.error == "no nodes available to schedule pods"


def test_a_check_of_the_pod_itself_goes_before_everything() -> None:
    rules = profile(checks=[lambda wanted, _: f"{wanted.key} is not wanted"])

    decision = decided(view(), pod("q"), rules)

    assert decision.error == "default/q is not wanted"
