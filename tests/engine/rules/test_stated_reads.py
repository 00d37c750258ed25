"""Rules read no more of the cluster than they state: kept answers rely on it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from builders import node, pod, view
from builders_v1_36 import view as view_of_plugins
from podium.cluster.simulation import Simulation
from podium.engine.framework.declaration import PluginContext
from podium.engine.framework.rule import (
    Activity,
    AttemptError,
    FilterRule,
    Refused,
    Rule,
    Scope,
    ScoreRule,
    Watched,
)
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, as_array
from podium.engine.state.pod_class import Incoming, PodClass
from podium.engine.state.view import View
from podium.generations.known import GENERATIONS
from podium.past.recordings.replay import profiles_of
from podium.past.recordings.scenarios import objects_of, pending_of, scenarios_in
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.user_rules.adapter import (
    PREDICATE,
    PRIORITY,
    RuleSpec,
    Unwatched,
    UserPredicate,
    UserPriority,
)
from podium.profiles.user_rules.stated_view import UnstatedReadError, stated_view, watched_view
from random_clusters import PREDICATES, PRIORITIES, Cluster, clusters
from random_clusters_v1_36 import FILTERS, SCORES, ClusterV136, clusters_v1_36

GOLDEN = Path(__file__).parents[2] / "golden"
#: Recordings with devices of the oldest and the newest release, and of one between them.
DEVICES = sorted(
    each
    for release in ("v1.34", "v1.36", "v1.37")
    for each in (GOLDEN / f"{release}-devices").glob("*.jsonl*")
)
#: Verdict codes or scores, and errors.
Answers = tuple[list[int], dict[int, str]] | str


def ask(rule: Rule, pod: Incoming, at: ManyRows | OneRow) -> Answers:
    """What the rule answers for these rows."""
    try:
        if isinstance(rule, FilterRule):
            given: Any = rule.filter(pod, at)
        else:
            assert isinstance(rule, ScoreRule)
            given = rule.score(pod, at)
    except AttemptError as error:
        return str(error)
    codes = np.broadcast_to(as_array(given), len(at)).tolist()
    return codes, dict(at.errors)


def forget(pod: Incoming) -> None:
    """Let every rule read for itself, whatever others kept with the class of the pod."""
    for memo in (pod.cls.memo, pod.cls.form.memo, pod.cls.requests.memo):
        memo.clear()


def is_asked(rule: Rule, pod: Incoming, real: View) -> bool:
    """Whether the rule is asked about rows at all."""
    try:
        if isinstance(rule, FilterRule):
            skipped = rule.activity(pod, real) is Activity.SKIPPED
            return not skipped and not isinstance(rule.pre_filter(pod, real), Refused)
        assert isinstance(rule, ScoreRule)
        return rule.everywhere(pod, real) is None
    except AttemptError:
        return False


def look(rule: Rule, pod: Incoming, view: View) -> object:
    """What the rule says of the whole decision."""
    try:
        if isinstance(rule, FilterRule):
            return rule.activity(pod, view)
        assert isinstance(rule, ScoreRule)
        return rule.everywhere(pod, view), rule.group_keys(pod, view)
    except AttemptError as error:
        return str(error)


def check(rules: Sequence[Rule], pod: Incoming, real: View) -> None:
    """Every rule answers the same through its stated view, for half of the rows and for each."""
    rows = real.nodes.order[::2]
    for rule in rules:
        if rule.scope(pod.cls) is Scope.NONE:
            continue
        forget(pod)
        seen = look(rule, pod, watched_view(real, rule, pod))
        forget(pod)
        assert seen == look(rule, pod, real), f"{type(rule).__name__}({rule.name})"
        if not is_asked(rule, pod, real):
            continue
        compare(rule, pod, ManyRows(real, rows), rows.tolist())
        for row in rows.tolist():
            compare(rule, pod, OneRow(real, row), [row])


def compare(rule: Rule, pod: Incoming, at: ManyRows | OneRow, rows: list[int]) -> None:
    forget(pod)
    expected = ask(rule, pod, at)
    forget(pod)
    seen = stated_view(at.view, rule, pod, rows)
    own = ManyRows(seen, at.index) if isinstance(at, ManyRows) else OneRow(seen, at.row)
    assert ask(rule, pod, own) == expected, f"{type(rule).__name__}({rule.name})"


@given(cluster=clusters())
@settings(max_examples=60)
def test_predicates_and_priorities_read_what_they_state(cluster: Cluster) -> None:
    columns = view(*cluster.objects())
    check((*PREDICATES, *PRIORITIES), columns.pods.incoming(cluster.wanted), columns)


def default_rules(name: str) -> list[Rule]:
    """The filters and scores of a release, with default arguments."""
    generation = GENERATIONS[name]
    gates = ConfigurationGates(generation=generation)
    context = PluginContext(generation.choices, gates)
    return [
        make(plugin.arguments and plugin.arguments.completed(None, gates), context)
        for plugin in generation.plugins
        for make in (plugin.filter, plugin.score)
        if make is not None
    ]


RULES = {name: default_rules(name) for name, each in GENERATIONS.items() if each.plugins}


@pytest.mark.parametrize("name", list(RULES))
@given(world=clusters_v1_36())
@settings(max_examples=20)
def test_plugins_of_every_release_read_what_they_state(name: str, world: ClusterV136) -> None:
    columns = view_of_plugins(*world.objects())
    check(RULES[name], columns.pods.incoming(world.wanted), columns)


@given(world=clusters_v1_36())
@settings(max_examples=40)
def test_plugins_read_what_they_state_with_any_arguments(world: ClusterV136) -> None:
    columns = view_of_plugins(*world.objects())
    check((*FILTERS, *SCORES), columns.pods.incoming(world.wanted), columns)


@pytest.mark.parametrize("file", DEVICES, ids=lambda file: f"{file.parent.name} {file.name}")
def test_plugins_read_what_they_state_of_devices(file: Path) -> None:
    for _, scenario in islice(scenarios_in(str(file)), 0, None, 8):
        [profile, *_] = profiles_of(scenario)
        made = Simulation(profile, listed_order=True)
        made.load(objects_of(scenario))
        columns = made.cache.columns
        rules = (*profile.predicates, *(each.priority for each in profile.priorities))
        for wanted in pending_of(scenario):
            check(rules, columns.pods.incoming(wanted), columns)
            made.attempt(wanted)


# Rules of users -----------------------------------------------------------------------------------


def declared(**spec: Any) -> UserPredicate | UserPriority:
    """A rule of a user with this declaration."""
    made = RuleSpec(**{"name": "Own", **spec})
    kind = UserPredicate if made.kind == PREDICATE else UserPriority
    return kind(made, watch=Loud())


class Loud(Unwatched):
    """Lets the failure of a rule end the test."""

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        raise KeyboardInterrupt(f"{rule} {pod} {node} {what}")


def taints_of(node: Any) -> int:
    return len(node.taints)


OF_USERS = (
    declared(kind=PREDICATE, depends="node", function=lambda _, n: bool(n.labels) or "bare"),
    declared(kind=PREDICATE, depends="pods", function=lambda p, n: n.free("cpu") > p.priority),
    declared(kind=PREDICATE, depends="pods", function=lambda _, n: not n.pods),
    declared(kind=PREDICATE, depends="cluster", function=lambda p, n: p.name != n.name),
    declared(
        kind=PREDICATE, depends="node", columns=True, function=lambda _, n: n.has_label("zone")
    ),
    declared(kind=PRIORITY, depends="node", function=lambda _, n: len(n.taints)),
    declared(kind=PRIORITY, depends="pods", function=lambda _, n: n.pod_count),
    declared(kind=PRIORITY, depends="pods", columns=True, function=lambda _, n: n.pod_count),
    declared(kind=PRIORITY, depends="node", columns=True, function=lambda _, n: n.each(taints_of)),
)


@given(world=clusters_v1_36())
@settings(max_examples=30)
def test_rules_of_users_read_what_they_state(world: ClusterV136) -> None:
    columns = view_of_plugins(*world.objects())
    check(OF_USERS, columns.pods.incoming(world.wanted), columns)


# A read that is not stated is seen ----------------------------------------------------------------


class Liar(ScoreRule):
    """States a scope and reads something else."""

    name = "Liar"
    kinds = ("Service",)

    def __init__(self, scope: Scope, read: Callable[[Any], Any], key: Any = None) -> None:
        self.always, self._read, self._key = scope, read, key

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        return self._key(view) if self._key else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        self._read(at)
        return at.full(0)


READS: dict[str, tuple[Scope, Callable[[Any], Any]]] = {
    "the order of nodes": (Scope.NODE, lambda at: at.view.nodes.order),
    "the labels of another node": (Scope.NODE, lambda at: at.view.nodes.labels[1]),
    "a label of another node": (Scope.NODE, lambda at: at.view.nodes.label_column("a").ids[1]),
    "taints of all nodes": (Scope.NODE, lambda at: at.view.nodes.facts.taints.ids.max()),
    "pods, by its node": (Scope.NODE, lambda at: at.view.pods.counts),
    "pods of another node": (Scope.PODS, lambda at: at.view.pods.residents[1]),
    "requests on all nodes": (Scope.RESOURCES, lambda at: np.sum(at.view.pods.requested[0])),
    "labels, by its numbers": (Scope.RESOURCES, lambda at: at.view.nodes.labels),
    "a tally": (Scope.PODS, lambda at: at.view.pods.tallies),
    "pods, by objects": (Scope.OBJECTS, lambda at: at.view.pods.residents),
    "services, by its node": (Scope.NODE, lambda at: list(at.view.catalog.services)),
    "a kind without its name": (Scope.CLUSTER, lambda at: at.view.catalog.volumes.get("v")),
    "promised volumes": (Scope.PODS, lambda at: at.view.catalog.promised_volumes),
    "the time": (Scope.NODE, lambda at: at.view.decided_at),
    "terms of placed pods": (Scope.OBJECTS, lambda at: at.view.terms_selecting(None)),
}


@pytest.mark.parametrize(("scope", "read"), READS.values(), ids=list(READS))
def test_a_read_that_is_not_stated_is_seen(scope: Scope, read: Callable[[Any], Any]) -> None:
    columns = view(node("n0"), node("n1"))
    wanted = columns.pods.incoming(pod("p"))
    rule = Liar(scope, read)

    with pytest.raises(UnstatedReadError, match="Liar reads"):
        rule.score(wanted, OneRow(stated_view(columns, rule, wanted, [0]), 0))


class Onlooker(Liar):
    """Says that it watches something, and looks at something else."""

    def __init__(self, watched: Watched, read: Callable[[Any], Any]) -> None:
        super().__init__(Scope.CLUSTER, read)
        self._watched = watched

    def watched(self, cls: PodClass) -> Watched:
        return self._watched

    def everywhere(self, pod: Incoming, view: View) -> None:
        self._read(view)


LOOKS: dict[str, tuple[Watched, Callable[[Any], Any]]] = {
    "nodes, by nothing": (Watched.NOTHING, lambda view: view.nodes.order),
    "pods, by nodes": (Watched.NODES, lambda view: view.pods.total),
    "services, by terms": (Watched.TERMS, lambda view: list(view.catalog.services)),
    "terms, by selectors": (Watched.SELECTORS, lambda view: view.terms_selecting(None)),
    "the time": (Watched.NODES, lambda view: view.decided_at),
}


@pytest.mark.parametrize(("watched", "read"), LOOKS.values(), ids=list(LOOKS))
def test_a_look_that_is_not_stated_is_seen(watched: Watched, read: Callable[[Any], Any]) -> None:
    columns = view(node("n0"))
    wanted = columns.pods.incoming(pod("p"))
    rule = Onlooker(watched, read)

    with pytest.raises(UnstatedReadError, match="and states that it watches"):
        rule.everywhere(wanted, watched_view(columns, rule, wanted))


def test_what_the_key_reads_is_stated() -> None:
    columns = view(node("n0"), node("n1"))
    wanted = columns.pods.incoming(pod("p"))
    rule = Liar(
        Scope.NODE, lambda at: len(at.view.nodes.order), key=lambda view: len(view.nodes.order)
    )

    assert rule.score(wanted, OneRow(stated_view(columns, rule, wanted, [0]), 0)) == 0
