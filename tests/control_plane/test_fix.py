"""A real kube-scheduler places pods after an edit of `podium fix`, and not after a weaker one.

Every trial is a small cluster of its own inside of a large one: names, host names, zones and label
values carry its number, and its pod is kept to its nodes by a node selector.
"""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import podium
from control_plane.bulk import create_many, delete_all
from control_plane.harness import ADMIN, PODS, ControlPlane, free_port
from podium.objects.reading.collection import Objects
from podium.what_if.fix.fix import apply_fix, fix
from podium.what_if.fix.results import Fix
from what_if.pending_pods import APPS, random_case
from what_if.test_fix import weaker

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

V1_36 = podium.default_profile("v1.36")
CASES = 200
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
#: Values that belong to one cluster; those of a trial carry its number.
OWN = {*APPS, "a", "b", "c", "data", "disk-a"}


@dataclass(frozen=True)
class Trial:
    """A cluster with a pod, and whether the pod is to find a node there."""

    name: str
    cluster: Objects
    fits: bool
    said: str


def trials() -> Iterator[Trial]:
    """For each of many pods that fit nowhere: an edit, and a weaker one."""
    seed = found = 0
    while found < CASES:
        case = random_case(seed, shared=True)
        fixes = fix(case.cluster, case.pod, V1_36)
        seed += 1
        if fixes.node is not None or not fixes.fixes:
            continue
        chosen = fixes.fixes[found % len(fixes.fixes)]
        yield Trial(f"t{found}-fixed", apply_fix(case.cluster, chosen), True, chosen.sentence)
        for smaller in weaker(chosen):
            after = weakened(case.cluster, smaller)
            if after is not None:
                yield Trial(f"t{found}-weaker", after, False, chosen.sentence)
                break
        else:
            yield Trial(f"t{found}-before", case.cluster, False, "as it was")
        found += 1


def weakened(cluster: Objects, smaller: Fix) -> Objects | None:
    try:
        return apply_fix(cluster, smaller)
    except podium.InputError:
        return None  # the second patch builds on what the first one adds


def renamed(value: Any, trial: Trial, names: set[str]) -> Any:
    """The same data with all names and values that belong to the trial."""
    if isinstance(value, dict):
        return {key: renamed(each, trial, names) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, trial, names) for each in value]
    return f"{value}-{trial.name}" if isinstance(value, str) and value in names else value


def plain(item: Any, trial: Trial) -> dict[str, Any]:
    """An object as the API server takes it."""
    cluster = trial.cluster
    names = OWN | {each.name for each in (*cluster.nodes, *cluster.pods)}
    found: dict[str, Any] = renamed(msgspec.to_builtins(item), trial, names)
    for field in ("uid", "ownerReferences"):
        found["metadata"].pop(field, None)
    return found


def plain_node(item: Any, trial: Trial) -> dict[str, Any]:
    found = plain(item, trial)
    found["metadata"].setdefault("labels", {})["trial"] = trial.name
    found["status"]["capacity"] = found["status"]["allocatable"]
    return found


def plain_pod(item: Any, trial: Trial) -> dict[str, Any]:
    found = plain(item, trial)
    found.pop("status", None)
    spec = found["spec"]
    for index, container in enumerate(spec["containers"]):
        container |= {"name": f"c{index}", "image": "i"}
        for port in container.get("ports", ()):
            port.setdefault("containerPort", port.get("hostPort", 80))
    for volume in spec.get("volumes", ()):
        volume["name"] = "data"
    if "nodeName" not in spec:
        spec["nodeSelector"] = spec.get("nodeSelector", {}) | {"trial": trial.name}
    return found


def plain_volume(item: Any, trial: Trial) -> dict[str, Any]:
    found = plain(item, trial)
    found["spec"] |= {"hostPath": {"path": "/data"}}
    found.pop("status", None)
    return found


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield control_plane
    delete_all(control_plane)
    for path in (CLAIMS, VOLUMES):
        control_plane.call("DELETE", path)


def test_a_real_scheduler_agrees_with_the_edits(cluster: ControlPlane, tmp_path: Path) -> None:
    wanted = list(trials())
    create_many(
        cluster, "/api/v1/nodes", (plain_node(n, t) for t in wanted for n in t.cluster.nodes)
    )
    volumes = [(t, v) for t in wanted for v in t.cluster.of("PersistentVolume")]
    create_many(cluster, VOLUMES, (plain_volume(v, t) for t, v in volumes))
    claims = [(t, c) for t in wanted for c in t.cluster.of("PersistentVolumeClaim")]
    create_many(cluster, CLAIMS, (plain(c, t) for t, c in claims))
    create_many(cluster, PODS, (plain_pod(p, t) for t in wanted for p in t.cluster.pods))
    kubeconfig = cluster.kubeconfig(ADMIN)
    command: list[str | Path] = [
        cluster.programs / "kube-scheduler",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup=true",
        "--leader-elect=false",
        f"--secure-port={free_port()}",
        "--port=0",
        "--bind-address=127.0.0.1",
        f"--cert-dir={tmp_path}",
    ]
    with cluster.program("plain-scheduler", *command) as running:
        placed = running.wait_for("every pod is decided", lambda: decided(cluster, wanted), 300)

    assert placed is not None
    wrong = [
        (trial.name, trial.said, *placed[trial.name])
        for trial in wanted
        if bool(placed[trial.name][0]) is not trial.fits
    ]
    assert wrong == []
    assert sum(trial.fits for trial in wanted) == CASES


def decided(cluster: ControlPlane, wanted: list[Trial]) -> dict[str, tuple[str, str]] | None:
    """The node of the pod of each trial, or why it has none; None until all are known."""
    try:
        items = cluster.get(PODS)["items"]
    except urllib.error.URLError:
        return None
    pods = {item["metadata"]["name"]: item for item in items}
    found = {}
    for trial in wanted:
        item = pods[f"wanted-{trial.name}"]
        node = item["spec"].get("nodeName", "")
        conditions = item.get("status", {}).get("conditions", ())
        failed = [c["message"] for c in conditions if c.get("reason") == "Unschedulable"]
        if not node and not failed:
            return None
        found[trial.name] = (node, "" if node else failed[0])
    return found
