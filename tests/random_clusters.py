"""Small random clusters for property tests, made from few values.

Few names, labels and amounts are used, because a rule only shows what it does where a selector
matches another pod, two pods want one port, or a sum comes close to a limit. Nodes and
pods come in numbered kinds, made once from their number: drawing a number is cheap, and fewer pods
of lower kinds are what a failing example shrinks to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from builders import (
    BROKEN,
    REGION,
    ZONE,
    azure,
    claim,
    claim_volume,
    container,
    controller,
    ebs,
    expression,
    gce,
    iscsi,
    node,
    node_term,
    pod,
    rbd,
    replica_set,
    selector,
    service,
    stateful_set,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from podium.engine.framework.declaration import FactoryArgs
from podium.engine.framework.rule import FilterRule, ScoreRule
from podium.engine.rules.nodes import (
    CheckNodeLabelPresence,
    NodeLabelPriority,
)
from podium.engine.rules.pod_affinity import InterPodAffinityPriority
from podium.engine.rules.resources.predicates import (
    GeneralPredicates,
    PodFitsResources,
    RequestedToCapacityRatioPriority,
)
from podium.engine.rules.service_affinity import CheckServiceAffinity, ServiceAntiAffinity
from podium.engine.rules.volumes.limits import (
    EBS,
    GCE_PD,
    MaxVolumeCount,
    csi_limit_name,
)
from podium.generations import predicates
from podium.objects.kinds.meta import Object, RawQuantity
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelectorTerm, Pod, PodAffinityTerm
from podium.profiles.policy.feature_gates import PolicyGates

GPU = "example.com/gpu"
DRIVER = "csi.example.com"
MEBIBYTE = 1 << 20
HUGE = 1 << 62

ALL_GATES = PolicyGates({"ResourceLimitsPriorityFunction": True})
#: Further rules of a declaration: those that can be configured, and those that arguments make.
MORE_PREDICATES: dict[str, tuple[FilterRule, ...]] = {
    "GeneralPredicates": (GeneralPredicates(ignored=frozenset({GPU})),),
    "PodFitsResources": (PodFitsResources(ignored=frozenset({GPU})),),
    "CheckNodeLabelPresence": (
        CheckNodeLabelPresence(["zone", "disk"], presence=True),
        CheckNodeLabelPresence(["disk"], presence=False),
    ),
    "CheckServiceAffinity": (
        CheckServiceAffinity(["zone"]),
        CheckServiceAffinity(["zone", "disk"]),
    ),
    "MaxEBSVolumeCount": (MaxVolumeCount("MaxEBSVolumeCount", EBS, limit=2),),
    "MaxGCEPDVolumeCount": (
        MaxVolumeCount("MaxGCEPDVolumeCount", GCE_PD, node_limits=False, limit=1),
    ),
}
MORE_PRIORITIES: dict[str, tuple[ScoreRule, ...]] = {
    "InterPodAffinityPriority": (InterPodAffinityPriority(hard_weight=50),),
    "RequestedToCapacityRatioPriority": (
        RequestedToCapacityRatioPriority(((10, 3), (40, 9), (80, 1)), name="Line"),
    ),
}
PRIORITIES_OF_ARGUMENTS: tuple[ScoreRule, ...] = (
    ServiceAntiAffinity("zone"),
    NodeLabelPriority("disk", presence=True, name="Disk"),
    NodeLabelPriority("zone", presence=False, name="NoZone"),
)
#: Every predicate, in the order they run; those that can be configured, twice.
PREDICATES: tuple[FilterRule, ...] = tuple(
    rule
    for declared in predicates.PREDICATES
    for rule in (
        *((declared.make(FactoryArgs(ALL_GATES)),) if declared.make else ()),
        *MORE_PREDICATES.get(declared.name, ()),
    )
)
#: Every priority; those that can be configured, twice.
PRIORITIES: tuple[ScoreRule, ...] = (
    *PRIORITIES_OF_ARGUMENTS,
    *(
        rule
        for declared in predicates.PRIORITIES
        for rule in (
            declared.make(FactoryArgs(ALL_GATES)),
            *MORE_PRIORITIES.get(declared.name, ()),
        )
    ),
)


@dataclass(frozen=True)
class Extremes:
    """Rare things that a random cluster may hold."""

    #: Amounts near the end of 64 bits, where sums wrap.
    huge: bool = True
    #: Selectors that cannot be compiled.
    broken: bool = True
    #: Claims that are errors.
    odd_volumes: bool = True
    #: Pods on nodes that do not exist.
    ghosts: bool = True
    images: bool = True


ALL_EXTREMES = Extremes()


# Values -------------------------------------------------------------------------------------------

NODE_NAMES = ("n0", "n1", "n2", "n3", "n4")
LABELS: tuple[dict[str, str] | None, ...] = (
    None,
    {},
    {"app": "x"},
    {"app": "y"},
    {"app": "x", "tier": "t"},
    {"tier": "t"},
)
SELECTORS = (
    None,
    selector(),
    selector({"app": "x"}),
    selector({"tier": "t"}),
    selector(None, expression("app", "NotIn", "x")),
    selector(None, expression("app", "Exists")),
)
KEYS = ("zone", "zone", "disk", ZONE, "none", "")
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDING = (
    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "r"}}}]}'
)


def often(dice: Random, *common: Any, rare: tuple[Any, ...] = ()) -> Any:
    """Mostly one of the common values, now and then a rare one."""
    return dice.choice([*common * 3, *rare])


def some(dice: Random, values: tuple[Any, ...], most: int = 2) -> list[Any]:
    """A few of the values, mostly none."""
    return dice.sample(values, dice.choice([0, 0, 1, most]))


def node_labels(dice: Random) -> dict[str, str]:
    found = {
        "zone": dice.choice(["1", "2", None]),
        "disk": dice.choice([None, "ssd", ""]),
        "size": dice.choice([None, "5", "-3", "x"]),
        ZONE: dice.choice([None, "a", "b"]),
        REGION: dice.choice([None, None, "r"]),
        "beta.kubernetes.io/instance-type": dice.choice([None, "m5.large", "old"]),
    }
    return {key: value for key, value in found.items() if value is not None}


TAINTS = (
    taint("t"),
    taint("t", "v", "NoExecute"),
    taint("soft", "", "PreferNoSchedule"),
    taint("soft2", "v", "PreferNoSchedule"),
)
CONDITIONS = (
    "Ready",
    "OutOfDisk",
    "NetworkUnavailable",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
)
IMAGES = ("i:1", "i:2", "big:latest")


RESOURCES: tuple[dict[str, int], ...] = (
    {},
    {GPU: 1},
    {"ephemeral-storage": 10, GPU: 0},
    {"attachable-volumes-aws-ebs": 1},
    {csi_limit_name(DRIVER): 1, "attachable-volumes-gce-pd": 0},
)


@cache
def node_kind(number: int, extremes: Extremes) -> dict[str, Any]:
    """What nodes of a kind are like; kind 0 is the plainest."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    large = (HUGE,) if extremes.huge else ()
    return {
        "cpu": often(dice, "4", "1", "100m", rare=(0, *large, None)),
        "memory": often(dice, "1Gi", 1000, "300Mi", rare=(0, *large, None)),
        "pods": often(dice, 110, 3, rare=(0, 1, None)),
        "resources": dice.choice(RESOURCES),
        "labels": node_labels(dice),
        "taints": some(dice, TAINTS),
        "unschedulable": often(dice, False, rare=(True,)),
        "conditions": {
            kind: dice.choice(["True", "False", "Unknown"]) for kind in some(dice, CONDITIONS, 3)
        },
        "images": {
            image: dice.choice([0, 30, 500, 3000]) * MEBIBYTE
            for image in some(dice, IMAGES, 3)
            if extremes.images
        },
        "annotations": {AVOID: AVOIDING} if often(dice, False, rare=(True,)) else None,
    }


