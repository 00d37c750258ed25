"""Sentences about decisions."""

from __future__ import annotations

import pytest

from builders import node, nodes, profile, simulation
from podium.engine.framework.decision import Decision, Preemption, Victims
from podium.engine.rules.resources.predicates import LeastRequestedPriority
from podium.render.decision import sentences
from podium.render.decision.analysis import node_report
from render.decision.decided import RULES, WANTED, choice


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


def test_columns_of_extenders_are_named_by_host_and_path() -> None:
    assert sentences.split_name("http://127.0.0.1:9876/gpus") == ["127.0.0.1:9876", "/gpus"]
    assert sentences.split_name("https://extender.example.com") == ["extender.example.com"]
