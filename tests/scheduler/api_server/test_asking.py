"""Questions from anywhere: the leader behind the API server, and a cluster that is only read."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from control_plane.harness import ADMIN, ROOT, ControlPlane, Program, free_port
from podium.cli.main import run
from scheduler.api_server.conftest import Podium
from waiting import until

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
PODS = "/api/v1/namespaces/kube-system/pods"


def own_address() -> str:
    """An address of this machine that is not loopback, which the API server does not proxy to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address: str = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return address


def replica(plane: ControlPlane, name: str, address: str, port: int, scheme: str = "http") -> None:
    """The pod of a replica, as the API server knows it."""
    ports = [{"name": scheme, "containerPort": port}]
    spec = {"nodeName": "n1", "containers": [{"name": "p", "image": "podium", "ports": ports}]}
    plane.post(PODS, {"metadata": {"name": name, "namespace": "kube-system"}, "spec": spec})
    status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    plane.call("PATCH", f"{PODS}/{name}/status", status, "merge-patch+json")


def holder(plane: ControlPlane) -> str:
    found = plane._quietly(LEASE)
    return str(((found or {}).get("spec") or {}).get("holderIdentity") or "").partition("_")[0]


class Plugin:
    """The kubectl on the PATH, which finds the installed `kubectl-podium` as its plugin."""

    def __init__(self, kubeconfig: str) -> None:
        script = Path(sys.executable).with_name("kubectl-podium")
        assert script.is_file(), "the package is installed beside this Python"
        self._environment = {
            **os.environ,
            "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "KUBECONFIG": kubeconfig,
        }

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `kubectl podium …`, which asks the cluster of KUBECONFIG."""
        return subprocess.run(
            ["kubectl", "podium", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def until_known(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The answer, once the leader knows the pod."""

        def tried() -> tuple[subprocess.CompletedProcess[str], ...]:
            done = self(*arguments)
            return () if done.returncode == 2 else (done,)

        return until("an answer", tried, 120)[0]


def test_the_plugin_of_kubectl_finds_the_leader_before_and_after_it_is_killed(
    plane: ControlPlane, podium: Podium
) -> None:
    address, kubectl_podium = own_address(), Plugin(str(plane.kubeconfig(ADMIN)))
    plane.add_node("n1", {}, cpu="2")
    programs: dict[str, Program] = {}
    with ExitStack() as stack:
        for name in ("podium-a", "podium-b"):
            port = free_port()
            replica(plane, name, address, port)
            programs[name] = stack.enter_context(
                podium(
                    "--bind-address", "0.0.0.0", "--port", str(port),  # noqa: S104
                    "--allow-plain-http",
                    "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
                    "--leader-elect-retry-period=0.5s",
                    lease=True, name=name, environment={"POD_NAME": name},
                )
            )  # fmt: skip
        first = until("a leader", lambda: holder(plane))
        plane.add_pod("small", "podium")
        plane.add_pod("big", "podium", containers=[_asks("64")])
        until("a node", lambda: plane.node_of("small"))
        placed = kubectl_podium.until_known("why", "default/small")
        assert placed.returncode == 0
        assert "default/small goes to n1" in placed.stdout
        stuck = kubectl_podium.until_known("why", "default/big", "--exit-code")
        assert stuck.returncode == 1
        assert "default/big fits nowhere" in stuck.stdout
        assert "NodeResourcesFit waits for: " in stuck.stdout
        programs[first].kill()
        second = until(
            "another leader", lambda: holder(plane) not in {"", first} and holder(plane), 120
        )
        assert {first, second} == {"podium-a", "podium-b"}
        after = kubectl_podium.until_known("why", "default/big", "--exit-code", "-o", "json")
        assert after.returncode == 1
        assert json.loads(after.stdout)["waiting"]["queue"] in {
            "unschedulable",
            "backoff",
            "active",
        }
        unknown = kubectl_podium("why", "default/nobody")
        assert unknown.returncode == 2
        assert f"{second} at https://" in unknown.stderr
        programs.pop(first)
    plane.call("DELETE", LEASE)
    for name in ("podium-a", "podium-b"):
        plane.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


