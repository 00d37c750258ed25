"""Pods with claims outlive a killed leader and a killed API server: no device is given twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab.command.lab_process import ROOT, LabProcess
from waiting import until

PODS = "/api/v1/namespaces/default/pods"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/default"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
NODES, DEVICES_PER_NODE, WANTED = 30, 9, 200
SECONDS = 120.0
LEASE_FLAGS = (
    *("--leader-elect-resource-namespace", "kube-system"),
    *("--leader-elect-lease-duration", "10s", "--leader-elect-renew-deadline", "8s"),
    *("--leader-elect-retry-period", "1s"),
)
TEMPLATE = {
    "metadata": {"name": "one"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.lab.podium"}}]
            }
        }
    },
}


def claiming(name: str) -> dict[str, Any]:
    spec = {
        "containers": [{"name": "app", "image": "app"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        "terminationGracePeriodSeconds": 1,
    }
    return {"metadata": {"name": name}, "spec": spec}


def pods_of(lab: LabProcess) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in lab.items(PODS)}


def bound(lab: LabProcess, prefix: str = "") -> int:
    """How many pods whose name begins with *prefix* have a node."""
    pods = pods_of(lab).items()
    return sum("nodeName" in each["spec"] for name, each in pods if name.startswith(prefix))


def claims_of(lab: LabProcess) -> list[Any]:
    return lab.items(f"{DEVICES}/resourceclaims")


@pytest.fixture
def schedulers(tmp_path: Path) -> Iterator[Callable[[Path, str], subprocess.Popen[bytes]]]:
    """Start replicas of `podium run` that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(kubeconfig: Path, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "podium", "run", "--kubeconfig", str(kubeconfig)]
        with (tmp_path / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *LEASE_FLAGS, "--port", "0"],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )
        started.append(process)
        return process

    yield start
    for each in started:
        each.kill()
        each.wait()


def check(lab: LabProcess) -> None:
    """No device is given twice, and nothing is reserved for a pod that is gone."""
    pods = {each["metadata"]["uid"]: each for each in pods_of(lab).values()}
    given: Counter[tuple[str, str]] = Counter()
    for claim in claims_of(lab):
        status = claim.get("status") or {}
        consumers = status.get("reservedFor") or []
        assert all(each["uid"] in pods for each in consumers), claim
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
        given.update((each["pool"], each["device"]) for each in results)
        for each in consumers:
            node = pods[each["uid"]]["spec"].get("nodeName")
            assert node in {None, results[0]["pool"]}, claim
    assert [device for device, count in given.items() if count > 1] == []


def test_claims_outlive_a_killed_leader_and_a_killed_server(
    tmp_path: Path, schedulers: Callable[[Path, str], subprocess.Popen[bytes]]
) -> None:
    arguments = (
        *("--data", str(tmp_path / "data"), "--nodes", str(NODES), "--no-scheduler"),
        *("--devices", str(DEVICES_PER_NODE)),
    )
    lab = LabProcess(tmp_path, *arguments)
    port = urlsplit(lab.told["server"]).port
    client = lab  # its address and its token outlive it
    try:
        first = schedulers(lab.kubeconfig, "first")
        until("the first leads", lambda: _is_led(client), SECONDS)
        schedulers(lab.kubeconfig, "second")
        client.fine("POST", f"{DEVICES}/resourceclaimtemplates", TEMPLATE)
        for number in range(WANTED):
            client.fine("POST", PODS, claiming(f"p{number}"))
        until("some pods are bound", lambda: bound(client) >= 20, SECONDS)
        first.send_signal(signal.SIGKILL)
        check(client)
        for number in range(0, WANTED, 5):
            client.fine("DELETE", f"{PODS}/p{number}")
            client.fine("POST", PODS, claiming(f"again-{number}"))
        left = WANTED // 5
        until("the second binds pods", lambda: bound(client, "again-") >= left // 2, SECONDS)

        schedulers(lab.kubeconfig, "third")  # the second may lose its lease while no server answers
        lab.end(signal.SIGKILL)
        lab = LabProcess(tmp_path, *arguments, "--listen", f"127.0.0.1:{port}")
        check(client)
        until("all pods run", lambda: _running(client) == WANTED, SECONDS)
        check(client)
        until("every claim is reserved", lambda: _reserved(client) == WANTED, SECONDS)

        for number in range(WANTED):
            if number % 5:
                client.fine("DELETE", f"{PODS}/p{number}")
        until("claims go with their pods", lambda: len(claims_of(client)) == left, SECONDS)
        check(client)
        assert _reserved(client) == _running(client) == left
    finally:
        lab.end(signal.SIGKILL)


def _is_led(lab: LabProcess) -> bool:
    with contextlib.suppress(AssertionError):
        return bool(lab.fine("GET", LEASE)["spec"].get("holderIdentity"))
    return False


def _running(lab: LabProcess) -> int:
    """How many pods run and are not being deleted."""
    return sum(
        each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
        for each in pods_of(lab).values()
    )


def _reserved(lab: LabProcess) -> int:
    return sum(bool((each.get("status") or {}).get("reservedFor")) for each in claims_of(lab))
