"""The kubectl commands of `podium fix`, run at a lab: the pod gets a node."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import podium
from lab.command.lab_process import LabProcess
from manifests import listed, node, pod
from podium.what_if.fix.fix import fix

ROOT = Path(__file__).parents[3]
#: Every kind of edit and what keeps the pod of its case from the only node that it may run on.
CASES: dict[str, dict[str, Any]] = {
    "request": {"pod_cpu": "2"},
    "toleration": {"node": {"taints": [{"key": "for", "value": "db", "effect": "NoSchedule"}]}},
    "uncordon": {"node": {"unschedulable": True}},
    "label": {"selector": {"disk": "ssd"}},
    "selector": {"selector": {"disk": "nvme"}},
    "port": {"port": 8080},
    "evict": {"pod_cpu": "600m"},
    "add node": {"pod_cpu": "600m"},
    "pod affinity": {"anti": True},
}


def case_name(action: str) -> str:
    return action.replace(" ", "-")


def objects_of(action: str, case: dict[str, Any]) -> list[dict[str, Any]]:
    """A node, a pod on it, and a pod that waits for it."""
    name = case_name(action)
    labels = {"case": name, "kubernetes.io/hostname": f"n-{name}"}
    only = node(f"n-{name}", "1", labels=labels, **case.get("node", {}))
    waiting = labelled(f"p-{name}", name, case.get("pod_cpu", "100m"), case.get("port"))
    waiting["spec"]["nodeSelector"] = {"case": name, **case.get("selector", {})}
    if case.get("anti"):
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"case": name}},
        }
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        waiting["spec"]["affinity"] = {"podAntiAffinity": terms}
    there = labelled(f"r-{name}", name, "500m", case.get("port"))
    there["spec"]["nodeName"] = f"n-{name}"
    return [only, there, waiting]


def labelled(name: str, case: str, cpu: str, port: int | None) -> dict[str, Any]:
    made = pod(name, cpu, labels={"case": case})
    if port is not None:
        made["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return made


def test_every_command_gives_the_pod_a_node(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    made = [each for action, case in CASES.items() for each in objects_of(action, case)]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(listed(made)))
    lab = start("-f", str(file))
    environment = {**os.environ, "KUBECONFIG": str(lab.kubeconfig)}
    path = "/api/v1/namespaces/default/pods"
    lab.until(lambda: len(lab.items(path)) == 2 * len(CASES))
    lab.until(lambda: all(_was_tried(each) for each in lab.items(path)), 60)

    dump = subprocess.run(
        ["kubectl", "get", "nodes,pods", "-A", "-o", "json"],
        env=environment,
        capture_output=True,
        check=True,
    ).stdout
    (tmp_path / "dump.json").write_bytes(dump)
    objects = podium.read([str(tmp_path / "dump.json")])
    profile = podium.default_profile()
    for action in CASES:
        found = fix(objects, f"default/p-{case_name(action)}", profile)
        singles = [each.edits[0] for each in found.fixes if len(each.edits) == 1]
        edit = next(each for each in singles if each.action == action)
        command = edit.command
        if action == "add node":  # no command adds a machine; here its Node object is enough
            assert not command
            command = (
                f"echo {shlex.quote(json.dumps(edit.patch[0]['value']))} | kubectl create -f -"
            )
        done = subprocess.run(
            ["sh", "-c", command], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (action, command, done.stderr)

    names = {f"p-{case_name(action)}" for action in CASES}
    lab.until(lambda: names <= _placed(lab.items(path)), 60)


def _was_tried(item: dict[str, Any]) -> bool:
    conditions = item["status"].get("conditions", ())
    return "nodeName" in item["spec"] or any(c.get("type") == "PodScheduled" for c in conditions)


def _placed(items: list[dict[str, Any]]) -> set[str]:
    return {item["metadata"]["name"] for item in items if "nodeName" in item["spec"]}


def test_a_live_cluster_is_asked(start: Callable[..., LabProcess], tmp_path: Path) -> None:
    """`--cluster` of fix, capacity and compare."""
    made = objects_of("request", CASES["request"])
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(listed(made)))
    lab = start("-f", str(file))
    lab.until(lambda: all(map(_was_tried, lab.items("/api/v1/namespaces/default/pods"))), 60)
    wanted = tmp_path / "pod.json"
    wanted.write_text(json.dumps(labelled("more", "request", "100m", None)))

    def podium_json(*arguments: str) -> Any:
        command = [sys.executable, "-m", "podium", *arguments, "-o", "json"]
        done = subprocess.run(
            [*command, "--kubeconfig", str(lab.kubeconfig)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    fixes = podium_json("fix", "p-request")["fixes"]
    assert fixes[0]["sentence"] == "Lower the cpu request of container main from 2 to 500m."
    assert podium_json("capacity", str(wanted))["pods"] == 5
    assert podium_json("capacity", "r-request")["pods"] == 1
    compared = podium_json("compare", "v1.13", "v1.36", "--seeds", "1")
    assert (compared["pods"], compared["hopeless"]) == (2, ["default/p-request"])
