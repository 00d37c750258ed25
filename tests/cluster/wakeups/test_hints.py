"""Which event wakes which pod: the table of v1.36, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from podium.cluster.queue.entities import QueuedPod
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import (
    Added,
    ClusterEvent,
    Deleted,
    NominationLost,
    Updated,
    WaitedTooLong,
    Wake,
)
from podium.engine.rules.node_affinity import NodeAffinity
from podium.generations.v1_36 import V1_36
from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeAffinity as AddedAffinity
from podium.objects.kinds.pod import NodeSelector, Pod
from podium.objects.kinds.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.objects.kinds.workloads import Namespace, PodDisruptionBudget, ReplicaSet, Service

MEMORY = 2**30


def requests(asking: Pod) -> Mapping[str, int]:
    """What the first container asks for; enough for these tests."""
    resources = [container.resources for container in asking.spec.containers or ()]
    wants = resources[0].requests if resources and resources[0] else None
    return {name: int(amount) for name, amount in (wants or {}).items()}


RULES = HintRules(requests, generation=V1_36)


def pod(
    name: str = "other",
    labels: dict[str, str] | None = None,
    *,
    namespace: str = "default",
    node: str = "n",
    wants: JsonObject | None = None,
    priority: int = 0,
    nominated: str = "",
    **spec: object,
) -> Pod:
    text = {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {
            "nodeName": node,
            "priority": priority,
            "containers": [{"resources": {"requests": wants}}],
            **spec,
        },
        "status": {"nominatedNodeName": nominated},
    }
    return msgspec.convert(text, Pod)


def waiting(labels: dict[str, str] | None = None, **spec: object) -> Pod:
    return pod("w", labels, node="", **spec)  # type: ignore[arg-type]


def node(labels: dict[str, str] | None = None, **changes: object) -> Node:
    """A node; *changes* are of its specification, except for what it offers and declares."""
    status = {
        "allocatable": changes.pop("offers", {"pods": "110", "cpu": "2", "memory": "4Gi"}),
        "declaredFeatures": changes.pop("features", None),
        "conditions": changes.pop("conditions", None),
    }
    metadata = {"name": "n", "labels": labels, "annotations": changes.pop("annotations", None)}
    return msgspec.convert({"metadata": metadata, "spec": changes, "status": status}, Node)


def asked(
    plugin: str, event: ClusterEvent, pod_: Pod | None = None, rules: HintRules = RULES
) -> bool:
    """Whether an event wakes a pod that one plugin rejected."""
    queued = QueuedPod(pod_ or waiting(), 0, 0, rejected_by=frozenset({plugin}))
    found = [
        rules.wakes(request, queued)
        for request in rules.requests(event, 1)
        if request.topics is None or request.topics & set(rules.interests(queued))
    ]
    return any(wake is not Wake.NO for wake in found)


NODE = node()
CORDONED = node(unschedulable=True)
GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SOFT = {"key": "gpu", "value": "yes", "effect": "PreferNoSchedule"}
TAINTED = node(taints=[GPU])
TOLERANT = waiting(tolerations=[{"key": "gpu", "operator": "Exists"}])
TOLERATES_CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Added(NODE), True, id="a node that takes pods came"),
        pytest.param(Added(CORDONED), False, id="a cordoned node came"),
        pytest.param(Updated(CORDONED, NODE), True, id="a node was uncordoned"),
        pytest.param(Updated(NODE, TAINTED), False, id="other taints do not matter"),
        pytest.param(Updated(NODE, CORDONED), False, id="a node was cordoned"),
        pytest.param(
            Updated(waiting(), waiting(tolerations=TOLERATES_CORDON)),
            True,
            id="the pod puts up with it now",
        ),
        pytest.param(Updated(waiting(), TOLERANT), False, id="it got another toleration"),
        pytest.param(
            Updated(pod(), pod(tolerations=TOLERATES_CORDON)), False, id="another pod got it"
        ),
    ],
)
def test_node_unschedulable(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeUnschedulable", event) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Added(NODE), True, id="a node came"),
        pytest.param(Updated(NODE, TAINTED), True, id="taints changed: a relic, always"),
        pytest.param(Updated(CORDONED, NODE), True, id="an uncordoned node counts as such"),
        pytest.param(Updated(NODE, node({"a": "b"})), False, id="labels changed"),
        pytest.param(Deleted(NODE), False, id="a node went"),
    ],
)
def test_node_name(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeName", event) is expected


@pytest.mark.parametrize(
    ("event", "who", "expected"),
    [
        pytest.param(Added(NODE), None, True, id="an untainted node came"),
        pytest.param(Added(TAINTED), None, False, id="a tainted node came"),
        pytest.param(Added(TAINTED), TOLERANT, True, id="one whose taint the pod tolerates"),
        pytest.param(Added(node(taints=[SOFT])), None, True, id="a soft taint does not matter"),
        pytest.param(Updated(TAINTED, NODE), None, True, id="the taint went"),
        pytest.param(Updated(NODE, TAINTED), None, False, id="the taint came"),
        pytest.param(
            Updated(TAINTED, NODE), TOLERANT, False, id="it was no obstacle to begin with"
        ),
        pytest.param(Updated(waiting(), TOLERANT), None, True, id="the pod got a toleration"),
        pytest.param(Updated(pod(), pod(tolerations=[{}])), None, False, id="another pod did"),
    ],
)
def test_taint_toleration(event: ClusterEvent, who: Pod | None, *, expected: bool) -> None:
    assert asked("TaintToleration", event, who) is expected


ON_SSD = waiting(nodeSelector={"disk": "ssd"})
SSD_TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
BY_AFFINITY = waiting(
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SSD_TERM]}
        }
    }
)
SSD = node({"disk": "ssd"})
HDD = node({"disk": "hdd"})


@pytest.mark.parametrize("who", [ON_SSD, BY_AFFINITY], ids=["node selector", "node affinity"])
@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Added(SSD), True, id="a matching node came"),
        pytest.param(Added(HDD), False, id="another node came"),
        pytest.param(Updated(HDD, SSD), True, id="a node matches now"),
        pytest.param(
            Updated(SSD, node({"disk": "ssd", "a": "b"})), False, id="it matched before, too"
        ),
        pytest.param(Updated(SSD, HDD), False, id="a node matches no more"),
        pytest.param(
            Updated(HDD, node({"disk": "hdd"}, taints=[GPU])), True, id="taints: a relic, always"
        ),
    ],
)
def test_node_affinity(who: Pod, event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeAffinity", event, who) is expected


def test_the_affinity_added_by_the_profile_must_match_too() -> None:
    added = msgspec.convert({"nodeSelectorTerms": [SSD_TERM]}, NodeSelector)
    rules = HintRules(requests, [NodeAffinity(AddedAffinity(required=added))])

    assert asked("NodeAffinity", Added(SSD), rules=rules)
    assert not asked("NodeAffinity", Added(HDD), rules=rules)


def test_profiles_that_add_different_affinities_are_asked_about_neither() -> None:
    added = msgspec.convert({"nodeSelectorTerms": [SSD_TERM]}, NodeSelector)
    filters = [NodeAffinity(AddedAffinity(required=added)), NodeAffinity()]

    assert asked("NodeAffinity", Added(HDD), rules=HintRules(requests, filters))


def port(number: int, address: str = "", protocol: str = "") -> list[JsonObject]:
    return [{"ports": [{"hostPort": number, "hostIP": address, "protocol": protocol}]}]


WANTS_PORT = waiting(containers=port(80))
SIDECAR = {**port(80)[0], "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(pod(containers=port(80)), True, id="it held the port"),
        pytest.param(pod(containers=port(81)), False, id="it held another port"),
        pytest.param(pod(containers=port(80, protocol="UDP")), False, id="another protocol"),
        pytest.param(pod(containers=port(80, "10.0.0.1")), True, id="every address includes one"),
        pytest.param(pod(containers=port(80), node=""), False, id="it had no node"),
        pytest.param(
            pod(containers=port(80), node="", nominated="n"), True, id="it was promised a node"
        ),
        pytest.param(pod(initContainers=[SIDECAR]), True, id="a sidecar held it"),
        pytest.param(pod(initContainers=port(80)), False, id="init containers do not count"),
        pytest.param(pod(), False, id="it held none"),
    ],
)
def test_node_ports(gone: Pod, *, expected: bool) -> None:
    assert asked("NodePorts", Deleted(gone), WANTS_PORT) is expected


def test_addresses_that_differ_do_not_collide() -> None:
    who = waiting(containers=port(80, "10.0.0.1"))

    assert not asked("NodePorts", Deleted(pod(containers=port(80, "10.0.0.2"))), who)
    assert asked("NodePorts", Deleted(pod(containers=port(80, "10.0.0.1"))), who)
    assert asked("NodePorts", Added(NODE), who)


ONE_CPU = waiting(wants={"cpu": 1000})


@pytest.mark.parametrize(
    ("event", "who", "expected"),
    [
        pytest.param(Deleted(pod()), None, True, id="any assigned pod went"),
        pytest.param(Deleted(pod(node="")), None, False, id="an unassigned pod went"),
        pytest.param(Deleted(pod(node="", nominated="n")), None, True, id="a nominated pod went"),
        pytest.param(
            Updated(pod(wants={"cpu": 2}), pod(wants={"cpu": 1})),
            ONE_CPU,
            True,
            id="an assigned pod asks for less cpu",
        ),
        pytest.param(
            Updated(pod(wants={"memory": 2}), pod(wants={"memory": 1})),
            ONE_CPU,
            False,
            id="it asks for less of something else",
        ),
        pytest.param(
            Updated(pod(node="", wants={"cpu": 2}), pod(node="", wants={"cpu": 1})),
            ONE_CPU,
            False,
            id="an unassigned pod asks for less",
        ),
        pytest.param(
            Updated(waiting(wants={"cpu": 2}), waiting(wants={})),
            ONE_CPU,
            True,
            id="the pod itself asks for less",
        ),
        pytest.param(Updated(pod(), pod(wants={"cpu": 1})), ONE_CPU, False, id="one asks for more"),
        pytest.param(Added(NODE), ONE_CPU, True, id="a node came that is large enough"),
        pytest.param(
            Added(node(offers={"cpu": "500m", "pods": 9})), ONE_CPU, False, id="one that is not"
        ),
        pytest.param(Added(node(offers={"cpu": "8"})), ONE_CPU, False, id="one that takes no pods"),
        pytest.param(
            Updated(NODE, node(offers={"pods": "110", "cpu": "3"})),
            ONE_CPU,
            True,
            id="a node has more cpu",
        ),
        pytest.param(
            Updated(NODE, node(offers={"pods": "111", "cpu": "2"})),
            ONE_CPU,
            True,
            id="a node takes more pods",
        ),
        pytest.param(
            Updated(NODE, node(offers={"pods": "110", "cpu": "2", "memory": "8Gi"})),
            ONE_CPU,
            False,
            id="a node has more of something else",
        ),
        pytest.param(
            Updated(NODE, node(offers={"pods": "110", "cpu": "1500m"})),
            ONE_CPU,
            False,
            id="a node has less, though enough",
        ),
        pytest.param(Updated(NODE, TAINTED), ONE_CPU, True, id="taints changed: a relic, always"),
        pytest.param(
            Added(Object(kind="DeviceClass")),
            waiting(wants={"example.com/gpu": 1}),
            True,
            id="a device class came, and the pod asks for an extended resource",
        ),
        pytest.param(Added(Object(kind="DeviceClass")), ONE_CPU, False, id="and it asks for none"),
    ],
)
def test_node_resources_fit(event: ClusterEvent, who: Pod | None, *, expected: bool) -> None:
    assert asked("NodeResourcesFit", event, who) is expected


def claims(*names: str) -> list[JsonObject]:
    return [{"persistentVolumeClaim": {"claimName": name}} for name in names]


def disk(kind: str, **source: object) -> list[JsonObject]:
    return [{kind: source}]


def claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": namespace}}, PersistentVolumeClaim
    )


EPHEMERAL = [{"name": "scratch", "ephemeral": {}}]


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(claims("a"), claims("b", "a"), True, id="a claim in common"),
        pytest.param(claims("a"), claims("b"), False, id="no claim in common"),
        pytest.param([], [], False, id="no volumes"),
        pytest.param(
            disk("gcePersistentDisk", pdName="d"),
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            True,
            id="a GCE disk that one writes",
        ),
        pytest.param(
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            False,
            id="a GCE disk that both only read",
        ),
        pytest.param(
            disk("awsElasticBlockStore", volumeID="v", readOnly=True),
            disk("awsElasticBlockStore", volumeID="v", readOnly=True),
            True,
            id="an EBS volume, even if both only read",
        ),
        pytest.param(disk("iscsi", iqn="i"), disk("iscsi", iqn="i"), True, id="an iSCSI target"),
        pytest.param(
            disk("rbd", monitors=["m", "k"], image="i", pool="p"),
            disk("rbd", monitors=["k"], image="i", pool="p"),
            True,
            id="a Ceph image with a monitor in common",
        ),
        pytest.param(
            disk("rbd", monitors=["m"], image="i", pool="p"),
            disk("rbd", monitors=["k"], image="i", pool="p"),
            False,
            id="a Ceph image without one",
        ),
    ],
)
def test_volume_restrictions(
    mine: list[JsonObject], theirs: list[JsonObject], *, expected: bool
) -> None:
    who = waiting(volumes=mine)

    assert asked("VolumeRestrictions", Deleted(pod(volumes=theirs)), who) is expected
    elsewhere = pod(namespace="other", volumes=theirs)
    assert not asked("VolumeRestrictions", Deleted(elsewhere), who)


@pytest.mark.parametrize(
    ("plugin", "ephemeral"),
    [
        ("VolumeRestrictions", False),
        ("NodeVolumeLimits", True),
        ("VolumeBinding", True),
        ("VolumeZone", False),
    ],
)
def test_a_new_claim_wakes_the_pods_that_use_it(plugin: str, *, ephemeral: bool) -> None:
    assert asked(plugin, Added(claim("a")), waiting(volumes=claims("a")))
    assert not asked(plugin, Added(claim("b")), waiting(volumes=claims("a")))
    assert not asked(plugin, Added(claim("a", "other")), waiting(volumes=claims("a")))
    assert asked(plugin, Added(claim("w-scratch")), waiting(volumes=EPHEMERAL)) is ephemeral


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ("VolumeRestrictions", False),
        ("NodeVolumeLimits", False),
        ("VolumeBinding", True),
        ("VolumeZone", True),
    ],
)
def test_a_changed_claim_wakes_fewer(plugin: str, *, expected: bool) -> None:
    event = Updated(claim("a"), claim("a"))

    assert asked(plugin, event, waiting(volumes=claims("a"))) is expected


def csi_node(count: int | None = None, migrated: str = "") -> CsiNode:
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    text = {
        "metadata": {"name": "n", "annotations": {key: migrated} if migrated else None},
        "spec": {"drivers": [{"name": "d", "allocatable": {"count": count}}]},
    }
    return msgspec.convert(text, CsiNode)


def attachment(attacher: str) -> VolumeAttachment:
    return msgspec.convert({"spec": {"attacher": attacher}}, VolumeAttachment)


@pytest.mark.parametrize(
    ("event", "volumes", "expected"),
    [
        pytest.param(Added(csi_node()), [], True, id="drivers of a node came"),
        pytest.param(Updated(csi_node(1), csi_node(2)), [], True, id="a limit grew"),
        pytest.param(Updated(csi_node(2), csi_node(1)), [], False, id="a limit shrank"),
        pytest.param(Updated(csi_node(), csi_node(1)), [], True, id="a limit appeared"),
        pytest.param(Deleted(pod(volumes=claims("a"))), [], True, id="a pod with a claim went"),
        pytest.param(Deleted(pod(volumes=EPHEMERAL)), [], True, id="one with an ephemeral volume"),
        pytest.param(
            Deleted(pod(volumes=disk("azureDisk", diskName="d"))), [], True, id="one with a disk"
        ),
        pytest.param(
            Deleted(pod(volumes=[{"name": "v"}])), [], False, id="one with another volume"
        ),
        pytest.param(
            Deleted(pod(volumes=claims("a"), node="")), [], False, id="one that had no node"
        ),
        pytest.param(
            Deleted(attachment("d")), claims("a"), True, id="a detached volume, and a claim"
        ),
        pytest.param(
            Deleted(attachment("ebs.csi.aws.com")),
            disk("awsElasticBlockStore", volumeID="v"),
            True,
            id="or a disk of the same driver",
        ),
        pytest.param(
            Deleted(attachment("d")),
            disk("gcePersistentDisk", pdName="d"),
            False,
            id="or a disk of another driver",
        ),
        pytest.param(Deleted(attachment("")), [{"name": "v"}], False, id="or no disk at all"),
    ],
)
def test_node_volume_limits(
    event: ClusterEvent, volumes: list[JsonObject], *, expected: bool
) -> None:
    assert asked("NodeVolumeLimits", event, waiting(volumes=volumes)) is expected


def capacity(**sizes: str) -> CsiStorageCapacity:
    return msgspec.convert(sizes, CsiStorageCapacity)


def driver(*, tells: bool | None) -> CsiDriver:
    text = {"metadata": {"name": "d"}, "spec": {"storageCapacity": tells}}
    return msgspec.convert(text, CsiDriver)


def topology(*zones: str) -> StorageClass:
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}]
    return msgspec.convert({"allowedTopologies": terms if zones else None}, StorageClass)


INLINE = [{"csi": {"driver": "d"}}]


@pytest.mark.parametrize(
    ("event", "volumes", "expected"),
    [
        pytest.param(Added(topology()), [], True, id="a storage class came"),
        pytest.param(Updated(topology("a"), topology("b")), [], True, id="its topology changed"),
        pytest.param(Updated(topology("a"), topology("a")), [], False, id="its topology did not"),
        pytest.param(Added(PersistentVolume()), [], True, id="a volume came"),
        pytest.param(Updated(PersistentVolume(), PersistentVolume()), [], True, id="one changed"),
        pytest.param(Added(NODE), [], True, id="a node came"),
        pytest.param(Updated(NODE, SSD), [], True, id="labels of a node changed"),
        pytest.param(Added(csi_node()), [], True, id="drivers of a node came"),
        pytest.param(
            Updated(csi_node(), csi_node(migrated="aws")), [], True, id="drivers took over a plugin"
        ),
        pytest.param(Updated(csi_node(1), csi_node(2)), [], False, id="drivers changed otherwise"),
        pytest.param(
            Updated(driver(tells=True), driver(tells=None)), INLINE, True, id="capacity unchecked"
        ),
        pytest.param(
            Updated(driver(tells=None), driver(tells=True)), INLINE, False, id="capacity checked"
        ),
        pytest.param(
            Updated(driver(tells=True), driver(tells=False)),
            claims("a"),
            False,
            id="volumes behind claims are not looked at",
        ),
        pytest.param(Added(capacity(capacity="1Gi")), [], True, id="a capacity came"),
        pytest.param(
            Updated(capacity(capacity="1Gi"), capacity(capacity="2Gi")), [], True, id="it grew"
        ),
        pytest.param(
            Updated(capacity(capacity="2Gi"), capacity(capacity="1Gi")), [], False, id="it shrank"
        ),
        pytest.param(Updated(capacity(), capacity(capacity="1")), [], True, id="it became known"),
        pytest.param(
            Updated(
                capacity(capacity="1Gi", maximumVolumeSize="1Mi"),
                capacity(capacity="2Gi", maximumVolumeSize="1Mi"),
            ),
            [],
            False,
            id="the largest volume counts rather than the sum",
        ),
    ],
)
def test_volume_binding(event: ClusterEvent, volumes: list[JsonObject], *, expected: bool) -> None:
    assert asked("VolumeBinding", event, waiting(volumes=volumes)) is expected


def volume(**labels: str) -> PersistentVolume:
    named = {f"topology.kubernetes.io/{key}": value for key, value in labels.items()}
    return msgspec.convert({"metadata": {"name": "v", "labels": named}}, PersistentVolume)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            Added(StorageClass(volume_binding_mode="WaitForFirstConsumer")),
            True,
            id="a storage class that binds late came",
        ),
        pytest.param(Added(StorageClass()), False, id="another storage class came"),
        pytest.param(Added(NODE), True, id="a node came"),
        pytest.param(Updated(NODE, SSD), True, id="labels of a node changed"),
        pytest.param(Added(volume()), True, id="a volume came"),
        pytest.param(Updated(volume(zone="a"), volume(zone="b")), True, id="its zone changed"),
        pytest.param(
            Updated(volume(zone="a__b"), volume(zone="b__a")), False, id="the same set of zones"
        ),
        pytest.param(
            Updated(volume(zone="a__"), volume(zone="__b")), False, id="labels that say nothing"
        ),
        pytest.param(Updated(volume(), volume(rack="a")), False, id="another label changed"),
    ],
)
def test_volume_zone(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("VolumeZone", event) is expected


def spreading(labels: dict[str, str] | None = None, **changes: object) -> Pod:
    constraint = {
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **changes,
    }
    return waiting(labels, topologySpreadConstraints=[constraint])


WEB = {"app": "web"}
DB = {"app": "db"}
IN_A = node({"zone": "a"})
IN_B = node({"zone": "b"})


@pytest.mark.parametrize(
    ("event", "who", "expected"),
    [
        pytest.param(Added(pod("o", WEB)), spreading(), True, id="a pod that counts came"),
        pytest.param(Added(pod("o", DB)), spreading(), False, id="one that does not count came"),
        pytest.param(Deleted(pod("o", WEB)), spreading(), True, id="one that counts went"),
        pytest.param(
            Deleted(pod("o", WEB, namespace="x")), spreading(), False, id="of another namespace"
        ),
        pytest.param(Deleted(pod("o", WEB, node="")), spreading(), False, id="without a node"),
        pytest.param(Updated(pod("o", DB), pod("o", WEB)), spreading(), True, id="it counts now"),
        pytest.param(
            Updated(pod("o", WEB), pod("o", {**WEB, "a": "b"})),
            spreading(),
            False,
            id="it counts as before",
        ),
        pytest.param(
            Updated(waiting(DB), waiting(WEB)), spreading(), True, id="the pod itself counts now"
        ),
        pytest.param(
            Updated(spreading(), spreading(tolerations=[])),
            spreading(),
            False,
            id="nothing changed",
        ),
        pytest.param(
            Updated(waiting(), waiting(tolerations=[GPU])),
            spreading(nodeTaintsPolicy="Honor"),
            True,
            id="it tolerates more, and taints are honoured",
        ),
        pytest.param(
            Updated(waiting(), waiting(tolerations=[GPU])),
            spreading(),
            False,
            id="it tolerates more, and taints are ignored",
        ),
        pytest.param(
            Added(pod("o", {**WEB, "rev": "2"})),
            spreading({"rev": "1"}, matchLabelKeys=["rev", "none"]),
            False,
            id="of another revision",
        ),
        pytest.param(
            Added(pod("o", {**WEB, "rev": "1"})),
            spreading({"rev": "1"}, matchLabelKeys=["rev"]),
            True,
            id="of the same revision",
        ),
        pytest.param(
            Added(pod("o", WEB)),
            spreading(labelSelector=None, matchLabelKeys=["rev"]),
            False,
            id="no selector counts nobody",
        ),
        pytest.param(
            Added(pod("o", WEB)),
            spreading(whenUnsatisfiable="ScheduleAnyway"),
            False,
            id="soft constraints do not reject",
        ),
        pytest.param(Added(IN_A), spreading(), True, id="a node with the key came"),
        pytest.param(Added(NODE), spreading(), False, id="a node without the key came"),
        pytest.param(Deleted(IN_A), spreading(), True, id="a node with the key went"),
        pytest.param(Deleted(NODE), spreading(), False, id="a node without the key went"),
        pytest.param(Updated(NODE, IN_A), spreading(), True, id="a node got the key"),
        pytest.param(Updated(IN_A, NODE), spreading(), True, id="a node lost the key"),
        pytest.param(Updated(IN_A, IN_B), spreading(), True, id="a node moved"),
        pytest.param(
            Updated(IN_A, node({"zone": "a", "b": "c"})), spreading(), False, id="other labels"
        ),
        pytest.param(
            Updated(IN_A, node({"zone": "a"}, taints=[GPU])), spreading(), True, id="other taints"
        ),
        pytest.param(
            Updated(NODE, TAINTED), spreading(), False, id="other taints of a node without the key"
        ),
    ],
)
def test_pod_topology_spread(event: ClusterEvent, who: Pod, *, expected: bool) -> None:
    assert asked("PodTopologySpread", event, who) is expected


def term(**changes: object) -> JsonObject:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}, **changes}


def terms(kind: str, *wanted: JsonObject) -> JsonObject:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(wanted)}}}


def near(*wanted: JsonObject) -> Pod:
    return waiting(**terms("podAffinity", *wanted))


def far(*shunned: JsonObject) -> Pod:
    return waiting(**terms("podAntiAffinity", *shunned))


TWO_TERMS = (term(), term(labelSelector={"matchLabels": {"tier": "front"}}))
LONELY = pod("o", **terms("podAntiAffinity", {"topologyKey": "zone", "labelSelector": {}}))
INVALID = term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})


@pytest.mark.parametrize(
    ("event", "who", "expected"),
    [
        pytest.param(Added(pod("o", WEB)), near(term()), True, id="a wanted pod came"),
        pytest.param(Added(pod("o", DB)), near(term()), False, id="another pod came"),
        pytest.param(Added(pod("o", WEB)), far(term()), False, id="a shunned pod came"),
        pytest.param(
            Added(pod("o", WEB)), near(*TWO_TERMS), False, id="it satisfies only one of two terms"
        ),
        pytest.param(
            Added(pod("o", {**WEB, "tier": "front"})),
            near(*TWO_TERMS),
            True,
            id="it satisfies both",
        ),
        pytest.param(Added(pod("o", WEB, node="")), near(term()), False, id="it has no node"),
        pytest.param(
            Added(pod("o", WEB, namespace="x")), near(term()), False, id="of another namespace"
        ),
        pytest.param(
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaces=["x"])),
            True,
            id="of a namespace that the term lists",
        ),
        pytest.param(
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaceSelector={})),
            True,
            id="of any namespace",
        ),
        pytest.param(
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaceSelector={"matchLabels": {"team": "a"}})),
            False,
            id="namespace labels are not looked up",
        ),
        pytest.param(
            Updated(pod("o", DB), pod("o", WEB)), near(term()), True, id="a pod is wanted now"
        ),
        pytest.param(
            Updated(pod("o", WEB), pod("o", {**WEB, "a": "b"})), near(term()), False, id="as before"
        ),
        pytest.param(
            Updated(pod("o", WEB), pod("o", DB)), far(term()), True, id="a pod is shunned no more"
        ),
        pytest.param(
            Updated(pod("o", DB), pod("o", WEB)), far(term()), False, id="a pod is shunned now"
        ),
        pytest.param(Updated(waiting(DB), waiting(WEB)), near(), True, id="its own labels changed"),
        pytest.param(Deleted(pod("o", WEB)), far(term()), True, id="a shunned pod went"),
        pytest.param(Deleted(pod("o", DB)), far(term()), False, id="another pod went"),
        pytest.param(Deleted(pod("o", WEB)), near(term()), False, id="a wanted pod went"),
        pytest.param(
            Deleted(LONELY), waiting(), True, id="a pod went that shunned the waiting one"
        ),
        pytest.param(Added(pod("o")), near(INVALID), True, id="an invalid term: rather try"),
        pytest.param(Added(IN_A), near(term()), True, id="a node of some domain came"),
        pytest.param(Added(NODE), near(term()), False, id="a node of no domain came"),
        pytest.param(Added(NODE), far(term()), True, id="any node is good for anti-affinity"),
        pytest.param(Updated(NODE, IN_A), near(term()), True, id="a node joined a domain"),
        pytest.param(Updated(IN_A, IN_B), near(term()), True, id="a node changed its domain"),
        pytest.param(Updated(IN_A, NODE), near(term()), False, id="a node left its domain"),
        pytest.param(Updated(IN_A, NODE), far(term()), True, id="it left a shunned domain"),
        pytest.param(Updated(IN_A, IN_B), far(term()), True, id="it changed a shunned domain"),
        pytest.param(Updated(NODE, IN_A), far(term()), False, id="it joined a shunned domain"),
        pytest.param(Updated(NODE, SSD), far(term()), False, id="other labels changed"),
        pytest.param(Updated(NODE, TAINTED), near(), True, id="taints changed: a relic, always"),
    ],
)
def test_inter_pod_affinity(event: ClusterEvent, who: Pod, *, expected: bool) -> None:
    assert asked("InterPodAffinity", event, who) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Added(NODE), True, id="a node came"),
        pytest.param(Updated(NODE, node(features=["F"])), True, id="declared features changed"),
        pytest.param(Updated(NODE, SSD), False, id="labels changed"),
        pytest.param(
            Updated(waiting(hostNetwork=True, hostUsers=False), waiting()),
            True,
            id="the pod needs other features",
        ),
        pytest.param(
            Updated(
                waiting(),
                waiting(containers=[{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]),
            ),
            True,
            id="the pod restarts as a whole",
        ),
        pytest.param(Updated(waiting(), waiting(WEB)), False, id="the pod changed otherwise"),
        pytest.param(
            Updated(pod(hostNetwork=True, hostUsers=False), pod()), False, id="another pod did"
        ),
    ],
)
def test_node_declared_features(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeDeclaredFeatures", event) is expected


@pytest.mark.parametrize(
    ("plugin", "event", "expected"),
    [
        pytest.param(
            "SchedulingGates",
            Updated(waiting(schedulingGates=[{"name": "g"}]), waiting()),
            True,
            id="the gates are gone",
        ),
        pytest.param(
            "SchedulingGates",
            Updated(
                waiting(schedulingGates=[{"name": "g"}, {"name": "h"}]),
                waiting(schedulingGates=[{"name": "h"}]),
            ),
            False,
            id="one of two gates is gone",
        ),
        pytest.param(
            "SchedulingGates",
            Updated(pod(schedulingGates=[{"name": "g"}]), pod()),
            False,
            id="those of another pod are",
        ),
        pytest.param("DefaultPreemption", Deleted(pod()), False, id="preemption wakes nobody"),
        pytest.param("DynamicResources", Updated(NODE, SSD), True, id="a node's labels changed"),
        pytest.param(
            "DynamicResources", Added(Object(kind="ResourceSlice")), True, id="devices appeared"
        ),
        pytest.param("DynamicResources", Deleted(pod()), False, id="a pod went"),
        pytest.param("Extender", Deleted(NODE), True, id="an extender may care for any node event"),
        pytest.param("MyPlugin", Updated(NODE, SSD), True, id="so may a plugin nobody knows"),
        pytest.param("Extender", Deleted(attachment("d")), False, id="but not for attachments"),
        pytest.param("Extender", Updated(Service(), Service()), False, id="nor for services"),
        pytest.param("NodeName", Updated(NODE, NODE), False, id="nothing changed"),
    ],
)
def test_other_plugins(plugin: str, event: ClusterEvent, *, expected: bool) -> None:
    assert asked(plugin, event) is expected


@pytest.mark.parametrize("thing", [Service(), Namespace(), ReplicaSet(), PodDisruptionBudget()])
def test_kinds_that_wake_nobody(thing: Object) -> None:
    assert RULES.requests(Added(thing), 1) == []


def test_each_aspect_of_a_change_is_an_event() -> None:
    new = node(
        {"a": "b"},
        taints=[GPU],
        offers={},
        features=["F"],
        annotations={"a": "b"},
        conditions=[{"type": "Ready", "status": "True"}],
    )

    found = [request.label for request in RULES.requests(Updated(CORDONED, new), 1)]

    assert found == [
        "NodeUpdateNodeTaint",
        "NodeUpdateNodeAllocatable",
        "NodeUpdateNodeLabel",
        "NodeUpdateNodeTaint",
        "NodeUpdateNodeCondition",
        "NodeUpdateNodeAnnotation",
        "NodeUpdateNodeDeclaredFeature",
    ]


def test_conditions_in_another_order_are_no_change() -> None:
    ready, full = {"type": "Ready", "status": "True"}, {"type": "Full", "status": "False"}
    old, new = node(conditions=[ready, full]), node(conditions=[full, ready])

    assert not RULES.requests(Updated(old, new), 1)
    changed = node(conditions=[full, {**ready, "status": "False"}])
    [request] = RULES.requests(Updated(old, changed), 1)
    assert request.label == "NodeUpdateNodeCondition"


def test_a_change_of_a_pod_without_any_aspect_is_a_plain_update() -> None:
    [request] = RULES.requests(Updated(pod(), pod()), 1)

    assert request.label == "AssignedPodUpdate"


def test_a_changed_toleration_goes_unnoticed_if_their_number_does_not_change() -> None:
    old, new = waiting(tolerations=[GPU]), waiting(tolerations=[{"operator": "Exists"}])

    assert not asked("TaintToleration", Updated(old, new), new)


def queued(**changes: object) -> QueuedPod:
    return QueuedPod(waiting(), 0, 0, **changes)  # type: ignore[arg-type]


def test_one_of_several_rejectors_is_enough() -> None:
    [request] = RULES.requests(Added(NODE), 1)

    both = queued(rejected_by=frozenset({"SchedulingGates", "NodeName"}))
    assert RULES.wakes(request, both) is Wake.AFTER_BACKOFF


def test_whoever_asked_for_patience_wakes_the_pod_at_once() -> None:
    [request] = RULES.requests(Added(NODE), 1)

    patient = queued(rejected_by=frozenset({"TaintToleration"}), pending_on=frozenset({"NodeName"}))
    assert RULES.wakes(request, patient) is Wake.NOW


def test_time_wakes_everybody() -> None:
    [request] = RULES.requests(WaitedTooLong(), 1)

    gated = queued(rejected_by=frozenset({"SchedulingGates"}))
    assert RULES.wakes(request, gated) is Wake.AFTER_BACKOFF


def test_a_lost_nomination_is_a_deletion_for_pods_of_at_most_its_priority() -> None:
    [request] = RULES.requests(NominationLost(pod(priority=3, node="", nominated="n")), 1)
    waiter = queued(rejected_by=frozenset({"NodeResourcesFit"}))

    assert RULES.wakes(request, waiter) is Wake.AFTER_BACKOFF
    waiter.pod = waiting(priority=4)
    assert RULES.wakes(request, waiter) is Wake.NO
    assert RULES.after_failure(waiter, [request], moved=True) is Wake.AFTER_BACKOFF, (
        "a pod in flight is not asked for its priority"
    )


def test_after_a_failure_the_events_since_decide() -> None:
    [came] = RULES.requests(Added(NODE), 1)
    [went] = RULES.requests(Deleted(pod()), 1)
    rejected = queued(rejected_by=frozenset({"NodeName"}))

    assert RULES.after_failure(rejected, [], moved=True) is Wake.NO
    assert RULES.after_failure(rejected, [went], moved=True) is Wake.NO
    assert RULES.after_failure(rejected, [went, came], moved=True) is Wake.AFTER_BACKOFF
    assert RULES.after_failure(queued(), [], moved=False) is Wake.AFTER_BACKOFF, "an error"
    patient = queued(
        rejected_by=frozenset({"NodeResourcesFit"}), pending_on=frozenset({"NodeName"})
    )
    assert RULES.after_failure(patient, [went, came], moved=True) is Wake.NOW
