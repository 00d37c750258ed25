"""Extenders take part in a decision: what they are asked, and what their answers do.

The cycle yields a question and is sent the reply; here the replies come from a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import container, decided, node, nodes, pod, profile, view
from podium.cluster.decider import ignore_step
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle
from podium.engine.cycle.cycle import run as run_through
from podium.engine.cycle.ties import RoundRobin
from podium.engine.framework.decision import Decision
from podium.engine.framework.extenders import (
    AskFilter,
    AskScores,
    Extender,
    Failure,
    Filtered,
    Scored,
    Together,
    interested,
)
from podium.engine.rules.nodes import EqualPriority, NodeLabelPriority
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.objects.kinds.pod import Pod

GPU = "example.com/gpu"
CPU = {"cpu": 1}
Reply = Filtered | Scored | Failure


def filters(name: str, **options: Any) -> Extender:
    return Extender(f"http://{name}", filter_verb="filter", **options)


def scores(name: str, weight: int = 1, **options: Any) -> Extender:
    return Extender(f"http://{name}", prioritize_verb="prioritize", weight=weight, **options)


class World:
    """Answers for extenders, and remembers what they were asked."""

    def __init__(self, **replies: Reply | Callable[[Any], Reply]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, str, tuple[str, ...]]] = []

    def __call__(self, question: AskFilter | AskScores | Together) -> Any:
        if isinstance(question, Together):
            return tuple(map(self, question.questions))
        name = question.extender.url_prefix.removeprefix("http://")
        verb = "filter" if isinstance(question, AskFilter) else "scores"
        self.asked.append((name, verb, question.nodes))
        reply = self.replies[name]
        return reply(question) if callable(reply) else reply


def run(world: World, *extenders: Extender, wanted: Pod | None = None, **options: Any) -> Decision:
    """Decide about three nodes, all alike unless told otherwise."""
    ground = options.pop("ground", [node("a"), node("b"), node("c")])
    rules = profile(GeneralPredicates(), extenders=extenders, **options)
    return decided(view(*ground), wanted or pod(), rules, answer=world)


# Filter -------------------------------------------------------------------------------------------


def test_filters_are_asked_in_turn_about_what_is_left() -> None:
    world = World(one=Filtered(("b", "c")), two=Filtered(("c",)))

    decision = run(world, filters("one"), filters("two"))

    assert world.asked == [("one", "filter", ("a", "b", "c")), ("two", "filter", ("b", "c"))]
    assert decision.node == "c"
    assert decision.feasible_count == 1


def test_only_nodes_that_passed_the_predicates_are_shown() -> None:
    world = World(one=lambda question: Filtered(question.nodes))

    run(world, filters("one"), wanted=pod(requests=CPU), ground=[node("a", cpu=0), node("b")])

    assert world.asked == [("one", "filter", ("b",))]


def test_no_feasible_node_no_question() -> None:
    world = World()

    decision = run(world, filters("one"), wanted=pod(requests=CPU), ground=[node("a", cpu=0)])

    assert world.asked == []
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_after_the_last_node_is_gone_nobody_else_is_asked() -> None:
    world = World(one=Filtered(()), two=Filtered(()))

    decision = run(world, filters("one"), filters("two"), scores("three"))

    assert [name for name, _, _ in world.asked] == ["one"]
    assert decision.node is None


def test_the_reply_gives_the_order_of_feasible_nodes() -> None:
    decision = run(World(one=Filtered(("c", "a"))), filters("one"), priorities=[EqualPriority()])

    assert decision.feasible == ["c", "a"]
    assert decision.node == "c"


def test_messages_for_dropped_nodes_are_shown_as_they_are() -> None:
    ground = [node("a"), node("b"), node("c", cpu=0)]
    world = World(one=Filtered((), {"a": "too blue", "b": "too blue", "c": "not asked about"}))

    decision = run(world, filters("one"), wanted=pod(requests=CPU), ground=ground)

    assert decision.failed() == {
        "a": ["too blue"],
        "b": ["too blue"],
        "c": ["Insufficient cpu", "not asked about"],
    }
    assert decision.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 not asked about, 2 too blue."
    )


def test_a_node_dropped_without_a_message_adds_nothing_to_the_sentence() -> None:
    decision = run(World(one=Filtered((), {"a": "no"})), filters("one"))

    assert decision.message == "0/3 nodes are available: 1 no."
    assert decision.failed() == {"a": ["no"]}


def test_messages_of_several_extenders_add_up() -> None:
    world = World(
        one=Filtered(("b",), {"a": "first"}), two=Filtered((), {"a": "too", "b": "second"})
    )

    decision = run(world, filters("one"), filters("two"))

    assert decision.failed() == {"a": ["first", "too"], "b": ["second"]}


@pytest.mark.parametrize(
    ("ignorable", "node_name", "error"),
    [
        pytest.param(True, "a", "", id="an ignorable failure changes nothing"),
        pytest.param(False, None, "connection refused", id="any other fails the attempt"),
    ],
)
def test_failing_filters(ignorable: bool, node_name: str | None, error: str) -> None:
    world = World(one=Failure("connection refused"))

    decision = run(world, filters("one", ignorable=ignorable))

    assert (decision.node, decision.error) == (node_name, error)
    assert decision.preemption is None


def test_an_extender_without_a_filter_is_not_asked_to() -> None:
    world = World()

    decision = run(world, Extender("http://one", bind_verb="bind"))

    assert world.asked == []
    assert decision.node == "a"


# Who is interested --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("managed", "wanted", "asked"),
    [
        pytest.param((), pod(), True, id="without managed resources every pod"),
        pytest.param((GPU,), pod(), False, id="a pod that names none of them"),
        pytest.param((GPU,), pod(requests={GPU: 1}), True, id="one that requests it"),
        pytest.param((GPU,), pod(requests={GPU: 0}), True, id="even nothing of it"),
        pytest.param((GPU,), pod(limits={GPU: 1}), True, id="one that limits it"),
        pytest.param((GPU,), pod(init=[container({GPU: 1})]), True, id="in an init container"),
        pytest.param((GPU, "x"), pod(requests={"x": 1}), True, id="any of several"),
        pytest.param((GPU,), pod(requests={"y": 1}), False, id="another resource"),
    ],
)
def test_interest(managed: tuple[str, ...], wanted: Pod, asked: bool) -> None:
    extender = filters("one", managed_resources=frozenset(managed))

    assert interested(extender, view().pods.incoming(wanted)) == asked


def test_who_is_not_interested_is_not_asked() -> None:
    managed = frozenset({GPU})
    world = World()

    decision = run(
        world, filters("one", managed_resources=managed), scores("two", managed_resources=managed)
    )

    assert world.asked == []
    assert decision.node == "a"


# Scores -------------------------------------------------------------------------------------------


def totals(decision: Decision) -> list[int]:
    assert decision.totals is not None
    return [int(total) for total in decision.totals]


def test_scores_are_weighted_and_added() -> None:
    world = World(
        one=Scored((("a", 1), ("b", 5))),
        two=Scored((("b", -1), ("c", 2))),
    )

    decision = run(world, scores("one", 2), scores("two", 3), priorities=[(EqualPriority(), 4)])

    assert totals(decision) == [4 + 2, 4 + 10 - 3, 4 + 6]
    assert decision.node == "b"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param((), [0, 0, 0], id="omitted nodes get nothing"),
        pytest.param((("x", 9), ("a", 1)), [1, 0, 0], id="unknown nodes are ignored"),
        pytest.param((("a", 1), ("a", 2)), [3, 0, 0], id="named twice, added twice"),
        pytest.param((("a", 1000), ("b", -1000)), [1000, -1000, 0], id="scores are not clamped"),
    ],
)
def test_odd_scores(given: tuple[tuple[str, int], ...], expected: list[int]) -> None:
    assert totals(run(World(one=Scored(given)), scores("one"))) == expected


@pytest.mark.parametrize("ignorable", [True, False])
def test_failing_scores_are_always_ignored(ignorable: bool) -> None:
    world = World(one=Failure("timeout"), two=Scored((("c", 1),)))

    decision = run(world, scores("one", ignorable=ignorable), scores("two"))

    assert (decision.node, decision.error) == ("c", "")


def test_one_feasible_node_is_not_scored() -> None:
    world = World(one=Filtered(("b",)))

    decision = run(world, filters("one"), scores("two"))

    assert [verb for _, verb, _ in world.asked] == ["filter"]
    assert decision.node == "b"


def test_scores_are_asked_for_what_the_filters_left() -> None:
    world = World(one=Filtered(("c", "b")), two=Scored(()))

    run(world, filters("one"), scores("two"))

    assert world.asked[-1] == ("two", "scores", ("c", "b"))


def test_built_in_scores_of_a_node_go_with_its_name() -> None:
    # The extender turns the order around; label and score must not part.
    liked = NodeLabelPriority("liked", presence=True, name="liked")
    ground = [node("a", labels={"liked": ""}), node("b"), node("c")]
    world = World(one=Filtered(("c", "b", "a")), two=Scored((("c", 3),)))

    decision = run(world, filters("one"), scores("two"), priorities=[liked], ground=ground)

    assert totals(decision) == [3, 0, 10]
    assert decision.node == "a"


def test_ties_count_after_extenders() -> None:
    world = World(one=Scored((("a", 1), ("c", 1))))
    rules = profile(extenders=[scores("one")])
    columns = view(node("a"), node("b"), node("c"))

    decision = decided(columns, pod(), rules, ties=RoundRobin(1), answer=world)

    assert decision.best == ["a", "c"]
    assert decision.node == "c"


# Together with the rest of the cycle --------------------------------------------------------------


def test_filters_see_only_the_sample() -> None:
    world = World(one=lambda question: Filtered(question.nodes[:2]))
    rules = profile(extenders=[filters("one")], percentage=50)

    decision = decided(view(*nodes(150)), pod(), rules, answer=world)

    [(_, _, asked)] = world.asked
    assert len(asked) == 100
    assert decision.consumed == 101


def test_a_node_that_only_an_extender_turned_down_costs_no_victims() -> None:
    world = World(one=Filtered((), {"a": "no"}))

    decision = run(world, filters("one"), wanted=pod(priority=1))

    assert decision.preemption is not None
    assert decision.preemption.potential == ("a", "b", "c")
    assert all(not victims.pods for victims in decision.preemption.candidates.values())
    assert decision.preemption.node == "a"
    assert decision.preemption.criterion == "no victims"


def test_preemption_simulates_predicates_only() -> None:
    low = pod("low", node="a", priority=1, requests=CPU)
    world = World(one=Filtered((), {"b": "no"}))

    decision = run(
        world,
        filters("one"),
        wanted=pod(priority=9, requests=CPU),
        ground=[node("a", cpu=1), node("b", cpu=1), low],
    )

    assert len(world.asked) == 1
    assert decision.preemption is not None
    assert {name: v.pods for name, v in decision.preemption.candidates.items()} == {
        "a": ("default/low",),
        "b": (),
    }
    assert decision.preemption.node == "b"


def test_nodes_beyond_the_sample_are_candidates_when_extenders_drop_it() -> None:
    # Nothing was said against nodes that nobody looked at.
    world = World(one=Filtered(()))
    rules = profile(extenders=[filters("one")], percentage=50)
    columns = view(*nodes(150))

    decision = decided(columns, pod(priority=1), rules, answer=world)

    assert decision.message == "0/150 nodes are available: ."
    assert decision.preemption is not None
    assert decision.preemption.potential == tuple(f"n{number:03}" for number in range(150))


def test_without_anybody_to_answer_a_question_is_a_bug() -> None:
    columns = view(node("a"))
    rules = profile(extenders=[filters("one")])
    attempt = Attempt(
        columns.pods.incoming(pod()), rules, columns.nodes.order, RoundRobin(), ignore_step
    )

    with pytest.raises(RuntimeError, match="needs an answer"):
        run_through(cycle(columns, attempt))
