"""Which event wakes which pod: the rules of v1.13."""

from __future__ import annotations

import logging

import msgspec
import pytest

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


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(Added(NODE), True, id="a node came"),
        pytest.param(Deleted(NODE), False, id="a node went"),
        pytest.param(Deleted(pod()), True, id="an assigned pod went"),
        pytest.param(Added(Service()), True, id="a service came"),
        pytest.param(Updated(Service(), Service()), True, id="a service changed, or did not"),
        pytest.param(Deleted(Service()), True, id="a service went"),
        pytest.param(Added(PersistentVolume()), True, id="a volume came"),
        pytest.param(Updated(PersistentVolume(), PersistentVolume()), True, id="a volume changed"),
        pytest.param(Deleted(PersistentVolume()), False, id="a volume went"),
        pytest.param(Added(PersistentVolumeClaim()), True, id="a claim came"),
        pytest.param(
            Updated(PersistentVolumeClaim(), PersistentVolumeClaim()), True, id="a claim changed"
        ),
        pytest.param(Deleted(PersistentVolumeClaim()), False, id="a claim went"),
        pytest.param(Added(LATE), True, id="a storage class that binds late came"),
        pytest.param(Added(storage_class("Immediate")), False, id="one that binds at once came"),
        pytest.param(Added(storage_class(None)), False, id="one without a mode came"),
        pytest.param(Updated(LATE, LATE), False, id="a storage class changed"),
        pytest.param(Deleted(LATE), False, id="a storage class went"),
        pytest.param(Added(CsiNode()), False, id="drivers were not looked at"),
        pytest.param(Added(Namespace()), False, id="a namespace came"),
        pytest.param(Added(ReplicaSet()), False, id="a controller came"),
        pytest.param(NominationLost(pod()), False, id="a nomination ended"),
        pytest.param(WaitedTooLong(), True, id="time ran out"),
    ],
)
def test_what_wakes_everybody(event: ClusterEvent, *, expected: bool) -> None:
    requests = MoveRules().requests(event, waiting=1)

    assert [request.topics for request in requests] == ([None] if expected else [])
    for request in requests:
        assert MoveRules().wakes(request, QueuedPod(pod(), 0, 0)) is Wake.AFTER_BACKOFF


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(node(spec={"unschedulable": True}), NODE, True, id="it takes pods again"),
        pytest.param(NODE, node(spec={"unschedulable": True}), False, id="it was cordoned"),
        pytest.param(
            NODE, node(status={"allocatable": {"cpu": "1"}}), True, id="it offers something else"
        ),
        pytest.param(
            NODE, node(metadata={"name": "n", "labels": {"a": "b"}}), True, id="its labels changed"
        ),
        pytest.param(
            NODE,
            node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
            True,
            id="its taints changed, for better or worse",
        ),
        pytest.param(NODE, node(**READY), True, id="a condition changed its status"),
        pytest.param(node(**READY), node(**READY), False, id="nothing that matters changed"),
        pytest.param(
            NODE, node(status={"images": [{"names": ["a"]}]}), False, id="only its images changed"
        ),
    ],
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


@pytest.mark.parametrize(
    ("waiting", "assigned", "expected"),
    [
        pytest.param(affine(WEB), pod({"app": "web"}), True, id="the term matches"),
        pytest.param(affine(WEB), pod({"app": "db"}), False, id="the term does not match"),
        pytest.param(
            affine(INVALID, WEB), pod({"app": "web"}), True, id="one matching term is enough"
        ),
        pytest.param(
            affine(WEB),
            pod({"app": "web"}, "other"),
            False,
            id="the waiting pod's namespace counts",
        ),
        pytest.param(
            affine({**WEB, "namespaces": ["other"]}),
            pod({"app": "web"}, "other"),
            True,
            id="or the namespaces of the term",
        ),
        pytest.param(affine({}), pod({"app": "web"}), False, id="no selector matches no pod"),
        pytest.param(
            affine({"labelSelector": {}}), pod(), True, id="an empty selector matches every pod"
        ),
        pytest.param(
            affine(WEB, anti=True), pod({"app": "web"}), False, id="anti-affinity does not count"
        ),
        pytest.param(QueuedPod(pod(), 0, 0), pod(), False, id="a pod without affinity sleeps on"),
    ],
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


@pytest.mark.parametrize(
    ("request_", "label"),
    [
        pytest.param(MoveRequest(Added(NODE), "Add"), "NodeAdd", id="the kind and the action"),
        pytest.param(
            MoveRequest(Deleted(pod()), "Delete"), "AssignedPodDelete", id="pods that have a node"
        ),
        pytest.param(
            MoveRequest(Updated(Pod(), Pod()), "Update"), "UnschedulablePodUpdate", id="and not"
        ),
        pytest.param(
            MoveRequest(NominationLost(Pod()), "Delete"), "AssignedPodDelete", id="as if deleted"
        ),
        pytest.param(
            MoveRequest(Added(CsiNode()), "Add"), "storage.k8s.io/CSINodeAdd", id="with its group"
        ),
        pytest.param(
            MoveRequest(Added(Object(kind="DeviceClass")), "Add"),
            "resource.k8s.io/DeviceClassAdd",
            id="kinds that are not read",
        ),
        pytest.param(MoveRequest(WaitedTooLong()), "UnschedulableTimeout", id="time ran out"),
    ],
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