def pod_term(dice: Random, extremes: Extremes) -> PodAffinityTerm:
    chosen = often(dice, *SELECTORS, rare=(BROKEN,) if extremes.broken else ())
    spaces = often(dice, (), rare=(("other",), ("other", "default")))
    return term(chosen, dice.choice(KEYS), spaces)


EXPRESSIONS = (
    expression("zone", "In", "1"),
    expression("zone", "NotIn", "1", "2"),
    expression("disk", "Exists"),
    expression("disk", "DoesNotExist"),
    expression("size", "Gt", "4"),
    expression("size", "Lt", "6"),
    expression("size", "Near", "6"),
)
FIELDS = (
    expression("metadata.name", "In", "n1"),
    expression("metadata.name", "NotIn", "n1"),
    expression("other", "In", "x"),
)


def labels_or_name(dice: Random) -> NodeSelectorTerm:
    return node_term(*some(dice, EXPRESSIONS), fields=some(dice, FIELDS, 1))


VOLUMES = (
    gce("d"),
    gce("d", read_only=True),
    gce("e", read_only=True),
    ebs("d"),
    ebs("e"),
    ebs("f"),
    azure("d"),
    iscsi("q"),
    iscsi("q", read_only=True),
    rbd("m1", image="i"),
    rbd("m1", "m2", image="i", read_only=True),
    claim_volume("bound"),
    claim_volume("zoned"),
    claim_volume("csi1"),
    claim_volume("csi2"),
    claim_volume("waiting"),
    claim_volume("provisioned"),
)
ODD_VOLUMES = (
    claim_volume(""),
    claim_volume("unknown"),
    claim_volume("immediate"),
    claim_volume("lost"),
    claim_volume("modeless"),
    claim_volume("picky"),
)

