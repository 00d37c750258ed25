"""Facts that follow from a decision."""

from __future__ import annotations

from builders import node, nodes, simulation
from podium.render.decision.analysis import differing_columns, ranking, rejection_groups, score_gaps
from render.decision.decided import RULES, WANTED, choice


def test_the_chosen_node_comes_first_among_equals() -> None:
    decision = choice()
    decision.node = "big"

    assert [decision.feasible[at] for at in ranking(decision)] == ["big", "large", "small"]


def test_gaps_are_weighted_and_the_largest_comes_first() -> None:
    found = score_gaps(choice(), 1, 0)

    assert [(gap.priority, gap.points) for gap in found] == [
        ("LeastRequestedPriority", 9),
        ("MostRequestedPriority", -4),
    ]


def test_priorities_that_make_no_difference_are_told_apart() -> None:
    cluster = simulation(*nodes(2), profile=RULES)

    differing, same = differing_columns(cluster.attempt(WANTED, recording=True))

    assert (differing, [column.name for column in same]) == (
        [],
        ["LeastRequestedPriority", "MostRequestedPriority"],
    )


def test_groups_are_sorted_by_size() -> None:
    made = [node("full", cpu="0"), *nodes(2, unschedulable=True)]
    decision = simulation(*made, profile=RULES).attempt(WANTED, recording=True)

    assert [
        (group.predicate, group.count, group.nodes) for group in rejection_groups(decision)
    ] == [
        ("CheckNodeUnschedulable", 2, ("n000", "n001")),
        ("GeneralPredicates", 1, ("full",)),
    ]
