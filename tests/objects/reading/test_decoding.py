"""Text to objects: every form in which people have them."""

import gc
import json

import pytest

from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def names(objects: Objects) -> list[str]:
    return [f"{kind} {item.name}" for kind, _, item in objects.everything()]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"kind": "List", "items": [NODE, POD]}), id="a JSON list"),
        pytest.param(json.dumps([NODE, POD]), id="a JSON array"),
        pytest.param(f"{json.dumps(NODE)}\n{json.dumps(POD)}", id="JSON lines"),
        pytest.param(json.dumps(NODE, indent=2) + json.dumps(POD, indent=2), id="appended JSON"),
        pytest.param(
            json.dumps({"kind": "List", "items": [{"kind": "List", "items": [NODE]}, POD]}),
            id="a list in a list",
        ),
        pytest.param(
            json.dumps(
                {
                    "kind": "List",
                    "items": [
                        {"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]},
                        {"kind": "PodList", "items": [{"metadata": {"name": "a"}}]},
                        {"kind": "ServiceList", "items": None},
                    ],
                }
            ),
            id="typed lists, whose items need not repeat their kind",
        ),
        pytest.param(f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}\n", id="JSON as YAML documents"),
        pytest.param(
            "kind: Node\nmetadata: {name: n}\n---\nkind: Pod\nmetadata: {name: a}\n",
            id="YAML documents",
        ),
        pytest.param(
            "kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n"
            "- kind: PodList\n  items: [{metadata: {name: a}}]",
            id="a YAML list",
        ),
        pytest.param("{kind: List, items: [{kind: Node, metadata: {name: n}}, "
                     "{kind: Pod, metadata: {name: a}}]}", id="YAML in one line"),
    ],
)  # fmt: skip
def test_forms(text: str) -> None:
    assert names(decode(text)) == ["Node n", "Pod a"]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-32"],
)
def test_encodings_with_a_byte_order_mark(encoding: str) -> None:
    for text in (json.dumps(POD), "kind: Pod\nmetadata: {name: a}"):
        assert names(decode(text.encode(encoding))) == ["Pod a"]


@pytest.mark.parametrize(
    ("version", "kind", "known"),
    [
        ("apps/v1beta1", "Deployment", True),
        ("extensions/v1beta1", "ReplicaSet", True),
        ("policy/v1beta1", "PodDisruptionBudget", True),
        ("storage.k8s.io/v1beta1", "CSINode", True),
        ("batch/v1", "Job", True),
        ("scheduling.k8s.io/v1", "PriorityClass", True),
        ("", "Service", True),
        ("serving.knative.dev/v1", "Service", False),
        ("v1", "ConfigMap", False),
    ],
)
def test_kinds_by_group(version: str, kind: str, known: bool) -> None:
    objects = decode(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}))

    group = "." + version.partition("/")[0] if "." in version else ""
    assert names(objects) == ([f"{kind} a"] if known else [])
    assert objects.unknown_kinds == ({} if known else {f"{kind}{group}": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_from_json_and_yaml(kind: str) -> None:
    value = {"kind": kind, "metadata": {"name": "a", "labels": {"x": "y"}}, "unread": [1]}

    from_json, from_yaml = decode(json.dumps(value)), decode(f"---\n{json.dumps(value)}")

    assert from_json.of(kind) == from_yaml.of(kind)
    assert from_json.of(kind)[0].labels == {"x": "y"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"kind": "Pod", "metadata": {"name": "a"}, "spec": null}', id="in JSON"),
        pytest.param("{kind: Pod, metadata: {name: a, labels: ~}, spec: ~}", id="in YAML"),
    ],
)
def test_null_is_absent(text: str) -> None:
    [pod] = decode(text).pods

    assert pod.spec.node_name == ""
    assert pod.labels == {}


def test_an_entry_without_value_is_an_entry() -> None:
    [pod] = decode(
        """
        kind: Pod
        metadata: {name: a, labels: {x: , 1: "y"}}
        spec:
          nodeSelector: {node-role.kubernetes.io/master: }
          containers: [{resources: {requests: {cpu: }}}]
        """
    ).pods

    assert pod.labels == {"x": "", "1": "y"}
    assert pod.spec.node_selector == {"node-role.kubernetes.io/master": ""}
    assert pod.spec.containers
    assert pod.spec.containers[0].resources
    assert pod.spec.containers[0].resources.requests == {"cpu": 0}


def test_absent_and_empty_selectors_stay_apart() -> None:
    absent, empty = decode(
        "{kind: ReplicaSet, metadata: {name: a}, spec: {selector: }}\n---\n"
        "{kind: ReplicaSet, metadata: {name: b}, spec: {selector: {matchLabels: }}}"
    ).of("ReplicaSet")

    assert absent.spec.selector is None
    assert empty.spec.selector is not None
    assert empty.spec.selector.match_labels is None


def test_where_objects_came_from() -> None:
    objects = decode("{kind: Pod, metadata: {name: a}}", "one.yaml")
    decode("[{kind: Pod, metadata: {name: b}}, {kind: Pod, metadata: {name: c}}]", "two", objects)
    decode("# nothing", "three", objects)

    assert [objects.where("Pod", index) for index in range(3)] == ["one.yaml", "two", "two"]
    assert objects.where("Node", 0) == ""
    assert objects.empty_files == ["three"]


def test_a_pod_may_leave_its_name_to_the_server() -> None:
    objects = decode('{"kind": "Pod", "metadata": {"generateName": "a-"}}')
    decode("{kind: Pod, metadata: {generateName: a-}}", into=objects)

    assert [pod.name for pod in objects.pods] == ["a-0", "a-1"]


def test_whole_pods_are_kept_while_they_have_no_node() -> None:
    pod = {**POD, "spec": {"containers": [{"name": "c", "env": [{"name": "A"}]}]}}
    placed = {**POD, "metadata": {"name": "b"}, "spec": {"nodeName": "n"}}

    for text in (json.dumps([pod, placed]), f"---\n{json.dumps([pod, placed])}"):
        objects = decode(text)

        assert objects.sources.keys() == {"default/a"}
        assert objects.manifest(objects.pods[0]) == pod
        assert objects.manifest(objects.pods[1]) == placed


def test_garbage_collection_is_as_it_was() -> None:
    assert gc.isenabled()

    decode(json.dumps(POD))

    assert gc.isenabled()
