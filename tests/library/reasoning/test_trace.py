"""The steps of a decision: the arithmetic evaluates to the scores, both passes, the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import builders as b
import builders_v1_36
import podium
from arithmetic import evaluate
from podium.cluster.simulation import Simulation
from podium.engine.framework.rule import AttemptError, ScoreRule
from podium.engine.pipelines.scoring import run_scores
from podium.engine.rows.rows import ManyRows
from podium.engine.rows.written import WrittenRow, text_of, written
from podium.engine.rules.pod_affinity import InterPodAffinityPriority
from podium.engine.rules.resources.predicates import LeastRequestedPriority
from podium.engine.state.view import View
from podium.library.reasoning.trace import find_trace
from podium.objects.kinds.pod import Pod
from random_clusters import PRIORITIES, Cluster, Extremes, clusters
from random_clusters_v1_36 import SCORES, ClusterV136, clusters_v1_36

TAME = Extremes(huge=False, broken=False)


def check_arithmetic(rule: ScoreRule, wanted: Pod, columns: View, feasible: np.ndarray) -> int:
    """Compare what a rule writes with what it gave; how many texts are more than a number."""
    incoming, found = columns.pods.incoming(wanted), list[Any]()
    among = ManyRows(columns, feasible)
    profile = b.profile(priorities=[rule])
    try:
        run_scores(incoming, among, profile.priorities, profile, columns=found)
    except AttemptError:
        return 0
    if not found or found[0].uniform:
        return 0
    [column] = found
    told = 0
    for position, row in enumerate(feasible.tolist()):
        at = WrittenRow(columns, row)
        own: Any = rule.score_among(incoming, at, among)
        assert int(own) == int(column.raw[position])
        assert evaluate(text_of(own)) == int(own), text_of(own)
        final: Any = rule.normalize_one(incoming, at, among, column.raw, written(int(own)))
        assert int(final) == int(column.score[position]), (rule.name, text_of(final))
        assert evaluate(text_of(final)) == int(final), text_of(final)
        told += not text_of(own).isdigit() or not text_of(final).isdigit()
    return told


@pytest.mark.slow
@given(cluster=clusters(extremes=TAME, least_nodes=1))
@settings(max_examples=120)
def test_the_arithmetic_of_every_priority_evaluates_to_its_score(cluster: Cluster) -> None:
    columns = b.view(*cluster.objects())
    order = columns.nodes.order
    for rule in PRIORITIES:
        for feasible in (order, order[::2]):
            check_arithmetic(rule, cluster.wanted, columns, feasible)


@pytest.mark.slow
@given(cluster=clusters_v1_36(extremes=TAME, least_nodes=1))
@settings(max_examples=120)
def test_the_arithmetic_of_every_plugin_evaluates_to_its_score(cluster: ClusterV136) -> None:
    columns = builders_v1_36.view(*cluster.objects())
    order = columns.nodes.order
    for rule in SCORES:
        for feasible in (order, order[::2]):
            check_arithmetic(rule, cluster.wanted, columns, feasible)


def traced(*items: Any, wanted: Pod, rules: Any, asked: str | None = None) -> Any:
    columns = b.view(*items)
    decision = b.decided(columns, wanted, rules)
    incoming = columns.pods.incoming(wanted)
    trace = find_trace(columns, incoming, rules, decision, list(decision.feasible), asked=asked)
    return trace, decision


def test_the_arithmetic_of_a_document_is_shown_with_its_numbers() -> None:
    """Sums of 5, 20 and -3: 10 × (5 − (−3)) ÷ (20 − (−3)) = 3."""
    labels = {"n5": 5, "n20": 20, "nm3": 3}
    nodes = [b.node(name, labels={"host": name}) for name in labels]
    pods = [b.pod(f"on-{name}", node=name, labels={"at": name}) for name in labels]
    wanted = b.pod(
        "p",
        prefers=[
            (5, b.term({"at": "n5"}, "host")),
            (20, b.term({"at": "n20"}, "host")),
        ],
        avoids=[(3, b.term({"at": "nm3"}, "host"))],
    )

    trace, _ = traced(
        *nodes, *pods, wanted=wanted, rules=b.profile(priorities=[InterPodAffinityPriority()])
    )

    [step] = trace.scores
    texts = {each.node: (each.map, each.reduce, each.score) for each in step.nodes}
    assert texts["n5"] == (
        "5 × 1 + 20 × 0 + (−3) × 0",
        "⌊10 × ((5 − (−3)) ÷ (20 − (−3)))⌋",
        3,
    )
    assert [each.total for each in trace.sums] == [3, 10, 0]


def test_each_rule_is_told_in_order_with_the_nodes_that_are_left() -> None:
    rules = b.profile(priorities=[LeastRequestedPriority()])
    items = [b.node("small", cpu="1"), b.node("tainted", taints=[b.taint("k")]), b.node("ok")]
    wanted = b.pod("p", requests={"cpu": "2"})

    trace, decision = traced(*items, wanted=wanted, rules=rules, asked="small")

    assert decision.node == "ok"
    assert [(step.rule, step.asked, step.rejected, step.left) for step in trace.filters] == [
        ("CheckNodeUnschedulable", 3, 0, 3),
        ("GeneralPredicates", 3, 1, 2),
        ("NoDiskConflict", 2, 0, 2),
        ("PodToleratesNodeTaints", 2, 1, 1),
        ("MatchInterPodAffinity", 1, 0, 1),
    ]
    assert [(each.rule, each.fits) for each in trace.answers] == [
        ("CheckNodeUnschedulable", True),
        ("GeneralPredicates", False),
        ("NoDiskConflict", None),
        ("PodToleratesNodeTaints", None),
        ("MatchInterPodAffinity", None),
    ]
    prepared = [(each.rule, each.resource, each.amount) for each in trace.prepared]
    assert prepared == [("PodFitsResources", "cpu", 2000)]


def test_all_rules_are_asked_if_the_profile_says_so() -> None:
    rules = b.profile(always_check_all=True)
    item = b.node("n", cpu="1", taints=[b.taint("k")])

    trace, _ = traced(item, wanted=b.pod("p", requests={"cpu": "2"}), rules=rules, asked="n")

    assert [each.fits for each in trace.answers] == [True, False, True, False, True]
    assert all(step.asked == 1 for step in trace.filters)


def passes(generation: str) -> Any:
    """A pod with affinity to a pod that is only nominated to the node."""
    rules = podium.default_profile(generation)
    near = b.pod("nom", labels={"app": "a"}, priority=10, nominated="n")
    simulation = Simulation(rules)
    simulation.load(b.objects(b.node("n", labels={"host": "n"}), near))
    wanted = b.pod("p", affinity=[b.term({"app": "a"}, "host")])
    decision = simulation.attempt(wanted, recording=True)
    columns = simulation.cache.columns
    return find_trace(columns, columns.pods.incoming(wanted), rules, decision, []).passes


def test_both_passes_are_told_side_by_side() -> None:
    """Affinity must hold without the nominated pod, too: that is what pass two is for."""
    [found] = passes("v1.36")

    assert [each.pod for each in found.nominated] == ["default/nom"]
    assert all(answer.fits for answer in found.first)
    assert [a.rule for a in found.second if a.fits is False] == ["InterPodAffinity"]


def test_in_v1_13_the_first_pass_ignores_the_nominated_pod_for_own_affinity() -> None:
    [found] = passes("v1.13")

    assert not found.own_affinity
    assert [a.rule for a in found.first if a.fits is False] == ["MatchInterPodAffinity"]
    assert found.second == ()


def test_preemption_is_a_walk_with_criteria() -> None:
    items: list[Any] = [b.node("a", cpu="2"), b.node("b", cpu="2")]
    items += [
        b.pod("a-low", node="a", priority=1, requests={"cpu": "1"}),
        b.pod("a-mid", node="a", priority=5, requests={"cpu": "1"}),
        b.pod("b-mid", node="b", priority=5, requests={"cpu": "2"}),
    ]
    wanted = b.pod("p", priority=10, requests={"cpu": "1"})

    trace, decision = traced(*items, wanted=wanted, rules=b.profile())

    assert decision.preemption is not None
    assert decision.preemption.node == "a"
    first = trace.evictions[0]
    assert (first.node, set(first.taken_off)) == ("a", {"default/a-low", "default/a-mid"})
    assert [(each.pod, each.stays) for each in first.put_back] == [
        ("default/a-mid", True),
        ("default/a-low", False),
    ]
    assert [(step.name, step.left) for step in trace.criteria] == [
        ("fewest budget violations", ("a", "b")),
        ("lowest highest priority", ("a",)),
    ]
    victims = {each.pod for each in first.put_back if not each.stays}
    assert victims == set(decision.preemption.candidates["a"].pods)


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_the_sums_of_whole_profiles_evaluate_to_the_totals(generation: str) -> None:
    rules = podium.default_profile(generation)

    @given(cluster=clusters(extremes=TAME, least_nodes=1))
    @settings(max_examples=60)
    def check(cluster: Cluster) -> None:
        simulation = Simulation(rules)
        simulation.load(b.objects(*cluster.objects()))
        decision = simulation.attempt(cluster.wanted, recording=True)
        columns = simulation.cache.columns
        incoming = columns.pods.incoming(cluster.wanted)
        trace = find_trace(columns, incoming, rules, decision, list(decision.feasible))
        totals = (
            {}
            if decision.totals is None
            else dict(zip(decision.feasible, decision.totals.tolist(), strict=True))
        )
        assert {each.node: evaluate(each.text) for each in trace.sums} == totals
        for step in trace.scores:
            for each in step.nodes:
                assert evaluate(each.map) == each.raw
                assert evaluate(each.reduce or each.map) == each.score
        walked = {walk.node: walk for walk in trace.evictions}
        preemption = decision.preemption
        for name, victims in (preemption.candidates if preemption else {}).items():
            if name in walked:
                gone = {each.pod for each in walked[name].put_back if not each.stays}
                assert gone == set(victims.pods)

    check()
