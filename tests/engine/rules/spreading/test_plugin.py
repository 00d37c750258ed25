"""v1.36 PodTopologySpread: worked examples, and random clusters against a plain reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings

from builders import (
    controller,
    expression,
    node,
    pod,
    replica_set,
    selector,
    service,
    stateful_set,
    taint,
    tolerates,
)
from builders_v1_36 import (
    HARD,
    HOST,
    SOFT,
    ZONE,
    configured,
    decision,
    judged,
    owned,
    scores,
    spec_with,
    spread,
    view,
    with_args,
)
from cases import cases
from podium.engine.framework.rule import AttemptError
from podium.engine.rows.rows import ManyRows, OneRow, as_array, as_int
from podium.engine.rows.trial_one import TrialRow
from podium.engine.rules.spreading import PodTopologySpread, PodTopologySpreadScore
from podium.objects.kinds.meta import LabelSelector, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, TopologySpreadConstraint
from podium.objects.selectors.selectors import (
    Selector,
    from_label_selector,
    node_terms,
)
from podium.objects.taints import tolerated
from random_clusters import Extremes
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEWED} (missing required label)"
APP = selector({"app": "a"})


def wanting(*constraints: TopologySpreadConstraint, **fields: Any) -> Pod:
    made = pod("wanted", **{"labels": {"app": "a"}, **fields})
    return spec_with(made, topology_spread_constraints=list(constraints))


def there(name: str, where: str, labels: dict[str, str] | None = None, **fields: Any) -> Pod:
    return pod(name, node=where, labels={"app": "a"} if labels is None else labels, **fields)


def zoned(name: str, zone: str | None, **fields: Any) -> Node:
    labels = {HOST: name, **({ZONE: zone} if zone else {}), **fields.pop("labels", {})}
    return node(name, labels=labels, **fields)


#: Two zones of two nodes: east with two pods, west with one, and a node without a zone.
CLUSTER: tuple[Object, ...] = (
    zoned("e1", "east"),
    zoned("e2", "east"),
    zoned("w1", "west"),
    zoned("w2", "west"),
    zoned("x", None),
    there("p1", "e1"),
    there("p2", "e1"),
    there("p3", "w1"),
)


def rejected(wanted: Pod, *items: Object) -> dict[str, str]:
    """Node -> its reason."""
    said = judged(PodTopologySpread(), wanted, *(items or CLUSTER))
    return {name: reasons[0] for name, reasons in said.items() if reasons}


EAST_FULL = {"e1": SKEWED, "e2": SKEWED, "x": MISSING}


@cases(
    ("wanted", "expected"),
    {
        "east is one ahead already": (wanting(spread(ZONE, 1, APP)), EAST_FULL),
        "two ahead may be allowed": (wanting(spread(ZONE, 2, APP)), {"x": MISSING}),
        "a pod that does not count itself adds nothing": (
            wanting(spread(ZONE, 1, APP), labels={"app": "b"}),
            {"x": MISSING},
        ),
        "with fewer domains than wanted the smallest counts as empty": (
            wanting(spread(ZONE, 1, APP, least=3)),
            {**EAST_FULL, "w1": SKEWED, "w2": SKEWED},
        ),
        "as many as wanted are enough": (wanting(spread(ZONE, 1, APP, least=2)), EAST_FULL),
        "every constraint must be met": (
            wanting(spread(ZONE, 1, APP), spread(HOST, 1, APP)),
            {**EAST_FULL, "w1": SKEWED},
        ),
        "by host name nodes count one by one": (
            wanting(spread(HOST, 1, APP)),
            {"e1": SKEWED, "w1": SKEWED},
        ),
        "no selector, no pods": (wanting(spread(ZONE, 1, None)), {"x": MISSING}),
        "an empty selector counts no other pod, but matches the pod itself": (
            wanting(spread(ZONE, 1, selector())),
            {"x": MISSING},
        ),
        "pods of other namespaces do not count": (
            wanting(spread(ZONE, 1, APP), namespace="other"),
            {"x": MISSING},
        ),
        "soft constraints reject nothing": (wanting(spread(ZONE, 1, APP, when=SOFT)), {}),
    },
)
def test_hard_constraints(wanted: Pod, expected: dict[str, str]) -> None:
    assert rejected(wanted) == expected


def test_a_missing_label_is_hopeless_and_a_skew_is_not() -> None:
    found = decision(wanting(spread(ZONE, 1, APP, least=3)), *CLUSTER)

    curable = {v.reasons[0]: v.curable for v in map(found.verdict, found.histogram)}
    assert curable == {SKEWED: True, MISSING: False}


def test_pods_that_are_leaving_do_not_count() -> None:
    leaving = there("p4", "w2", terminating=True)

    assert rejected(wanting(spread(ZONE, 1, APP)), *CLUSTER, leaving) == EAST_FULL


@cases(
    ("keys", "labels", "expected"),
    {
        "without keys": ((), {"app": "a", "v": "1"}, {"e1": SKEWED}),
        "only pods of the same version": (("v",), {"app": "a", "v": "1"}, {"w1": SKEWED}),
        "of this version are two": (("v",), {"app": "a", "v": "2"}, {"e1": SKEWED}),
        "a key that the pod lacks is not read": (("v",), {"app": "a"}, {"e1": SKEWED}),
        "keys that are there are still read": (
            ("v", "other"),
            {"app": "a", "v": "1"},
            {"w1": SKEWED},
        ),
    },
)
def test_match_label_keys(
    keys: tuple[str, ...], labels: dict[str, str], expected: dict[str, str]
) -> None:
    items = (
        zoned("e1", "east"),
        zoned("w1", "west"),
        there("p1", "e1", {"app": "a", "v": "2"}),
        there("p2", "e1", {"app": "a", "v": "2"}),
        there("p3", "w1", {"app": "a", "v": "1"}),
    )

    assert rejected(wanting(spread(ZONE, 1, APP, shared=keys), labels=labels), *items) == expected


@cases(
    ("chosen", "expected"),
    {
        "without a selector keys are not read: it matches no pod": (None, {}),
        "with an empty one they make it a real one": (selector(), {"e1": SKEWED}),
    },
)
def test_match_label_keys_and_odd_selectors(
    chosen: LabelSelector | None, expected: dict[str, str]
) -> None:
    items = (zoned("e1", "east"), zoned("w1", "west"), there("p1", "e1"))

    assert rejected(wanting(spread(ZONE, 1, chosen, shared=["app"])), *items) == expected


SSD = {"disk": "ssd"}


@cases(
    ("policy", "expected"),
    {
        "honoured unless told: the empty zone is out of reach": (None, {}),
        "honoured": ("Honor", {}),
        "ignored: it counts": ("Ignore", {"e1": SKEWED, "w1": SKEWED}),
    },
)
def test_node_affinity_policy(policy: str | None, expected: dict[str, str]) -> None:
    items = (
        zoned("e1", "east", labels=SSD),
        zoned("w1", "west", labels=SSD),
        zoned("s1", "south"),
        there("p1", "e1"),
        there("p2", "w1"),
    )
    wanted = wanting(spread(ZONE, 1, APP, affinity=policy), node_selector=SSD)

    assert rejected(wanted, *items) == expected


@cases(
    ("policy", "tolerant", "expected"),
    {
        "ignored unless told: the tainted zone counts": (None, False, {"e1": SKEWED}),
        "ignored": ("Ignore", False, {"e1": SKEWED}),
        "honoured: the tainted zone is out of reach": ("Honor", False, {}),
        "not for a pod that tolerates it": ("Honor", True, {"e1": SKEWED}),
    },
)
def test_node_taints_policy(policy: str | None, tolerant: bool, expected: dict[str, str]) -> None:
    items = (
        zoned("e1", "east"),
        zoned("s1", "south", taints=[taint(), taint("soft", effect="PreferNoSchedule")]),
        there("p1", "e1"),
    )
    wanted = wanting(
        spread(ZONE, 1, APP, taints=policy),
        tolerations=[tolerates("t", "Exists")] if tolerant else [],
    )

    assert rejected(wanted, *items) == expected


def test_a_node_that_does_not_count_is_judged_by_the_count_of_its_zone() -> None:
    # w2 has no disk: its pod does not count, but the node is west all the same.
    items = (
        zoned("e1", "east", labels=SSD),
        zoned("w1", "west", labels=SSD),
        zoned("w2", "west"),
        there("p1", "w1"),
        there("p2", "w2"),
        there("p3", "w2"),
    )

    assert rejected(wanting(spread(ZONE, 1, APP), node_selector=SSD), *items) == {
        "w1": SKEWED,
        "w2": SKEWED,
    }


# On trial -----------------------------------------------------------------------------------------


@cases(
    ("chosen", "terminating", "fits"),
    {
        "a pod that would go makes room in its zone": (APP, False, True),
        "one that is leaving counts as gone once more": (APP, True, True),
        "an empty selector means it here": (selector(), False, True),
    },
)
def test_a_pod_taken_away_on_trial(chosen: LabelSelector, terminating: bool, fits: bool) -> None:
    columns = view(
        zoned("e1", "east"),
        zoned("w1", "west"),
        there("p1", "e1", terminating=terminating),
        there("p2", "e1"),
        there("p3", "e1") if terminating else there("p3", "w1"),
    )
    wanted = columns.pods.incoming(wanting(spread(ZONE, 1, chosen)))
    trial = TrialRow(columns, columns.nodes.row_of["e1"])

    trial.remove(columns.pods.residents[columns.nodes.row_of["e1"]][0])

    assert (as_int(PodTopologySpread().filter(wanted, trial)) == 0) is (fits and not terminating)


def test_removing_pods_that_were_not_counted_can_make_a_count_negative() -> None:
    # Two pods that are leaving: none counts, but both are subtracted when they are evicted.
    columns = view(
        zoned("e1", "east"),
        zoned("w1", "west"),
        there("p1", "e1", terminating=True),
        there("p2", "e1", terminating=True),
        there("p3", "w1"),
    )
    wanted = columns.pods.incoming(wanting(spread(ZONE, 1, APP)))
    east, west = (columns.nodes.row_of[name] for name in ("e1", "w1"))
    gone = TrialRow(columns, east)
    for resident in list(columns.pods.residents[east]):
        gone.remove(resident)
    crowded = TrialRow(columns, west)

    assert PodTopologySpread().filter(wanted, gone) == 0
    assert PodTopologySpread().filter(wanted, crowded) != 0
    assert PodTopologySpread().filter(wanted, OneRow(columns, west)) != 0


# Defaults -----------------------------------------------------------------------------------------

TWO = (zoned("e1", "east"), zoned("w1", "west"))


@cases(
    ("wanted", "others", "spreads"),
    {
        "no owner selects the pod": (pod(labels={"app": "a"}), [], False),
        "a service does": (pod(labels={"app": "a"}), [service("s", {"app": "a"})], True),
        "another service": (pod(labels={"app": "a"}), [service("s", {"app": "b"})], False),
        "a service for all says nothing": (pod(labels={"app": "a"}), [service("s", {})], False),
        "a service without selector": (pod(labels={"app": "a"}), [service("s", None)], False),
        "a service elsewhere": (
            pod(labels={"app": "a"}),
            [service("s", {"app": "a"}, namespace="other")],
            False,
        ),
        "its replica set": (
            owned(pod(labels={"app": "a"}), "ReplicaSet", "r"),
            [replica_set("r", APP)],
            True,
        ),
        "one that is not its owner": (pod(labels={"app": "a"}), [replica_set("r", APP)], False),
        "an owner that is gone": (
            owned(pod(labels={"app": "a"}), "ReplicaSet", "gone"),
            [replica_set("r", APP)],
            False,
        ),
        "its stateful set": (
            owned(pod(labels={"app": "a"}), "StatefulSet", "s"),
            [stateful_set("s", APP)],
            True,
        ),
        "its replication controller": (
            owned(pod(labels={"app": "a"}), "ReplicationController", "c"),
            [controller("c", {"app": "a"})],
            True,
        ),
        "other owners say nothing": (
            owned(pod(labels={"app": "a"}), "Job", "r"),
            [replica_set("r", APP)],
            False,
        ),
        "a pod with constraints of its own gets no defaults, not even soft ones": (
            wanting(spread(HOST, 1, APP)),
            [service("s", {"app": "a"})],
            False,
        ),
    },
)
def test_who_is_spread_by_default(wanted: Pod, others: list[Object], spreads: bool) -> None:
    found = decision(wanted, *TWO, *others, there("p1", "e1"))

    assert ("PodTopologySpread" in [column.name for column in found.scores]) is spreads


def test_services_and_owner_select_together() -> None:
    wanted = owned(pod(labels={"app": "a", "v": "1"}), "ReplicaSet", "r")
    others = [
        service("s", {"app": "a"}),
        replica_set("r", selector({"v": "1"})),
        there("p1", "e1", {"app": "a"}),
        there("p2", "e1", {"v": "1"}),
        there("p3", "w1", {"app": "a", "v": "1"}),
    ]

    assert scores(PodTopologySpreadScore(), wanted, *TWO, *others) == {"e1": 100, "w1": 66}


def test_listed_defaults_can_reject() -> None:
    [strict] = configured(
        {
            "pluginConfig": [
                with_args(
                    "PodTopologySpread",
                    defaultingType="List",
                    defaultConstraints=[
                        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": HARD}
                    ],
                )
            ]
        }
    )
    items = (*TWO, service("s", {"app": "a"}), there("p1", "e1"))

    assert list(decision(pod(labels={"app": "a"}), *items, profile=strict).feasible) == ["w1"]
    assert len(decision(pod(labels={"app": "b"}), *items, profile=strict).feasible) == 2
    own = wanting(spread(HOST, 5, APP, when=SOFT))
    assert len(decision(own, *items, profile=strict).feasible) == 2


def test_two_profiles_with_the_same_defaults_do_not_share_what_they_ignore() -> None:
    # Built-in defaults count nodes that lack a label, listed ones do not.
    listed = {
        "schedulerName": "listed",
        "pluginConfig": [
            with_args(
                "PodTopologySpread",
                defaultingType="List",
                defaultConstraints=[
                    {"maxSkew": 3, "topologyKey": HOST, "whenUnsatisfiable": SOFT},
                    {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": SOFT},
                ],
            )
        ],
    }
    system, other = configured({"schedulerName": "default-scheduler"}, listed)
    rules = [
        next(w.priority for w in profile.priorities if w.name == "PodTopologySpread")
        for profile in (system, other)
    ]
    items = (
        zoned("e1", "east"),
        node("e2", labels={ZONE: "east"}),
        zoned("w1", "west"),
        service("s", {"app": "a"}),
        there("p1", "e2"),
        there("p2", "e2"),
        there("p3", "w1"),
    )
    columns = view(*items)
    wanted, rows = columns.pods.incoming(pod(labels={"app": "a"})), columns.nodes.order

    together = [as_array(rule.score(wanted, ManyRows(columns, rows))).tolist() for rule in rules]

    for rule, found in zip(rules, together, strict=True):
        fresh = view(*items)
        at = ManyRows(fresh, fresh.nodes.order)
        assert (
            as_array(rule.score(fresh.pods.incoming(pod(labels={"app": "a"})), at)).tolist()
            == found
        )


def test_built_in_defaults_count_nodes_without_a_zone_into_the_empty_zone() -> None:
    items = (
        node("empty", labels={HOST: "empty", ZONE: ""}),
        zoned("none", None),
        zoned("east", "east"),
        service("s", {"app": "a"}),
        there("p1", "none"),
        there("p2", "none"),
    )
    columns = view(*items)
    wanted = columns.pods.incoming(pod(labels={"app": "a"}))
    at = ManyRows(columns, columns.nodes.order)

    raw = as_array(PodTopologySpreadScore().score(wanted, at)).tolist()

    two = 2 * math.log(4)  # two domains, or three nodes
    by_host, by_zone = 2.0, 4.0
    assert raw == [math.floor(by_host + by_zone + two + 0.5), round(2 * math.log(5) + 2), 6]


# Scores -------------------------------------------------------------------------------------------


@cases(
    ("wanted", "expected"),
    {
        "two to one by zone: raw 3 and 1; a node without the label gets nothing": (
            wanting(spread(ZONE, 1, APP, when=SOFT)),
            {"e1": 33, "e2": 33, "w1": 100, "w2": 100, "x": 0},
        ),
        "two, one and none by host: raw 4, 2 and 0": (
            wanting(spread(HOST, 1, APP, when=SOFT)),
            {"e1": 0, "e2": 100, "w1": 50, "w2": 100, "x": 100},
        ),
        "a larger skew evens out: raw 5 and 3": (
            wanting(spread(ZONE, 3, APP, when=SOFT)),
            {"e1": 60, "e2": 60, "w1": 100, "w2": 100, "x": 0},
        ),
        "no pods to spread from": (
            wanting(spread(ZONE, 1, selector({"app": "none"}), when=SOFT)),
            {"e1": 100, "e2": 100, "w1": 100, "w2": 100, "x": 0},
        ),
    },
)
def test_soft_constraints(wanted: Pod, expected: dict[str, int]) -> None:
    assert scores(PodTopologySpreadScore(), wanted, *CLUSTER) == expected


# Against a plain reference ------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """A constraint and the cluster, with every rule written out node by node, pod by pod."""

    world: ClusterV136
    own: tuple[TopologySpreadConstraint, ...]
    each: TopologySpreadConstraint

    @property
    def key(self) -> str:
        return self.each.topology_key

    def selector(self) -> Selector:
        found = from_label_selector(self.each.label_selector)
        labels = self.world.wanted.labels
        keys = [k for k in self.each.match_label_keys or () if k in labels]
        if self.each.label_selector is None or not keys:
            return found
        narrowed = selector(
            self.each.label_selector.match_labels,
            *(self.each.label_selector.match_expressions or ()),
            *(expression(k, "In", labels[k]) for k in keys),
        )
        return from_label_selector(narrowed)

    def counts(self, made: Node) -> bool:
        """Whether pods on a node count, by the policies alone."""
        wanted = self.world.wanted
        if self.each.node_affinity_policy != "Ignore" and not required(wanted, made):
            return False
        hard = [t for t in made.spec.taints or () if t.effect in ("NoSchedule", "NoExecute")]
        return self.each.node_taints_policy != "Honor" or all(
            tolerated(wanted.spec.tolerations, each) for each in hard
        )

    def pods_on(self, made: Node) -> int:
        chosen = self.selector()
        if chosen.empty:
            return 0
        return sum(
            p.spec.node_name == made.name
            and p.namespace == self.world.wanted.namespace
            and not p.terminating
            and chosen.matches(p.labels)
            for p in self.world.pods
        )

    def per_domain(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for made in self.world.nodes:
            if has_all(made, self.own) and self.counts(made):
                found[made.labels[self.key]] += self.pods_on(made)
        return found


def has_all(made: Node, constraints: tuple[TopologySpreadConstraint, ...]) -> bool:
    return all(each.topology_key in made.labels for each in constraints)


def required(wanted: Pod, made: Node) -> bool:
    pairs = wanted.spec.node_selector or {}
    if any(made.labels.get(key) != value for key, value in pairs.items()):
        return False
    affinity = wanted.spec.affinity and wanted.spec.affinity.node_affinity
    if not affinity or affinity.required is None:
        return True
    fields = {"metadata.name": made.name}
    return any(term.matches(made.labels, fields) for term in node_terms(affinity.required))


def plain(world: ClusterV136, action: str) -> tuple[Plain, ...]:
    listed = world.wanted.spec.topology_spread_constraints or ()
    own = tuple(each for each in listed if each.when_unsatisfiable == action)
    return tuple(Plain(world, own, each) for each in own)


def plainly_rejected(world: ClusterV136) -> Iterator[str]:
    constraints = plain(world, HARD)
    for made in world.nodes:
        yield next(filter(None, (skew(each, made) for each in constraints)), "")


def skew(each: Plain, made: Node) -> str:
    if each.key not in made.labels:
        return MISSING
    domains = each.per_domain()
    fewest = min(domains.values(), default=0)
    if len(domains) < (each.each.min_domains or 1):
        fewest = 0
    itself = each.selector().matches(each.world.wanted.labels)
    count = domains.get(made.labels[each.key], 0)
    return SKEWED if count + itself - fewest > each.each.max_skew else ""


TAME = Extremes(huge=False, broken=False, odd_volumes=False, ghosts=True)


def readable(world: ClusterV136) -> bool:
    """Whether the node selector can be read at all; if not, it matches no node."""
    return "-bad" not in (world.wanted.spec.node_selector or {}).values()


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=150)
def test_the_filter_is_what_the_rules_say_one_by_one(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted = columns.pods.incoming(world.wanted)
    if not world.wanted.spec.topology_spread_constraints or not readable(world):
        return

    codes = as_array(
        PodTopologySpread().filter(wanted, ManyRows(columns, columns.nodes.order))
    ).tolist()

    said = [columns.verdicts[code].reasons for code in codes]
    assert [reasons[0] if reasons else "" for reasons in said] == list(plainly_rejected(world))


def plain_scores(world: ClusterV136, feasible: list[Node]) -> list[tuple[int, int]]:
    constraints = plain(world, SOFT)
    own = tuple(each.each for each in constraints)
    ignored = [not has_all(made, own) for made in feasible]
    kept = [made for made, left_out in zip(feasible, ignored, strict=True) if not left_out]
    raw = [
        0 if left_out else math.floor(sum(cost(each, made, kept) for each in constraints) + 0.5)
        for made, left_out in zip(feasible, ignored, strict=True)
    ]
    counted = [number for number, left_out in zip(raw, ignored, strict=True) if not left_out]
    most, least = max([0, *counted]), min(counted, default=0)
    final = [
        0 if left_out else 100 if most == 0 else 100 * (most + least - number) // most
        for number, left_out in zip(raw, ignored, strict=True)
    ]
    return list(zip(raw, final, strict=True))


def cost(each: Plain, made: Node, kept: list[Node]) -> float:
    extra = float(each.each.max_skew - 1)
    if each.key == HOST:
        return each.pods_on(made) * math.log(len(kept) + 2) + extra
    domains = {other.labels[each.key] for other in kept}
    count = sum(
        each.pods_on(other)
        for other in each.world.nodes
        if has_all(other, each.own)
        and each.counts(other)
        and other.labels[each.key] == made.labels[each.key]
    )
    return count * math.log(len(domains) + 2) + extra


@given(world=clusters_v1_36(least_nodes=1, extremes=TAME))
@settings(max_examples=150)
def test_the_score_is_what_the_rules_say_one_by_one(world: ClusterV136) -> None:
    columns = view(*world.objects())
    wanted, rule = columns.pods.incoming(world.wanted), PodTopologySpreadScore()
    if not plain(world, SOFT) or not readable(world):
        return
    rows = columns.nodes.order[::2]
    at = ManyRows(columns, rows)
    feasible = [made for made in world.nodes if columns.nodes.row_of[made.name] in rows.tolist()]
    try:
        raw = as_array(rule.score(wanted, at))
    except AttemptError:
        return

    final = rule.normalize(wanted, at, raw)

    found = list(zip(np.asarray(raw).tolist(), np.asarray(final).tolist(), strict=True))
    assert found == plain_scores(world, feasible)
