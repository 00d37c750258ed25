"""The plain sentence about a pod that fits nowhere: what it says, and that it is true."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

import builders as b
import podium
from podium.engine.framework.decision import Decision
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import NodeSpec
from podium.objects.kinds.pod import PodSpec, SchedulingGate
from podium.objects.quantity import milli
from podium.objects.reading.collection import Objects
from podium.render.decision.plain_reason import plain_reason
from what_if.pending_pods import random_case

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"


def decided(*items: Object, profile: str = "v1.36") -> Decision:
    return podium.explain(b.objects(*items), "p", podium.default_profile(profile)).decision


def gpus(name: str, count: int, **more: object) -> Object:
    return b.node(name, resources={GPU: count}, **more)  # type: ignore[arg-type]


def wanting(**requests: str) -> Object:
    limits = {GPU: requests["gpu"]} if "gpu" in requests else None
    amounts = {GPU if name == "gpu" else name: value for name, value in requests.items()}
    return b.pod("p", containers=[b.container(amounts, limits=limits)])


CASES: dict[str, tuple[list[Object], str]] = {
    "more than any node has": (
        [gpus("n1", 4), gpus("n2", 2), wanting(gpu="8")],
        "wants 8 GPUs (nvidia.com/gpu); no node has more than 4",
    ),
    "a resource that no node has": (
        [b.node("n1"), b.node("n2"), wanting(gpu="1")],
        "wants 1 GPU (nvidia.com/gpu); no node has any",
    ),
    "more than is free": (
        [
            b.node("n1", cpu="4"),
            b.node("n2", cpu="4"),
            b.pod("a", node="n1", requests={"cpu": "3"}),
            b.pod("b", node="n2", requests={"cpu": "2500m"}),
            wanting(cpu="2"),
        ],
        "wants 2 CPUs; no node has more than 1500m free",
    ),
    "the only node": (
        [b.node("n1", memory="1Gi"), wanting(memory="2Gi")],
        "wants 2Gi of memory; the only node has 1Gi",
    ),
    "two obstacles": (
        [gpus("n1", 4), gpus("n2", 2), gpus("n3", 8, taints=[b.taint("a", "b")]), wanting(gpu="8")],
        (
            "wants 8 GPUs (nvidia.com/gpu); 2 of 3 nodes have at most 4; "
            "1 of 3 nodes has the taint a=b:NoSchedule, which it does not tolerate"
        ),
    ),
    "a selector": (
        [b.node("n1"), b.node("n2", unschedulable=True), b.pod("p", node_selector={"disk": "ssd"})],
        "wants a node with disk=ssd; 1 of 2 nodes is not such a node; 1 of 2 nodes is cordoned",
    ),
    "one of several terms": (
        [
            b.node("n1"),
            b.node("n2"),
            b.pod(
                "p",
                node_affinity=[
                    b.node_term(b.expression("disk", "In", "ssd")),
                    b.node_term(b.expression("disk", "In", "nvme")),
                ],
            ),
        ],
        "wants a node that its node affinity (2 terms) matches; no node is one",
    ),
    "too many pods": (
        [b.node("n1", pods=1), b.pod("a", node="n1"), b.pod("p")],
        "the only node runs as many pods as allowed",
    ),
}


@pytest.mark.parametrize(("items", "sentence"), CASES.values(), ids=CASES)
def test_what_it_wants_and_what_the_nodes_have(items: list[Object], sentence: str) -> None:
    assert plain_reason(decided(*items)) == sentence


def test_a_pod_with_a_node_needs_no_sentence() -> None:
    assert plain_reason(decided(b.node("n1"), b.pod("p"))) == ""


def test_a_gate_is_named() -> None:
    found = b.pod("p")
    gated = replace(found, spec=replace(found.spec, scheduling_gates=[SchedulingGate("x.y/wait")]))

    assert "x.y/wait" in plain_reason(decided(b.node("n1"), gated))


@pytest.mark.parametrize("profile", ["v1.13", "v1.36"])
def test_numbers_of_random_clusters_are_true(profile: str) -> None:
    checked = numbers = 0
    for seed in range(200):
        case = random_case(seed // 2)
        wanted = case.pod
        if seed % 2:  # with nothing but its requests
            wanted = replace(wanted, spec=PodSpec(containers=wanted.spec.containers))
            case.cluster.nodes = [replace(each, spec=NodeSpec()) for each in case.cluster.nodes]
        rules = podium.default_profile(profile)
        decision = podium.explain(case.cluster, wanted, rules).decision
        if decision.node is not None or decision.held or decision.refused:
            continue
        text = plain_reason(decision)
        assert text, decision.message
        total = len(case.cluster.nodes)
        for part, said in re.findall(r"(\d+) of (\d+) node", text):
            assert int(said) == total
            assert int(part) < total
        for most, free in re.findall(
            r"wants \S+ (?:of CPU|CPUs?); no node has (?:more than (\S+?)|any)( free)?(?:;|$)", text
        ):
            amounts = _cpus(case.cluster, free=bool(free))
            assert _cpu(most or "0") == max(0, *amounts)
            numbers += 1
        checked += 1
    assert checked > 50
    assert numbers > 5


def _cpus(cluster: Objects, *, free: bool) -> list[int]:
    """The allocatable CPU of each node, or what its pods leave of it."""
    left = {n.name: _cpu(str((n.status.allocatable or {})["cpu"])) for n in cluster.nodes}
    for each in cluster.pods if free else ():
        for part in each.spec.containers or ():
            if each.spec.node_name in left and part.resources is not None:
                left[each.spec.node_name] -= _cpu(str((part.resources.requests or {})["cpu"]))
    return [0, *left.values()]


def _cpu(text: str) -> int:
    return int(milli(text))
