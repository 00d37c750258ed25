"""A snapshot of a real cluster, decided about offline."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane.harness import ADMIN, PODIUM, PODS, ControlPlane
from podium.cli.main import run
from podium.releases import DEFAULT_RELEASE

POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "GeneralPredicates"},
        {"name": "Racked", "argument": {"labelsPresence": {"labels": ["acme.com/rack"]}}},
    ],
    "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Three nodes, one of them crowded, and three pods: one runs, one waits, one fits nowhere."""
    control_plane.clear_nodes()
    for name, cpu in (("acme-b", "4"), ("acme-a", "2"), ("acme-c", "4")):
        control_plane.add_node(name, {"acme.com/rack": name[-1]}, cpu)
    secret: dict[str, Any] = {"metadata": {"name": "acme-key"}, "stringData": {"k": "acme-secret"}}
    control_plane.post("/api/v1/namespaces/default/secrets", secret)
    container = {
        "name": "c",
        "image": "acme/web:1",
        "env": [{"name": "PASSWORD", "value": "acme-secret"}],
        "resources": {"requests": {"cpu": "3"}},
    }
    control_plane.add_pod("acme-runs", "default-scheduler", containers=[container])
    control_plane.post(
        f"{PODS}/acme-runs/binding",
        {"metadata": {"name": "acme-runs"}, "target": {"kind": "Node", "name": "acme-b"}},
    )
    control_plane.add_pod("acme-waits", "default-scheduler", cpu="1500m")
    control_plane.add_pod("acme-giant", "default-scheduler", cpu="64")
    yield control_plane
    control_plane.clear_nodes()
    control_plane.call("DELETE", "/api/v1/namespaces/default/secrets/acme-key")


def taken(cluster: ControlPlane, output: Path, *flags: str) -> str:
    assert (
        run(["snapshot", f"--kubeconfig={cluster.kubeconfig(ADMIN)}", f"--out={output}", *flags])
        == 0
    )
    data = output.read_bytes()
    return (gzip.decompress(data) if output.suffix == ".gz" else data).decode()