#: What volumes and claims refer to.
STORAGE: tuple[Object, ...] = (
    volume("pv", source=ebs("d"), reachable=[node_term(expression("zone", "In", "1"))]),
    volume("pv-zone", source=gce("e"), labels={ZONE: "a__b", REGION: "r"}),
    volume("pv-csi1", csi=(DRIVER, "h1")),
    volume("pv-csi2", csi=(DRIVER, "h2")),
    volume("free1", storage_class="wait", reachable=[node_term(expression("zone", "In", "1"))]),
    volume("free2", storage_class="wait", storage="5Gi"),
    claim("bound", volume="pv"),
    claim("zoned", volume="pv-zone"),
    claim("csi1", volume="pv-csi1"),
    claim("csi2", volume="pv-csi2"),
    claim("lost", volume="pv-lost"),
    claim("immediate"),
    claim("modeless", storage_class="modeless"),
    claim("waiting", storage_class="wait"),
    claim("picky", storage_class="wait", chosen=BROKEN),
    claim("provisioned", storage_class="made"),
    storage_class("wait"),
    storage_class("modeless", mode=None),
    storage_class("made", provisioner="example.com/disk"),
)

REQUESTS: tuple[dict[str, RawQuantity] | None, ...] = (
    None,
    {},
    {"cpu": "1"},
    {"cpu": "100m", "memory": 100},
    {"memory": "200Mi"},
    {"cpu": 0, "memory": 0},
    {GPU: 1},
    {GPU: 0},
    {"cpu": "2", "ephemeral-storage": 5},
)
HUGE_REQUESTS = ({"memory": HUGE}, {"cpu": HUGE, "memory": HUGE}, {"memory": HUGE - 1})
PORTS = (80, ("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), ("", "UDP", 80), 81)
TOLERATIONS = (
    tolerates("t", "Exists"),
    tolerates("t", "Equal", "v", "NoExecute"),
    tolerates(),
    tolerates("soft", "Exists", effect="PreferNoSchedule"),
    tolerates("node.kubernetes.io/unschedulable", "Exists"),
)


@cache
def body_kind(number: int, extremes: Extremes) -> dict[str, Any]:
    """What pods of a kind need: resources, ports, volumes, images."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    requests = often(dice, *REQUESTS, rare=HUGE_REQUESTS if extremes.huge else ())
    one = container(
        requests,
        limits=dice.choice([None, {"cpu": "1"}, {"memory": 500}]),
        image=dice.choice(["", "i:1", "i:2", "big"]),
        ports=some(dice, PORTS),
    )
    first = container(dice.choice(REQUESTS))
    volumes = (*VOLUMES, *(ODD_VOLUMES if extremes.odd_volumes else ()))
    return {
        "containers": often(dice, [one], rare=([one, one],)),
        "init": often(dice, [], rare=([first],)),
        "volumes": some(dice, volumes),
        "priority": dice.choice([None, 0, 5, 10]),
        "owner": often(dice, None, ("ReplicaSet", "r"), rare=(("StatefulSet", "r"),)),
    }


@cache
def tie_kind(number: int, extremes: Extremes) -> dict[str, Any]:
    """What pods of a kind are to other pods: labels, namespace, affinity."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    found: dict[str, Any] = {
        "namespace": often(dice, "default", rare=("other",)),
        "labels": dice.choice(LABELS),
    }
    if dice.random() < 0.5:
        found["affinity"] = [pod_term(dice, extremes) for _ in range(dice.choice([0, 0, 1, 2]))]
        found["anti"] = [pod_term(dice, extremes) for _ in range(dice.choice([0, 1, 2]))]
        found["prefers"] = [(5, pod_term(dice, extremes)) for _ in range(dice.choice([0, 1]))]
        found["avoids"] = [(100, pod_term(dice, extremes)) for _ in range(dice.choice([0, 1]))]
    elif dice.random() < 0.4:
        # A group that wants to be together: its first pod is a case of its own.
        found["labels"] = {"app": "x"}
        found["affinity"] = [term({"app": "x"}, dice.choice(["zone", "disk"]))]
    return found


@cache
def wish_kind(number: int) -> dict[str, Any]:
    """What pods of a kind want of their node: selectors, tolerations."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    picky = dice.random() < 0.3
    return {
        "tolerations": some(dice, TOLERATIONS),
        "node_selector": often(dice, None, rare=({}, {"zone": "1"}, {"zone": "-bad"})),
        "node_affinity": [labels_or_name(dice) for _ in range(dice.choice([0, 1, 2]))]
        if picky
        else None,
        "prefers_nodes": [
            (dice.choice([0, 1, 7]), labels_or_name(dice)) for _ in range(dice.choice([0, 1, 2]))
        ],
    }


NUMBERS = st.integers(0, 250)
RARELY = st.integers(0, 9).map(lambda number: number == 9)


@st.composite
def node_like(draw: st.DrawFn, name: str, extremes: Extremes = ALL_EXTREMES) -> Node:
    """A node of this name."""
    return node(name, **node_kind(draw(NUMBERS), extremes))


@st.composite
def pod_like(draw: st.DrawFn, /, name: str, extremes: Extremes = ALL_EXTREMES, **fixed: Any) -> Pod:
    """A pod of this name."""
    made = body_kind(draw(NUMBERS), extremes) | tie_kind(draw(NUMBERS), extremes)
    if fixed.get("node"):
        made["terminating"] = draw(RARELY)
    else:
        made |= wish_kind(draw(NUMBERS))
    return pod(name, **(made | fixed))


OTHERS: tuple[Object, ...] = (
    service("s", {"app": "x"}),
    service("t", {"tier": "t"}),
    service("all", {}),
    service("nothing", None),
    service("s", {"app": "x"}, namespace="other"),
    controller("rc", {"app": "y"}),
    replica_set("rs", selector({"app": "x"})),
    replica_set("bad", BROKEN),
    stateful_set("sts", selector({"tier": "t"})),
)


@dataclass(frozen=True)
class Cluster:
    """Objects of a cluster and a pod to decide about."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    others: tuple[Object, ...]
    wanted: Pod

    def objects(self, nodes: Sequence[Node] | None = None) -> tuple[Object, ...]:
        """All objects, with other nodes if some are given."""
        own = self.nodes if nodes is None else nodes
        return (*own, *STORAGE, *self.others, *self.pods)


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    extremes: Extremes = ALL_EXTREMES,
    least_nodes: int = 0,
    nominated: bool = False,
) -> Cluster:
    """A cluster of up to five nodes and eight pods, and one pod to place."""
    names = NODE_NAMES[: draw(st.integers(least_nodes, len(NODE_NAMES)))]
    homes = [*names * 5, *(["ghost"] if extremes.ghosts else [])]
    count = draw(st.integers(0, 8)) if homes else 0
    pods = [
        draw(pod_like(f"p{number}", extremes, node=draw(st.sampled_from(homes))))
        for number in range(count)
    ]
    if nominated and names:
        promised = draw(st.lists(st.sampled_from(names), max_size=2))
        pods += [
            draw(pod_like(f"q{number}", extremes, nominated=name))
            for number, name in enumerate(promised)
        ]
    return Cluster(
        nodes=tuple(draw(node_like(name, extremes)) for name in names),
        pods=tuple(pods),
        others=tuple(draw(st.lists(st.sampled_from(OTHERS), max_size=4, unique_by=repr))),
        wanted=draw(pod_like("wanted", extremes)),
    )
