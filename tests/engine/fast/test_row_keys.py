"""Classes with equal row keys get the same answers on every row, by every rule of single rows.

Answers for single rows are shared by such classes (`RowAnswers`), so a rule that reads more of a
class than its key says would give one pod the answers of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from hypothesis import given, note, settings

from builders import view as view_v1_13
from builders_v1_36 import view as view_v1_36
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import FilterRule, Rule, Scope, ScoreRule
from podium.engine.rows.rows import ManyRows, OneRow, as_array, as_int
from podium.engine.state.pod_class import Incoming
from podium.objects.kinds.pod import Pod
from random_clusters import PREDICATES, PRIORITIES, Cluster, Extremes, clusters
from random_clusters_v1_36 import FILTERS, SCORES, ClusterV136, clusters_v1_36

TAME = Extremes(huge=False, broken=False, odd_volumes=False, ghosts=False)


def indistinguishable(rule: Rule, one: Incoming, other: Incoming) -> bool:
    """Whether the rule looks at single rows for both classes, and says that they are alike."""
    scopes = {rule.scope(one.cls), rule.scope(other.cls)}
    if len(scopes) > 1 or scopes <= {Scope.NONE} or not max(scopes).of_row:
        return False
    return rule.row_key(one.cls) == rule.row_key(other.cls)


def filtered(rule: FilterRule, pod: Incoming, columns: Columns) -> tuple[list[int], list[int]]:
    rows = columns.nodes.order
    many = as_array(rule.filter(pod, ManyRows(columns, rows)))
    return many.tolist(), [as_int(rule.filter(pod, OneRow(columns, r))) for r in rows.tolist()]


def scored(rule: ScoreRule, pod: Incoming, columns: Columns) -> tuple[object, object, list[int]]:
    same = rule.everywhere(pod, columns)
    if same is not None:
        return same, None, []
    many = as_array(rule.score(pod, ManyRows(columns, columns.nodes.order)))
    return None, rule.answer_key(pod, columns), many.tolist()


def check_forms(columns: Columns, pods: Iterable[Pod], rules: Iterable[Rule]) -> None:
    """Compare the keys of classes of one form, where a rule says that they are equal."""
    classes = {each.cls.id: each for each in map(columns.pods.incoming, pods)}
    for rule in rules:
        for one, other in combinations(classes.values(), 2):
            if one.cls.form is other.cls.form and rule.keyed_by_form and not one.cls.host:
                assert rule.row_key(one.cls) == rule.row_key(other.cls)


def check(columns: Columns, pods: Iterable[Pod], rules: Iterable[Rule]) -> int:
    """Compare all pairs of classes that a rule says are alike; how many there were."""
    classes = {each.cls.id: each for each in map(columns.pods.incoming, pods)}
    compared = 0
    for rule in rules:
        for one, other in combinations(classes.values(), 2):
            if not indistinguishable(rule, one, other):
                continue
            compared += 1
            note(f"{rule.name}: {one.key} and {other.key}")
            if isinstance(rule, FilterRule):
                assert filtered(rule, one, columns) == filtered(rule, other, columns)
            if isinstance(rule, ScoreRule):
                assert scored(rule, one, columns) == scored(rule, other, columns)
    return compared


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=40)
def test_equal_row_keys_mean_equal_answers_v1_36(world: ClusterV136) -> None:
    columns = view_v1_36(*world.objects())
    rules: list[Rule] = [*FILTERS, *(rule for rule in SCORES if not rule.normalizes)]
    check(columns, (*world.pods, world.wanted), rules)
    check_forms(columns, (*world.pods, world.wanted), rules)


@given(cluster=clusters(least_nodes=1, extremes=TAME))
@settings(max_examples=40)
def test_equal_row_keys_mean_equal_answers_v1_13(cluster: Cluster) -> None:
    columns = view_v1_13(*cluster.objects())
    rules: list[Rule] = [*PREDICATES, *(rule for rule in PRIORITIES if not rule.normalizes)]
    check(columns, (*cluster.pods, cluster.wanted), rules)
    check_forms(columns, (*cluster.pods, cluster.wanted), rules)
