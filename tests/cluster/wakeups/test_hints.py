"""Which event wakes which pod: the table of v1.36, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from cases import cases
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


@cases(
    ("event", "expected"),
    {
        "a node that takes pods came": (Added(NODE), True),
        "a cordoned node came": (Added(CORDONED), False),
        "a node was uncordoned": (Updated(CORDONED, NODE), True),
        "other taints do not matter": (Updated(NODE, TAINTED), False),
        "a node was cordoned": (Updated(NODE, CORDONED), False),
        "the pod puts up with it now": (
            Updated(waiting(), waiting(tolerations=TOLERATES_CORDON)),
            True,
        ),
        "it got another toleration": (Updated(waiting(), TOLERANT), False),
        "another pod got it": (Updated(pod(), pod(tolerations=TOLERATES_CORDON)), False),
    },
)
def test_node_unschedulable(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeUnschedulable", event) is expected


@cases(
    ("event", "expected"),
    {
        "a node came": (Added(NODE), True),
        "taints changed: a relic, always": (Updated(NODE, TAINTED), True),
        "an uncordoned node counts as such": (Updated(CORDONED, NODE), True),
        "labels changed": (Updated(NODE, node({"a": "b"})), False),
        "a node went": (Deleted(NODE), False),
    },
)
def test_node_name(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeName", event) is expected


@cases(
    ("event", "who", "expected"),
    {
        "an untainted node came": (Added(NODE), None, True),
        "a tainted node came": (Added(TAINTED), None, False),
        "one whose taint the pod tolerates": (Added(TAINTED), TOLERANT, True),
        "a soft taint does not matter": (Added(node(taints=[SOFT])), None, True),
        "the taint went": (Updated(TAINTED, NODE), None, True),
        "the taint came": (Updated(NODE, TAINTED), None, False),
        "it was no obstacle to begin with": (Updated(TAINTED, NODE), TOLERANT, False),
        "the pod got a toleration": (Updated(waiting(), TOLERANT), None, True),
        "another pod did": (Updated(pod(), pod(tolerations=[{}])), None, False),
    },
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
@cases(
    ("event", "expected"),
    {
        "a matching node came": (Added(SSD), True),
        "another node came": (Added(HDD), False),
        "a node matches now": (Updated(HDD, SSD), True),
        "it matched before, too": (Updated(SSD, node({"disk": "ssd", "a": "b"})), False),
        "a node matches no more": (Updated(SSD, HDD), False),
        "taints: a relic, always": (Updated(HDD, node({"disk": "hdd"}, taints=[GPU])), True),
    },
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


@cases(
    ("gone", "expected"),
    {
        "it held the port": (pod(containers=port(80)), True),
        "it held another port": (pod(containers=port(81)), False),
        "another protocol": (pod(containers=port(80, protocol="UDP")), False),
        "every address includes one": (pod(containers=port(80, "10.0.0.1")), True),
        "it had no node": (pod(containers=port(80), node=""), False),
        "it was promised a node": (pod(containers=port(80), node="", nominated="n"), True),
        "a sidecar held it": (pod(initContainers=[SIDECAR]), True),
        "init containers do not count": (pod(initContainers=port(80)), False),
        "it held none": (pod(), False),
    },
)
def test_node_ports(gone: Pod, *, expected: bool) -> None:
    assert asked("NodePorts", Deleted(gone), WANTS_PORT) is expected


def test_addresses_that_differ_do_not_collide() -> None:
    who = waiting(containers=port(80, "10.0.0.1"))

    assert not asked("NodePorts", Deleted(pod(containers=port(80, "10.0.0.2"))), who)
    assert asked("NodePorts", Deleted(pod(containers=port(80, "10.0.0.1"))), who)
    assert asked("NodePorts", Added(NODE), who)


ONE_CPU = waiting(wants={"cpu": 1000})


@cases(
    ("event", "who", "expected"),
    {
        "any assigned pod went": (Deleted(pod()), None, True),
        "an unassigned pod went": (Deleted(pod(node="")), None, False),
        "a nominated pod went": (Deleted(pod(node="", nominated="n")), None, True),
        "an assigned pod asks for less cpu": (
            Updated(pod(wants={"cpu": 2}), pod(wants={"cpu": 1})),
            ONE_CPU,
            True,
        ),
        "it asks for less of something else": (
            Updated(pod(wants={"memory": 2}), pod(wants={"memory": 1})),
            ONE_CPU,
            False,
        ),
        "an unassigned pod asks for less": (
            Updated(pod(node="", wants={"cpu": 2}), pod(node="", wants={"cpu": 1})),
            ONE_CPU,
            False,
        ),
        "the pod itself asks for less": (
            Updated(waiting(wants={"cpu": 2}), waiting(wants={})),
            ONE_CPU,
            True,
        ),
        "one asks for more": (Updated(pod(), pod(wants={"cpu": 1})), ONE_CPU, False),
        "a node came that is large enough": (Added(NODE), ONE_CPU, True),
        "one that is not": (Added(node(offers={"cpu": "500m", "pods": 9})), ONE_CPU, False),
        "one that takes no pods": (Added(node(offers={"cpu": "8"})), ONE_CPU, False),
        "a node has more cpu": (
            Updated(NODE, node(offers={"pods": "110", "cpu": "3"})),
            ONE_CPU,
            True,
        ),
        "a node takes more pods": (
            Updated(NODE, node(offers={"pods": "111", "cpu": "2"})),
            ONE_CPU,
            True,
        ),
        "a node has more of something else": (
            Updated(NODE, node(offers={"pods": "110", "cpu": "2", "memory": "8Gi"})),
            ONE_CPU,
            False,
        ),
        "a node has less, though enough": (
            Updated(NODE, node(offers={"pods": "110", "cpu": "1500m"})),
            ONE_CPU,
            False,
        ),
        "taints changed: a relic, always": (Updated(NODE, TAINTED), ONE_CPU, True),
        "a device class came, and the pod asks for an extended resource": (
            Added(Object(kind="DeviceClass")),
            waiting(wants={"example.com/gpu": 1}),
            True,
        ),
        "and it asks for none": (Added(Object(kind="DeviceClass")), ONE_CPU, False),
    },
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


@cases(
    ("mine", "theirs", "expected"),
    {
        "a claim in common": (claims("a"), claims("b", "a"), True),
        "no claim in common": (claims("a"), claims("b"), False),
        "no volumes": ([], [], False),
        "a GCE disk that one writes": (
            disk("gcePersistentDisk", pdName="d"),
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            True,
        ),
        "a GCE disk that both only read": (
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            disk("gcePersistentDisk", pdName="d", readOnly=True),
            False,
        ),
        "an EBS volume, even if both only read": (
            disk("awsElasticBlockStore", volumeID="v", readOnly=True),
            disk("awsElasticBlockStore", volumeID="v", readOnly=True),
            True,
        ),
        "an iSCSI target": (disk("iscsi", iqn="i"), disk("iscsi", iqn="i"), True),
        "a Ceph image with a monitor in common": (
            disk("rbd", monitors=["m", "k"], image="i", pool="p"),
            disk("rbd", monitors=["k"], image="i", pool="p"),
            True,
        ),
        "a Ceph image without one": (
            disk("rbd", monitors=["m"], image="i", pool="p"),
            disk("rbd", monitors=["k"], image="i", pool="p"),
            False,
        ),
    },
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


@cases(
    ("event", "volumes", "expected"),
    {
        "drivers of a node came": (Added(csi_node()), [], True),
        "a limit grew": (Updated(csi_node(1), csi_node(2)), [], True),
        "a limit shrank": (Updated(csi_node(2), csi_node(1)), [], False),
        "a limit appeared": (Updated(csi_node(), csi_node(1)), [], True),
        "a pod with a claim went": (Deleted(pod(volumes=claims("a"))), [], True),
        "one with an ephemeral volume": (Deleted(pod(volumes=EPHEMERAL)), [], True),
        "one with a disk": (Deleted(pod(volumes=disk("azureDisk", diskName="d"))), [], True),
        "one with another volume": (Deleted(pod(volumes=[{"name": "v"}])), [], False),
        "one that had no node": (Deleted(pod(volumes=claims("a"), node="")), [], False),
        "a detached volume, and a claim": (Deleted(attachment("d")), claims("a"), True),
        "or a disk of the same driver": (
            Deleted(attachment("ebs.csi.aws.com")),
            disk("awsElasticBlockStore", volumeID="v"),
            True,
        ),
        "or a disk of another driver": (
            Deleted(attachment("d")),
            disk("gcePersistentDisk", pdName="d"),
            False,
        ),
        "or no disk at all": (Deleted(attachment("")), [{"name": "v"}], False),
    },
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


@cases(
    ("event", "volumes", "expected"),
    {
        "a storage class came": (Added(topology()), [], True),
        "its topology changed": (Updated(topology("a"), topology("b")), [], True),
        "its topology did not": (Updated(topology("a"), topology("a")), [], False),
        "a volume came": (Added(PersistentVolume()), [], True),
        "one changed": (Updated(PersistentVolume(), PersistentVolume()), [], True),
        "a node came": (Added(NODE), [], True),
        "labels of a node changed": (Updated(NODE, SSD), [], True),
        "drivers of a node came": (Added(csi_node()), [], True),
        "drivers took over a plugin": (Updated(csi_node(), csi_node(migrated="aws")), [], True),
        "drivers changed otherwise": (Updated(csi_node(1), csi_node(2)), [], False),
        "capacity unchecked": (Updated(driver(tells=True), driver(tells=None)), INLINE, True),
        "capacity checked": (Updated(driver(tells=None), driver(tells=True)), INLINE, False),
        "volumes behind claims are not looked at": (
            Updated(driver(tells=True), driver(tells=False)),
            claims("a"),
            False,
        ),
        "a capacity came": (Added(capacity(capacity="1Gi")), [], True),
        "it grew": (Updated(capacity(capacity="1Gi"), capacity(capacity="2Gi")), [], True),
        "it shrank": (Updated(capacity(capacity="2Gi"), capacity(capacity="1Gi")), [], False),
        "it became known": (Updated(capacity(), capacity(capacity="1")), [], True),
        "the largest volume counts rather than the sum": (
            Updated(
                capacity(capacity="1Gi", maximumVolumeSize="1Mi"),
                capacity(capacity="2Gi", maximumVolumeSize="1Mi"),
            ),
            [],
            False,
        ),
    },
)
def test_volume_binding(event: ClusterEvent, volumes: list[JsonObject], *, expected: bool) -> None:
    assert asked("VolumeBinding", event, waiting(volumes=volumes)) is expected


def volume(**labels: str) -> PersistentVolume:
    named = {f"topology.kubernetes.io/{key}": value for key, value in labels.items()}
    return msgspec.convert({"metadata": {"name": "v", "labels": named}}, PersistentVolume)


@cases(
    ("event", "expected"),
    {
        "a storage class that binds late came": (
            Added(StorageClass(volume_binding_mode="WaitForFirstConsumer")),
            True,
        ),
        "another storage class came": (Added(StorageClass()), False),
        "a node came": (Added(NODE), True),
        "labels of a node changed": (Updated(NODE, SSD), True),
        "a volume came": (Added(volume()), True),
        "its zone changed": (Updated(volume(zone="a"), volume(zone="b")), True),
        "the same set of zones": (Updated(volume(zone="a__b"), volume(zone="b__a")), False),
        "labels that say nothing": (Updated(volume(zone="a__"), volume(zone="__b")), False),
        "another label changed": (Updated(volume(), volume(rack="a")), False),
    },
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


@cases(
    ("event", "who", "expected"),
    {
        "a pod that counts came": (Added(pod("o", WEB)), spreading(), True),
        "one that does not count came": (Added(pod("o", DB)), spreading(), False),
        "one that counts went": (Deleted(pod("o", WEB)), spreading(), True),
        "of another namespace": (Deleted(pod("o", WEB, namespace="x")), spreading(), False),
        "without a node": (Deleted(pod("o", WEB, node="")), spreading(), False),
        "it counts now": (Updated(pod("o", DB), pod("o", WEB)), spreading(), True),
        "it counts as before": (
            Updated(pod("o", WEB), pod("o", {**WEB, "a": "b"})),
            spreading(),
            False,
        ),
        "the pod itself counts now": (Updated(waiting(DB), waiting(WEB)), spreading(), True),
        "nothing changed": (Updated(spreading(), spreading(tolerations=[])), spreading(), False),
        "it tolerates more, and taints are honoured": (
            Updated(waiting(), waiting(tolerations=[GPU])),
            spreading(nodeTaintsPolicy="Honor"),
            True,
        ),
        "it tolerates more, and taints are ignored": (
            Updated(waiting(), waiting(tolerations=[GPU])),
            spreading(),
            False,
        ),
        "of another revision": (
            Added(pod("o", {**WEB, "rev": "2"})),
            spreading({"rev": "1"}, matchLabelKeys=["rev", "none"]),
            False,
        ),
        "of the same revision": (
            Added(pod("o", {**WEB, "rev": "1"})),
            spreading({"rev": "1"}, matchLabelKeys=["rev"]),
            True,
        ),
        "no selector counts nobody": (
            Added(pod("o", WEB)),
            spreading(labelSelector=None, matchLabelKeys=["rev"]),
            False,
        ),
        "soft constraints do not reject": (
            Added(pod("o", WEB)),
            spreading(whenUnsatisfiable="ScheduleAnyway"),
            False,
        ),
        "a node with the key came": (Added(IN_A), spreading(), True),
        "a node without the key came": (Added(NODE), spreading(), False),
        "a node with the key went": (Deleted(IN_A), spreading(), True),
        "a node without the key went": (Deleted(NODE), spreading(), False),
        "a node got the key": (Updated(NODE, IN_A), spreading(), True),
        "a node lost the key": (Updated(IN_A, NODE), spreading(), True),
        "a node moved": (Updated(IN_A, IN_B), spreading(), True),
        "other labels": (Updated(IN_A, node({"zone": "a", "b": "c"})), spreading(), False),
        "other taints": (Updated(IN_A, node({"zone": "a"}, taints=[GPU])), spreading(), True),
        "other taints of a node without the key": (Updated(NODE, TAINTED), spreading(), False),
    },
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


@cases(
    ("event", "who", "expected"),
    {
        "a wanted pod came": (Added(pod("o", WEB)), near(term()), True),
        "another pod came": (Added(pod("o", DB)), near(term()), False),
        "a shunned pod came": (Added(pod("o", WEB)), far(term()), False),
        "it satisfies only one of two terms": (Added(pod("o", WEB)), near(*TWO_TERMS), False),
        "it satisfies both": (Added(pod("o", {**WEB, "tier": "front"})), near(*TWO_TERMS), True),
        "it has no node": (Added(pod("o", WEB, node="")), near(term()), False),
        "of another namespace": (Added(pod("o", WEB, namespace="x")), near(term()), False),
        "of a namespace that the term lists": (
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaces=["x"])),
            True,
        ),
        "of any namespace": (
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaceSelector={})),
            True,
        ),
        "namespace labels are not looked up": (
            Added(pod("o", WEB, namespace="x")),
            near(term(namespaceSelector={"matchLabels": {"team": "a"}})),
            False,
        ),
        "a pod is wanted now": (Updated(pod("o", DB), pod("o", WEB)), near(term()), True),
        "as before": (Updated(pod("o", WEB), pod("o", {**WEB, "a": "b"})), near(term()), False),
        "a pod is shunned no more": (Updated(pod("o", WEB), pod("o", DB)), far(term()), True),
        "a pod is shunned now": (Updated(pod("o", DB), pod("o", WEB)), far(term()), False),
        "its own labels changed": (Updated(waiting(DB), waiting(WEB)), near(), True),
        "a shunned pod went": (Deleted(pod("o", WEB)), far(term()), True),
        "another pod went": (Deleted(pod("o", DB)), far(term()), False),
        "a wanted pod went": (Deleted(pod("o", WEB)), near(term()), False),
        "a pod went that shunned the waiting one": (Deleted(LONELY), waiting(), True),
        "an invalid term: rather try": (Added(pod("o")), near(INVALID), True),
        "a node of some domain came": (Added(IN_A), near(term()), True),
        "a node of no domain came": (Added(NODE), near(term()), False),
        "any node is good for anti-affinity": (Added(NODE), far(term()), True),
        "a node joined a domain": (Updated(NODE, IN_A), near(term()), True),
        "a node changed its domain": (Updated(IN_A, IN_B), near(term()), True),
        "a node left its domain": (Updated(IN_A, NODE), near(term()), False),
        "it left a shunned domain": (Updated(IN_A, NODE), far(term()), True),
        "it changed a shunned domain": (Updated(IN_A, IN_B), far(term()), True),
        "it joined a shunned domain": (Updated(NODE, IN_A), far(term()), False),
        "other labels changed": (Updated(NODE, SSD), far(term()), False),
        "taints changed: a relic, always": (Updated(NODE, TAINTED), near(), True),
    },
)
def test_inter_pod_affinity(event: ClusterEvent, who: Pod, *, expected: bool) -> None:
    assert asked("InterPodAffinity", event, who) is expected


@cases(
    ("event", "expected"),
    {
        "a node came": (Added(NODE), True),
        "declared features changed": (Updated(NODE, node(features=["F"])), True),
        "labels changed": (Updated(NODE, SSD), False),
        "the pod needs other features": (
            Updated(waiting(hostNetwork=True, hostUsers=False), waiting()),
            True,
        ),
        "the pod restarts as a whole": (
            Updated(
                waiting(),
                waiting(containers=[{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]),
            ),
            True,
        ),
        "the pod changed otherwise": (Updated(waiting(), waiting(WEB)), False),
        "another pod did": (Updated(pod(hostNetwork=True, hostUsers=False), pod()), False),
    },
)
def test_node_declared_features(event: ClusterEvent, *, expected: bool) -> None:
    assert asked("NodeDeclaredFeatures", event) is expected


@cases(
    ("plugin", "event", "expected"),
    {
        "the gates are gone": (
            "SchedulingGates",
            Updated(waiting(schedulingGates=[{"name": "g"}]), waiting()),
            True,
        ),
        "one of two gates is gone": (
            "SchedulingGates",
            Updated(
                waiting(schedulingGates=[{"name": "g"}, {"name": "h"}]),
                waiting(schedulingGates=[{"name": "h"}]),
            ),
            False,
        ),
        "those of another pod are": (
            "SchedulingGates",
            Updated(pod(schedulingGates=[{"name": "g"}]), pod()),
            False,
        ),
        "preemption wakes nobody": ("DefaultPreemption", Deleted(pod()), False),
        "a node's labels changed": ("DynamicResources", Updated(NODE, SSD), True),
        "devices appeared": ("DynamicResources", Added(Object(kind="ResourceSlice")), True),
        "a pod went": ("DynamicResources", Deleted(pod()), False),
        "an extender may care for any node event": ("Extender", Deleted(NODE), True),
        "so may a plugin nobody knows": ("MyPlugin", Updated(NODE, SSD), True),
        "but not for attachments": ("Extender", Deleted(attachment("d")), False),
        "nor for services": ("Extender", Updated(Service(), Service()), False),
        "nothing changed": ("NodeName", Updated(NODE, NODE), False),
    },
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
