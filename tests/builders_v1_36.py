"""Objects, profiles and answers for tests of v1.36, besides those of `builders`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

import manifests
from builders import Said, objects
from podium.cluster.cache.columns import Columns
from podium.cluster.decider import ignore_step
from podium.cluster.simulation import Simulation
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle, run
from podium.engine.cycle.ties import ties
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import FilterRule, OnlyNodes, ScoreRule
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.state.view import View
from podium.generations.v1_36 import V1_36
from podium.objects.kinds.devices import DeviceClass, ResourceSlice
from podium.objects.kinds.meta import LabelSelector, Object, ObjectMeta, OwnerReference, RawQuantity
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import (
    Container,
    EphemeralVolume,
    Pod,
    PodAffinityTerm,
    PodCondition,
    TopologySpreadConstraint,
    Volume,
)
from podium.objects.kinds.storage import (
    CsiDriver,
    CsiDriverSpec,
    CsiNode,
    CsiNodeAllocatable,
    CsiNodeDriver,
    CsiNodeSpec,
    CsiStorageCapacity,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from podium.objects.kinds.workloads import Namespace
from podium.profiles.config.build import config_from, default_config, from_config
from podium.profiles.policy.build import Options

#: A configuration that fills nodes one after the other.
PACK = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
#: The fields of an evicted pod's condition.
EVICTED = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")

Labels = Mapping[str, str]

# Profiles -----------------------------------------------------------------------------------------


def default_profile(**options: Any) -> Profile:
    """The default profile; options as on the command line."""
    [found] = from_config(default_config(generation=V1_36), Options(**options))
    return found


def configured(*profiles: Mapping[str, Any], **options: Any) -> tuple[Profile, ...]:
    """The profiles of a configuration; each is given as in the file."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
    }
    return from_config(config_from(document, generation=V1_36), Options(**options))


def with_args(plugin: str, **args: Any) -> dict[str, Any]:
    """The part of a profile that tells a plugin something."""
    return {"name": plugin, "args": args}


DEFAULT = default_profile()

# Objects ------------------------------------------------------------------------------------------


