"""From scores to one node: ties, cursors, the single feasible node, and errors on the way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders import decided, expression, node, node_term, nodes, pod, profile, view
from podium.cluster.decider import ignore_step
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle, run
from podium.engine.cycle.ties import First, HeapRoot, RoundRobin, Seeded, ties
from podium.engine.framework.decision import fit_message
from podium.engine.framework.extenders import Extender
from podium.engine.rules.node_affinity import NodeAffinityPriority
from podium.engine.rules.nodes import EqualPriority, NodeLabelPriority


def unused(best: object) -> Sequence[int]:
    """Places that no rule but that of kube-scheduler asks for."""
    raise AssertionError


LIKED = NodeLabelPriority("liked", presence=True, name="liked")


def test_the_cursor_turns_among_the_best_and_carries_over() -> None:
    columns = view(*nodes(3))
    cursor = RoundRobin()

    chosen = [decided(columns, pod(), profile(), ties=cursor).node for _ in range(5)]

    assert chosen == ["n000", "n001", "n002", "n000", "n001"]
    assert cursor.cursor == 5


def test_the_cursor_counts_choices_not_positions() -> None:
    # After 4 choices among three, a choice among two takes index 4 mod 2.
    cursor = RoundRobin(4)

    assert decided(view(*nodes(2)), pod(), profile(), ties=cursor).node == "n000"


def test_one_feasible_node_is_taken_without_scoring_and_without_the_cursor() -> None:
    cursor = RoundRobin(1)
    wrong = NodeAffinityPriority()
    broken = pod(prefers_nodes=[(1, node_term(expression("x", "Near", "y")))], requests={"cpu": 1})

    decision = decided(
        view(node("a"), node("b", cpu=0)), broken, profile(priorities=[wrong]), ties=cursor
    )

    assert decision.node == "a"
    assert decision.totals is None
    assert decision.error == ""
    assert cursor.cursor == 1


def test_a_failed_attempt_does_not_move_the_cursor() -> None:
    cursor = RoundRobin(1)

    decided(view(node("a", cpu=0)), pod(requests={"cpu": 1}), profile(), ties=cursor)

    assert cursor.cursor == 1


def test_the_counter_wraps_at_64_bits() -> None:
    cursor = RoundRobin((1 << 64) - 1)

    assert cursor.choose([0, 1], unused) == 1
    assert cursor.cursor == 0


def test_weights_multiply_scores() -> None:
    columns = view(node("a", labels={"liked": ""}), node("b", labels={"known": ""}))
    known = NodeLabelPriority("known", presence=True, name="known")

    decision = decided(columns, pod(), profile(priorities=[(LIKED, 2), (known, 3)]))

    assert decision.totals is not None
    assert decision.totals.tolist() == [20, 30]
    assert decision.node == "b"
    assert [(column.name, column.weight) for column in decision.scores] == [
        ("known", 3),
        ("liked", 2),
    ]


@pytest.mark.parametrize(
    ("priorities", "extenders", "total"),
    [
        pytest.param([], [], 1, id="no priorities: every node gets 1"),
        pytest.param([EqualPriority()], [], 1, id="EqualPriority gives 1"),
        pytest.param([], [Extender("http://x")], 0, id="with an extender the base is 0"),
    ],
)
def test_totals_without_opinions(
    priorities: list[EqualPriority], extenders: list[Extender], total: int
) -> None:
    rules = profile(priorities=priorities, extenders=extenders)

    decision = decided(view(*nodes(2)), pod(), rules)

    assert decision.totals is not None
    assert decision.totals.tolist() == [total, total]


def test_an_error_of_a_priority_fails_the_attempt_once_per_node() -> None:
    wanted = pod(prefers_nodes=[(1, node_term(expression("x", "Near", "y")))])

    decision = decided(view(*nodes(2)), wanted, profile(priorities=[NodeAffinityPriority()]))

    text = '"Near" is not a valid node selector operator'
    assert decision.error == f"[{text}, {text}]"
    assert decision.node is None
    assert decision.preemption is None


def test_a_preference_of_weight_zero_is_not_even_compiled() -> None:
    wanted = pod(prefers_nodes=[(0, node_term(expression("x", "Near", "y")))])

    decision = decided(view(*nodes(2)), wanted, profile(priorities=[NodeAffinityPriority()]))

    assert decision.node == "n000"


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("round-robin", RoundRobin),
        ("first", First),
        ("random:7", Seeded),
        ("kube-scheduler", HeapRoot),
    ],
)
def test_ties_by_name(rule: str, kind: type) -> None:
    assert isinstance(ties(rule), kind)


def test_random_ties_are_the_same_for_the_same_seed() -> None:
    one, other = ties("random:42"), ties("random:42")

    drawn = [one.choose(range(5), unused) for _ in range(20)]
    assert drawn == [other.choose(range(5), unused) for _ in range(20)]


@pytest.mark.parametrize("rule", ["round-robin", "first", "kube-scheduler", "random:7"])
def test_a_skipped_choice_leaves_the_rule_as_a_choice_does(rule: str) -> None:
    one, other = ties(rule), ties(rule)
    one.choose(range(5), None)

    other.skip(5)

    assert one.position() == other.position()


def test_an_unknown_tie_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="known: kube-scheduler, first, round-robin, random:SEED"):
        ties("coin")


def test_the_first_rule_takes_the_first() -> None:
    assert [First().choose(range(3), unused) for _ in range(3)] == [0, 0, 0]


def test_nothing_is_recorded_unless_asked() -> None:
    columns = view(*nodes(2))
    attempt = Attempt(
        columns.pods.incoming(pod()), profile(), columns.nodes.order, RoundRobin(), ignore_step
    )

    decision = run(cycle(columns, attempt))

    assert decision.node == "n000"
    assert (decision.examined, decision.feasible, decision.best) == ((), (), ())
    assert decision.feasible_count == 2


# The sentence -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "reasons", "sentence"),
    [
        pytest.param(3, {}, "0/3 nodes are available: .", id="no reasons, still a colon"),
        pytest.param(
            12,
            {"Insufficient cpu": 2, "x": 10},
            "0/12 nodes are available: 10 x, 2 Insufficient cpu.",
            id="parts are sorted as text, numbers too",
        ),
    ],
)
def test_the_fit_sentence(count: int, reasons: dict[str, int], sentence: str) -> None:
    assert fit_message(count, reasons) == sentence  # type: ignore[arg-type]


def test_a_node_may_add_several_reasons() -> None:
    columns = view(node("a", cpu=0, memory=0, pods=0), node("b", cpu=0))

    decision = decided(columns, pod(requests={"cpu": 1, "memory": 1}), profile())

    assert decision.message == (
        "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient pods, 2 Insufficient cpu."
    )
