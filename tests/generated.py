"""Small random clusters for property tests: few names, so that things meet.

Everything is made from a handful of words, because a rule only shows what it does where a pod's
selector means another pod, two pods want one port, or a sum comes close to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from hypothesis import strategies as st

from podium.engine.contracts import Predicate, Priority
from podium.engine.predicates.disks import NoDiskConflict
from podium.engine.predicates.nodes import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeLabelPresence,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    HostName,
    MatchNodeSelector,
    PodToleratesNodeNoExecuteTaints,
    PodToleratesNodeTaints,
)
from podium.engine.predicates.pod_affinity import MatchInterPodAffinity
from podium.engine.predicates.room import GeneralPredicates, PodFitsHostPorts, PodFitsResources
from podium.engine.predicates.service_affinity import CheckServiceAffinity
from podium.engine.predicates.volume_counts import (
    Azure,
    Ebs,
    GcePd,
    MaxCSIVolumeCount,
    MaxVolumeCount,
    csi_limit_name,
)
from podium.engine.predicates.volumes import CheckVolumeBinding, NoVolumeZoneConflict
from podium.engine.priorities.nodes import (
    EqualPriority,
    ImageLocalityPriority,
    NodeAffinityPriority,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
    TaintTolerationPriority,
)
from podium.engine.priorities.pod_affinity import InterPodAffinityPriority
from podium.engine.priorities.resources import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.engine.priorities.spreading import (
    SelectorSpreadPriority,
    ServiceAntiAffinity,
    ServiceSpreadingPriority,
)
from podium.objects.meta import Object
from podium.objects.node import Node
from podium.objects.pod import NodeSelectorTerm, Pod, PodAffinityTerm

GPU = "example.com/gpu"
DRIVER = "csi.example.com"
MEBIBYTE = 1 << 20
HUGE = 1 << 62

#: Every predicate, in the order they run; those that can be configured, twice.
PREDICATES: tuple[Predicate, ...] = (
    CheckNodeCondition(),
    CheckNodeUnschedulable(),
    GeneralPredicates(),
    GeneralPredicates(ignored=frozenset({GPU})),
    HostName(),
    PodFitsHostPorts(),
    MatchNodeSelector(),
    PodFitsResources(),
    PodFitsResources(ignored=frozenset({GPU})),
    NoDiskConflict(),
    PodToleratesNodeTaints(),
    PodToleratesNodeNoExecuteTaints(),
    CheckNodeLabelPresence(["zone", "disk"], presence=True),
    CheckNodeLabelPresence(["disk"], presence=False),
    CheckServiceAffinity(["zone"]),
    CheckServiceAffinity(["zone", "disk"]),
    MaxVolumeCount("MaxEBSVolumeCount", Ebs(), limit=2),
    MaxVolumeCount("MaxGCEPDVolumeCount", GcePd(), node_limits=False, limit=1),
    MaxCSIVolumeCount(),
    MaxVolumeCount("MaxAzureDiskVolumeCount", Azure()),
    CheckVolumeBinding(),
    NoVolumeZoneConflict(),
    CheckNodeMemoryPressure(),
    CheckNodePIDPressure(),
    CheckNodeDiskPressure(),
    MatchInterPodAffinity(),
)

#: Every priority; those that can be configured, twice.
PRIORITIES: tuple[Priority, ...] = (
    SelectorSpreadPriority(),
    ServiceSpreadingPriority(),
    ServiceAntiAffinity("zone"),
    InterPodAffinityPriority(),
    InterPodAffinityPriority(hard_weight=50),
    LeastRequestedPriority(),
    MostRequestedPriority(),
    BalancedResourceAllocation(),
    RequestedToCapacityRatioPriority(),
    RequestedToCapacityRatioPriority(((10, 3), (40, 9), (80, 1)), name="Line"),
    NodePreferAvoidPodsPriority(),
    NodeAffinityPriority(),
    TaintTolerationPriority(),
    ImageLocalityPriority(),
    NodeLabelPriority("disk", presence=True, name="Disk"),
    NodeLabelPriority("zone", presence=False, name="NoZone"),
    ResourceLimitsPriority(),
    EqualPriority(),
)

# Words --------------------------------------------------------------------------------------------

NODE_NAMES = ("n0", "n1", "n2", "n3", "n4")
LABELS = (None, {}, {"app": "x"}, {"app": "y"}, {"app": "x", "tier": "t"}, {"tier": "t"})
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


def often(*common: Any, rare: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:
    """Mostly one of the common values, now and then a rare one."""
    return st.sampled_from([*common * 3, *rare])


def some(values: tuple[Any, ...], most: int = 2) -> st.SearchStrategy[list[Any]]:
    """A few of the values, none mostly."""
    return st.one_of(
        st.just([]), st.lists(st.sampled_from(values), min_size=1, max_size=most, unique_by=repr)
    )


@st.composite
def node_labels(draw: st.DrawFn) -> dict[str, str]:
    found = {
        "zone": draw(st.sampled_from(["1", "2", None])),
        "disk": draw(st.sampled_from([None, "ssd", ""])),
        "size": draw(st.sampled_from([None, "5", "-3", "x"])),
        ZONE: draw(st.sampled_from([None, "a", "b"])),
        REGION: draw(st.sampled_from([None, None, "r"])),
        "beta.kubernetes.io/instance-type": draw(st.sampled_from([None, "m5.large", "old"])),
    }
    return {key: value for key, value in found.items() if value is not None}


TAINTS = (
    taint("t"),
    taint("t", "v", "NoExecute"),
    taint("soft", "", "PreferNoSchedule"),
    taint("soft2", "v", "PreferNoSchedule"),
)
CONDITIONS = ("Ready", "OutOfDisk", "NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure")
IMAGES = ("i:1", "i:2", "big:latest")


@st.composite
def node_like(draw: st.DrawFn, name: str, *, huge: bool = True, images: bool = True) -> Node:
    """A node of this name."""
    large = (HUGE,) if huge else ()
    resources = draw(
        st.sampled_from([
            {},
            {GPU: 1},
            {"ephemeral-storage": 10, GPU: 0},
            {"attachable-volumes-aws-ebs": 1},
            {csi_limit_name(DRIVER): 1, "attachable-volumes-gce-pd": 0},
        ])
    )
    held = draw(some(IMAGES, 3)) if images else []
    return node(
        name,
        cpu=draw(often("4", "1", "100m", rare=(0, *large, None))),
        memory=draw(often("1Gi", 1000, "300Mi", rare=(0, *large, None))),
        pods=draw(often(110, 3, rare=(0, 1, None))),
        resources=resources,
        labels=draw(node_labels()),
        taints=draw(some(TAINTS)),
        unschedulable=draw(often(False, rare=(True,))),
        conditions={
            kind: draw(st.sampled_from(["True", "False", "Unknown"]))
            for kind in draw(some(CONDITIONS, 3))
        },
        images={image: draw(st.sampled_from([0, 30, 500, 3000])) * MEBIBYTE for image in held},
        annotations={AVOID: AVOIDING} if draw(often(False, rare=(True,))) else None,
    )


@st.composite
def pod_terms(draw: st.DrawFn, *, broken: bool) -> PodAffinityTerm:
    chosen = draw(often(*SELECTORS, rare=(BROKEN,) if broken else ()))
    return term(
        chosen, draw(st.sampled_from(KEYS)), draw(often((), rare=(("other",), ("other", "default"))))
    )


@st.composite
def node_terms(draw: st.DrawFn) -> NodeSelectorTerm:
    expressions = (
        expression("zone", "In", "1"),
        expression("zone", "NotIn", "1", "2"),
        expression("disk", "Exists"),
        expression("disk", "DoesNotExist"),
        expression("size", "Gt", "4"),
        expression("size", "Lt", "6"),
        expression("size", "Near", "6"),
    )
    fields = (
        expression("metadata.name", "In", "n1"),
        expression("metadata.name", "NotIn", "n1"),
        expression("other", "In", "x"),
    )
    return node_term(*draw(some(expressions)), fields=draw(some(fields, 1)))


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

REQUESTS = (
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


@dataclass(frozen=True)
class Wild:
    """Which rare things a generated cluster may hold."""

    #: Amounts near the end of 64 bits, where sums wrap.
    huge: bool = True
    #: Selectors that cannot be compiled.
    broken: bool = True
    #: Claims that are errors.
    odd_volumes: bool = True
    #: Pods on nodes that nobody knows.
    ghosts: bool = True
    images: bool = True


@st.composite
def pod_like(
    draw: st.DrawFn,
    name: str,
    *,
    where: str = "",
    wild: Wild = Wild(),  # noqa: B008  a frozen value
    affine: bool = True,
    **fixed: Any,
) -> Pod:
    """A pod of this name."""
    requests = draw(often(*REQUESTS, rare=HUGE_REQUESTS if wild.huge else ()))
    terms = pod_terms(broken=wild.broken)
    weighted = st.tuples(st.sampled_from([1, 5, 100]), terms)
    volumes = often(*VOLUMES, rare=ODD_VOLUMES if wild.odd_volumes else ())
    several = draw(st.integers(0, 5))
    chosen: dict[str, Any] = {
        "namespace": draw(often("default", rare=("other",))),
        "labels": draw(st.sampled_from(LABELS)),
        "priority": draw(st.sampled_from([None, 0, 5, 10])),
        "containers": [
            container(
                requests,
                limits=draw(st.sampled_from([None, {"cpu": "1"}, {"memory": 500}])),
                image=draw(st.sampled_from(["", "i:1", "i:2", "big"])),
                ports=draw(some(PORTS)),
            )
        ]
        * (2 if several == 5 else 1),
        "init": [container(draw(st.sampled_from(REQUESTS)))] if several == 4 else [],
        "volumes": draw(st.lists(volumes, max_size=2)),
        "owner": draw(often(None, ("ReplicaSet", "r"), rare=(("StatefulSet", "r"),))),
        **fixed,
    }
    if affine and draw(st.booleans()):
        chosen["affinity"] = draw(st.lists(terms, max_size=2))
        chosen["anti"] = draw(st.lists(terms, max_size=2))
        chosen["prefers"] = draw(st.lists(weighted, max_size=1))
        chosen["avoids"] = draw(st.lists(weighted, max_size=1))
    if where:
        chosen["terminating"] = draw(often(False, rare=(True,)))
    else:
        chosen["tolerations"] = draw(some(TOLERATIONS))
        chosen["node_selector"] = draw(
            often(None, rare=({}, {"zone": "1"}, {"zone": "-bad"}, {"disk": "ssd"}))
        )
        if draw(often(False, rare=(True,))):
            chosen["node_affinity"] = draw(st.lists(node_terms(), max_size=2))
            chosen["prefers_nodes"] = draw(
                st.lists(st.tuples(st.sampled_from([0, 1, 7]), node_terms()), max_size=2)
            )
    return pod(name, node=where, **chosen)


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

    def objects(self) -> tuple[Object, ...]:
        return (*self.nodes, *self.others, *self.pods)


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    wild: Wild = Wild(),  # noqa: B008  a frozen value
    least_nodes: int = 0,
    nominated: bool = False,
) -> Cluster:
    """A cluster of up to five nodes and eight pods, and one pod to place."""
    names = NODE_NAMES[: draw(st.integers(least_nodes, len(NODE_NAMES)))]
    homes = [*names * 4, *(["ghost"] if wild.ghosts else [])]
    if not names:
        homes = ["ghost"] * wild.ghosts
    many = draw(st.integers(0, 8)) if homes else 0
    pods = [
        draw(pod_like(f"p{number}", where=draw(st.sampled_from(homes)), wild=wild))
        for number in range(many)
    ]
    if nominated and names and draw(st.booleans()):
        promised = draw(st.lists(st.sampled_from(names), max_size=2))
        pods += [
            draw(pod_like(f"q{number}", wild=wild, nominated=name))
            for number, name in enumerate(promised)
        ]
    return Cluster(
        nodes=tuple(draw(node_like(n, huge=wild.huge, images=wild.images)) for n in names),
        pods=tuple(pods),
        others=(*STORAGE, *draw(some(OTHERS, 4))),
        wanted=draw(pod_like("wanted", wild=wild)),
    )
