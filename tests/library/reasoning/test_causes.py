"""Every reason has its cause, and without the cause the reason is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

import builders
import builders_v1_36
from podium.engine.framework.causes import Cause
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import AttemptError, FilterRule, ScoreRule
from podium.engine.rows.rows import ManyRows, OneRow, as_int
from podium.engine.rules.pod_affinity import POD_AFFINITY
from podium.engine.rules.volumes.limits import MaxVolumeCount
from podium.engine.state.view import View
from podium.library.reasoning.causes import find_causes
from podium.library.reasoning.preemption_causes import STILL_REJECTED, find_preemption_causes
from podium.objects.kinds.pod import Pod
from random_clusters import PREDICATES, PRIORITIES, Cluster, Extremes, clusters
from random_clusters_v1_36 import FILTERS, SCORES, ClusterV136, clusters_v1_36, label
from remedies import ImpossibleError, without

Causes = dict[str, list[Cause]]

TAME = Extremes(huge=False)


def profile_v1_13(rule: FilterRule) -> Profile:
    return builders.profile(rule, preemption=False)


def profile_v1_36(rule: FilterRule) -> Profile:
    plain = builders.profile(rule, preemption=False)
    return replace(plain, pre_filters=(rule,), nominees_count_for_affinity=True)


def explained(columns: View, wanted: Pod, rules: Profile) -> tuple[Decision, Causes]:
    """A decision, and the causes on each node; asking every row gives the same."""
    decision, incoming = builders.decided(columns, wanted, rules), columns.pods.incoming(wanted)
    by_node: Causes = {}
    found = find_causes(columns, incoming, rules, decision)
    assert found == find_causes(columns, incoming, rules, decision, row_by_row=True)
    for each in found:
        for name in each.nodes:
            by_node.setdefault(name, []).append(each.cause)
    return decision, by_node


def check(rules: Profile, cluster: Cluster | ClusterV136, view: Callable[..., Any]) -> None:
    decision, by_node = explained(view(*cluster.objects()), cluster.wanted, rules)
    if decision.error:
        return
    for name, reasons in decision.failed().items():
        given = {cause.reason for cause in by_node.get(name, ())}
        named = set(reasons) - {POD_AFFINITY.text}
        assert given == named, (name, by_node.get(name))
        for reason in sorted(named):
            mine = [cause for cause in by_node[name] if cause.reason == reason]
            [rule] = rules.predicates
            if isinstance(rule, MaxVolumeCount) and not rule.node_limits:
                continue  # the limit is the operator's, whatever the node says
            try:
                items, wanted = without(mine, cluster.objects(), cluster.wanted, name)
            except ImpossibleError:
                continue
            after = builders.decided(view(*items), wanted, rules)
            if not after.error:
                assert reason not in after.failed().get(name, ()), (name, mine)


@pytest.mark.slow
@pytest.mark.parametrize("rule", PREDICATES, ids=lambda rule: rule.name)
@given(cluster=clusters(extremes=TAME, least_nodes=1, nominated=True))
@settings(max_examples=30)
def test_v1_13_names_the_cause_of_every_reason(rule: FilterRule, cluster: Cluster) -> None:
    check(profile_v1_13(rule), cluster, builders.view)


@pytest.mark.slow
@pytest.mark.parametrize("rule", FILTERS, ids=label)
@given(cluster=clusters_v1_36(extremes=TAME, least_nodes=1, nominated=True))
@settings(max_examples=30)
def test_v1_36_names_the_cause_of_every_reason(rule: FilterRule, cluster: ClusterV136) -> None:
    check(profile_v1_36(rule), cluster, builders_v1_36.view)


def check_victims(cluster: Cluster | ClusterV136, rules: Profile, view: Callable[..., Any]) -> None:
    columns = view(*cluster.objects())
    decision = builders.decided(columns, cluster.wanted, rules)
    if decision.error or decision.preemption is None:
        return
    candidates = decision.preemption.candidates
    incoming = columns.pods.incoming(cluster.wanted)
    found = find_preemption_causes(columns, incoming, rules, decision, list(candidates))
    if found is None:
        assert not decision.preemption.eligible
        return
    assert {each.node: {v.pod for v in each.victims} for each in found.candidates} == {
        name: set(victims.pods) for name, victims in candidates.items()
    }
    for each in found.candidates:
        budgets = sum(bool(victim.budgets) for victim in each.victims)
        assert budgets == candidates[each.node].violations
        assert all(victim.reasons for victim in each.victims)
    for group in found.no_candidates:
        assert not set(group.nodes) & set(candidates)
        assert bool(group.causes) == (group.why == STILL_REJECTED)


@pytest.mark.slow
@given(cluster=clusters(extremes=TAME, least_nodes=1, nominated=True))
@settings(max_examples=150)
def test_v1_13_replays_the_search_for_victims(cluster: Cluster) -> None:
    check_victims(cluster, builders.profile(), builders.view)


@pytest.mark.slow
@given(cluster=clusters_v1_36(extremes=TAME, least_nodes=1, nominated=True))
@settings(max_examples=150)
def test_v1_36_replays_the_search_for_victims(cluster: ClusterV136) -> None:
    check_victims(cluster, builders_v1_36.default_profile(), builders_v1_36.view)


#: Rules whose raw score is the sum of its numbers.
SUMS = {
    "NodeAffinityPriority",
    "NodeAffinity",
    "TaintTolerationPriority",
    "TaintToleration",
    "InterPodAffinityPriority",
    "InterPodAffinity",
}


def check_sums(rule: ScoreRule, wanted: Pod, columns: View) -> None:
    incoming = columns.pods.incoming(wanted)
    try:
        if rule.everywhere(incoming, columns) is not None or rule.pre_score(incoming, columns):
            return
        among = ManyRows(columns, columns.nodes.order)
        for row in columns.nodes.order.tolist():
            at = OneRow(columns, row)
            raw = as_int(rule.score(incoming, at))
            assert sum(each.value for each in rule.numbers(incoming, at, among)) == raw
    except AttemptError:
        return


@pytest.mark.slow
@given(cluster=clusters(extremes=TAME, least_nodes=1))
@settings(max_examples=80)
def test_v1_13_numbers_add_up_to_the_raw_score(cluster: Cluster) -> None:
    for rule in PRIORITIES:
        if rule.name in SUMS:
            check_sums(rule, cluster.wanted, builders.view(*cluster.objects()))


@pytest.mark.slow
@given(cluster=clusters_v1_36(extremes=TAME, least_nodes=1))
@settings(max_examples=80)
def test_v1_36_numbers_add_up_to_the_raw_score(cluster: ClusterV136) -> None:
    for rule in SCORES:
        if rule.name in SUMS:
            check_sums(rule, cluster.wanted, builders_v1_36.view(*cluster.objects()))
