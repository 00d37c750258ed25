"""v1.36 InterPodAffinity: worked examples, and random clusters against a plain reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import given, settings

from builders import expression, node, pod, selector, term
from builders_v1_36 import HOST, ZONE, decision, in_spaces, judged, namespace, scores, view
from cases import cases
from podium.engine.framework.rule import SKIPPED, Activity, Refused
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rules.pod_affinity import InterPodAffinity, InterPodAffinityScore
from podium.objects.kinds.meta import LabelSelector, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodAffinity, PodAffinityTerm
from podium.objects.kinds.workloads import Namespace
from podium.objects.selectors.selectors import from_label_selector
from random_clusters import Extremes
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

OWN = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"

A = selector({"app": "a"})
TEAM = selector({"team": "x"})


def zoned(name: str, zone: str | None) -> Node:
    return node(name, labels={HOST: name, **({ZONE: zone} if zone else {})})


NODES = (zoned("e1", "east"), zoned("e2", "east"), zoned("w1", "west"), zoned("x", None))


def there(name: str, where: str, **fields: Any) -> Pod:
    return pod(name, node=where, **{"labels": {"app": "a"}, **fields})


def rejected(wanted: Pod, *items: Object) -> dict[str, str]:
    said = judged(InterPodAffinity(), wanted, *NODES, *items)
    return {name: reasons[0] for name, reasons in said.items() if reasons}


# Filter -------------------------------------------------------------------------------------------


@cases(
    ("wanted", "items", "expected"),
    {
        "near a pod, by zone": (
            pod(affinity=[term({"app": "a"}, ZONE)]),
            [there("p", "e1")],
            {"w1": OWN, "x": OWN},
        ),
        "every term must be met": (
            pod(affinity=[term({"app": "a"}, ZONE), term({"app": "a"}, HOST)]),
            [there("p", "e1")],
            {"e2": OWN, "w1": OWN, "x": OWN},
        ),
        "by one and the same pod": (
            pod(affinity=[term({"app": "a"}, ZONE), term({"b": "b"}, ZONE)]),
            [there("p", "e1"), there("q", "e1", labels={"b": "b"})],
            {"e1": OWN, "e2": OWN, "w1": OWN, "x": OWN},
        ),
        "the first of a group may start anywhere with the label": (
            pod(labels={"app": "a"}, affinity=[term({"app": "a"}, ZONE)]),
            [],
            {"x": OWN},
        ),
        "pods on nodes without the label do not make it the second": (
            pod(labels={"app": "a"}, affinity=[term({"app": "a"}, ZONE)]),
            [there("p", "x")],
            {"x": OWN},
        ),
        "but only if it is of the group": (
            pod(labels={"app": "b"}, affinity=[term({"app": "a"}, ZONE)]),
            [],
            {"e1": OWN, "e2": OWN, "w1": OWN, "x": OWN},
        ),
        "any term keeps it away; without the label it cannot": (
            pod(anti=[term({"app": "a"}, ZONE), term({"b": "b"}, HOST)]),
            [there("p", "e1"), there("q", "w1", labels={"b": "b"})],
            {"e1": ANTI, "e2": ANTI, "w1": ANTI},
        ),
        "others may not want it": (
            pod(labels={"app": "b"}),
            [there("p", "e1", anti=[term({"app": "b"}, ZONE)])],
            {"e1": OTHERS, "e2": OTHERS},
        ),
        "its own affinity is told first": (
            pod(labels={"app": "b"}, affinity=[term({"app": "a"}, ZONE)]),
            [there("p", "e1", anti=[term({"app": "b"}, ZONE)])],
            {"e1": OTHERS, "e2": OTHERS, "w1": OWN, "x": OWN},
        ),
        "then its own anti-affinity": (
            pod(labels={"app": "b"}, anti=[term({"app": "a"}, HOST)]),
            [there("p", "e1", anti=[term({"app": "b"}, ZONE)])],
            {"e1": ANTI, "e2": OTHERS},
        ),
        "pods that are leaving still count": (
            pod(anti=[term({"app": "a"}, ZONE)]),
            [there("p", "e1", terminating=True)],
            {"e1": ANTI, "e2": ANTI},
        ),
        "no selector matches no pod": (pod(anti=[term(None, ZONE)]), [there("p", "e1")], {}),
    },
)
def test_filter(wanted: Pod, items: list[Object], expected: dict[str, str]) -> None:
    assert rejected(wanted, *items) == expected


def test_only_own_affinity_is_hopeless() -> None:
    wanted = pod(
        labels={"app": "b"},
        affinity=[term({"app": "a"}, ZONE)],
        anti=[term({"app": "c"}, HOST)],
    )
    items = (
        there("p", "e1", anti=[term({"app": "b"}, HOST)]),
        there("q", "e2", labels={"app": "c"}),
    )

    found = decision(wanted, *NODES, *items)

    curable = {v.reasons[0]: v.curable for v in map(found.verdict, found.histogram)}
    assert curable == {OWN: False, ANTI: True, OTHERS: True}


def test_a_skipped_filter_ignores_anti_affinity_of_a_nominated_pod() -> None:
    # The first look finds nothing to do, and nominated pods are not looked at after that.
    promised = pod("first", nominated="e1", anti=[term({"app": "b"}, HOST)], priority=5)

    found = decision(pod("w", labels={"app": "b"}), *NODES, promised)

    assert "e1" in found.feasible


def test_with_something_to_do_a_promised_pod_keeps_it_away() -> None:
    promised = pod("first", nominated="e1", anti=[term({"app": "b"}, HOST)], priority=5)
    wanted = pod("w", labels={"app": "b"}, anti=[term({"app": "none"}, HOST)])

    found = decision(wanted, *NODES, promised)

    assert "e1" not in found.feasible


def test_on_trial_the_first_pod_rule_can_become_true() -> None:
    columns = view(*NODES, there("p", "e1"))
    wanted = columns.pods.incoming(pod(labels={"app": "a"}, affinity=[term({"app": "a"}, ZONE)]))
    row = columns.nodes.row_of["e1"]
    trial = TrialRow(columns, row)

    trial.remove(columns.pods.residents[row][0])

    assert InterPodAffinity().filter(wanted, trial) == 0


# Namespaces ---------------------------------------------------------------------------------------

SPACES = (namespace("default"), namespace("red", {"team": "x"}), namespace("blue", {"team": "y"}))


@cases(
    ("wanted", "seen"),
    {
        "nothing said: its own": (in_spaces(A, HOST), {"default"}),
        "by name": (in_spaces(A, HOST, named=["blue"]), {"blue"}),
        "by label": (in_spaces(A, HOST, spaces=TEAM), {"red"}),
        "by both": (in_spaces(A, HOST, spaces=TEAM, named=["blue"]), {"red", "blue"}),
        "all": (in_spaces(A, HOST, spaces=selector()), {"default", "red", "blue", "none"}),
        "those with the label": (
            in_spaces(A, HOST, spaces=selector(None, expression("team", "Exists"))),
            {"red", "blue"},
        ),
        "one that only excludes means all, the excluded ones too": (
            in_spaces(A, HOST, spaces=selector(None, expression("team", "NotIn", "x"))),
            {"default", "red", "blue", "none"},
        ),
        "so does one for those without the label": (
            in_spaces(A, HOST, spaces=selector(None, expression("team", "DoesNotExist"))),
            {"default", "red", "blue", "none"},
        ),
        "by a label no namespace has": (in_spaces(A, HOST, spaces=selector({"team": "z"})), set()),
    },
)
def test_namespaces_of_the_pods_own_terms(wanted: PodAffinityTerm, seen: set[str]) -> None:
    names = {"default": "e1", "red": "e2", "blue": "w1", "none": "x"}
    items = [there("p", where, namespace=space) for space, where in names.items()]

    found = rejected(pod(anti=[wanted]), *SPACES, *items)

    assert {space for space, where in names.items() if where in found} == seen


@cases(
    ("declared", "own", "minded"),
    {
        "nothing said: its owner's": (in_spaces(A, HOST), "blue", True),
        "not another one": (in_spaces(A, HOST), "red", False),
        "by label": (in_spaces(A, HOST, spaces=TEAM), "red", True),
        "without the label": (in_spaces(A, HOST, spaces=TEAM), "default", False),
        "all": (in_spaces(A, HOST, spaces=selector()), "none", True),
        "here one that only excludes does exclude": (
            in_spaces(A, HOST, spaces=selector(None, expression("team", "NotIn", "x"))),
            "red",
            False,
        ),
        "an unknown namespace has no labels": (
            in_spaces(A, HOST, spaces=selector(None, expression("team", "NotIn", "x"))),
            "none",
            True,
        ),
    },
)
def test_namespaces_of_the_terms_of_others(
    declared: PodAffinityTerm, own: str, minded: bool
) -> None:
    shy = pod("shy", node="e1", namespace="blue", anti=[declared])

    found = rejected(pod(namespace=own, labels={"app": "a"}), *SPACES, shy)

    assert found == ({"e1": OTHERS} if minded else {})


def test_a_namespace_that_gets_the_label_counts_from_then_on() -> None:
    columns = view(*NODES, namespace("red"), there("p", "e1", namespace="red"))
    wanted, rule = pod(anti=[in_spaces(A, HOST, spaces=TEAM)]), InterPodAffinity()
    before = as_array(
        rule.filter(columns.pods.incoming(wanted), ManyRows(columns, columns.nodes.order))
    ).tolist()

    columns.catalog.namespaces.put(namespace("red", {"team": "x"}))
    after = as_array(
        rule.filter(columns.pods.incoming(wanted), ManyRows(columns, columns.nodes.order))
    ).tolist()

    assert [bool(code) for code in before] == [False] * 4
    assert [bool(code) for code in after] == [True, False, False, False]


# Score --------------------------------------------------------------------------------------------


@cases(
    ("rule", "wanted", "items", "expected"),
    {
        "what it prefers less what it avoids": (
            InterPodAffinityScore(),
            pod(prefers=[(10, term({"app": "a"}, ZONE))], avoids=[(4, term({"app": "a"}, HOST))]),
            [there("p", "e1")],
            {"e1": 60, "e2": 100, "w1": 0, "x": 0},
        ),
        "required affinity of others counts a little": (
            InterPodAffinityScore(),
            pod(labels={"app": "b"}),
            [there("p", "e1", affinity=[term({"app": "b"}, HOST)])],
            {"e1": 100, "e2": 0, "w1": 0, "x": 0},
        ),
        "what others prefer and avoid": (
            InterPodAffinityScore(),
            pod(labels={"app": "b"}),
            [
                there("p", "e1", prefers=[(3, term({"app": "b"}, HOST))]),
                there("q", "w1", avoids=[(2, term({"app": "b"}, ZONE))]),
            ],
            {"e1": 100, "e2": 40, "w1": 0, "x": 40},
        ),
        "the weight of required affinity is given": (
            InterPodAffinityScore(5),
            pod(labels={"app": "b"}, prefers=[(4, term({"app": "a"}, HOST))]),
            [
                there("p", "e1", affinity=[term({"app": "b"}, HOST)], labels={}),
                there("q", "w1"),
            ],
            {"e1": 100, "e2": 0, "w1": 80, "x": 0},
        ),
        "others are ignored only where the pod itself prefers nothing": (
            InterPodAffinityScore(0, ignore_preferred_of_existing=True),
            pod(labels={"app": "b"}, prefers=[(2, term({"app": "c"}, HOST))]),
            [
                there("p", "e1", prefers=[(3, term({"app": "b"}, HOST))]),
                there("q", "w1", labels={"app": "c"}),
            ],
            {"e1": 100, "e2": 0, "w1": 66, "x": 0},
        ),
        "scaled in doubles: 71 of 79": (
            InterPodAffinityScore(),
            pod(prefers=[(1, term({"app": "a"}, ZONE)), (1, term({"app": "a"}, HOST))]),
            [
                *(there(f"p{i}", "e1") for i in range(29)),
                *(there(f"q{i}", "e2") for i in range(21)),
            ],
            {"e1": 100, "e2": 89, "w1": 0, "x": 0},
        ),
    },
)
def test_score(
    rule: InterPodAffinityScore, wanted: Pod, items: list[Object], expected: dict[str, int]
) -> None:
    assert scores(rule, wanted, *NODES, *items) == expected


def test_scaling_divides_first() -> None:
    # 29 of 50 is 57.99… in doubles, and truncated.
    columns = view(zoned("a", None), zoned("b", None), zoned("c", None))
    at = ManyRows(columns, columns.nodes.order)

    found = InterPodAffinityScore().normalize(
        columns.pods.incoming(pod()), at, np.array([0, 29, 50], np.int64)
    )

    assert found.tolist() == [0, 57, 100]


@cases(
    ("ignore", "own", "items", "scored"),
    {
        "no preferences": (False, [], [], False),
        "no pod that is preferred": (False, [(5, term({"app": "a"}, ZONE))], [], False),
        "or none on a node with the label": (
            False,
            [(5, term({"app": "a"}, ZONE))],
            [there("p", "x")],
            False,
        ),
        "a pod that is preferred": (
            False,
            [(5, term({"app": "a"}, ZONE))],
            [there("p", "e1")],
            True,
        ),
        "also where it comes to nothing in the end": (
            False,
            [(5, term({"app": "a"}, ZONE)), (5, term({"app": "a"}, HOST))],
            [there("p", "e1")],
            True,
        ),
        "ignored": (True, [], [there("p", "e1", prefers=[(1, term(selector(), ZONE))])], False),
    },
)
def test_who_leaves_itself_out(
    ignore: bool, own: list[Any], items: list[Object], scored: bool
) -> None:
    columns = view(*NODES, *items)
    rule = InterPodAffinityScore(ignore_preferred_of_existing=ignore)
    wanted = columns.pods.incoming(pod(prefers=own))

    assert (rule.everywhere(wanted, columns) == SKIPPED) is not scored


# Against a plain reference ------------------------------------------------------------------------

Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Plain:
    """The rules written out node by node, pod by pod."""

    world: ClusterV136

    def spaces(self) -> dict[str, dict[str, str]]:
        return {o.name: o.labels for o in self.world.others if isinstance(o, Namespace)}

    def placed(self) -> Iterable[tuple[Node, Pod]]:
        known = {made.name: made for made in self.world.nodes}
        for each in self.world.pods:
            if each.spec.node_name in known:
                yield known[each.spec.node_name], each

    def means_now(self, each: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """A term of the pod to place: selected namespaces by name, the selector by no labels."""
        names = set(each.namespaces or ())
        chosen = each.namespace_selector
        if not names and chosen is None:
            names = {owner.namespace}
        if chosen is not None and chosen != LabelSelector():
            compiled = from_label_selector(chosen)
            names |= {name for name, labels in self.spaces().items() if compiled.matches(labels)}
        return self._means(each, names, other, MappingProxyType({}))

    def meant_by(self, each: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """A term of a placed pod: by the real labels of the other's namespace."""
        names = set(each.namespaces or ())
        if not names and each.namespace_selector is None:
            names = {owner.namespace}
        return self._means(each, names, other, self.spaces().get(other.namespace, {}))

    def _means(self, each: PodAffinityTerm, names: set[str], other: Pod, labels: Any) -> bool:
        selected = from_label_selector(each.namespace_selector).matches(labels)
        inside = other.namespace in names or selected
        return inside and from_label_selector(each.label_selector).matches(other.labels)


