"""The contract that every v1.36 rule fulfils.

A rule is written once and read in three ways: over many rows as arrays, over one row as plain
numbers, and over one row with pods added and taken away. The three must agree, none of them may
change the view, and what a rule says about itself (its scope, when it is idle, skips or knows its
score beforehand) must be true.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from builders import pod
from builders_v1_36 import view
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    FilterRule,
    Refused,
    Scope,
    ScoreRule,
)
from podium.engine.rows.rows import ManyRows, OneRow, as_array
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rules.devices.plugin import DynamicResources, DynamicResourcesScore
from podium.engine.rules.spreading import (
    HARD,
    PodTopologySpread,
    PodTopologySpreadScore,
    constraints_of,
)
from podium.engine.rules.volumes.binding import VolumeBindingScore
from podium.engine.rules.volumes.conflicts import VolumeRestrictions
from podium.engine.state.pod_class import Incoming, Resident
from podium.engine.state.verdicts import Verdict
from random_clusters import Extremes
from random_clusters_v1_36 import FILTERS, SCORES, ClusterV136, clusters_v1_36, label
from view_snapshot import snapshot

TAME = Extremes(huge=False, broken=False, odd_volumes=False, ghosts=False)
BODILESS = (VolumeBindingScore, DynamicResourcesScore)
#: Verdict, or the text of an error.
Said = Verdict | str

# Reading answers ----------------------------------------------------------------------------------


def asked(columns: Columns, wanted: Incoming) -> list[FilterRule]:
    """The filters that could be asked about the pod: one that refuses it beforehand is not."""
    found = []
    for rule in FILTERS:
        try:
            if isinstance(rule.pre_filter(wanted, columns), Refused):
                continue
            rule.activity(wanted, columns)
        except AttemptError:
            continue
        if not isinstance(rule, DynamicResources):  # looks at no node, whatever the pod
            found.append(rule)
    return found


def scoring(columns: Columns, wanted: Incoming) -> list[ScoreRule]:
    """The scores that have something to say, on no rows as well as on many."""
    found = []
    for rule in SCORES:
        try:
            if rule.everywhere(wanted, columns) != SKIPPED:
                found.append(rule)
        except AttemptError:
            continue
    return found


def many(rule: FilterRule, wanted: Incoming, columns: Columns, rows: np.ndarray) -> list[Said]:
    """What a filter says of these rows, asked at once."""
    at = ManyRows(columns, rows)
    codes = rule.filter(wanted, at)
    assert isinstance(codes, np.ndarray), label(rule)
    assert codes.shape == rows.shape, label(rule)
    assert np.issubdtype(codes.dtype, np.integer), label(rule)
    return [at.errors.get(i, columns.verdicts[code]) for i, code in enumerate(codes.tolist())]


def one(rule: FilterRule, wanted: Incoming, at: OneRow) -> Said:
    """What a filter says of one row."""
    at.errors.clear()
    code = rule.filter(wanted, at)
    assert isinstance(code, int), label(rule)
    return at.errors.get(0, at.view.verdicts[code])


def raw_many(rule: ScoreRule, wanted: Incoming, columns: Columns, rows: np.ndarray) -> list[int]:
    """What a score gives to these rows, asked at once."""
    raw = rule.score(wanted, ManyRows(columns, rows))
    assert isinstance(raw, np.ndarray), label(rule)
    assert raw.shape == rows.shape, label(rule)
    assert np.issubdtype(raw.dtype, np.integer), label(rule)
    return [int(number) for number in raw]


def raw_one(rule: ScoreRule, wanted: Incoming, at: OneRow) -> int:
    raw = rule.score(wanted, at)
    assert isinstance(raw, int), label(rule)
    return raw


def is_error(rule: ScoreRule, wanted: Incoming, columns: Columns) -> bool:
    """Whether the pod's wishes cannot be read at all."""
    try:
        rule.score(wanted, ManyRows(columns, columns.nodes.order))
    except AttemptError:
        return True
    return False


