"""A stock kube-scheduler on a real API server schedules through `podium extender`.

Its user may not bind pods: where a pod has landed, Podium has bound it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.harness import NEWER, ControlPlane, until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

RULES = '''
from podium.rules import predicate, priority


@predicate("SameTeam", reason="node(s) belonged to another team", depends="node")
def same_team(pod, node):
    return pod.labels.get("team") == node.labels.get("team")


@priority("Rank", normalize="max", depends="node")
def rank(pod, node):
    return int(node.labels["rank"])
'''

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
    return until(
        f"{', '.join(pods)} are bound",
        lambda: all(plane.node_of(pod) for pod in pods) and {p: plane.node_of(p) for p in pods},
        90,
    ) or {}


@pytest.mark.parametrize(
    ("name", "cached"),
    [
        pytest.param("by-names", True, id="the extender watches the cluster"),
        pytest.param("by-nodes", False, id="nodes come with the request"),
    ],
)
def test_pods_land_where_podium_says(
    cluster: ControlPlane, rules: Path, name: str, cached: bool
) -> None:
    with (
        cluster.podium_extender(f"podium-{name}", rules, *cluster.access) as url,
        cluster.scheduler(name, extender(url, nodeCacheCapable=cached)) as running,
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


def test_victims_are_sought_where_podium_lets_the_pod_in(
    cluster: ControlPlane, rules: Path
) -> None:
    name = "evicting"
    for node, *_ in NODES:
        # The cheapest victim is on a node of the wrong team.
        priority = {"n-2": 1, "n-3": 5}.get(node, 50)
        cluster.add_pod(f"full-{node}", "nobody", cpu="4", priority=priority, nodeName=node)
    with (
        cluster.podium_extender(f"podium-{name}", rules, *cluster.access) as url,
        cluster.scheduler(name, extender(url)) as running,
    ):
        cluster.add_pod("urgent", name, labels={"team": "red"}, cpu="3", priority=1000)
        running.check()
        until("the victim is gone", lambda: _leaving(cluster, "full-n-3"), 20)

        assert not any(_leaving(cluster, f"full-{n}") for n in ("n-1", "n-2", "n-4"))
        cluster.call(
            "DELETE", "/api/v1/namespaces/default/pods/full-n-3", {"gracePeriodSeconds": 0}
        ) if "full-n-3" in _pods(cluster) else None
        assert landed(cluster, "urgent") == {"urgent": "n-3"}


def _pods(plane: ControlPlane) -> dict[str, Any]:
    items = plane.get("/api/v1/namespaces/default/pods")["items"]
    return {item["metadata"]["name"]: item for item in items}


def _leaving(plane: ControlPlane, pod: str) -> bool:
    found = _pods(plane).get(pod)
    return found is None or "deletionTimestamp" in found["metadata"]


@pytest.mark.skipif(NEWER not in os.environ, reason=f"{NEWER} names no scheduler")
def test_a_newer_scheduler(cluster: ControlPlane, rules: Path) -> None:
    name = "newer"
    program = Path(os.environ[NEWER])
    with (
        cluster.podium_extender(f"podium-{name}", rules, *cluster.access) as url,
        cluster.scheduler(name, extender(url), program),
    ):
        cluster.add_pod("newer-red", name, labels={"team": "red"})
        assert landed(cluster, "newer-red") == {"newer-red": "n-3"}
