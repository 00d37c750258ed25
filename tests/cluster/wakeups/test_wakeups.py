"""Which event wakes which pod: the rules of v1.13."""

from __future__ import annotations

import logging

import msgspec
import pytest

from cases import cases
from podium.cluster.queue.entities import Pool, QueuedPod
from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.wakeups.wakeups import (
    Added,
    ClusterEvent,
    Deleted,
    MoveRequest,
    MoveRules,
    NominationLost,
    Updated,
    WaitedTooLong,
    Wake,
)
from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import (
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.objects.kinds.workloads import Namespace, ReplicaSet, Service


def node(**changes: JsonObject) -> Node:
    return msgspec.convert({"metadata": {"name": "n"}, **changes}, Node)


def pod(labels: dict[str, str] | None = None, namespace: str = "default") -> Pod:
    text = {
        "metadata": {"name": "p", "namespace": namespace, "labels": labels},
        "spec": {"nodeName": "n"},
    }
    return msgspec.convert(text, Pod)


def storage_class(mode: str | None) -> StorageClass:
    return msgspec.convert({"volumeBindingMode": mode}, StorageClass)


NODE = node()
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
LATE = StorageClass(volume_binding_mode="WaitForFirstConsumer")


@cases(
    ("event", "expected"),
    {
        "a node came": (Added(NODE), True),
        "a node went": (Deleted(NODE), False),
        "an assigned pod went": (Deleted(pod()), True),
        "a service came": (Added(Service()), True),
        "a service changed, or did not": (Updated(Service(), Service()), True),
        "a service went": (Deleted(Service()), True),
        "a volume came": (Added(PersistentVolume()), True),
        "a volume changed": (Updated(PersistentVolume(), PersistentVolume()), True),
        "a volume went": (Deleted(PersistentVolume()), False),
        "a claim came": (Added(PersistentVolumeClaim()), True),
        "a claim changed": (Updated(PersistentVolumeClaim(), PersistentVolumeClaim()), True),
        "a claim went": (Deleted(PersistentVolumeClaim()), False),
        "a storage class that binds late came": (Added(LATE), True),
        "one that binds at once came": (Added(storage_class("Immediate")), False),
        "one without a mode came": (Added(storage_class(None)), False),
        "a storage class changed": (Updated(LATE, LATE), False),
        "a storage class went": (Deleted(LATE), False),
        "drivers were not looked at": (Added(CsiNode()), False),
        "a namespace came": (Added(Namespace()), False),
        "a controller came": (Added(ReplicaSet()), False),
        "a nomination ended": (NominationLost(pod()), False),
        "time ran out": (WaitedTooLong(), True),
    },
)
def test_what_wakes_everybody(event: ClusterEvent, *, expected: bool) -> None:
    requests = MoveRules().requests(event, waiting=1)

    assert [request.topics for request in requests] == ([None] if expected else [])
    for request in requests:
        assert MoveRules().wakes(request, QueuedPod(pod(), 0, 0)) is Wake.AFTER_BACKOFF


@cases(
    ("old", "new", "expected"),
    {
        "it takes pods again": (node(spec={"unschedulable": True}), NODE, True),
        "it was cordoned": (NODE, node(spec={"unschedulable": True}), False),
        "it offers something else": (NODE, node(status={"allocatable": {"cpu": "1"}}), True),
        "its labels changed": (NODE, node(metadata={"name": "n", "labels": {"a": "b"}}), True),
        "its taints changed, for better or worse": (
            NODE,
            node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
            True,
        ),
        "a condition changed its status": (NODE, node(**READY), True),
        "nothing that matters changed": (node(**READY), node(**READY), False),
        "only its images changed": (NODE, node(status={"images": [{"names": ["a"]}]}), False),
    },
)
def test_which_change_of_a_node_wakes_everybody(old: Node, new: Node, *, expected: bool) -> None:
    assert bool(MoveRules().requests(Updated(old, new), waiting=1)) is expected
    assert MoveRules().requests(Updated(old, new), waiting=0), "nobody waits: always a request"


def test_without_volume_scheduling_a_changed_claim_wakes_nobody() -> None:
    rules = MoveRules(volume_scheduling=False)

    assert not rules.requests(Updated(PersistentVolumeClaim(), PersistentVolumeClaim()), 1)
    assert rules.requests(Added(PersistentVolumeClaim()), 1)


def affine(*terms: JsonObject, namespace: str = "default", anti: bool = False) -> QueuedPod:
    kind = "podAntiAffinity" if anti else "podAffinity"
    text = {
        "metadata": {"name": "w", "namespace": namespace},
        "spec": {
            "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
        },
    }
    return QueuedPod(msgspec.convert(text, Pod), 0, 0)


WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
INVALID = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}


