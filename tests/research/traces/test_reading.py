"""Traces from CSV files and manifests, and one sentence for what is wrong in them."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from podium.errors import InputError
from podium_research.traces.reading import read_trace

NODES = "name,cpu,memory,pods,label:zone,taints,example.com/gpu\nn-1,4,8Gi,110,a,x=y:NoSchedule,2\n"
PODS = """name,namespace,arrives,seconds,leaves,priority,cpu,label:app,selector:zone,tolerations
late,,20,5,,,1,web,a,x
early,shop,10.5,,99,-3,500m,,,
"""
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\nnode-1,8000,1024,0,\n"
OPENB_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time
pod-1,6000,12288,1,460,P100|T4,50,90
pod-0,12000,16384,2,1000,,9,70
pod-2,500,100,0,0,T4,60,61
"""


def trace(form: str, *texts: str) -> Any:
    names = ("nodes.csv", "pods.csv")
    files = [(name, text.encode()) for name, text in zip(names, texts, strict=True)]
    return read_trace(form, "t", files)


def test_own_csv_files() -> None:
    found = trace("csv", NODES, PODS)

    [node] = found.nodes
    assert node.node.labels == {"kubernetes.io/hostname": "n-1", "zone": "a"}
    assert [(t.key, t.value, t.effect) for t in node.node.spec.taints] == [("x", "y", "NoSchedule")]
    assert node.node.status.allocatable == {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "110",
        "example.com/gpu": "2",
    }
    early, late = found.pods
    assert (early.pod.key, early.arrives, early.seconds, early.leaves) == (
        "shop/early",
        10.5,
        None,
        99.0,
    )
    assert early.pod.spec.priority == -3
    assert (late.arrives, late.seconds, late.pod.labels) == (20.0, 5.0, {"app": "web"})
    assert late.pod.spec.node_selector == {"zone": "a"}
    assert late.pod.spec.tolerations[0].key == "x"


def test_openb_files() -> None:
    found = trace("openb", OPENB_NODES, OPENB_PODS)

    with_gpu, without = (each.node for each in found.nodes)
    assert with_gpu.status.allocatable["alibabacloud.com/gpu-milli"] == "2000"
    assert with_gpu.labels["alibabacloud.com/gpu-card-model"] == "P100"
    assert "alibabacloud.com/gpu-milli" not in without.status.allocatable
    assert [(each.pod.name, each.arrives, each.leaves) for each in found.pods] == [
        ("pod-0", 9.0, 70.0),
        ("pod-1", 50.0, 90.0),
        ("pod-2", 60.0, 61.0),
    ]
    whole, shared, plain = (each.pod for each in found.pods)
    assert whole.spec.containers[0].resources.requests["alibabacloud.com/gpu-milli"] == "2000"
    [term] = shared.spec.affinity.node_affinity.required.node_selector_terms
    assert term.match_expressions[0].values == ["P100", "T4"]
    assert plain.spec.affinity is None
    assert plain.labels == {}


def test_gzipped_files_are_the_same() -> None:
    packed = [("n.gz", gzip.compress(NODES.encode())), ("p.gz", gzip.compress(PODS.encode()))]

    assert read_trace("csv", "t", packed).pods == trace("csv", NODES, PODS).pods


def test_manifests_are_a_trace_whose_pending_pods_arrive() -> None:
    text = """
{apiVersion: v1, kind: Node, metadata: {name: n-1}, status: {allocatable: {cpu: 4, pods: 9}}}
---
apiVersion: v1
kind: Pod
metadata: {name: there, uid: u}
spec: {nodeName: n-1, containers: [{name: m, image: i}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: low}, spec: {containers: [{name: m, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: high}
spec: {priority: 5, containers: [{name: m, image: i}]}
"""
    found = read_trace("manifests", "t", [("m.yaml", text.encode())])

    assert [each.pod.name for each in found.pods] == ["high", "low"]
    assert [pod.name for pod in found.others.pods] == ["there"]
    assert [each.node.name for each in found.nodes] == ["n-1"]


WRONG = [
    ("csv", "cpu\n4\n", PODS, "nodes.csv: has no column name; its first line names"),
    ("csv", "name,cores\nn,4\n", PODS, "nodes.csv: has an unknown column 'cores'; known: "),
    ("csv", "name,cpu\nn,four\n", PODS, "nodes.csv: line 2: cpu: is 'four', expected a "),
    ("csv", "name,taints\nn,x\n", PODS, "nodes.csv: line 2: taints: has 'x', expected "),
    ("csv", "name\nn\nn\n", PODS, "nodes.csv: has n twice"),
    ("csv", NODES, "name,arrives\np,-1\n", "pods.csv: line 2: arrives: is '-1', expected "),
    ("csv", NODES, "name,priority\np,x\n", "pods.csv: line 2: priority: is 'x', expected "),
    ("csv", NODES, "name,cpu\np,1,2\n", "pods.csv: line 2: has 3 values for 2 columns"),
    ("csv", NODES, "name,cpu\n,1\n", "pods.csv: line 2: name: has no value"),
    ("openb", NODES, OPENB_PODS, "nodes.csv: has no column sn"),
    ("openb", OPENB_NODES, OPENB_PODS.replace("460", "4.6"), "pods.csv: line 2: gpu_milli: is"),
    ("swarm", NODES, PODS, "there is no format of traces 'swarm'; known: openb, csv, "),
]


@pytest.mark.parametrize(("form", "nodes", "pods", "sentence"), WRONG)
def test_what_is_wrong_is_one_sentence(form: str, nodes: str, pods: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        trace(form, nodes, pods)

    assert str(raised.value).startswith(sentence)
