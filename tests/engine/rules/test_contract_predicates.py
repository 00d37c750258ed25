"""The contract that every v1.13 rule fulfils.

A rule is written once and read in three ways: over many rows as arrays, over one row as plain
numbers, and over one row with pods added and taken away. The three must agree, and none of them
may change the view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from builders import Said, node, pod, view
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import AttemptError, FilterRule, Scope, ScoreRule
from podium.engine.rows.rows import ManyRows, OneRow
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rules.pod_affinity import (
    MatchInterPodAffinity,
    compiled_terms,
    metadata_unavailable,
)
from podium.engine.rules.resources.predicates import GeneralPredicates, PodFitsResources
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.engine.state.pod_class import Incoming, Resident
from podium.engine.state.view import View
from random_clusters import PREDICATES, PRIORITIES, STORAGE, Cluster, Extremes, clusters
from view_snapshot import snapshot

TAME = Extremes(huge=False)


def label(rule: FilterRule | ScoreRule) -> str:
    return f"{type(rule).__name__}({rule.name})"


# Reading answers ----------------------------------------------------------------------------------


def many(rule: FilterRule, wanted: Incoming, columns: View, rows: np.ndarray) -> list[Said]:
    """What a predicate says of these rows, asked at once."""
    at = ManyRows(columns, rows)
    codes = rule.filter(wanted, at)
    assert isinstance(codes, np.ndarray), label(rule)
    assert codes.shape == rows.shape, label(rule)
    assert np.issubdtype(codes.dtype, np.integer), label(rule)
    return [
        at.errors.get(position, columns.verdicts[code].reasons)
        for position, code in enumerate(codes.tolist())
    ]


def one(rule: FilterRule, wanted: Incoming, at: OneRow) -> Said:
    """What a predicate says of one row."""
    at.errors.clear()
    code = rule.filter(wanted, at)
    assert isinstance(code, int), label(rule)
    return at.errors.get(0, at.view.verdicts[code].reasons)


def raw_many(
    rule: ScoreRule, wanted: Incoming, columns: View, rows: np.ndarray
) -> list[int] | AttemptError:
    try:
        raw = rule.score(wanted, ManyRows(columns, rows))
    except AttemptError as error:
        return error
    assert isinstance(raw, np.ndarray), label(rule)
    assert raw.shape == rows.shape, label(rule)
    assert np.issubdtype(raw.dtype, np.integer), label(rule)
    return [int(number) for number in raw]


def raw_one(rule: ScoreRule, wanted: Incoming, at: OneRow) -> int | AttemptError:
    try:
        raw = rule.score(wanted, at)
    except AttemptError as error:
        return error
    assert isinstance(raw, int), label(rule)
    return raw


# Many rows and one row ----------------------------------------------------------------------------


@given(cluster=clusters(), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_predicates_say_the_same_of_many_rows_and_of_one(cluster: Cluster, shuffle: Any) -> None:
    columns = view(*cluster.objects())
    wanted = columns.pods.incoming(cluster.wanted)
    before = snapshot(columns)
    rows = columns.nodes.order.tolist() * 2
    shuffle.shuffle(rows)
    order = np.array(rows[: len(rows) * 3 // 4], np.int64)

    for rule in PREDICATES:
        note(label(rule))
        together = many(rule, wanted, columns, order)
        assert together == [one(rule, wanted, OneRow(columns, row)) for row in order.tolist()]
        if rule.scope(wanted.cls) is Scope.NONE:
            assert set(together) <= {()}

    assert snapshot(columns) == before


@given(cluster=clusters(), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_priorities_give_the_same_to_many_rows_and_to_one(cluster: Cluster, shuffle: Any) -> None:
    columns = view(*cluster.objects())
    wanted = columns.pods.incoming(cluster.wanted)
    before = snapshot(columns)
    rows = columns.nodes.order.tolist() * 2
    shuffle.shuffle(rows)
    order = np.array(rows[: len(rows) * 3 // 4], np.int64)

    for rule in PRIORITIES:
        note(label(rule))
        together = raw_many(rule, wanted, columns, order)
        alone = [raw_one(rule, wanted, OneRow(columns, row)) for row in order.tolist()]
        if isinstance(together, AttemptError):
            assert all(isinstance(each, AttemptError) for each in alone)
            assert {str(each) for each in alone} <= set(together.args)
        else:
            assert together == alone

    assert snapshot(columns) == before


@given(cluster=clusters(least_nodes=1))
@settings(max_examples=60)
def test_final_scores_have_the_shape_of_the_rows_and_uniform_ones_are_right(
    cluster: Cluster,
) -> None:
    columns = view(*cluster.objects())
    wanted = columns.pods.incoming(cluster.wanted)
    rows = columns.nodes.order

    for rule in PRIORITIES:
        note(label(rule))
        raw = raw_many(rule, wanted, columns, rows)
        if isinstance(raw, AttemptError):
            continue
        column = np.array(raw, np.int64)
        final = rule.normalize(wanted, ManyRows(columns, rows), column)
        assert column.tolist() == raw, "the raw scores were changed"
        if not rule.normalizes:
            assert final.tolist() == raw
        assert final.shape == rows.shape
        assert np.issubdtype(final.dtype, np.integer)
        same = rule.everywhere(wanted, columns)
        if same is not None:
            assert set(final.tolist()) == {same.score}


@pytest.mark.parametrize("rule", PREDICATES, ids=label)
def test_a_predicate_answers_for_no_rows(rule: FilterRule) -> None:
    columns = view(node("n"))

    assert many(rule, columns.pods.incoming(pod()), columns, np.zeros(0, np.int64)) == []


@pytest.mark.parametrize("rule", PRIORITIES, ids=label)
def test_a_priority_answers_for_no_rows(rule: ScoreRule) -> None:
    columns = view(node("n"))
    wanted, rows = columns.pods.incoming(pod()), np.zeros(0, np.int64)
    raw = np.array(raw_many(rule, wanted, columns, rows), np.int64)

    assert rule.normalize(wanted, ManyRows(columns, rows), raw).tolist() == []


@given(cluster=clusters())
@settings(max_examples=30)
def test_no_rows_of_any_cluster(cluster: Cluster) -> None:
    columns = view(*cluster.objects())
    wanted, rows = columns.pods.incoming(cluster.wanted), np.zeros(0, np.int64)

    for predicate in PREDICATES:
        note(label(predicate))
        assert many(predicate, wanted, columns, rows) == []
    for priority in PRIORITIES:
        note(label(priority))
        raw = raw_many(priority, wanted, columns, rows)
        assert isinstance(raw, AttemptError) or raw == []


# Scope --------------------------------------------------------------------------------------------


def only_here(cluster: Cluster, name: str, *, with_pods: bool) -> Columns:
    """The same cluster with no pods elsewhere, and perhaps none here."""
    here = [each for each in cluster.pods if each.spec.node_name == name and with_pods]
    return view(*cluster.nodes, *STORAGE, *cluster.others, *here)


@given(cluster=clusters(least_nodes=2, extremes=Extremes(ghosts=False)), data=st.data())
@settings(max_examples=60)
def test_an_answer_depends_on_no_more_than_its_scope_says(
    cluster: Cluster, data: st.DataObject
) -> None:
    columns = view(*cluster.objects())
    wanted = columns.pods.incoming(cluster.wanted)
    row = data.draw(st.sampled_from(columns.nodes.order.tolist()))
    name = columns.nodes.names[row]
    alone = {
        Scope.NODE: only_here(cluster, name, with_pods=False),
        Scope.PODS: only_here(cluster, name, with_pods=True),
    }

    for rule in PREDICATES:
        note(label(rule))
        if (scope := rule.scope(wanted.cls)) in alone:
            less = alone[scope]
            answer = one(
                rule, less.pods.incoming(cluster.wanted), OneRow(less, less.nodes.row_of[name])
            )
            assert one(rule, wanted, OneRow(columns, row)) == answer
    for priority in PRIORITIES:
        note(label(priority))
        if (scope := priority.scope(wanted.cls)) in alone:
            less = alone[scope]
            same = less.pods.incoming(cluster.wanted)
            expected = raw_one(priority, same, OneRow(less, less.nodes.row_of[name]))
            given_here = raw_one(priority, wanted, OneRow(columns, row))
            assert repr(given_here) == repr(expected)


# On trial -----------------------------------------------------------------------------------------


@given(cluster=clusters(least_nodes=1, nominated=True))
@settings(max_examples=60)
def test_a_trial_that_changes_nothing_is_the_row_itself(cluster: Cluster) -> None:
    columns = view(*cluster.objects())
    wanted = columns.pods.incoming(cluster.wanted)
    before = snapshot(columns)

    for row in columns.nodes.order.tolist():
        trial, copied = TrialRow(columns, row), TrialRow(columns, row).copy()
        for predicate in PREDICATES:
            note(label(predicate))
            expected = one(predicate, wanted, OneRow(columns, row))
            assert one(predicate, wanted, trial) == expected
            assert one(predicate, wanted, copied) == expected
        for priority in PRIORITIES:
            note(label(priority))
            score = raw_one(priority, wanted, OneRow(columns, row))
            given_on_trial = raw_one(priority, wanted, trial)
            if isinstance(score, AttemptError):
                assert isinstance(given_on_trial, AttemptError)
            else:
                assert given_on_trial == score

    assert snapshot(columns) == before


def quirky(
    rule: FilterRule, wanted: Incoming, put_back: list[Resident], *, metadata_differs: bool = False
) -> bool:
    """Where pods that left, or came back, are known to count in another way on trial."""
    if isinstance(rule, GeneralPredicates | PodFitsResources):
        # Which resources an extender looks after is forgotten without metadata, also on trial
        # without the pod because of which there is none.
        return metadata_differs
    if isinstance(rule, CheckServiceAffinity):
        return bool(put_back)  # it comes last among the pods of the service
    if isinstance(rule, MatchInterPodAffinity):
        terms = compiled_terms(wanted.cls).anti_affinity
        return len(terms) > 1 and any(
            term.covers(pod.labels.namespace, pod.labels.labels)
            for term in terms
            for pod in put_back
        )
    return False


@given(cluster=clusters(least_nodes=1, extremes=TAME), data=st.data())
@settings(max_examples=80)
def test_a_trial_is_what_would_really_be(cluster: Cluster, data: st.DataObject) -> None:
    columns, real = view(*cluster.objects()), view(*cluster.objects())
    crowded = [row for row in columns.nodes.order.tolist() if columns.pods.residents[row]]
    row = data.draw(st.sampled_from(crowded or columns.nodes.order.tolist()))
    pods = {p.uid: p for p in cluster.pods}
    trial = TrialRow(columns, row)
    before = snapshot(columns)
    leaving = data.draw(
        st.lists(st.sampled_from(columns.pods.residents[row]), unique=True)
        if columns.pods.residents[row]
        else st.just([])
    )
    put_back = data.draw(
        st.lists(st.sampled_from(leaving), unique=True) if leaving else st.just([])
    )
    for resident in leaving:
        trial.remove(resident)
        real.remove_pod(resident.uid)
    for resident in put_back:
        trial.add(resident)
        real.add_pod(pods[resident.uid])
    wanted, really = columns.pods.incoming(cluster.wanted), real.pods.incoming(cluster.wanted)
    differs = metadata_unavailable(wanted.cls, columns) != metadata_unavailable(really.cls, real)

    for rule in PREDICATES:
        note(label(rule))
        if not quirky(rule, wanted, put_back, metadata_differs=differs):
            assert one(rule, wanted, trial) == one(rule, really, OneRow(real, row))
    for priority in PRIORITIES:
        note(label(priority))
        score = raw_one(priority, really, OneRow(real, row))
        on_trial = raw_one(priority, wanted, trial)
        if not isinstance(score, AttemptError) and not isinstance(on_trial, AttemptError):
            assert on_trial == score

    assert snapshot(columns) == before


@given(
    cluster=clusters(least_nodes=1, extremes=Extremes(huge=True, ghosts=False, broken=False)),
    data=st.data(),
)
@settings(max_examples=60)
def test_a_pod_added_on_trial_is_what_would_really_be(
    cluster: Cluster, data: st.DataObject
) -> None:
    # A pod that was never there, as extenders and "what if" questions put it.
    columns, real = view(*cluster.objects()), view(*cluster.objects())
    row = data.draw(st.sampled_from(columns.nodes.order.tolist()))
    guest = data.draw(st.sampled_from(cluster.pods)) if cluster.pods else pod("guest")
    added = pod(
        "guest",
        namespace=guest.namespace,
        labels=guest.labels,
        containers=guest.spec.containers,
        volumes=guest.spec.volumes or (),
        node=columns.nodes.names[row],
        anti=(guest.spec.affinity.pod_anti_affinity.required or ())
        if guest.spec.affinity and guest.spec.affinity.pod_anti_affinity
        else (),
    )
    trial = TrialRow(columns, row)
    resident = columns.pods.resident(added, row)
    trial.add(resident)
    real.add_pod(added)
    wanted, really = columns.pods.incoming(cluster.wanted), real.pods.incoming(cluster.wanted)

    for rule in PREDICATES:
        note(label(rule))
        if not quirky(rule, wanted, [resident]):
            assert one(rule, wanted, trial) == one(rule, really, OneRow(real, row))
