"""Sentences about decisions, and the facts they are made of."""

from __future__ import annotations

import pytest

from builders import node, nodes, pod, profile, simulation
from podium.engine.framework.decision import Decision, Preemption, Victims
from podium.engine.rules.resources.v1_13 import LeastRequestedPriority, MostRequestedPriority
from podium.render.decision import sentences
from podium.render.decision.analysis import differing_columns, ranking, rejection_groups, score_gaps
from podium.render.decision.explanation import node_report
from podium.render.decision.tables import common_domain
from podium.render.plain import counted, printable
from podium.render.quantities import format_amount

RULES = profile(priorities=[(LeastRequestedPriority(), 3), (MostRequestedPriority(), 1)])
WANTED = pod(requests={"cpu": "1", "memory": "1Gi"})


def choice() -> Decision:
    """Two equals and a smaller one."""
    sizes = {"small": "2", "large": "8", "big": "8"}
    made = [node(name, cpu=cpu, memory=f"{cpu}Gi") for name, cpu in sizes.items()]
    return simulation(*made, node("no", unschedulable=True), profile=RULES).attempt(
        WANTED, recording=True
    )


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


@pytest.mark.parametrize(
    ("ties", "sentence"),
    [
        ("round-robin", "round robin takes the 2nd of them (the counter is at 3)"),
        ("first", "the first of them in node order is taken"),
        ("random:7", "one of them is chosen at random with seed 7"),
    ],
)
def test_how_a_tie_is_broken(ties: str, sentence: str) -> None:
    decision = choice()
    decision.cursor = 3

    assert sentences.reason_for_choice(decision, ties) == (
        f"2 of the 3 nodes that fit share the best total, 25; {sentence}"
    )


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "it is the only node"), (3, "of 3 nodes, only this one fits")],
)
def test_a_choice_of_one(count: int, sentence: str) -> None:
    made = [node("yes"), *nodes(count - 1, unschedulable=True)]

    decision = simulation(*made, profile=RULES).attempt(WANTED, recording=True)

    assert sentences.reason_for_choice(decision, "round-robin") == sentence


def test_without_recording_there_is_still_a_sentence() -> None:
    decision = simulation(node("a"), node("b", cpu="2"), profile=RULES).attempt(WANTED)

    assert (
        sentences.reason_for_choice(decision, "first") == "2 nodes fit, and it has the best total"
    )


def test_sampling_is_mentioned() -> None:
    rules = profile(priorities=[LeastRequestedPriority()], percentage=10)
    decision = simulation(*nodes(1100), profile=rules).attempt(WANTED, recording=True)

    assert sentences.unexamined_nodes(decision) == (
        "110 nodes that fit were enough; 990 nodes were not examined"
    )
    [sentence] = sentences.node_sentences(decision, node_report(decision, "n999"))
    assert sentence == "it was not examined: enough nodes that fit were found before it"


@pytest.mark.parametrize(
    ("actual", "sentence"),
    [
        ("large", "it runs on large, and would go there again"),
        ("small", "it runs on small, but would go to large now"),
    ],
)
def test_decided_against_actual(actual: str, sentence: str) -> None:
    assert sentences.compare_with_actual(choice(), actual) == sentence


def test_a_running_pod_that_would_fit_nowhere() -> None:
    decision = simulation(*nodes(1, cpu="0"), profile=RULES).attempt(WANTED)

    assert sentences.compare_with_actual(decision, "n") == (
        "it runs on n, but would not be placed there, or anywhere, now"
    )


def unschedulable(preemption: Preemption | None) -> Decision:
    decision = Decision("default/p", "u", "test", nodes=1)
    decision.preemption = preemption
    return decision


@pytest.mark.parametrize(
    ("preemption", "never", "sentence"),
    [
        (None, False, "preemption is off"),
        (Preemption(eligible=False), True, "the pod has preemptionPolicy: Never"),
        (Preemption(eligible=False), False, "the pod waits for pods that are terminating"),
        (Preemption(eligible=True), False, "no node was rejected for a reason that evicting"),
        (
            Preemption(eligible=True, potential=("a", "b")),
            False,
            "evicting pods of lower priority was tried on 2 nodes and helps on none",
        ),
    ],
)
def test_why_evicting_pods_does_not_help(
    preemption: Preemption | None, never: bool, sentence: str
) -> None:
    assert sentences.why_no_preemption(unschedulable(preemption), never=never).startswith(sentence)


def test_a_candidate_costs_what_is_compared() -> None:
    victims = Victims(("d/a", "d/b"), ("a", "b"), (7, 5), violations=1)

    assert sentences.eviction_cost(victims) == (1, 7, 12, 2)
    assert sentences.eviction_cost(Victims((), (), ())) == (0, 0, 0, 0)


def test_a_criterion_without_words_is_shown_as_it_is() -> None:
    assert (
        sentences.criterion_text(Preemption(eligible=True, criterion="latest start"))
        == "latest start"
    )


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("LeastRequestedPriority", ["Least", "Requested"]),
        ("BalancedResourceAllocation", ["Balanced", "Resource", "Allocation"]),
        ("MyCPUPriority", ["My", "CPU"]),
        ("Priority", ["Priority"]),
        ("rack-spread", ["rack", "spread"]),
        ("---", ["---"]),
    ],
)
def test_names_are_split_into_words(name: str, parts: list[str]) -> None:
    assert sentences.split_name(name) == parts


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st")],
)
def test_ordinals(number: int, text: str) -> None:
    assert sentences.ordinal(number) == text


def test_lists_are_cut() -> None:
    assert sentences.listed(["a", "b"], 2) == "a, b"
    assert sentences.listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\x1b[2Jb\\u202ec\n"


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (["a.eu.compute.internal", "b.eu.compute.internal"], ".eu.compute.internal"),
        (["xa.eu.compute.internal", "ya.eu.compute.internal"], ".eu.compute.internal"),
        (["a.x", "b.x"], ""),
        (["one.eu.compute.internal"], ""),
        (["a", "b"], ""),
        ([], ""),
    ],
)
def test_what_all_names_end_in(names: list[str], ending: str) -> None:
    assert common_domain(names) == ending


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 0, "0"),
        ("memory", 512 << 20, "512Mi"),
        ("memory", 1536 << 20, "1.5Gi"),
        ("memory", -(1 << 30), "-1Gi"),
        ("ephemeral-storage", 1000, "1000"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 4096, "4096"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_short(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
