"""Objects, views and simulations in one line each, with sane defaults.

A node has room for everything unless told otherwise, a pod wants nothing, and pods without a
`uid` are known by `namespace/name`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from podium.cluster.cache.columns import Columns
from podium.cluster.decider import ignore_step
from podium.cluster.simulation import Simulation, no_extenders
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle
from podium.engine.cycle.ties import RoundRobin, Ties
from podium.engine.framework.decision import Decision, ScoreColumn
from podium.engine.framework.extenders import Extender
from podium.engine.framework.profile import Profile, Weighted
from podium.engine.framework.rule import FilterRule, ScoreRule
from podium.engine.pipelines.scoring import run_scores
from podium.engine.preemption.pod_priority import PodPriorityPreemption
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.rules.nodes import CheckNodeUnschedulable
from podium.engine.rules.pod_affinity import MatchInterPodAffinity
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.rules.taints import PodToleratesNodeTaints
from podium.engine.rules.volumes.conflicts import NoDiskConflict
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.view import View
from podium.objects.kinds.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    Object,
    ObjectMeta,
    OwnerReference,
    RawQuantity,
)
from podium.objects.kinds.node import (
    ContainerImage,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Taint,
)
from podium.objects.kinds.pod import (
    Affinity,
    AwsElasticBlockStore,
    AzureDisk,
    ClaimVolume,
    Container,
    ContainerPort,
    GcePersistentDisk,
    IscsiVolume,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    RbdVolume,
    ResourceRequirements,
    Toleration,
    Volume,
    WeightedPodAffinityTerm,
)
from podium.objects.kinds.registry import KINDS
from podium.objects.kinds.storage import (
    CsiVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    VolumeStatus,
)
from podium.objects.kinds.workloads import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
    WorkloadSpec,
)
from podium.objects.reading.collection import Objects

ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "failure-domain.beta.kubernetes.io/region"
SOME_TIME = "2020-01-01T00:00:00Z"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

Labels = Mapping[str, str]
#: A host port: a number (any ip, TCP) or `(ip, protocol, number)`.
PortLike = int | tuple[str, str, int]

# Selectors ----------------------------------------------------------------------------------------


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, list(values) or None)


def selector(labels: Labels | None = None, *expressions: LabelSelectorRequirement) -> LabelSelector:
    return LabelSelector(dict(labels) if labels is not None else None, list(expressions) or None)


#: Cannot be compiled: there is no such operator for pods.
BROKEN = selector(None, expression("app", "Near", "x"))


def term(
    match: Labels | LabelSelector | None, key: str = "zone", namespaces: Iterable[str] = ()
) -> PodAffinityTerm:
    """An affinity term: pods with these labels, near by a topology key."""
    chosen = match if match is None or isinstance(match, LabelSelector) else selector(match)
    return PodAffinityTerm(key, chosen, list(namespaces) or None)


def node_term(
    *expressions: LabelSelectorRequirement, fields: Iterable[LabelSelectorRequirement] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(list(expressions) or None, list(fields) or None)


# Nodes --------------------------------------------------------------------------------------------


def node(
    name: str = "n",
    *,
    cpu: RawQuantity | None = "1000",
    memory: RawQuantity | None = "1000Gi",
    pods: RawQuantity | None = 110,
    resources: Mapping[str, RawQuantity] | None = None,
    labels: Labels | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    conditions: Mapping[str, str] | None = None,
    images: Mapping[str, int] | None = None,
    annotations: Labels | None = None,
) -> Node:
    """A node that is large unless told otherwise; `images` are name -> bytes."""
    known = {"cpu": cpu, "memory": memory, "pods": pods}
    allocatable = {key: raw for key, raw in known.items() if raw is not None}
    return Node(
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            uid=name,
            labels=dict(labels) if labels is not None else None,
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=list(taints) or None),
        status=NodeStatus(
            allocatable=allocatable | dict(resources or {}),
            conditions=[NodeCondition(*pair) for pair in (conditions or {}).items()] or None,
            images=[ContainerImage([key], size) for key, size in (images or {}).items()] or None,
        ),
    )


def nodes(count: int, **options: Any) -> list[Node]:
    """Nodes n000, n001, … that are all alike."""
    return [node(f"n{number:03}", **options) for number in range(count)]


def taint(key: str = "t", value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key, value, effect)


# Pods ---------------------------------------------------------------------------------------------


def port(wanted: PortLike) -> ContainerPort:
    ip, protocol, number = (("", "", wanted)) if isinstance(wanted, int) else wanted
    return ContainerPort(host_port=number, host_ip=ip, protocol=protocol)


def container(
    requests: Mapping[str, RawQuantity] | None = None,
    *,
    limits: Mapping[str, RawQuantity] | None = None,
    image: str = "",
    ports: Sequence[PortLike] = (),
) -> Container:
    given = requests is not None or limits is not None
    resources = ResourceRequirements(
        dict(requests) if requests is not None else None,
        dict(limits) if limits is not None else None,
    )
    return Container(
        image=image,
        resources=resources if given else None,
        ports=[port(wanted) for wanted in ports] or None,
    )


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str = "",
    node: str = "",
    labels: Labels | None = None,
    requests: Mapping[str, RawQuantity] | None = None,
    limits: Mapping[str, RawQuantity] | None = None,
    image: str = "",
    ports: Sequence[PortLike] = (),
    containers: Sequence[Container] | None = None,
    init: Sequence[Container] = (),
    volumes: Sequence[Volume] = (),
    node_selector: Labels | None = None,
    node_affinity: Sequence[NodeSelectorTerm] | None = None,
    prefers_nodes: Sequence[tuple[int, NodeSelectorTerm]] = (),
    affinity: Sequence[PodAffinityTerm] = (),
    anti: Sequence[PodAffinityTerm] = (),
    prefers: Sequence[tuple[int, PodAffinityTerm]] = (),
    avoids: Sequence[tuple[int, PodAffinityTerm]] = (),
    tolerations: Sequence[Toleration] = (),
    priority: int | None = None,
    preemption_policy: str | None = None,
    owner: tuple[str, str] | None = None,
    terminating: bool = False,
    nominated: str = "",
    phase: str = "",
) -> Pod:
    """A pod with one container that asks for nothing, unless told otherwise.

    `affinity` and `anti` are required terms, `prefers` and `avoids` weighted ones; `owner` is the
    kind and uid of its controller.
    """
    one = container(requests, limits=limits, image=image, ports=ports)
    owners = [OwnerReference(kind=owner[0], uid=owner[1], controller=True)] if owner else None
    return Pod(
        kind="Pod",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            labels=dict(labels) if labels is not None else None,
            owner_references=owners,
            deletion_timestamp=SOME_TIME if terminating else None,
        ),
        spec=PodSpec(
            node_name=node,
            containers=list(containers) if containers is not None else [one],
            init_containers=list(init) or None,
            volumes=list(volumes) or None,
            node_selector=dict(node_selector) if node_selector is not None else None,
            affinity=_affinity(node_affinity, prefers_nodes, (affinity, prefers), (anti, avoids)),
            tolerations=list(tolerations) or None,
            priority=priority,
            preemption_policy=preemption_policy,
        ),
        status=PodStatus(phase=phase, nominated_node_name=nominated),
    )


def on(where: str, count: int, **options: Any) -> list[Pod]:
    """So many pods of the app x on a node."""
    given = {"labels": {"app": "x"}, **options}
    return [pod(f"{where}-{number}", node=where, **given) for number in range(count)]


Terms = tuple[Sequence[PodAffinityTerm], Sequence[tuple[int, PodAffinityTerm]]]


def _affinity(
    required: Sequence[NodeSelectorTerm] | None,
    preferred: Sequence[tuple[int, NodeSelectorTerm]],
    near: Terms,
    apart: Terms,
) -> Affinity | None:
    nodes = None
    if required is not None or preferred:
        nodes = NodeAffinity(
            NodeSelector(list(required)) if required is not None else None,
            [PreferredSchedulingTerm(*pair) for pair in preferred] or None,
        )
    found = Affinity(nodes, _pod_affinity(*near), _pod_affinity(*apart))
    return found if found != Affinity() else None


def _pod_affinity(
    required: Sequence[PodAffinityTerm], preferred: Sequence[tuple[int, PodAffinityTerm]]
) -> PodAffinity | None:
    if not required and not preferred:
        return None
    weighted = [WeightedPodAffinityTerm(*pair) for pair in preferred]
    return PodAffinity(list(required) or None, weighted or None)


def tolerates(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key, operator, value, effect)


def claim_volume(name: str) -> Volume:
    return Volume(persistent_volume_claim=ClaimVolume(name))


def gce(name: str, *, read_only: bool = False) -> Volume:
    return Volume(gce_persistent_disk=GcePersistentDisk(name, read_only))


def ebs(name: str, *, read_only: bool = False) -> Volume:
    return Volume(aws_elastic_block_store=AwsElasticBlockStore(name, read_only))


def azure(name: str) -> Volume:
    return Volume(azure_disk=AzureDisk(name))


def iscsi(name: str, *, read_only: bool = False) -> Volume:
    return Volume(iscsi=IscsiVolume(name, read_only))


def rbd(*monitors: str, image: str, pool: str = "rbd", read_only: bool = False) -> Volume:
    return Volume(rbd=RbdVolume(list(monitors), image, pool, read_only))


# Other objects ------------------------------------------------------------------------------------


def service(name: str, labels: Labels | None, *, namespace: str = "default") -> Service:
    """A service that selects pods with these labels; `None`: it has no selector."""
    spec = ServiceSpec(dict(labels) if labels is not None else None)
    return Service(kind="Service", metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def controller(name: str, labels: Labels, *, namespace: str = "default") -> ReplicationController:
    spec = ReplicationControllerSpec(selector=dict(labels))
    meta = ObjectMeta(name=name, namespace=namespace)
    return ReplicationController(kind="ReplicationController", metadata=meta, spec=spec)


def replica_set(name: str, chosen: LabelSelector, *, namespace: str = "default") -> ReplicaSet:
    meta = ObjectMeta(name=name, namespace=namespace)
    return ReplicaSet(kind="ReplicaSet", metadata=meta, spec=WorkloadSpec(selector=chosen))


def stateful_set(name: str, chosen: LabelSelector, *, namespace: str = "default") -> StatefulSet:
    meta = ObjectMeta(name=name, namespace=namespace)
    return StatefulSet(kind="StatefulSet", metadata=meta, spec=StatefulSetSpec(selector=chosen))


def budget(
    name: str, chosen: LabelSelector | None, *, allowed: int = 0, namespace: str = "default"
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        kind="PodDisruptionBudget",
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(chosen),
        status=PodDisruptionBudgetStatus(allowed),
    )


def volume(
    name: str,
    *,
    storage: RawQuantity = "1Gi",
    storage_class: str = "",
    labels: Labels | None = None,
    claimed_by: str = "",
    phase: str = "Available",
    reachable: Sequence[NodeSelectorTerm] | None = None,
    source: Volume | None = None,
    csi: tuple[str, str] | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
) -> PersistentVolume:
    """A persistent volume; `source` names its disk as a pod would, `csi` is driver and handle."""
    kind = source or Volume()
    return PersistentVolume(
        kind="PersistentVolume",
        metadata=ObjectMeta(name=name, labels=dict(labels) if labels else None),
        spec=PersistentVolumeSpec(
            capacity={"storage": storage},
            access_modes=list(modes),
            storage_class_name=storage_class,
            claim_ref=ObjectReference(claimed_by, "default") if claimed_by else None,
            node_affinity=(
                VolumeNodeAffinity(NodeSelector(list(reachable))) if reachable is not None else None
            ),
            gce_persistent_disk=kind.gce_persistent_disk,
            aws_elastic_block_store=kind.aws_elastic_block_store,
            azure_disk=kind.azure_disk,
            cinder=kind.cinder,
            portworx_volume=kind.portworx_volume,
            csi=CsiVolumeSource(*csi) if csi else None,
        ),
        status=VolumeStatus(phase),
    )


def claim(
    name: str,
    *,
    namespace: str = "default",
    volume: str = "",
    bound: bool = True,
    storage: RawQuantity = "1Gi",
    storage_class: str | None = None,
    chosen: LabelSelector | None = None,
    annotations: Labels | None = None,
) -> PersistentVolumeClaim:
    """A claim; with a volume it is bound to it, unless told that it is not quite yet."""
    marks = dict(annotations or {})
    if volume and bound:
        marks[BIND_COMPLETED] = "yes"
    return PersistentVolumeClaim(
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(name=name, namespace=namespace, uid=name, annotations=marks or None),
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            selector=chosen,
            resources=ResourceRequirements({"storage": storage}),
            volume_name=volume,
            storage_class_name=storage_class,
        ),
    )


def storage_class(
    name: str,
    *,
    mode: str | None = "WaitForFirstConsumer",
    provisioner: str = "kubernetes.io/no-provisioner",
    topologies: Sequence[TopologySelectorTerm] = (),
) -> StorageClass:
    return StorageClass(
        kind="StorageClass",
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        allowed_topologies=list(topologies) or None,
    )


# Profiles, views, decisions -----------------------------------------------------------------------


def basic_predicates() -> tuple[FilterRule, ...]:
    """The rules that most tests need, in their order."""
    return (
        CheckNodeUnschedulable(),
        GeneralPredicates(),
        NoDiskConflict(),
        PodToleratesNodeTaints(),
        MatchInterPodAffinity(),
    )


def profile(
    *predicates: FilterRule,
    priorities: Iterable[ScoreRule | tuple[ScoreRule, int]] = (),
    extenders: Sequence[Extender] = (),
    percentage: int = 100,
    always_check_all: bool = False,
    preemption: bool = True,
    checks: Sequence[Callable[..., str]] = (),
) -> Profile:
    """A profile of these predicates (the basic ones if none are given) and priorities."""
    weighted = [pair if isinstance(pair, tuple) else (pair, 1) for pair in priorities]
    return Profile(
        name="test",
        predicates=predicates or basic_predicates(),
        priorities=tuple(Weighted(*pair) for pair in sorted(weighted, key=lambda p: p[0].name)),
        accounting=ContainerSums(),
        checks=tuple(checks),
        extenders=tuple(extenders),
        percentage_of_nodes_to_score=percentage,
        always_check_all=always_check_all,
        post_filters=(PodPriorityPreemption(),) if preemption else (),
    )


def objects(*items: Object) -> Objects:
    """A collection of these objects."""
    found = Objects()
    kinds = {kind.type: name for name, kind in KINDS.items()}
    for item in items:
        found.add(kinds[type(item)], item)
    return found


def simulation(
    *items: Object,
    profile: Profile = profile(),  # noqa: B008  nothing changes a profile
    listed_order: bool = False,
    after_preemption: str = "retry",
    answer: Callable[[Any], Any] = no_extenders,
) -> Simulation:
    """A simulation that holds these objects."""
    made = Simulation(
        profile, listed_order=listed_order, after_preemption=after_preemption, answer=answer
    )
    made.load(objects(*items))
    return made


def view(*items: Object) -> Columns:
    """Columns that hold these objects; nodes are in the order given."""
    return simulation(*items, listed_order=True).cache.columns


def decided(
    columns: View,
    wanted: Pod,
    rules: Profile,
    *,
    order: Sequence[str] | None = None,
    ties: Ties | None = None,
    answer: Callable[[Any], Any] = no_extenders,
) -> Decision:
    """One decision, with everything recorded."""
    rows = columns.nodes.order if order is None else columns.nodes.rows_named(order)
    attempt = Attempt(
        columns.pods.incoming(wanted),
        rules,
        rows,
        ties or RoundRobin(),
        ignore_step,
        recording=True,
    )
    steps = cycle(columns, attempt)
    reply = None
    while True:
        try:
            reply = answer(steps.send(reply))
        except StopIteration as done:
            decision: Decision = done.value
            return decision


#: What a predicate says of a node: its reasons, none if the pod fits, or the text of an error.
Said = tuple[str, ...] | str


def judged(predicate: FilterRule, wanted: Pod, columns: View) -> dict[str, Said]:
    """Node -> what the predicate says, over all nodes at once."""
    at = ManyRows(columns, columns.nodes.order)
    codes = np.broadcast_to(
        as_array(predicate.filter(columns.pods.incoming(wanted), at)), len(at)
    ).tolist()
    return {
        columns.nodes.names[row]: at.errors.get(position, columns.verdicts[codes[position]].reasons)
        for position, row in enumerate(columns.nodes.order.tolist())
    }


def scored(
    priority: ScoreRule, wanted: Pod, columns: View, *, among: Sequence[str] | None = None
) -> dict[str, int]:
    """Node -> final score, with all nodes (or `among`) feasible."""
    rows = columns.nodes.order if among is None else columns.nodes.rows_named(among)
    rules = profile(priorities=[priority])
    found: list[ScoreColumn] = []
    at = ManyRows(columns, rows)
    run_scores(columns.pods.incoming(wanted), at, rules.priorities, rules, columns=found)
    [column] = found
    return dict(zip((columns.nodes.names[row] for row in rows), column.score.tolist(), strict=True))