def parts(made: Pod) -> tuple[PodAffinity, PodAffinity]:
    found = made.spec.affinity
    near, apart = (found.pod_affinity, found.pod_anti_affinity) if found else (None, None)
    return near or PodAffinity(), apart or PodAffinity()


def plainly_rejected(world: ClusterV136) -> list[str]:
    rules, wanted = Plain(world), world.wanted
    near, apart = (part.required or [] for part in parts(wanted))
    affinity, anti, existing = Counts(), Counts(), Counts()
    for made, other in rules.placed():
        if near and all(rules.means_now(each, wanted, other) for each in near):
            affinity.update(domains(near, made))
        anti.update(domains((t for t in apart if rules.means_now(t, wanted, other)), made))
        theirs = parts(other)[1].required or []
        existing.update(domains((t for t in theirs if rules.meant_by(t, other, wanted)), made))
    first = not affinity and all(rules.means_now(each, wanted, wanted) for each in near)
    return [_reason(made, near, apart, (affinity, anti, existing), first) for made in world.nodes]


def domains(terms: Iterable[PodAffinityTerm], made: Node) -> list[tuple[str, str]]:
    keys = (each.topology_key for each in terms)
    return [(key, made.labels[key]) for key in keys if key in made.labels]


def _reason(
    made: Node,
    near: list[PodAffinityTerm],
    apart: list[PodAffinityTerm],
    counts: tuple[Counts, Counts, Counts],
    first: bool,
) -> str:
    affinity, anti, existing = counts
    here = domains(near, made)
    if near and (len(here) < len(near) or not (first or all(affinity[each] for each in here))):
        return OWN
    if any(anti[each] for each in domains(apart, made)):
        return ANTI
    return OTHERS if any(existing[pair] for pair in made.labels.items()) else ""


