"""A stock kube-scheduler on a real API server schedules through `podium extender`.

Its user may not bind pods: where a pod has landed, Podium has bound it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.harness import NEWER, PODIUM, ControlPlane
from waiting import until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

RULES = """
from podium.rules import predicate, priority


@predicate("SameTeam", reason="node(s) belonged to another team", depends="node")
def same_team(pod, node):
    return pod.labels.get("team") == node.labels.get("team")


@priority("Rank", normalize="max", depends="node")
def rank(pod, node):
    return int(node.labels["rank"])
"""

#: The scheduler of the control plane, and those that are given besides.
PROGRAMS = ["", *filter(None, os.environ.get(NEWER, "").split(os.pathsep))]
#: Name, team, rank. What kube-scheduler itself prefers is the same for all of them.
NODES = (("n-1", "red", "1"), ("n-2", "blue", "2"), ("n-3", "red", "9"), ("n-4", "blue", "5"))


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    for name, team, rank in NODES:
        control_plane.add_node(name, {"team": team, "rank": rank})
    yield control_plane
    control_plane.clear_nodes()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.py"
    path.write_text(RULES, "utf-8")
    return path


def extender(url: str, **options: Any) -> dict[str, Any]:
    verbs = {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    # Enough that Podium's score decides, whatever the scheduler's own priorities say.
    return {"urlPrefix": url, **verbs, "weight": 100, "nodeCacheCapable": True, **options}


def landed(plane: ControlPlane, *pods: str) -> dict[str, str]:
    until(f"{', '.join(pods)} are bound", lambda: all(map(plane.node_of, pods)), 90)
    return {pod: plane.node_of(pod) for pod in pods}


@pytest.mark.parametrize(
    ("kind", "cached"),
    [
        pytest.param("by-names", True, id="the extender watches the cluster"),
        pytest.param("by-nodes", False, id="nodes come with the request"),
    ],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_pods_land_where_podium_says(
    cluster: ControlPlane, rules: Path, program: str, kind: str, cached: bool
) -> None:
    name = f"{kind}-{PROGRAMS.index(program)}"
    with (
        cluster.podium_extender(f"podium-{name}", rules, *cluster.access) as url,
        cluster.scheduler(name, extender(url, nodeCacheCapable=cached), program) as running,
    ):
        for team in ("red", "blue", "green"):
            for number in range(3):
                cluster.add_pod(f"{name}-{team}-{number}", name, labels={"team": team})
        running.check()
        teams = {team: [f"{name}-{team}-{i}" for i in range(3)] for team in ("red", "blue")}

        # Filter: only nodes of the team. Prioritize: of those, the highest rank. Bind: at all.
        assert set(landed(cluster, *teams["red"]).values()) == {"n-3"}
        assert set(landed(cluster, *teams["blue"]).values()) == {"n-4"}

        nobody = f"{name}-green-0"
        said = "FailedScheduling: 0/4 nodes are available: 4 node(s) belonged to another team."
        until("an event says why", lambda: said in cluster.events_of(nobody))
        assert cluster.node_of(nobody) == ""

        # A node that comes later is known as soon as the API server tells of it.
        cluster.add_node("n-5", {"team": "green", "rank": "1"})
        assert landed(cluster, nobody) == {nobody: "n-5"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_pods_are_evicted_where_podium_lets_the_pod_in(
    cluster: ControlPlane, rules: Path, program: str
) -> None:
    name = f"evicting-{PROGRAMS.index(program)}"
    kubeconfig = f"--kubeconfig={cluster.kubeconfig(PODIUM)}"
    for node, *_ in NODES:
        # The cheapest victim is on a node of the wrong team.
        priority = {"n-2": 1, "n-3": 5}.get(node, 50)
        cluster.add_pod(f"full-{node}", "nobody", cpu="4", priority=priority, nodeName=node)
    with (
        cluster.podium_extender(f"podium-{name}", rules, kubeconfig) as url,
        cluster.scheduler(name, extender(url), program),
    ):
        cluster.add_pod("urgent", name, labels={"team": "red"}, cpu="3", priority=1000)
        # 1.20.2 forgets to ask extenders about victims, so the cheapest one leaves.
        victim = "full-n-3" if program else "full-n-2"
        until("the victim leaves", lambda: cluster.is_leaving(victim), 90)

        others = [f"full-{node}" for node, *_ in NODES if f"full-{node}" != victim]
        assert not any(map(cluster.is_leaving, others))
        # Even so the pod ends up on a node of its team.
        for pod in ("full-n-2", "full-n-3"):
            cluster.delete_pod(pod)
        assert landed(cluster, "urgent") == {"urgent": "n-3"}
