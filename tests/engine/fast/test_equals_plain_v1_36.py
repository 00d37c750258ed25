"""A remembered answer equals a fresh one under the plugins of today, too.

Topology spread, affinity by zone, host and namespace, default spreading and images make the answer
for one node depend on all others: what is kept of them must never be stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

import podium
from builders import (
    BROKEN,
    budget,
    claim,
    claim_volume,
    expression,
    gce,
    node,
    node_term,
    nodes,
    pod,
    replica_set,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from builders_v1_36 import (
    HOST,
    SOFT,
    ZONE,
    configured,
    csi_node,
    default_profile,
    exclusive,
    in_spaces,
    namespace,
    owned,
    spec_with,
    spread,
    with_args,
)
from cases import cases
from engine.fast.twins import NODES, Ground, History, histories, outcome
from podium.cluster.simulation import RETRY, Simulation
from podium.engine.framework.profile import Profile
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from user_rules import MILD, always_out_of_range, extended, grows_out_of_range

pytestmark = pytest.mark.slow


STRICT = {
    "pluginConfig": [
        with_args(
            "PodTopologySpread",
            defaultingType="List",
            defaultConstraints=[
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 2, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
            ],
        ),
        with_args("NodeResourcesFit", scoringStrategy={"type": "MostAllocated"}),
        with_args("InterPodAffinity", hardPodAffinityWeight=30),
    ]
}
RATIO = {
    "pluginConfig": [
        with_args(
            "NodeResourcesFit",
            ignoredResources=["example.com/gpu"],
            scoringStrategy={
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu"}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
                },
            },
        ),
        with_args(
            "InterPodAffinity", hardPodAffinityWeight=0, ignorePreferredTermsOfExistingPods=True
        ),
        with_args(
            "NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "memory"}]
        ),
        with_args(
            "NodeAffinity",
            addedAffinity={
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 3,
                        "preference": {
                            "matchExpressions": [
                                {"key": "disk", "operator": "In", "values": ["ssd"]}
                            ]
                        },
                    }
                ]
            },
        ),
    ]
}
#: Some first looks and preparations are off; what can do without them still runs.
UNPREPARED = {
    "plugins": {
        "preFilter": {"disabled": [{"name": "VolumeZone"}, {"name": "NodeAffinity"}]},
        "preScore": {
            "disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "NodeAffinity"}]
        },
        "score": {"disabled": [{"name": "ImageLocality"}]},
    }
}
#: A share of a very large memory overflows 64 bits, and the score leaves its range.
MOST_ALLOCATED = {
    "pluginConfig": [
        with_args(
            "NodeResourcesFit",
            scoringStrategy={"type": "MostAllocated", "resources": [{"name": "memory"}]},
        )
    ]
}
PROFILES: dict[str, Profile] = {
    "default": default_profile(),
    "v1.35": podium.default_profile("v1.35"),
    "v1.37": podium.default_profile("v1.37"),
    "strict": configured(STRICT)[0],
    "ratio": configured(RATIO)[0],
    "unprepared": configured(UNPREPARED)[0],
    "round robin": default_profile(ties="round-robin"),
    "heap": default_profile(ties="kube-scheduler"),
    "heap of a sample": default_profile(ties="kube-scheduler", percentage_of_nodes_to_score=60),
    "user rules": extended(default_profile(), *MILD),
    "user rules out of range": extended(default_profile(), grows_out_of_range),
    "always out of range": extended(default_profile(), always_out_of_range),
    "most allocated": configured(MOST_ALLOCATED)[0],
}

A, B, C = (selector({"app": app}) for app in "abc")
TEAM = selector({"team": "x"})
NOT_TEAM = selector(None, expression("team", "NotIn", "x"))


def with_spread(*constraints: Any) -> Callable[[Pod], Pod]:
    return lambda made: spec_with(made, topology_spread_constraints=list(constraints))


def by(kind: str, name: str) -> Callable[[Pod], Pod]:
    return lambda made: owned(made, kind, name)


def asks(requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"requests": requests, **more}


#: What a pod can be like, and what the builder cannot say. Names and uids come later.
PODS: dict[str, dict[str, Any]] = {
    "basic": asks({"cpu": "1", "memory": "1Gi"}),
    "large": asks({"cpu": "3", "memory": "3Gi"}, priority=5),
    "huge": asks({"cpu": "1", "memory": 2**58}),
    "nothing": {},
    "app": asks({"cpu": "500m"}, labels={"app": "a"}),
    "app elsewhere": {"labels": {"app": "a"}, "namespace": "other"},
    "owned": {"labels": {"app": "a"}, "more": by("ReplicaSet", "a")},
    "owned b": {"labels": {"app": "b"}, "more": by("ReplicaSet", "b")},
    "hard zone": {"labels": {"app": "a"}, "more": with_spread(spread(ZONE, 1, A))},
    "hard host": {"labels": {"app": "b"}, "more": with_spread(spread(HOST, 1, B))},
    "hard both": {
        "labels": {"app": "a"},
        "more": with_spread(spread(ZONE, 1, A), spread(HOST, 2, A)),
    },
    "hard three": {"labels": {"app": "c"}, "more": with_spread(spread(ZONE, 1, C, least=3))},
    "hard others": {"labels": {"app": "c"}, "more": with_spread(spread(ZONE, 1, A))},
    "hard choosing": {
        "labels": {"app": "a"},
        "node_selector": {"disk": "ssd"},
        "more": with_spread(spread(ZONE, 1, A), spread(ZONE, 1, A, affinity="Ignore")),
    },
    "hard honest": {
        "labels": {"app": "b"},
        "more": with_spread(spread(ZONE, 1, B, taints="Honor")),
    },
    "hard everything": {"labels": {"app": "b"}, "more": with_spread(spread(ZONE, 1, selector()))},
    "hard shared": {
        "labels": {"app": "a", "v": "1"},
        "more": with_spread(spread(ZONE, 1, A, shared=["v"])),
    },
    "soft zone": {"labels": {"app": "a"}, "more": with_spread(spread(ZONE, 2, A, when=SOFT))},
    "soft host": {"labels": {"app": "b"}, "more": with_spread(spread(HOST, 1, B, when=SOFT))},
    "soft both": {
        "labels": {"app": "a"},
        "more": with_spread(
            spread(ZONE, 1, A, when=SOFT, taints="Honor"), spread("disk", 3, A, when=SOFT)
        ),
    },
    "mixed": {
        "labels": {"app": "a"},
        "more": with_spread(spread(ZONE, 2, A), spread(HOST, 1, A, when=SOFT)),
    },
    "alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)]},
    "sized alone": asks(
        {"cpu": "1", "memory": "1Gi"}, labels={"app": "b"}, anti=[term({"app": "b"}, HOST)]
    ),
    "zone alone": {"labels": {"app": "c"}, "anti": [term({"app": "c"}, ZONE)], "priority": 3},
    "together": {"labels": {"app": "c"}, "affinity": [term({"app": "c"}, ZONE)]},
    "near a": asks({"cpu": "1"}, affinity=[term({"app": "a"}, HOST)]),
    "near both": {"affinity": [term({"app": "a"}, ZONE), term({"app": "a"}, HOST)]},
    "near team": {"labels": {"app": "a"}, "affinity": [in_spaces(A, ZONE, spaces=TEAM)]},
    "not near team": {"labels": {"app": "a"}, "anti": [in_spaces(A, ZONE, spaces=TEAM)]},
    "not near others": {"labels": {"app": "b"}, "anti": [in_spaces(A, HOST, spaces=NOT_TEAM)]},
    "shunned by team": {
        "labels": {"app": "d"},
        "namespace": "other",
        "anti": [in_spaces(selector(), ZONE, spaces=TEAM)],
    },
    "shunned by all": {"labels": {"app": "d"}, "anti": [in_spaces(A, HOST, spaces=selector())]},
    "likes": {"labels": {"app": "a"}, "prefers": [(5, term({"app": "a"}, ZONE))]},
    "likes host": {"labels": {"app": "a"}, "prefers": [(5, term({"app": "a"}, HOST))]},
    "likes team": {"prefers": [(50, in_spaces(A, ZONE, spaces=TEAM))]},
    "dislikes": {"labels": {"app": "e"}, "avoids": [(3, term({"app": "a"}, HOST))]},
    "dislikes both": {
        "prefers": [(2, term({"app": "b"}, HOST))],
        "avoids": [(7, term({"app": "c"}, ZONE))],
    },
    "port": asks({"cpu": "100m"}, ports=[80]),
    "chooses": asks({"cpu": "1"}, node_selector={"disk": "ssd"}),
    "names": {"node_affinity": [node_term(fields=[expression("metadata.name", "In", "n1")])]},
    "prefers ssd": {"prefers_nodes": [(4, node_term(expression("disk", "In", "ssd")))]},
    "tolerates": asks({"cpu": "1"}, tolerations=[tolerates("t", "Exists")]),
    "image": asks({"memory": "1Gi"}, image="app:1"),
    "disk": {"volumes": [gce("shared")]},
    "claim": {"volumes": [claim_volume("data")]},
    "exclusive": {"volumes": [claim_volume("only")], "priority": 4},
    "gpu": asks({"example.com/gpu": 1}),
    "broken": {"affinity": [term(BROKEN, ZONE)]},
    "urgent": asks({"cpu": "4", "memory": "1Gi"}, priority=9),
    "urgent alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)], "priority": 8},
    "urgent spread": {
        "labels": {"app": "a"},
        "priority": 8,
        "requests": {"cpu": "2"},
        "more": with_spread(spread(ZONE, 1, A)),
    },
    "polite": asks({"cpu": "4"}, priority=9, preemption_policy="Never"),
}
#: What a node can be like.
NODE_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "small": {"cpu": "2", "memory": "2Gi", "pods": 2},
    "ssd": {"labels": {"disk": "ssd"}},
    "hdd": {"labels": {"disk": "hdd"}},
    "tainted": {"taints": [taint("t")]},
    "softly tainted": {"taints": [taint("t", effect="PreferNoSchedule")]},
    "twice tainted": {
        "taints": [taint("t", effect="PreferNoSchedule"), taint("u", effect="PreferNoSchedule")]
    },
    "cordoned": {"unschedulable": True},
    "image": {"images": {"app:1": 600 * 1024 * 1024}},
    "large image": {"images": {"app:1": 900 * 1024 * 1024}, "labels": {"disk": "ssd"}},
    "gpu": {"resources": {"example.com/gpu": 2}},
    "nameless": {"labels": {HOST: None}},
    "huge": {"memory": 2**60},
}
#: Objects besides nodes and pods, by the name under which a history adds and drops them.
OTHERS: dict[str, tuple[str, Any]] = {
    "service a": ("services", service("a", {"app": "a"})),
    "service b": ("services", service("b", {"app": "b"})),
    "service c as a": ("services", service("a", {"app": "c"})),
    "set a": ("replica_sets", replica_set("a", selector({"app": "a"}))),
    "set b": ("replica_sets", replica_set("b", selector({"app": "b"}))),
    "set a meaning b": ("replica_sets", replica_set("a", selector({"app": "b"}))),
    "team default": ("namespaces", namespace("default", {"team": "x"})),
    "plain default": ("namespaces", namespace("default")),
    "team other": ("namespaces", namespace("other", {"team": "x"})),
    "plain other": ("namespaces", namespace("other", {"team": "y"})),
    "claim": ("claims", claim("data", volume="v")),
    "unbound claim": ("claims", claim("data", storage_class="late")),
    "exclusive claim": ("claims", exclusive(claim("only", volume="v"))),
    "class": ("storage_classes", storage_class("late")),
    "volume": ("volumes", volume("v", claimed_by="data", csi=("disk.example.com", "h"))),
    "zoned volume": ("volumes", volume("v", claimed_by="data", labels={ZONE: "east"})),
    "volume near n1": (
        "volumes",
        volume("v", storage_class="late", reachable=[node_term(expression(HOST, "In", "n1"))]),
    ),
    "limit on n2": ("csi_nodes", csi_node("n2", disk=1)),
    "budget": ("budgets", budget("a", selector({"app": "a"}))),
    "generous budget": ("budgets", budget("a", selector({"app": "a"}), allowed=2)),
}


def made_pod(name: str, kind: str, **more: Any) -> Pod:
    fields = {**PODS[kind], **more}
    finish = fields.pop("more", lambda made: made)
    finished: Pod = finish(pod(name, **fields))
    return finished


def made_node(name: str, kind: str, zone: str) -> Node:
    options: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": 5, **NODE_KINDS[kind]}
    labels = {HOST: name} | options.pop("labels", {})
    if zone:
        labels |= {ZONE: zone}
    return node(name, labels={key: value for key, value in labels.items() if value}, **options)


GROUND = Ground(
    PROFILES, PODS, made_pod, NODE_KINDS, made_node, OTHERS, ("", "east", "west", "south")
)


@settings(max_examples=250)
@given(history=histories(GROUND))
def test_a_remembered_answer_equals_a_fresh_one(history: History) -> None:
    history.live()


def two_zones() -> list[tuple[Any, ...]]:
    places = zip(NODES, ("east", "east", "west", "west"), strict=False)
    return [("put_node", name, "plain", zone) for name, zone in places]


ASKED = 12


@pytest.mark.parametrize("patience", [1, 8])
@cases(
    ("kind", "events"),
    {
        "another node gets the image": (
            "image",
            [("put_node", "n0", "image", ""), "ask", ("put_node", "n1", "image", ""), "ask"],
        ),
        "another node loses the image": (
            "image",
            [
                ("put_node", "n0", "image", ""),
                ("put_node", "n1", "image", ""),
                "ask",
                ("put_node", "n1", "plain", ""),
            ],
        ),
        "the pod's own namespace gets the label that its affinity selects by": (
            "near team",
            [("put", "plain default"), "ask", ("put", "team default"), "ask"],
        ),
        "another namespace gets the label that its anti-affinity selects by": (
            "not near team",
            [
                ("add_placed", "app elsewhere", "n0"),
                ("put", "plain other"),
                "ask",
                ("put", "team other"),
                "ask",
                ("drop", "team other"),
            ],
        ),
        "its namespace gets the label by which others shun it": (
            "app",
            [
                ("add_placed", "shunned by team", "n0"),
                ("put", "plain default"),
                "ask",
                ("put", "team default"),
            ],
        ),
        "a namespace gets the label that a preference selects by": (
            "likes team",
            [("add_placed", "app elsewhere", "n2"), "ask", ("put", "team other")],
        ),
        "a zone gets ahead": (
            "hard zone",
            ["schedule", "ask", ("add_placed", "app", "n0"), ("add_placed", "app", "n1"), "ask"],
        ),
        "a zone loses its nodes": (
            "hard zone",
            ["schedule", "ask", ("put_node", "n2", "plain", "east"), "ask", ("drop_node", 3)],
        ),
        "counted pods change their labels, or leave": (
            "hard zone",
            ["schedule", "ask", ("relabel", 0, "b"), "ask", ("terminate", 1), "ask"],
        ),
        "a zone catches up while a node comes, and falls behind again": (
            "hard zone",
            [
                ("add_placed", "app", "n0"),
                "ask",
                ("add_placed", "app", "n2"),
                ("put_node", "n6", "plain", "west"),
                ("ask", "hard zone"),
                ("remove", 1),
                "ask",
            ],
        ),
        "a third zone appears": (
            "hard three",
            ["schedule", "ask", ("put_node", "n5", "plain", "south"), "ask"],
        ),
        "a node that counted is tainted": (
            "hard honest",
            ["schedule", "ask", ("put_node", "n2", "tainted", "west"), "ask"],
        ),
        "a node that did not count is chosen now": (
            "hard choosing",
            [("put_node", "n0", "ssd", "east"), "ask", ("put_node", "n2", "ssd", "west"), "ask"],
        ),
        "a node gets the label to spread by": (
            "soft both",
            ["schedule", "schedule", "ask", ("put_node", "n1", "ssd", "east"), "ask"],
        ),
        "its replica set selects others": (
            "owned",
            [("put", "set a"), "schedule", "ask", ("put", "set a meaning b"), "ask"],
        ),
        "a service appears and changes its mind": (
            "app",
            ["schedule", "ask", ("put", "service a"), "ask", ("put", "service c as a"), "ask"],
        ),
        "the first of a group comes, goes, and comes again elsewhere": (
            "together",
            ["ask", "schedule", "ask", ("remove", 0), "ask", ("add_placed", "together", "n3")],
        ),
        "zones fill up and empty again": (
            "zone alone",
            ["schedule", "schedule", "ask", ("remove", 0), "ask", ("drop_node", 0), "ask"],
        ),
        "a node loses its name": (
            "alone",
            ["schedule", "ask", ("put_node", "n1", "nameless", "east"), "ask", "schedule"],
        ),
        "the first soft taint comes and goes": (
            "basic",
            ["ask", ("put_node", "n1", "softly tainted", "east"), "ask", ("drop_node", 1), "ask"],
        ),
        "a node goes and comes back while its place is taken": (
            "basic",
            [
                "ask",
                ("drop_node", 0),
                ("add_placed", "app", "unknown"),
                ("put_node", "n0", "plain", "east"),
                "ask",
            ],
        ),
        "hardly any node is left for a claim that waits": (
            "claim",
            [("put", "unbound claim"), ("put", "class"), "ask", *[("drop_node", 0)] * 3, "ask"],
        ),
        "somebody uses the claim, and stops": (
            "exclusive",
            [
                ("put", "exclusive claim"),
                ("put", "volume"),
                "ask",
                ("add_placed", "exclusive", "n2"),
                "ask",
                ("remove", 0),
            ],
        ),
        "pods that it must not be with come among others": (
            "sized alone",
            [
                "ask",
                *[("add_placed", "nothing", name) for name in ("n0", "n1")],
                "ask",
                *[("add_placed", "sized alone", "n2"), ("add_placed", "nothing", "n3")],
                "ask",
                *[("add_placed", "nothing", name) for name in ("n2", "n0")],
                "ask",
                *[("add_placed", "sized alone", "n1"), ("add_placed", "nothing", "n1")],
                "ask",
            ],
        ),
    },
)
@pytest.mark.parametrize("one_by_one", [24, 1])
def test_what_is_kept_is_never_stale(
    patience: int, one_by_one: int, kind: str, events: list[tuple[Any, ...] | str]
) -> None:
    # "ask" and "schedule" stand for many times, long enough for everything to be kept.
    spelled_out = [
        each
        for event in events
        for each in ([(event, kind)] * ASKED if isinstance(event, str) else [event])
    ]
    for profile in ("default", "strict"):
        given = (one_by_one, 1 << 16, patience)
        History(GROUND, profile, RETRY, *given, (kind,) * 3, two_zones(), spelled_out).live()


def test_what_happens_really_happens() -> None:
    events: list[tuple[Any, ...]] = [
        ("add_placed", "app", "n0"),
        ("schedule", "basic"),
        ("schedule", "basic"),
        ("relabel", 0, "c"),
        ("remove", 1),
        ("terminate", 1),
    ]

    twins = History(GROUND, "default", RETRY, 24, 1 << 16, 8, (), two_zones(), events).live()

    columns = twins.both[0].cache.columns
    left = [
        (each.uid, each.labels.labels, each.terminating)
        for r in columns.pods.residents
        for each in r
    ]
    assert left == [("default/app-0", {"app": "c"}, False), ("default/basic-2", {}, True)]


def test_pods_of_two_schedulers_do_not_mix() -> None:
    strict, plain = configured(
        {"schedulerName": "strict", **STRICT}, {"schedulerName": "default-scheduler"}
    )
    both = [Simulation(plain, others=[strict], fast=fast) for fast in (True, False)]
    made = [made_node(f"n{i}", "plain", zone) for i, zone in enumerate(["a", "a", "b", ""])]
    for each in both:
        for one in made:
            each.cache.put_node(one)
        each.cache.columns.catalog.services.put(service("a", {"app": "a"}))

    for number in range(24):
        kind = ("app", "hard zone", "soft host", "likes")[number // 2 % 4]
        wanted = made_pod(f"p{number}", kind)
        if number % 2:
            wanted = spec_with(wanted, scheduler_name="strict")
        fast, slow = ([outcome(step.decision) for step in each.run([wanted])] for each in both)
        assert fast == slow


@pytest.mark.parametrize("kind", ["basic", "hard zone", "soft zone", "alone", "likes", "owned b"])
def test_samples_are_the_same(kind: str) -> None:
    # More than a hundred nodes, of which a hundred are enough.
    profile = default_profile(percentage_of_nodes_to_score=1)
    twins = [Simulation(profile, fast=fast) for fast in (True, False)]
    labelled = [
        node(each.name, labels={HOST: each.name, ZONE: f"z{number % 3}"}, cpu="4")
        for number, each in enumerate(nodes(130))
    ]
    for each in twins:
        for one in labelled:
            each.cache.put_node(one)
        each.cache.columns.catalog.services.put(service("b", {"app": "b"}))

    for number in range(20):
        wanted = made_pod(f"p{number}", kind)
        fast, slow = ([outcome(step.decision) for step in each.run([wanted])] for each in twins)
        assert fast == slow


@pytest.mark.soak
@settings(max_examples=5000)
@given(history=histories(GROUND, longest=80))
def test_long_histories(history: History) -> None:
    history.live()