def shuffled(columns: Columns, shuffle: Any) -> np.ndarray:
    """Some rows, not in node order, some of them twice."""
    rows = columns.nodes.order.tolist() * 2
    shuffle.shuffle(rows)
    return np.array(rows[: len(rows) * 3 // 4], np.int64)


# Many rows and one row ----------------------------------------------------------------------------


@given(world=clusters_v1_36(), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_filters_say_the_same_of_many_rows_and_of_one(world: ClusterV136, shuffle: Any) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    before = snapshot(columns)
    order = shuffled(columns, shuffle)

    for rule in asked(columns, wanted):
        note(label(rule))
        together = many(rule, wanted, columns, order)
        assert together == [one(rule, wanted, OneRow(columns, row)) for row in order.tolist()]
        assert {said.predicate for said in together if isinstance(said, Verdict)} <= {"", rule.name}

    assert snapshot(columns) == before


@given(
    world=clusters_v1_36(extremes=Extremes(broken=False, huge=False)),
    shuffle=st.randoms(use_true_random=False),
)
@settings(max_examples=50)
def test_scores_are_the_same_for_many_rows_and_for_one(world: ClusterV136, shuffle: Any) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    before = snapshot(columns)
    order = shuffled(columns, shuffle)

    for rule in scoring(columns, wanted):
        note(label(rule))
        if is_error(rule, wanted, columns):
            for row in order.tolist():
                with pytest.raises(AttemptError):
                    raw_one(rule, wanted, OneRow(columns, row))
            continue
        together = raw_many(rule, wanted, columns, order)
        if not isinstance(rule, PodTopologySpreadScore):
            assert together == [
                raw_one(rule, wanted, OneRow(columns, row)) for row in order.tolist()
            ]

    assert snapshot(columns) == before


@given(
    world=clusters_v1_36(least_nodes=1, extremes=TAME), shuffle=st.randoms(use_true_random=False)
)
@settings(max_examples=50)
def test_final_scores_lie_between_0_and_100_and_known_ones_are_right(
    world: ClusterV136, shuffle: Any
) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    rows = columns.nodes.order.copy()
    shuffle.shuffle(rows)
    rows = rows[: shuffle.randint(1, len(rows))]

    for rule in scoring(columns, wanted):
        note(label(rule))
        at = ManyRows(columns, rows)
        try:
            raw = as_array(rule.score(wanted, at))
        except AttemptError:
            continue
        kept = raw.tolist()
        final = rule.normalize(wanted, at, raw)
        assert raw.tolist() == kept, "the raw scores were changed"
        assert final.shape == rows.shape
        assert np.issubdtype(final.dtype, np.integer)
        assert all(0 <= score <= 100 for score in final.tolist())
        if not rule.normalizes:
            assert final.tolist() == kept
        same = rule.everywhere(wanted, columns)
        if same is not None:
            assert set(final.tolist()) == {same.score}


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=40)
def test_who_leaves_itself_out_gives_nothing(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)

    for rule in set(SCORES) - set(scoring(columns, wanted)):
        note(label(rule))
        assert rule.everywhere(wanted, columns) == SKIPPED


# No rows ------------------------------------------------------------------------------------------

NO_ROWS = np.zeros(0, np.int64)


@given(world=clusters_v1_36())
@settings(max_examples=30)
def test_nothing_is_said_of_no_rows(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)

    for rule in asked(columns, wanted):
        note(label(rule))
        assert many(rule, wanted, columns, NO_ROWS) == []
    for score in scoring(columns, wanted):
        note(label(score))
        try:
            assert raw_many(score, wanted, columns, NO_ROWS) == []
        except AttemptError:
            continue


# What a rule says about itself --------------------------------------------------------------------


@given(world=clusters_v1_36(least_nodes=1, extremes=Extremes(huge=False)))
@settings(max_examples=50)
def test_who_has_nothing_to_do_rejects_nothing(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)

    for rule in asked(columns, wanted):
        note(label(rule))
        nothing = rule.scope(wanted.cls) is Scope.NONE
        if nothing or rule.activity(wanted, columns) <= Activity.IDLE:
            said = many(rule, wanted, columns, columns.nodes.order)
            assert {v.reasons for v in said if isinstance(v, Verdict)} == {()}
            assert not any(isinstance(v, str) for v in said)


@given(world=clusters_v1_36(extremes=Extremes(huge=False)))
@settings(max_examples=40)
def test_a_rule_that_may_not_refuse_a_class_does_not(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)

    for rule in FILTERS:
        note(label(rule))
        if not rule.may_refuse(wanted.cls):
            assert rule.pre_filter(wanted, columns) is None


def only_here(world: ClusterV136, name: str, *, with_pods: bool) -> Columns:
    """The same cluster with no other node, perhaps without pods."""
    nodes = [each for each in world.nodes if each.name == name]
    pods = [each for each in world.pods if each.spec.node_name == name and with_pods]
    return view(*world.objects(nodes, pods))


@given(world=clusters_v1_36(least_nodes=2, extremes=Extremes(huge=False)), data=st.data())
@settings(max_examples=50)
def test_an_answer_depends_on_no_more_than_its_scope_says(
    world: ClusterV136, data: st.DataObject
) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    row = data.draw(st.sampled_from(columns.nodes.order.tolist()))
    name = columns.nodes.names[row]
    alone = {
        Scope.NODE: only_here(world, name, with_pods=False),
        Scope.RESOURCES: only_here(world, name, with_pods=True),
        Scope.PODS: only_here(world, name, with_pods=True),
    }

    for rule in asked(columns, wanted):
        note(label(rule))
        scope = rule.scope(wanted.cls)
        if not scope.of_row and rule.activity(wanted, columns) is Activity.OWN_ROW:
            scope = Scope.PODS
        if scope in alone:
            less = alone[scope]
            same = less.pods.incoming(world.wanted)
            if not rule.scope(wanted.cls).of_row and (
                rule.row_context(wanted, columns) != rule.row_context(same, less)
            ):
                continue  # it says so when more than the row counts
            at = OneRow(less, less.nodes.row_of[name])
            assert one(rule, wanted, OneRow(columns, row)) == one(rule, same, at)
    for score in scoring(columns, wanted):
        note(label(score))
        if (scope := score.scope(wanted.cls)) in alone:
            less = alone[scope]
            same = less.pods.incoming(world.wanted)
            if score.answer_key(wanted, columns) != score.answer_key(same, less):
                continue  # it says so when more than the node counts
            try:
                expected = raw_one(score, wanted, OneRow(columns, row))
            except AttemptError:
                continue
            assert raw_one(score, same, OneRow(less, less.nodes.row_of[name])) == expected


# On trial -----------------------------------------------------------------------------------------


@given(world=clusters_v1_36(least_nodes=1, nominated=True))
@settings(max_examples=40)
def test_a_trial_that_changes_nothing_is_the_row_itself(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    before = snapshot(columns)

    for row in columns.nodes.order.tolist():
        trial, copied = TrialRow(columns, row), TrialRow(columns, row).copy()
        for rule in asked(columns, wanted):
            note(label(rule))
            expected = one(rule, wanted, OneRow(columns, row))
            assert one(rule, wanted, trial) == expected
            assert one(rule, wanted, copied) == expected

    assert snapshot(columns) == before


def quirky(rule: FilterRule, wanted: Incoming, columns: Columns, pods: list[Resident]) -> bool:
    """Where a pod that comes or goes on trial is known to count in another way than in truth."""
    if isinstance(rule, PodTopologySpread):
        constraints = constraints_of(wanted, columns, HARD, rule.defaults)
        return any(each.selector.empty for each in constraints) or any(r.terminating for r in pods)
    if isinstance(rule, VolumeRestrictions):
        own = rule._exclusive_claims(wanted.cls, columns)
        return any(name in own for r in pods for name in r.cls.claims)
    return False


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME), data=st.data())
@settings(max_examples=70)
def test_a_trial_is_what_would_really_be(world: ClusterV136, data: st.DataObject) -> None:
    columns, real = view(*world.objects()), view(*world.objects())
    crowded = [row for row in columns.nodes.order.tolist() if columns.pods.residents[row]]
    row = data.draw(st.sampled_from(crowded or columns.nodes.order.tolist()))
    pods = {p.uid: p for p in world.pods}
    trial = TrialRow(columns, row)
    before = snapshot(columns)
    residents = columns.pods.residents[row]
    some = st.lists(st.sampled_from(residents), unique=True) if residents else st.just([])
    leaving = data.draw(some)
    put_back = leaving[: data.draw(st.integers(0, len(leaving)))]
    for resident in leaving:
        trial.remove(resident)
        real.remove_pod(resident.uid)
    for resident in put_back:
        trial.add(resident)
        real.add_pod(pods[resident.uid])
    wanted, really = columns.pods.incoming(world.wanted), real.pods.incoming(world.wanted)

    for rule in asked(columns, wanted):
        note(label(rule))
        if not quirky(rule, wanted, columns, leaving):
            assert one(rule, wanted, trial) == one(rule, really, OneRow(real, row))
    for score in scoring(columns, wanted):
        note(label(score))
        if not isinstance(score, (PodTopologySpreadScore, *BODILESS)):
            try:
                expected = raw_one(score, really, OneRow(real, row))
            except AttemptError:
                continue
            # Who leaves itself out when the pods are gone is not asked then.
            if score.everywhere(really, real) != SKIPPED:
                assert raw_one(score, wanted, trial) == expected

    assert snapshot(columns) == before


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME), data=st.data())
@settings(max_examples=50)
def test_a_pod_added_on_trial_is_what_would_really_be(
    world: ClusterV136, data: st.DataObject
) -> None:
    columns, real = view(*world.objects()), view(*world.objects())
    row = data.draw(st.sampled_from(columns.nodes.order.tolist()))
    guest = data.draw(st.sampled_from(world.pods)) if world.pods else pod("guest")
    added = msgspec.structs.replace(
        guest,
        metadata=msgspec.structs.replace(guest.metadata, name="guest", deletion_timestamp=None),
        spec=msgspec.structs.replace(guest.spec, node_name=columns.nodes.names[row]),
    )
    trial = TrialRow(columns, row)
    resident = columns.pods.resident(added, row)
    trial.add(resident)
    real.add_pod(added)
    wanted, really = columns.pods.incoming(world.wanted), real.pods.incoming(world.wanted)

    for rule in asked(columns, wanted):
        note(label(rule))
        if not quirky(rule, wanted, columns, [resident]):
            assert one(rule, wanted, trial) == one(rule, really, OneRow(real, row))