def spec_with(wanted: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its specification."""
    return msgspec.structs.replace(wanted, spec=msgspec.structs.replace(wanted.spec, **fields))


def status_with(wanted: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its status."""
    status = msgspec.structs.replace(wanted.status, **fields)
    return msgspec.structs.replace(wanted, status=status)


def evicted(wanted: Pod) -> Pod:
    """The pod while it leaves because a scheduler evicted it."""
    meta = msgspec.structs.replace(wanted.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return status_with(msgspec.structs.replace(wanted, metadata=meta), conditions=[EVICTED])


def owned(wanted: Pod, kind: str, name: str) -> Pod:
    """The pod as a controller made it."""
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = OwnerReference(api_version=version, kind=kind, name=name, uid=name, controller=True)
    meta = msgspec.structs.replace(wanted.metadata, owner_references=[owner])
    return msgspec.structs.replace(wanted, metadata=meta)


def spread(
    key: str = ZONE,
    skew: int = 1,
    chosen: LabelSelector | None = None,
    *,
    when: str = HARD,
    least: int | None = None,
    affinity: str | None = None,
    taints: str | None = None,
    shared: Sequence[str] = (),
) -> TopologySpreadConstraint:
    """A constraint; `least` are minDomains, `shared` the label keys it narrows its pods by."""
    return TopologySpreadConstraint(
        max_skew=skew,
        topology_key=key,
        when_unsatisfiable=when,
        label_selector=chosen,
        min_domains=least,
        node_affinity_policy=affinity,
        node_taints_policy=taints,
        match_label_keys=list(shared) or None,
    )


def in_spaces(
    chosen: LabelSelector | None,
    key: str = ZONE,
    *,
    spaces: LabelSelector | None = None,
    named: Sequence[str] = (),
) -> PodAffinityTerm:
    """An affinity term about pods in the namespaces that a selector, or their name, selects."""
    return PodAffinityTerm(key, chosen, list(named) or None, spaces)


def namespace(name: str, labels: Labels | None = None) -> Namespace:
    meta = ObjectMeta(name=name, labels=dict(labels) if labels else None)
    return Namespace(kind="Namespace", metadata=meta)


def sidecar(made: Container) -> Container:
    """The container as one that starts before the others and stays."""
    return msgspec.structs.replace(made, restart_policy="Always")


def named(made: Container, name: str) -> Container:
    return msgspec.structs.replace(made, name=name)


def ephemeral(name: str) -> Volume:
    return Volume(name=name, ephemeral=EphemeralVolume())


def csi_node(name: str, **limits: int) -> CsiNode:
    """How many volumes of each driver a node takes; drivers may be named without a domain."""
    drivers = [
        CsiNodeDriver(
            driver if "." in driver else f"{driver}.example.com", CsiNodeAllocatable(count)
        )
        for driver, count in limits.items()
    ]
    return CsiNode(kind="CSINode", metadata=ObjectMeta(name=name), spec=CsiNodeSpec(drivers))


def csi_driver(name: str, *, tracks: bool) -> CsiDriver:
    return CsiDriver(
        kind="CSIDriver",
        metadata=ObjectMeta(name=name),
        spec=CsiDriverSpec(storage_capacity=tracks),
    )


def csi_capacity(
    name: str, of_class: str, capacity: RawQuantity, where: LabelSelector | None
) -> CsiStorageCapacity:
    return CsiStorageCapacity(
        kind="CSIStorageCapacity",
        metadata=ObjectMeta(name=name),
        storage_class_name=of_class,
        node_topology=where,
        capacity=capacity,
    )


def attachment(name: str, node: str, driver: str, volume: str) -> VolumeAttachment:
    spec = VolumeAttachmentSpec(driver, node, VolumeAttachmentSource(volume))
    return VolumeAttachment(kind="VolumeAttachment", metadata=ObjectMeta(name=name), spec=spec)


def exclusive(made: Any) -> Any:
    """The claim as one for a single pod at a time."""
    spec = msgspec.structs.replace(made.spec, access_modes=["ReadWriteOncePod"])
    return msgspec.structs.replace(made, spec=spec)


def device_class(**spec: Any) -> DeviceClass:
    return msgspec.convert(manifests.manifest("DeviceClass", "gpu", spec=spec), DeviceClass)


def device_slice(where: str, *devices: Mapping[str, Any], slices: int = 1) -> ResourceSlice:
    """The slice of a node with these devices; `slices` says how many its pool has."""
    pool = {"name": where, "generation": 1, "resourceSliceCount": slices}
    return msgspec.convert(manifests.device_slice(where, devices, pool=pool), ResourceSlice)


def declaring(made: Node, *features: str) -> Node:
    status = msgspec.structs.replace(made.status, declared_features=list(features))
    return msgspec.structs.replace(made, status=status)


# Views and decisions ------------------------------------------------------------------------------


def current(
    *items: Object, profile: Profile = DEFAULT, listed_order: bool = True, **options: Any
) -> Simulation:
    """A simulation of this generation that holds these objects."""
    made = Simulation(profile, listed_order=listed_order, **options)
    made.load(objects(*items))
    return made


def view(*items: Object) -> Columns:
    """Columns that hold these objects; nodes are in the order given."""
    return current(*items).cache.columns


def decision(wanted: Pod, *items: Object, profile: Profile = DEFAULT) -> Decision:
    """One decision in a cluster of these objects, with everything recorded."""
    made = current(*items, profile=profile)
    made.nominate(wanted, wanted.status.nominated_node_name)
    return made.attempt(wanted, recording=True)


def decided(columns: View, wanted: Pod, profile: Profile = DEFAULT) -> Decision:
    """One decision over columns, with everything recorded and every node scored."""
    attempt = Attempt(
        columns.pods.incoming(wanted),
        profile,
        columns.nodes.order,
        ties(profile.ties),
        ignore_step,
        recording=True,
        score_single=True,
    )
    return run(cycle(columns, attempt))


def judged(rule: FilterRule, wanted: Pod, *items: Object) -> dict[str, Said]:
    """Node -> what the filter says, over all nodes at once; curable or not is not told."""
    columns = view(*items)
    at = ManyRows(columns, columns.nodes.order)
    codes = np.broadcast_to(
        as_array(rule.filter(columns.pods.incoming(wanted), at)), len(at)
    ).tolist()
    return {
        columns.nodes.names[row]: at.errors.get(position, columns.verdicts[codes[position]].reasons)
        for position, row in enumerate(columns.nodes.order.tolist())
    }


def scores(rule: ScoreRule, wanted: Pod, *items: Object) -> dict[str, int]:
    """Node -> final score, with all nodes feasible."""
    columns = view(*items)
    at, incoming = ManyRows(columns, columns.nodes.order), columns.pods.incoming(wanted)
    raw = np.broadcast_to(np.asarray(rule.score(incoming, at), np.int64), len(at))
    final = rule.normalize(incoming, at, raw) if rule.normalizes else raw
    names = [columns.nodes.names[row] for row in columns.nodes.order.tolist()]
    return dict(zip(names, np.broadcast_to(final, len(at)).tolist(), strict=True))


class Naming(FilterRule):
    """A plugin that restricts the pod to some nodes."""

    def __init__(self, name: str, *nodes: str) -> None:
        self.name = name
        self.nodes = frozenset(nodes)

    def may_refuse(self, cls: object) -> bool:
        return True

    def pre_filter(self, pod: object, view: object) -> OnlyNodes:
        return OnlyNodes(self.nodes)

    def filter(self, pod: object, at: Any) -> Any:
        return at.full(0)