@cases(
    ("waiting", "assigned", "expected"),
    {
        "the term matches": (affine(WEB), pod({"app": "web"}), True),
        "the term does not match": (affine(WEB), pod({"app": "db"}), False),
        "one matching term is enough": (affine(INVALID, WEB), pod({"app": "web"}), True),
        "the waiting pod's namespace counts": (affine(WEB), pod({"app": "web"}, "other"), False),
        "or the namespaces of the term": (
            affine({**WEB, "namespaces": ["other"]}),
            pod({"app": "web"}, "other"),
            True,
        ),
        "no selector matches no pod": (affine({}), pod({"app": "web"}), False),
        "an empty selector matches every pod": (affine({"labelSelector": {}}), pod(), True),
        "anti-affinity does not count": (affine(WEB, anti=True), pod({"app": "web"}), False),
        "a pod without affinity sleeps on": (QueuedPod(pod(), 0, 0), pod(), False),
    },
)
@pytest.mark.parametrize("change", ["add", "update"])
def test_an_assigned_pod_wakes_those_that_want_to_be_near(
    waiting: QueuedPod, assigned: Pod, change: str, *, expected: bool
) -> None:
    rules = MoveRules()
    event = Added(assigned) if change == "add" else Updated(pod(), assigned)
    [request] = rules.requests(event, waiting=1)

    assert request.topics is not None
    asked = bool(request.topics & set(rules.interests(waiting)))
    assert (asked and rules.wakes(request, waiting) is Wake.AFTER_BACKOFF) is expected


def test_an_invalid_selector_is_ignored_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    [request] = MoveRules().requests(Added(pod()), waiting=1)

    with caplog.at_level(logging.WARNING):
        wake = MoveRules().wakes(request, affine(INVALID))

    assert wake is Wake.NO
    assert "pod affinity of default/w is ignored" in caplog.text


@cases(
    ("request_", "label"),
    {
        "the kind and the action": (MoveRequest(Added(NODE), "Add"), "NodeAdd"),
        "pods that have a node": (MoveRequest(Deleted(pod()), "Delete"), "AssignedPodDelete"),
        "and not": (MoveRequest(Updated(Pod(), Pod()), "Update"), "UnschedulablePodUpdate"),
        "as if deleted": (MoveRequest(NominationLost(Pod()), "Delete"), "AssignedPodDelete"),
        "with its group": (MoveRequest(Added(CsiNode()), "Add"), "storage.k8s.io/CSINodeAdd"),
        "kinds that are not read": (
            MoveRequest(Added(Object(kind="DeviceClass")), "Add"),
            "resource.k8s.io/DeviceClassAdd",
        ),
        "time ran out": (MoveRequest(WaitedTooLong()), "UnschedulableTimeout"),
    },
)
def test_what_metrics_call_it(request_: MoveRequest, label: str) -> None:
    assert request_.label == label


def test_the_queue_follows_the_rules() -> None:
    queue = SchedulingQueue(lambda: 0.0, MoveRules())
    waiting = affine(WEB).pod
    failed = {
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    }
    waiting = msgspec.convert({**msgspec.to_builtins(waiting), "status": failed}, Pod)
    queue.add(waiting)
    attempt = queue.pop()
    assert attempt
    queue.requeue(attempt)

    assert queue.on_event(Deleted(NODE)) == {}
    assert queue.on_event(Added(pod({"app": "db"}))) == {}
    assert queue.pool_of(waiting) is Pool.UNSCHEDULABLE
    assert queue.on_event(Added(pod({"app": "web"}))) == {"AssignedPodAdd": 1}
    assert queue.pool_of(waiting) is Pool.ACTIVE