READER = "podium-reader"
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def allow_readers(plane: ControlPlane) -> None:
    """The service account for readers, and its rights as `deploy/rbac.yaml` has them."""
    found = yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text())
    roles = [each for each in found if each["metadata"]["name"] == READER]
    assert [each["kind"] for each in roles] == ["ClusterRole", "ClusterRoleBinding"]
    role, binding = roles
    binding["subjects"][0]["namespace"] = "kube-system"
    plane.post(f"{RBAC}/clusterroles", role)
    plane.post(f"{RBAC}/clusterrolebindings", binding)
    plane.post(ACCOUNTS, {"metadata": {"name": READER}})


def test_a_leader_with_a_secure_port_is_asked_with_a_token_of_the_reader(
    plane: ControlPlane, podium: Podium, capsys: pytest.CaptureFixture[str]
) -> None:
    address, port = own_address(), free_port()
    kubeconfig = str(plane.kubeconfig(ADMIN))
    asking = ["why", "default/small", "--kubeconfig", kubeconfig, "--lease", "kube-system/podium"]
    plane.add_node("n1", {}, cpu="2")
    replica(plane, "podium-s", address, port, "https")
    with podium(
        "--bind-address", "0.0.0.0", f"--secure-port={port}", f"--port={free_port()}",  # noqa: S104
        lease=True, name="podium-s", environment={"POD_NAME": "podium-s"},
    ):  # fmt: skip
        until("a leader", lambda: holder(plane))
        plane.add_pod("small", "podium")
        until("a node", lambda: plane.node_of("small"))
        assert run(asking) == 2
        refused = capsys.readouterr().err
        assert 'serviceaccounts "podium-reader" not found' in refused
        assert "needs the right to create serviceaccounts/token for podium-reader" in refused
        allow_readers(plane)
        until("an answer", lambda: run(asking) == 0, 60)
        assert "default/small goes to n1" in capsys.readouterr().out
    plane.call("DELETE", LEASE)
    plane.call("DELETE", f"{PODS}/podium-s", {"gracePeriodSeconds": 0})
    for path in (f"{RBAC}/clusterrolebindings", f"{RBAC}/clusterroles", ACCOUNTS):
        plane.call("DELETE", f"{path}/{READER}")


def _asks(cpu: str) -> dict[str, object]:
    return {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}


def test_without_a_lease_the_default_address_is_asked(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = str(plane.kubeconfig(ADMIN))
    assert run(["why", "p", "--kubeconfig", kubeconfig, "--lease", "kube-system/none"]) == 2
    assert "there is no lease kube-system/none" in capsys.readouterr().err
    assert run(["why", "p", "--lease", "none"]) == 2
    assert "--lease: 'none' is no lease" in capsys.readouterr().err


def test_a_cluster_is_read_decided_on_and_left_alone(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = str(plane.kubeconfig(ADMIN))
    plane.add_node("n1", {}, cpu="2")
    plane.add_pod("small", "default-scheduler")
    plane.add_pod("big", "default-scheduler", containers=[_asks("64")])
    assert run(["explain", "small", "--kubeconfig", kubeconfig]) == 0
    assert "default/small goes to n1" in capsys.readouterr().out
    assert run(["explain", "big", "--kubeconfig", kubeconfig, "--exit-code", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["node"] is None
    assert run(["schedule", "--kubeconfig", kubeconfig, "--exit-code", "-o", "name"]) == 1
    # Pods are placed in the order of their creation, in whole seconds, and then of their names.
    placed = sorted(capsys.readouterr().out.splitlines())
    assert placed == ["default/big <none>", "default/small n1"]
    assert plane.node_of("small") == ""


def test_files_or_a_cluster(
    plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubeconfig = str(plane.kubeconfig(ADMIN))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert run(["schedule"]) == 2
    told = capsys.readouterr().err
    assert "there is no cluster to talk to" in told
    assert "give --kubeconfig FILE; a command that takes FILES needs no cluster" in told
    assert run(["schedule", "cluster.yaml", "--kubeconfig", kubeconfig]) == 2
    assert "--kubeconfig is for a live cluster; leave out FILES" in capsys.readouterr().err
    plane.add_node("n1", {}, cpu="2")
    plane.add_pod("small", "default-scheduler")
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    assert run(["schedule", "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == ["default/small n1"]
