"""What a lab starts with: documents, generated nodes, the demo, manifests and snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import podium
from lab.controllers.managed_cluster import Json, ManagedCluster, workload
from podium.errors import InputError
from podium.lab.contents.demo import (
    DEMO_DEVICES,
    OLDER_SHOP,
    SHOP,
    checkout,
    generate_nodes,
    zone_name,
)
from podium.lab.contents.documents import Document, documents
from podium.lab.contents.loader import load
from podium.lab.registry.registry import Registry
from podium.objects.reading.json_text import without_nulls

POD = {"containers": [{"name": "app", "image": "app:1"}]}


def listed(*items: Json) -> list[Document]:
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items})
    return list(documents(text.encode(), "cluster.json"))


def names(registry: Registry, kind: str) -> list[str]:
    return [each["metadata"]["name"] for each in registry.list(kind)]


def test_documents_keep_every_field_and_lists_are_opened() -> None:
    yaml = b"""
apiVersion: v1
kind: PodList
items:
- metadata: {name: a}
  spec: {unheardOf: {of: [1, two]}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
"""
    first, second = documents(yaml, "x.yaml")

    assert first.item == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"unheardOf": {"of": [1, "two"]}},
    }
    assert second.item["kind"] == "Deployment"
    assert second.where == "x.yaml"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"just words", "x.yaml: holds str, not a Kubernetes object"),
        (b"metadata: {name: a}", "x.yaml: kind: is missing; every object begins"),
        (b'{"kind": "Pod", ', "x.yaml: is not readable JSON"),
        (b"a: [", "x.yaml: is not readable YAML"),
    ],
)
def test_what_is_no_object_is_refused_in_one_sentence(text: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        list(documents(text, "x.yaml"))

    assert str(refused.value).startswith(sentence)


def test_many_nodes_are_even_over_zones_and_sizes() -> None:
    registry = Registry()
    load(registry, generate_nodes(100, 4))
    nodes = registry.list("Node")
    labels = [each["metadata"]["labels"] for each in nodes]

    assert len(nodes) == 100
    zones = [each["topology.kubernetes.io/zone"] for each in labels]
    assert {zone: zones.count(zone) for zone in zones} == {
        "zone-a": 25, "zone-b": 25, "zone-c": 25, "zone-d": 25,
    }  # fmt: skip
    sizes = {
        (each["topology.kubernetes.io/zone"], each["node.kubernetes.io/instance-type"])
        for each in labels
    }
    assert len(sizes) == 12
    assert names(registry, "Node")[:2] == ["node-00", "node-01"]


@pytest.mark.parametrize(
    ("number", "name"), [(0, "zone-a"), (25, "zone-z"), (26, "zone-aa"), (701, "zone-zz")]
)
def test_zones_have_letters(number: int, name: str) -> None:
    assert zone_name(number) == name


def test_the_demo_shows_what_it_promises() -> None:
    registry = Registry()
    load(registry, SHOP.documents())
    load(registry, checkout())

    nodes = registry.list("Node")
    assert len({each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in nodes}) == 3
    assert any(each["spec"].get("taints") for each in nodes)
    assert len({each["status"]["capacity"]["cpu"] for each in nodes}) == 3
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget"):
        assert registry.list(kind), kind
    assert "shop-critical" in names(registry, "PriorityClass")
    assert names(registry, "Pod") == ["training-run"]
    load(registry, SHOP.claim_documents())
    assert names(registry, "Pod") == ["rendering", "training-run"]
    served = [each for each in nodes if DEMO_DEVICES.serves(each, [])]
    assert names(registry, "ResourceClaimTemplate") == ["one-gpu"]
    assert [each["metadata"]["name"] for each in served] == ["a4-gpu", "b4-gpu"]


def test_the_shop_for_predicates_and_priorities_shows_what_the_documentation_says(
    tmp_path: Path,
) -> None:
    file = tmp_path / "shop.json"
    items = [each.item for each in OLDER_SHOP.documents()]
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    objects = podium.read([str(file)])

    placed = list(podium.simulate(objects, podium.default_profile("v1.13")))

    def nodes(app: str) -> list[str | None]:
        return [each.decision.node for each in placed if each.pod.name.startswith(app)]

    assert sorted(name[0] for name in nodes("frontend") if name) == list("aabbcc")
    assert len(set(nodes("frontend"))) == 6
    assert sorted(str(name) for name in nodes("edge")) == [
        "None",
        "a2-medium",
        "b2-medium",
        "c2-medium",
    ]
    assert nodes("payments") == ["c4-payments", "c4-payments"]
    assert all(str(name).endswith("-large") for name in nodes("search"))
    assert nodes("training-run") == [None]
    assert nodes("nightly").count(None) > 0
    assert OLDER_SHOP.claim_documents() == []


def test_manifests_are_created_whatever_their_order_and_namespace() -> None:
    registry = Registry()
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {**POD, "priorityClassName": "high"},
           "metadata": {"name": "web", "namespace": "shop"}}  # fmt: skip
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7,
            "metadata": {"name": "high"}}  # fmt: skip
    loaded = load(registry, listed(pod, high))

    assert loaded.objects == 2
    found = registry.get("Pod", "web", "shop")
    assert found["spec"]["priority"] == 7
    assert found["metadata"]["uid"]


def test_what_a_manifest_says_about_its_status_is_kept() -> None:
    registry = Registry()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
           "spec": {**POD, "nodeName": "n1"}, "status": {"phase": "Running"}}  # fmt: skip
    load(registry, listed(pod))

    assert registry.get("Pod", "web", "default")["status"]["phase"] == "Running"


def test_kinds_that_are_not_kept_are_counted() -> None:
    rollout = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "x"}}
    service = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "x"}}

    assert load(Registry(), listed(rollout, service, service)).skipped == {
        "Rollout": 1, "Service": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
            'cluster.json: Pod default/web: Pod "web" is invalid: spec.containers: Required value',
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "WEB"}, "spec": POD},
            'cluster.json: Pod default/WEB: Pod "WEB" is invalid: metadata.name: Invalid value',
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": "web", "spec": POD},
            "cluster.json: Pod: Pod in version",
        ),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"},
             "spec": "none"},
            "cluster.json: Node n: ",
        ),
    ],
)  # fmt: skip
def test_what_no_api_server_takes_is_refused_in_one_sentence(item: Json, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        load(Registry(), listed(item))

    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_the_same_object_twice_is_refused() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}

    with pytest.raises(InputError, match="Node n: is there twice"):
        load(Registry(), listed(node, dict(node)))


def dump(lab: ManagedCluster) -> list[Document]:
    """A cluster written down, as a snapshot has it."""
    kinds = ("Namespace", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod",
             "PersistentVolumeClaim", "PersistentVolume")  # fmt: skip
    return listed(*(item for kind in kinds for item in lab.registry.list(kind)))


def busy() -> ManagedCluster:
    lab = ManagedCluster()
    lab.create("Deployment", workload("web", 3))
    lab.create("DaemonSet", workload("agent"))
    lab.create("StatefulSet", workload("db", 2, serviceName="db"))
    lab.settle()
    return lab


def plain(items: list[Json]) -> list[Json]:
    """Without what every write changes."""
    for item in items:
        item["metadata"].pop("resourceVersion", None)
        item["metadata"].pop("managedFields", None)
    return [without_nulls(item) for item in items]  # null is the same as nothing


def test_a_snapshot_is_at_rest_from_the_beginning() -> None:
    before = busy()
    after = ManagedCluster(nodes=0, seed=1)
    load(after.registry, dump(before))
    after.restart()
    after.settle(30)

    for kind in ("Node", "Pod", "ReplicaSet", "Deployment"):
        assert plain(after.registry.list(kind)) == plain(before.registry.list(kind)), kind


def test_pods_whose_owners_are_not_in_the_snapshot_stay() -> None:
    before = busy()
    after = ManagedCluster(nodes=0, seed=1)
    load(after.registry, [d for d in dump(before) if d.item["kind"] in {"Node", "Pod"}])
    after.restart()
    after.settle(30)
    assert after.names() == before.names()

    after.restart()
    after.settle(30)
    assert after.names() == before.names()


def test_a_snapshot_tells_little_and_its_workloads_still_work() -> None:
    before = busy()
    found = dump(before)
    for document in found:
        document.item["spec"].pop("template", None)
    head = {"apiVersion": "podium/v1", "kind": "Snapshot", "writtenBy": "podium"}
    after = ManagedCluster(nodes=0, seed=1)
    load(after.registry, [Document("", head), *found])
    after.restart()
    after.settle(30)
    assert after.names() == before.names()

    [made] = after.registry.list("ReplicaSet")
    after.delete("Deployment", "web", "Orphan")
    after.settle()
    after.edit("ReplicaSet", made["metadata"]["name"], replicas=5)
    after.edit("StatefulSet", "db", replicas=3)
    after.settle(30)
    assert len(after.names(app="web")) == 5
    assert after.names(app="db") == ["db-0", "db-1", "db-2"]
    assert {pod["status"]["phase"] for pod in after.pods()} == {"Running"}


def test_a_budget_of_a_snapshot_keeps_what_it_allowed() -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
              "metadata": {"name": "b", "uid": "u"}, "status": {"disruptionsAllowed": 3},
              "spec": {"selector": {"matchLabels": {"app": "web"}}}}  # fmt: skip
    lab = ManagedCluster()
    load(lab.registry, listed(budget))
    lab.restart()
    lab.settle()

    assert lab.status("PodDisruptionBudget", "b")["disruptionsAllowed"] == 3


def test_storage_classes_of_the_lab_exist_unless_the_cluster_has_its_own() -> None:
    registry = Registry()
    load(registry, listed())
    assert names(registry, "StorageClass") == ["lab-immediate", "lab-standard"]

    own: dict[str, Any] = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                           "metadata": {"name": "own"}, "provisioner": "x"}  # fmt: skip
    registry = Registry()
    load(registry, listed(own))
    assert names(registry, "StorageClass") == ["own"]


def test_examples_can_be_loaded() -> None:
    examples = Path(__file__).parents[3] / "examples"
    files = [
        file for file in sorted(examples.rglob("*.yaml")) if b"kind: Node" in file.read_bytes()
    ]
    assert files
    for file in files:
        registry = Registry()
        load(registry, documents(file.read_bytes(), file.name))
        assert registry.list("Node")