TAME = Extremes(huge=False, broken=False, odd_volumes=False, ghosts=True)


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=120)
def test_the_filter_is_what_the_rules_say_one_by_one(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted, rule = columns.pods.incoming(world.wanted), InterPodAffinity()
    if isinstance(rule.pre_filter(wanted, columns), Refused):
        return

    codes = as_array(rule.filter(wanted, ManyRows(columns, columns.nodes.order))).tolist()

    said = [columns.verdicts[code].reasons for code in codes]
    assert [reasons[0] if reasons else "" for reasons in said] == plainly_rejected(world)
    if rule.activity(wanted, columns) is Activity.SKIPPED:
        assert not any(said)


def plain_raw(world: ClusterV136, hard: int, *, ignore: bool) -> list[int] | None:
    """The raw score of each node; None when the rule leaves itself out."""
    rules, wanted = Plain(world), world.wanted
    near, apart = parts(wanted)
    if ignore and not near.preferred and not apart.preferred:
        return None
    table = Counts()
    seen = False
    for made, other in rules.placed():
        theirs = parts(other)
        weighted = [
            (sign * each.weight, each.pod_affinity_term)
            for sign, part in ((1, near), (-1, apart))
            for each in part.preferred or ()
            if rules.means_now(each.pod_affinity_term, wanted, other)
        ]
        weighted += [
            (sign * each.weight, each.pod_affinity_term)
            for sign, part in ((1, theirs[0]), (-1, theirs[1]))
            for each in part.preferred or ()
            if rules.meant_by(each.pod_affinity_term, other, wanted)
        ]
        weighted += [
            (hard, each)
            for each in theirs[0].required or ()
            if hard and rules.meant_by(each, other, wanted)
        ]
        for weight, each in weighted:
            for place in domains([each], made):
                table[place] += weight
                seen = True
    if not seen:
        return None
    return [sum(table[pair] for pair in made.labels.items()) for made in world.nodes]


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=120)
def test_the_score_is_what_the_rules_say_one_by_one(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    at = ManyRows(columns, columns.nodes.order)

    for hard, ignore in ((1, False), (40, False), (0, True)):
        rule = InterPodAffinityScore(hard, ignore_preferred_of_existing=ignore)
        expected = plain_raw(world, hard, ignore=ignore)
        assert (rule.everywhere(wanted, columns) == SKIPPED) is (expected is None)
        if expected is not None:
            raw = np.broadcast_to(as_array(rule.score(wanted, at)), len(at))
            assert raw.tolist() == expected
            low, span = min(expected), max(expected) - min(expected)
            final = [int(100.0 * ((n - low) / span)) if span else 0 for n in expected]
            assert np.asarray(rule.normalize(wanted, at, raw)).tolist() == final