def placements(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    capsys.readouterr()
    assert run(["schedule", *arguments, "-o", "name"]) in {0, 1}
    return dict(line.split() for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("ending", ["json", "yaml", "json.gz"])
def test_a_snapshot_is_decided_about_offline(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    file = tmp_path / f"snapshot.{ending}"
    text = taken(cluster, file)

    assert placements(capsys, str(file)) == {
        "default/acme-waits": "acme-c",
        "default/acme-giant": "<none>",
    }
    assert run(["explain", "acme-giant", str(file), "--exit-code"]) == 1
    assert "3 Insufficient cpu" in capsys.readouterr().out
    for told in ("acme-secret", "PASSWORD", "managedFields", "resourceVersion", "Secret"):
        assert told not in text


def test_nodes_keep_the_order_in_which_they_are_listed(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    found = json.loads(taken(cluster, tmp_path / "s.json"))

    names = [item["metadata"]["name"] for item in found["items"] if item["kind"] == "Node"]
    assert names == ["acme-a", "acme-b", "acme-c"]
    assert found["items"][0]["profile"] == {"profile": DEFAULT_RELEASE.name}


def test_it_can_be_piped(cluster: ControlPlane, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["snapshot", f"--kubeconfig={cluster.kubeconfig(ADMIN)}", "--out", "-"]) == 0

    found = json.loads(capfdbinary.readouterr().out)
    assert {"Snapshot", "Node", "Pod"} <= {item["kind"] for item in found["items"]}


def test_it_keeps_the_profile_in_use(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, file = tmp_path / "policy.json", tmp_path / "s.yaml"
    policy.write_text(json.dumps(POLICY))
    taken(cluster, file, f"--policy={policy}")
    policy.unlink()

    # The Policy packs pods, the default spreads them: a full node is the better one.
    assert placements(capsys, str(file))["default/acme-waits"] == "acme-a"
    assert placements(capsys, str(file), "--profile=v1.36")["default/acme-waits"] == "acme-c"


def test_a_policy_may_come_from_a_config_map(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    policy = {"metadata": {"name": "rules"}, "data": {"policy.cfg": json.dumps(POLICY)}}
    cluster.post(path, policy)
    try:
        flags = ("--policy-configmap=rules", "--policy-configmap-namespace=default")
        found = json.loads(taken(cluster, tmp_path / "s.json", *flags))
    finally:
        cluster.call("DELETE", f"{path}/rules")

    assert found["items"][0]["profile"] == {"policy": POLICY}
    assert placements(capsys, str(tmp_path / "s.json"))["default/acme-waits"] == "acme-a"


def test_anonymized_it_is_decided_about_in_the_same_way(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    text = taken(cluster, tmp_path / "s.yaml", "--anonymize", f"--policy={policy}")

    assert "acme" not in text
    nodes = [
        each["metadata"]["name"] for each in yaml.safe_load_all(text) if each["kind"] == "Node"
    ]
    assert nodes == sorted(nodes)
    found = placements(capsys, str(tmp_path / "s.yaml"))
    assert sorted(found.values()) == ["<none>", nodes[0]]


def test_rights_that_are_lacking_are_named_in_one_sentence(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user may list nodes and pods alone: all else is unknown, not absent."""
    file = tmp_path / "s.json"

    assert run(["snapshot", f"--kubeconfig={cluster.kubeconfig(PODIUM)}", "--out", str(file)]) == 0

    said = [line for line in capsys.readouterr().err.splitlines() if "allows no list" in line]
    assert len(said) == 1
    assert "deployments" in said[0]
    assert "cronjobs" in said[0]
    assert "deployments" in json.loads(file.read_text())["items"][0]["notRead"]
    assert run(["explain", "acme-giant", str(file)]) == 0
    assert capsys.readouterr().err.count("allows no list of") == 1
    assert run(["plan", str(file), "--drain", "acme-b"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert sum("allows no list of" in line for line in said) == 1
    assert any("any PodDisruptionBudget" in line for line in said)


def test_a_cluster_whose_pods_may_not_be_listed_is_an_error(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    nobody = cluster.kubeconfig_of("nobody")

    assert run(["snapshot", f"--kubeconfig={nobody}", "--out", str(file)]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not file.exists()


def test_a_plan_finds_all_that_it_needs(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job, a cron job and an autoscaler are in the snapshot; nothing is said to be missing."""
    container = {"name": "c", "image": "acme/job:1"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "acme-web"}
    made: list[tuple[str, dict[str, Any]]] = [
        ("batch/v1 jobs", {"template": template}),
        ("batch/v1beta1 cronjobs", {"schedule": "0 3 * * *", "jobTemplate": {"spec": {}}}),
        ("autoscaling/v1 horizontalpodautoscalers", {"maxReplicas": 2, "scaleTargetRef": target}),
    ]
    made[1][1]["jobTemplate"]["spec"]["template"] = template
    paths = []
    for group, spec in made:
        version, plural = group.split()
        path = f"/apis/{version}/namespaces/default/{plural}"
        cluster.post(path, {"metadata": {"name": f"acme-{plural}"}, "spec": spec})
        paths.append(f"{path}/acme-{plural}")
    try:
        found = json.loads(taken(cluster, tmp_path / "s.json"))
        hidden = taken(cluster, tmp_path / "hidden.json", "--anonymize")
    finally:
        for path in paths:
            cluster.call("DELETE", path)

    kinds = {each["kind"] for each in found["items"]}
    assert {"Job", "CronJob", "HorizontalPodAutoscaler"} <= kinds
    assert "acme" not in hidden
    capsys.readouterr()
    assert run(["plan", str(tmp_path / "s.json"), "--drain", "acme-b"]) == 0
    assert "not in the input" not in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_a_sentence(
    cluster: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "no" / "such" / "s.json"

    assert run(["snapshot", f"--kubeconfig={cluster.kubeconfig(ADMIN)}", "--out", str(where)]) == 2

    assert capsys.readouterr().err == (
        f"podium: {where}: cannot be written: no such file or directory\n"
    )
