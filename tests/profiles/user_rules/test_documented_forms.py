"""Rules as documents about kube-scheduler have them: several reasons, errors, reduce, metadata."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import builders as b
import podium
from podium.cluster.simulation import Simulation
from podium.errors import ConfigError
from podium.objects.kinds.pod import PodStatus
from podium.profiles.user_rules.adapter import PREDICATE
from podium.profiles.user_rules.loading import LoadedRules, rules_in
from podium.rules import (
    FailAttemptError,
    RuleFailure,
    predicate,
    priority,
    try_predicate,
    try_priority,
)

# Calls of functions are counted here.
pytestmark = pytest.mark.unverified

NODES = [b.node("n1", labels={"rack": "a"}), b.node("n2", labels={"rack": "b"}), b.node("n3")]


@predicate("Tidy", depends="node")
def tidy(_pod: Any, node: Any) -> list[str]:
    """Every label that is missing is a reason of its own."""
    return [f"node(s) had no label {key}" for key in ("rack", "row") if key not in node.labels]


@predicate("Strict")
def strict(_pod: Any, node: Any) -> bool:
    if node.name == "n2":
        raise FailAttemptError("the inventory does not answer")
    return True


@predicate("OnlyNode", depends="node")
def fails_and_is_kept(_pod: Any, _node: Any) -> bool:
    raise FailAttemptError("never kept")


@priority("Unsure")
def unsure(_pod: Any, _node: Any) -> int:
    raise FailAttemptError("no scores today")


def halve(_pod: Any, scores: dict[str, int]) -> dict[str, int]:
    most = max(scores.values())
    return {name: (most - score) // 2 for name, score in scores.items()}


@priority("Halved", reduce=halve)
def halved(_pod: Any, node: Any) -> int:
    return 4 if node.name == "n1" else 0


@priority("BadReduce", reduce=lambda _pod, _scores: {})
def bad_reduce(_pod: Any, _node: Any) -> int:
    return 1


CALLS: list[str] = []


def racks(pod: Any, nodes: list[Any]) -> dict[str, int]:
    CALLS.append(pod.name)
    found: dict[str, int] = {}
    for node in nodes:
        rack = node.labels.get("rack", "")
        found[rack] = found.get(rack, 0) + len(node.pods)
    return found


@predicate("EmptyRack", reason="node(s) were in a rack with pods", prepare=racks)
def empty_rack(pod: Any, node: Any) -> bool:
    return bool(pod.prepared[node.labels.get("rack", "")] == 0)


def options(*functions: Any) -> podium.Options:
    specs = [spec for function in functions for spec in rules_in(function)]
    return podium.Options(
        rules=LoadedRules(
            predicates={each.name: each for each in specs if each.kind == PREDICATE},
            priorities={each.name: each for each in specs if each.kind != PREDICATE},
        )
    )


def decided(*functions: Any, items: tuple[Any, ...] = (), generation: str = "v1.13") -> Any:
    made = podium.default_profile(generation, options(*functions))
    wanted = b.pod("p")
    return podium.explain(b.objects(*NODES, *items, wanted), wanted, made).decision


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_a_predicate_gives_several_reasons(generation: str) -> None:
    found = decided(tidy, generation=generation)

    assert found.failed() == {
        "n1": ["node(s) had no label row"],
        "n2": ["node(s) had no label row"],
        "n3": ["node(s) had no label rack", "node(s) had no label row"],
    }
    assert {each.cause.reason for each in found.causes} == {
        "node(s) had no label rack",
        "node(s) had no label row",
    }


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_an_error_of_a_predicate_fails_the_attempt(generation: str) -> None:
    found = decided(strict, generation=generation)

    assert "rule Strict: the inventory does not answer" in found.error
    assert found.node is None


def test_an_error_of_a_rule_whose_answers_are_kept_only_rejects() -> None:
    found = decided(fails_and_is_kept)

    assert not found.error
    assert set(found.reasons) == {"rule OnlyNode failed"}


def test_an_error_of_a_priority_fails_the_attempt() -> None:
    assert decided(unsure).error == "rule Unsure: no scores today"


def test_a_priority_brings_its_own_reduce_function() -> None:
    found = decided(halved)

    [column] = [each for each in found.scores if each.name == "Halved"]
    given = dict(zip(found.feasible, column.score.tolist(), strict=True))
    assert given == {"n1": 0, "n2": 2, "n3": 2}


def test_a_reduce_function_that_fails_gives_nothing() -> None:
    [column] = [each for each in decided(bad_reduce).scores if each.name == "BadReduce"]

    assert column.score.tolist() == [0, 0, 0]


def test_what_is_prepared_once_for_a_pod_is_given_to_every_node() -> None:
    CALLS.clear()

    found = decided(empty_rack, items=(b.pod("u", node="n1"),))

    assert found.failed() == {"n1": ["node(s) were in a rack with pods"]}
    # Once for the decision; the causes of one node are asked for afterwards.
    assert CALLS == ["p"]


def wanted_rack(pod: Any, _nodes: list[Any]) -> str:
    rack: str = pod.annotations["rack"]
    return rack


@predicate("InItsRack", prepare=wanted_rack)
def in_its_rack(pod: Any, node: Any) -> bool:
    return bool(pod.prepared == node.labels.get("rack"))


def test_a_pod_that_was_changed_is_prepared_again() -> None:
    """A nominated node is looked at before all others, in a cluster in which nothing changed."""
    made = Simulation(podium.default_profile("v1.36", options(in_its_rack)))
    made.load(b.objects(*NODES))
    pod = b.pod("p")
    meta = [replace(pod.metadata, annotations={"rack": rack}) for rack in "ab"]
    changed = replace(pod, metadata=meta[1], status=PodStatus(nominated_node_name="n2"))

    assert made.attempt(replace(pod, metadata=meta[0])).node == "n1"
    made.nominate(changed, "n2")
    found = made.attempt(changed)

    assert (found.node, found.nominated) == ("n2", "n2")


def test_prepare_needs_the_cluster_and_reduce_excludes_normalize() -> None:
    with pytest.raises(ConfigError, match="prepare sees the whole cluster"):
        predicate("X1", depends="node", prepare=racks)
    with pytest.raises(ConfigError, match="give normalize or reduce, not both"):
        priority("X1", normalize="max", reduce=halve)


def test_rules_in_these_forms_can_be_tried() -> None:
    pod: dict[str, Any] = {"metadata": {"name": "p"}}
    nodes = [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]

    assert try_predicate(tidy, pod, nodes)["n1"] == [
        "node(s) had no label rack",
        "node(s) had no label row",
    ]
    assert try_priority(halved, pod, nodes) == {"n1": 0, "n2": 2}
    assert rules_in(halved)


@priority("AboveMean", depends="node", columns=True)
def above_mean(_pod: Any, nodes: Any) -> Any:
    free = nodes.allocatable("cpu")
    return (free > free.mean()) * 1


@priority("BesideOthers", depends="node")
def beside_others(_pod: Any, node: Any) -> int:
    return len(node._at.view.nodes.order)


def test_a_rule_that_compares_nodes_must_say_so() -> None:
    nodes = [
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu}}}
        for name, cpu in (("small", "1"), ("large", "9"))
    ]

    with pytest.raises(RuleFailure, match="AboveMean answers otherwise for node large"):
        try_priority(above_mean, {"metadata": {"name": "p"}}, nodes)


def test_a_rule_that_reads_more_than_it_says_fails() -> None:
    with pytest.raises(RuleFailure, match=r"BesideOthers reads nodes.order"):
        try_priority(beside_others, {"metadata": {"name": "p"}}, [{"metadata": {"name": "n"}}])
