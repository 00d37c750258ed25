"""Real schedulers are recorded on a real API server, and judged afterwards.

kube-scheduler 1.20 and Podium are both configured to filters, and to one score, that behave alike
in both versions. `podium run --ties random:SEED` has all plugins. The path of a newer
kube-scheduler in `PODIUM_KUBE_SCHEDULER` lets that one be judged as well, with all plugins.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from control_plane.bulk import create_many
from control_plane.harness import ADMIN, PODS, ControlPlane, free_port, until
from daemon.api_server.conftest import Podium

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NEWER = os.environ.get("PODIUM_KUBE_SCHEDULER", "")
COUNT = int(os.environ.get("PODIUM_JUDGED_PODS", "240"))
NODES = max(30, COUNT // 10)
OLDER_SCORE = """apiVersion: kubescheduler.config.k8s.io/{version}
kind: KubeSchedulerConfiguration
{client}
profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: {plugin}, weight: 1}}]
"""
ALL_SCORES = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
{client}
"""


def cluster_nodes() -> Iterator[dict[str, Any]]:
    for number in range(NODES):
        name = f"node-{number:05}"
        room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        yield {
            "metadata": {"name": name, "labels": {HOST: name, ZONE: f"z{number % 3}"}},
            "status": {
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def term(group: str, key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"group": group}}}


def spec_of(kind: str, number: int, group: str) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if kind == "anti-affinity":
        return {"affinity": {"podAntiAffinity": {required: [term(group, HOST)]}}}
    if kind == "affinity":
        return {"affinity": {"podAffinity": {required: [term(group, ZONE)]}}}
    if kind == "spread":
        rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return {"topologySpreadConstraints": [{**rule, **term(group, ZONE)}]}
    if kind == "mixed":
        kinds = ("plain", "anti-affinity", "affinity", "spread")
        return spec_of(kinds[number % 4], number, group)
    if kind == "preemption":
        return {"priority": [0, 0, 0, 1000][number % 4], "terminationGracePeriodSeconds": 0}
    return {}


