"""Small random clusters with a pod that mostly fits nowhere, for all reasons that rules know."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from builders import (
    budget,
    claim,
    claim_volume,
    container,
    expression,
    node,
    node_term,
    objects,
    pod,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, SchedulingGate, TopologySpreadConstraint
from podium.objects.quantity import milli
from podium.objects.reading.collection import Objects

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GPU = "example.com/gpu"
APPS = ("web", "db", "cache")


@dataclass(frozen=True)
class Case:
    """A cluster and a pod without a node."""

    cluster: Objects
    pod: Pod


def random_case(seed: int, *, shared: bool = False) -> Case:
    """The case of a seed; *shared*: only what kube-scheduler 1.20 and both generations have."""
    dice = Random(seed)  # noqa: S311  the same in every run
    items: list[Object] = []
    names = [f"n{i}" for i in range(dice.randint(1, 4))]
    items += [_node(dice, name) for name in names]
    running = [_running(dice, f"r{i}", names) for i in range(dice.randint(0, 5))]
    items += _that_fit(running, items) if shared else running
    if dice.random() < 0.3:
        items.append(budget("kept", selector({"app": "db"}), allowed=0))
    if dice.random() < 0.3:
        items.append(service("web", {"app": "web"}))
    items += [
        volume("disk-a", labels={ZONE: "a", OLD_ZONE: "a"}, claimed_by="data"),
        claim("data", volume="disk-a"),
        storage_class("slow"),
    ]
    wanted = _wanted(dice, shared=shared)
    return Case(objects(*items, wanted), wanted)


def _that_fit(running: list[Pod], nodes: list[Object]) -> list[Pod]:
    """The pods that their nodes have room for: v1.20 treats nodes with too many differently."""
    free = {each.name: milli(_amounts(each)["cpu"]) for each in nodes if isinstance(each, Node)}
    kept = []
    for each in running:
        asked = (each.spec.containers or [])[0].resources
        free[each.spec.node_name] -= milli(((asked and asked.requests) or {})["cpu"])
        if free[each.spec.node_name] >= 0:
            kept.append(each)
        else:
            free[each.spec.node_name] = -(1 << 40)
    return kept


def _amounts(node: Node) -> dict[str, Any]:
    return node.status.allocatable or {}


def _node(dice: Random, name: str) -> Object:
    zone = dice.choice("ab")
    labels = {HOST: name}
    if dice.random() < 0.85:
        labels |= {ZONE: zone, OLD_ZONE: zone}
    if dice.random() < 0.5:
        labels["disk"] = dice.choice(["ssd", "hdd"])
    if dice.random() < 0.3:
        labels["gen"] = str(dice.randint(1, 5))
    taints = []
    if dice.random() < 0.35:
        taints.append(taint("dedicated", dice.choice(["db", "ml"])))
    if dice.random() < 0.15:
        taints.append(taint("maintenance", "", "NoExecute"))
    resources = {GPU: dice.randint(0, 2)} if dice.random() < 0.4 else None
    return node(
        name,
        cpu=f"{dice.randint(1, 8) * 500}m",
        memory=f"{dice.randint(1, 6)}Gi",
        pods=dice.choice([1, 2, 3, 110, 110]),
        resources=resources,
        labels=labels,
        taints=taints,
        unschedulable=dice.random() < 0.25,
        conditions={"Ready": "True"},
    )


def _running(dice: Random, name: str, nodes: list[str]) -> Pod:
    app = dice.choice(APPS)
    more: dict[str, Any] = {}
    if dice.random() < 0.25:
        more["anti"] = [term({"app": dice.choice(APPS)}, dice.choice([HOST, ZONE]))]
    if dice.random() < 0.2:
        more["ports"] = [dice.choice([8080, 9090])]
    if dice.random() < 0.15:
        more["owner"] = ("DaemonSet", "agent")
    elif dice.random() < 0.5:
        more["owner"] = ("ReplicaSet", "set")
    return pod(
        name,
        uid=name,
        node=dice.choice(nodes),
        labels={"app": app},
        requests={"cpu": f"{dice.randint(1, 12) * 100}m", "memory": "256Mi"},
        priority=dice.choice([0, 0, 100]),
        **more,
    )


def _wanted(  # noqa: C901  one part for each rule
    dice: Random, *, shared: bool
) -> Pod:
    app = dice.choice(APPS)
    more: dict[str, Any] = {}
    if dice.random() < 0.3:
        more["node_selector"] = {"disk": dice.choice(["ssd", "nvme"])}
    if dice.random() < 0.25:
        expressions = [
            expression("disk", dice.choice(["In", "NotIn"]), "ssd", "hdd"),
            expression("gen", "Gt", str(dice.randint(1, 5))),
            expression("disk", "Exists"),
            expression(ZONE, "In", dice.choice("abc")),
        ]
        terms = [
            node_term(*dice.sample(expressions, dice.randint(1, 2)))
            for _ in range(dice.randint(1, 2))
        ]
        more["node_affinity"] = terms
    if dice.random() < 0.3:
        more["anti"] = [term({"app": dice.choice(APPS)}, dice.choice([HOST, ZONE]))]
    if dice.random() < 0.2:
        more["affinity"] = [term({"app": dice.choice(APPS)}, dice.choice([HOST, ZONE]))]
    if dice.random() < 0.3:
        more["tolerations"] = [tolerates("dedicated", "Equal", "db", "NoSchedule")]
    if dice.random() < 0.2:
        more["volumes"] = [claim_volume("data")]
    requests = {"cpu": f"{dice.randint(1, 40) * 100}m", "memory": f"{dice.randint(1, 5) * 512}Mi"}
    if dice.random() < 0.2:
        requests[GPU] = str(dice.randint(1, 3))
    ports = [dice.choice([8080, 9090])] if dice.random() < 0.3 else []
    second = {"cpu": f"{dice.randint(1, 10) * 100}m"}
    containers = [
        container(requests, limits={GPU: requests[GPU]} if GPU in requests else None, ports=ports)
    ]
    if dice.random() < 0.3:
        containers.append(container(second))
    found = pod(
        "wanted",
        uid="wanted",
        labels={"app": app},
        containers=containers,
        priority=0,
        **more,
    )
    spec = found.spec
    if dice.random() < 0.25:
        constraint = TopologySpreadConstraint(
            dice.randint(1, 2), dice.choice([ZONE, HOST]), "DoNotSchedule", selector({"app": app})
        )
        if dice.random() < 0.3 and not shared:
            constraint = replace(constraint, min_domains=dice.randint(2, 4))
        spec = replace(spec, topology_spread_constraints=[constraint])
    if dice.random() < 0.05 and not shared:
        spec = replace(spec, scheduling_gates=[SchedulingGate("wait")])
    return replace(found, spec=spec)
