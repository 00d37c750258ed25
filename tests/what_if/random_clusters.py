"""Random clusters at rest, with one change each that does not depend on the order of evictions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from manifests import budget, listed
from podium.lab.api.resources import STORED
from podium.virtual_cluster.cluster import SimulatedCluster
from what_if.clusters import Item, chosen, documents, node, workload

ZONE = "topology.kubernetes.io/zone"
_LEFT_OUT = frozenset({"Event", "Lease", "EndpointSlice", "Endpoints"})


class Case(NamedTuple):
    """A cluster at rest and one change, for `podium plan` and for kubectl."""

    file: Path
    flag: tuple[str, str]
    kubectl: tuple[str, ...]


def random_case(seed: int, folder: Path) -> Case:
    """A cluster with its change; the same seed gives the same case."""
    rng = random.Random(seed)  # noqa: S311  nothing secret about a cluster
    items = _nodes(rng) + _workloads(rng)
    settled = at_rest(items, seed)
    file = folder / f"cluster-{seed}.json"
    file.write_text(json.dumps(listed(settled)))
    return _with_change(rng, seed, settled, file, folder)


def _nodes(rng: random.Random) -> list[Item]:
    made = []
    for number in range(rng.randint(3, 7)):
        labels = {"disk": rng.choice(("ssd", "hdd"))}
        made.append(node(f"n{number}", "abc"[number % 3], cpu=str(rng.randint(2, 6)), **labels))
        if rng.random() < 0.2:
            taint = {"key": "special", "effect": rng.choice(("NoSchedule", "PreferNoSchedule"))}
            made[-1]["spec"] = {"taints": [taint]}
    return made


def _workloads(rng: random.Random) -> list[Item]:
    made = []
    for number in range(rng.randint(2, 4)):
        kind = rng.choice(("Deployment", "Deployment", "StatefulSet", "ReplicaSet"))
        name = f"w{number}"
        made.append(
            workload(
                kind, name, rng.randint(1, 5), cpu=f"{rng.randint(2, 15)}00m", **_rules(rng, name)
            )
        )
        if rng.random() < 0.3:
            made.append(budget(f"b{number}", name, maxUnavailable=rng.randint(1, 2)))
    if rng.random() < 0.5:
        made.append(workload("DaemonSet", "agent", None, cpu="100m"))
    return made


def _rules(rng: random.Random, app: str) -> dict[str, Any]:
    """Some of: tolerations, node affinity, pod anti-affinity, spreading."""
    found: dict[str, Any] = {}
    me = {"matchLabels": {"app": app}}
    if rng.random() < 0.3:
        found["tolerations"] = [{"key": "special", "operator": "Exists"}]
    if rng.random() < 0.2:
        found["nodeSelector"] = {"disk": "ssd"}
    draw = rng.random()
    if draw < 0.25:
        term = {"labelSelector": me, "topologyKey": "kubernetes.io/hostname"}
        found["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif draw < 0.5:
        found["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": me,
            }
        ]
    return found


def at_rest(items: list[Item], seed: int) -> list[Item]:
    """The objects of the cluster once all its pods run, with uids and status."""
    with SimulatedCluster(seed=seed + 1) as cluster:
        cluster.load(documents(items))
        cluster.add_scheduler(chosen())
        cluster.run_until_quiet()
        return [
            item
            for resource in STORED.values()
            if resource.kind not in _LEFT_OUT
            for item in cluster.registry.list(resource.qualified)
        ]


def _with_change(
    rng: random.Random, seed: int, items: list[Item], file: Path, folder: Path
) -> Case:
    nodes = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
    apps = [each for each in items if each["kind"] in {"Deployment", "StatefulSet"}]
    apps = [each for each in apps if not each["metadata"].get("ownerReferences")]
    kind = rng.choice(("drain", "lose", "scale", "apply", "rollout"))
    if kind in {"drain", "lose"}:
        name = _simple_node(rng, items, nodes)
        if name and kind == "drain":
            flags = ("--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=30s")
            return Case(file, ("--drain", name), ("drain", name, *flags))
        if name:
            return Case(file, ("--lose", name), ("delete", "node", name))
    if apps and kind in {"scale", "rollout"}:
        app = rng.choice(apps)
        target = f"{app['kind'].lower()}/{app['metadata']['name']}"
        if kind == "rollout":
            return Case(file, ("--rollout", target), ("rollout", "restart", target))
        count = rng.randint(0, 8)
        return Case(
            file, ("--scale", f"{target}={count}"), ("scale", target, f"--replicas={count}")
        )
    applied = folder / f"apply-{seed}.json"
    applied.write_text(json.dumps(workload("Deployment", "extra", rng.randint(1, 6), cpu="600m")))
    return Case(file, ("--apply", str(applied)), ("apply", "-f", str(applied)))


def _simple_node(rng: random.Random, items: list[Item], nodes: list[str]) -> str:
    """A node whose pods, apart from daemon pods, belong to one workload; empty if there is none.

    kubectl evicts the pods of a node at the same time: only pods of one workload are equal.
    """
    owners: dict[str, set[str]] = {name: set() for name in nodes}
    for pod in items:
        if pod["kind"] == "Pod" and pod["spec"].get("nodeName"):
            owner = pod["metadata"]["ownerReferences"][0]
            if owner["kind"] != "DaemonSet":
                owners[pod["spec"]["nodeName"]].add(owner["uid"])
    simple = [name for name in nodes if len(owners[name]) == 1]
    return rng.choice(simple) if simple else ""