def burst(kind: str, scheduler: str, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        group = f"g{number % max(2, count // 20)}"
        cpu = "1500m" if kind == "preemption" else ("100m", "300m")[number % 2]
        requests = {"resources": {"requests": {"cpu": cpu}}}
        yield {
            "metadata": {"name": f"pod-{number:05}", "labels": {"group": group}},
            "spec": {
                "schedulerName": scheduler,
                "containers": [{"name": "c", "image": "pause", **requests}],
                **spec_of(kind, number, group),
            },
        }


@contextmanager
def recording(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[None]:
    """`podium record` with rights to read and nothing else."""
    user = f"reader-{free_port()}"
    plane.allow(user, [{"verbs": ["list", "watch"], "apiGroups": ["*"], "resources": ["*"]}])
    kubeconfig = plane.kubeconfig_of(user)
    command = [sys.executable, "-m", "podium", "record", str(folder), "--kubeconfig", kubeconfig]
    with plane.program(f"record-{free_port()}", *map(str, command), *flags) as program:
        until("it records", lambda: "recording" in program.log.read_text("utf-8"))
        yield
        program.signal(signal.SIGINT)
        assert program.wait(30) == 0


def judged(folder: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "podium", "judge", str(folder), "-o", "json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def bound(plane: ControlPlane) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in plane.get(PODS)["items"])


def await_scheduler(plane: ControlPlane, name: str) -> None:
    """Wait until the scheduler watches: in which order it would list pods nobody sees."""
    plane.add_pod("first", name, cpu="10m")
    until("it schedules", lambda: plane.node_of("first"))


def settled(plane: ControlPlane) -> None:
    """Wait until nothing is placed any more."""
    last = [-1, 0]

    def quiet() -> bool:
        now = bound(plane)
        last[1] = last[1] + 1 if now == last[0] and now else 0
        last[0] = now
        return last[1] >= 8

    until("nothing is placed any more", quiet, seconds=240, pause=0.5)


@contextmanager
def kube_scheduler(
    plane: ControlPlane, program: str, config: str, *, plain_port: bool = False
) -> Iterator[None]:
    """A kube-scheduler; older ones have a *plain_port* besides, which other tests use as well."""
    admin = plane.kubeconfig(ADMIN)
    client = f"clientConnection: {{kubeconfig: {admin}, qps: 1000, burst: 2000}}\n"
    client += "leaderElection: {leaderElect: false}"
    if plain_port:
        address = f"127.0.0.1:{free_port()}"
        client += f"\nhealthzBindAddress: {address}\nmetricsBindAddress: {address}"
    file = plane.folder / f"judged-{free_port()}.yaml"
    file.write_text(config.replace("{client}", client))
    flags = [
        f"--config={file}",
        f"--authentication-kubeconfig={admin}",
        f"--authorization-kubeconfig={admin}",
        f"--secure-port={free_port()}",
        f"--cert-dir={plane.folder / 'judged-certificates'}",
    ]
    with plane.program(f"judged-{free_port()}", program, *flags):
        yield


#: Pods of all kinds in one burst, and large pods that evict each other.
KINDS = ["mixed", "preemption"]


def assert_judged(kind: str, found: dict[str, Any], *, at_least: int) -> None:
    different = [each for each in found["differences"] if each["kind"] == "different"]
    assert found["pods"] >= at_least
    assert found["undecided"] == 0
    if kind == "preemption":
        # When exactly pods failed, and were tried again, cannot be seen: of a small burst one
        # placement may be explained by none of the orders that are tried, of a large one 0.1 %.
        assert different[max(1, found["pods"] // 1000) :] == []
    else:
        assert different == []
        assert found["asGoodInAnotherOrder"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_kube_scheduler_1_20_agrees(plane: ControlPlane, tmp_path: Path, kind: str) -> None:
    older = OLDER_SCORE.replace("{version}", "v1beta1")
    older = older.replace("{plugin}", "NodeResourcesLeastAllocated").replace("{{", "{")
    ours = tmp_path / "ours.yaml"
    text = OLDER_SCORE.replace("{version}", "v1").replace("{plugin}", "NodeResourcesFit")
    ours.write_text(text.replace("{client}", "").replace("{{", "{").replace("}}", "}"))
    create_many(plane, "/api/v1/nodes", cluster_nodes())
    program = str(plane.programs / "kube-scheduler")
    with (
        recording(plane, tmp_path / "history", f"--config={ours}"),
        kube_scheduler(plane, program, older.replace("}}", "}"), plain_port=True),
    ):
        await_scheduler(plane, "default-scheduler")
        create_many(plane, PODS, burst(kind, "default-scheduler", COUNT))
        settled(plane)
        placed = bound(plane)

    assert_judged(kind, judged(tmp_path / "history"), at_least=placed)


@pytest.mark.parametrize("kind", KINDS)
def test_podium_with_random_ties_agrees(
    plane: ControlPlane, podium: Podium, tmp_path: Path, kind: str
) -> None:
    create_many(plane, "/api/v1/nodes", cluster_nodes())
    with (
        recording(plane, tmp_path / "history", "--scheduler-name", "podium"),
        podium("--ties", "random:7", "--recorded-nodes", "0"),
    ):
        await_scheduler(plane, "podium")
        create_many(plane, PODS, burst(kind, "podium", COUNT))
        settled(plane)
        placed = bound(plane)

    assert_judged(kind, judged(tmp_path / "history"), at_least=placed)


if NEWER:

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_newer_kube_scheduler_agrees(plane: ControlPlane, tmp_path: Path, kind: str) -> None:
        create_many(plane, "/api/v1/nodes", cluster_nodes())
        with (
            recording(plane, tmp_path / "history"),
            kube_scheduler(plane, NEWER, ALL_SCORES),
        ):
            await_scheduler(plane, "default-scheduler")
            create_many(plane, PODS, burst(kind, "default-scheduler", COUNT))
            settled(plane)
            placed = bound(plane)

        assert_judged(kind, judged(tmp_path / "history"), at_least=placed)
