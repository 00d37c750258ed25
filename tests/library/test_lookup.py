"""What a name stands for: a pod, a workload, or a selector."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from builders import objects, pod
from podium.errors import InputError
from podium.library.lookup import pod_named, pods_named
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.pod import Pod
from podium.objects.reading.collection import Objects


def owned(name: str, kind: str, owner: str, *, namespace: str = "default", node: str = "") -> Pod:
    made = pod(name, node=node, labels={"app": owner.partition("-")[0], "pod-template-hash": "abc"})
    reference = OwnerReference(kind=kind, name=owner, uid=owner, controller=True)
    about = replace(made.metadata, namespace=namespace, owner_references=[reference])
    return replace(made, metadata=about)


def cluster() -> Objects:
    return objects(
        owned("web-abc-1", "ReplicaSet", "web-abc", node="n1"),
        owned("web-abc-2", "ReplicaSet", "web-abc"),
        owned("kafka-0", "StatefulSet", "kafka", namespace="data", node="n1"),
        owned("report-x", "Job", "report"),
        owned("report-y", "Workflow", "report"),
        pod("kafka"),
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("web-abc-1", ["web-abc-1"]),
        ("default/web-abc-1", ["web-abc-1"]),
        ("deployment/web", ["web-abc-1", "web-abc-2"]),
        ("deploy/default/web", ["web-abc-1", "web-abc-2"]),
        ("rs/web-abc", ["web-abc-1", "web-abc-2"]),
        ("web", ["web-abc-1", "web-abc-2"]),
        ("sts/kafka", ["kafka-0"]),
        ("data/kafka", ["kafka-0"]),
        ("kafka", ["kafka"]),
        ("pod/kafka", ["kafka"]),
        ("job/report", ["report-x"]),
        ("app=web", ["web-abc-1", "web-abc-2"]),
        ("app in (web, kafka)", ["web-abc-1", "web-abc-2", "kafka-0"]),
    ],
)
def test_names(name: str, found: list[str]) -> None:
    assert [each.name for each in pods_named(cluster(), name)] == found


def test_of_a_workload_the_pod_that_is_pending() -> None:
    assert pod_named(cluster(), "deployment/web").name == "web-abc-2"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("report", "report is 2 things; name one: job/default/report, workflow/default/report"),
        ("sts/kafca", "there is no statefulset kafca; did you mean statefulset/kafka"),
        ("sts/default/kafka", "there is no statefulset kafka"),
        ("app=", "no pod has the labels app="),
        ("app in web", "is no label selector"),
        ("a/b/c", "names nothing"),
    ],
)
def test_a_name_that_stands_for_nothing(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        pods_named(cluster(), name)
