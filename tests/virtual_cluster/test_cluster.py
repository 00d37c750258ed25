"""A whole cluster on virtual time."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from manifests import budget, claim, deployment, manifest, node, pod, service, workload
from podium.errors import ConfigError
from podium.host.cluster_run import LEADERSHIP_LOST, Lease
from podium.host.supervisor import TaskDiedError
from podium.kube.lease import LeaseTimes
from podium.lab.controllers.fake_kubelet import KubeletTimings
from podium.library.profile_source import ProfileSource
from podium.scheduler.telemetry.logs import Log
from podium.virtual_cluster.cluster import ReplicaOptions, SimulatedCluster
from podium.virtual_cluster.event_loop import START, VirtualClock

ROOT = Path(__file__).parents[2]


def nodes_of(cluster: SimulatedCluster) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["spec"].get("nodeName", "")
        for each in cluster.registry.list("Pod")
    }


def test_pods_are_bound_started_and_replaced() -> None:
    with SimulatedCluster() as cluster:
        cluster.load([deployment("web", 3), node("n1"), node("n2")])
        cluster.add_scheduler()
        assert cluster.run_until_quiet()
        found = cluster.registry.list("Pod")
        assert [each["status"]["phase"] for each in found] == ["Running"] * 3

        cluster.registry.delete("Pod", found[0]["metadata"]["name"], "default")
        assert cluster.run_until_quiet()
        again = cluster.registry.list("Pod")
        assert [each["status"]["phase"] for each in again] == ["Running"] * 3
        assert found[0]["metadata"]["name"] not in nodes_of(cluster)


def test_nothing_reads_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers, kubelets, the API server and the scheduler write virtual time."""
    readers: list[str] = []
    wall = time.time

    def noted() -> float:
        readers.append(sys._getframe(1).f_code.co_filename)
        return wall()

    monkeypatch.setattr(time, "time", noted)
    with SimulatedCluster(kubelet=KubeletTimings(job=60.0)) as cluster:
        job = {
            "template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}},
            "activeDeadlineSeconds": 600,
            "ttlSecondsAfterFinished": 3600,
        }
        cluster.load([manifest("Job", "hour", spec=job), pod("web"), node("n1")])
        cluster.add_scheduler()
        assert cluster.run_until_quiet()
        cluster.registry.delete("Node", "n1")
        cluster.run_for(900)
        end, kinds = cluster.clock.now(), ("Pod", "Node", "Job", "Event", "Lease")
        written = msgspec.json.encode([cluster.registry.list(kind) for kind in kinds]).decode()
    assert readers == []
    times = re.findall(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.\d]*Z"', written)
    assert len(times) > 10
    first = datetime.fromtimestamp(START, UTC).isoformat()[:19]
    last = datetime.fromtimestamp(end, UTC).isoformat()[:19]
    assert first <= min(times) <= max(times) <= last


def test_a_pod_that_fits_nowhere_waits_until_a_node_comes() -> None:
    with SimulatedCluster() as cluster:
        cluster.load([node("n1"), pod("big", "9")])
        cluster.add_scheduler()
        assert cluster.run_until_quiet()
        assert nodes_of(cluster) == {"big": ""}
        cluster.load([node("n2", "16")])
        assert cluster.run_until_quiet()
        assert nodes_of(cluster) == {"big": "n2"}


def test_the_history_has_every_write_with_its_time() -> None:
    with SimulatedCluster(kubelet=KubeletTimings(start=5.0)) as cluster:
        history = cluster.record("Pod")
        cluster.load([node("n1"), pod("a")])
        cluster.add_scheduler()
        assert cluster.run_until_quiet()

    steps = [
        (write.type, write.key, write.object["spec"].get("nodeName"), write.object["status"])
        for write in history
    ]
    assert [(kind, key, node) for kind, key, node, _ in steps] == [
        ("ADDED", "default/a", None),
        ("MODIFIED", "default/a", "n1"),
        ("MODIFIED", "default/a", "n1"),
        ("MODIFIED", "default/a", "n1"),
    ]
    assert steps[-1][3]["phase"] == "Running"
    bound, running = history.writes[1], history.writes[-1]
    assert running.time - bound.time == pytest.approx(5.0, abs=0.1)


def test_an_hour_that_a_pod_runs_passes_at_once() -> None:
    with SimulatedCluster() as cluster:
        job = pod("job", restartPolicy="Never")
        job["metadata"]["annotations"] = {"lab.podium/run-seconds": "3600"}
        cluster.load([node("n1", "1"), job])
        cluster.add_scheduler()
        cluster.load([pod("next")])
        assert cluster.run_until_quiet()
        assert cluster.last_change == pytest.approx(3601, abs=2)
        phases = {
            each["metadata"]["name"]: each["status"]["phase"]
            for each in cluster.registry.list("Pod")
        }
    assert phases == {"job": "Succeeded", "next": "Running"}


def test_one_of_two_replicas_leads_and_the_other_takes_over() -> None:
    lease = Lease("kube-system", "podium", LeaseTimes())
    with SimulatedCluster() as cluster:
        cluster.load([node("n1"), pod("a")])
        first, second = (
            cluster.add_scheduler(
                name=name,
                options=ReplicaOptions(lease=lease),
                clock=VirtualClock(cluster.loop, rate=rate),
            )
            for name, rate in (("first", 1.01), ("second", 0.99))
        )
        cluster.run_for(10)
        assert nodes_of(cluster) == {"a": "n1"}
        leads = [each.scheduler.leading.is_set() for each in (first, second) if each.scheduler]
        assert sorted(leads) == [False, True]
        leader, other = (first, second) if leads[0] else (second, first)
        thief = {"holderIdentity": other.name, "leaseDurationSeconds": 15}
        cluster.registry.modify(
            "Lease", "podium", "kube-system", change=lambda it: it | {"spec": thief}
        )
        cluster.run_for(30)
        assert leader.task.result() == LEADERSHIP_LOST
        cluster.load([pod("b")])
        assert cluster.run_until_quiet()
        assert nodes_of(cluster) == {"a": "n1", "b": "n1"}


def test_a_scheduler_that_dies_is_an_error() -> None:
    with SimulatedCluster() as cluster:
        cluster.load([node("n1")])
        replica = cluster.add_scheduler()
        cluster.run_for(1)
        assert replica.scheduler is not None

        async def broken(*_: Any) -> None:
            raise ConfigError("no certificate authority")

        replica.scheduler._decider.decide = broken  # type: ignore[method-assign, assignment]
        cluster.load([pod("a")])
        with pytest.raises(TaskDiedError, match="no certificate authority"):
            cluster.run_for(10)


WRITTEN = (
    *("Node", "Pod", "Event", "Lease", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet"),
    *("Job", "PersistentVolumeClaim", "PersistentVolume", "Endpoints", "PodDisruptionBudget"),
)
HISTORY = """
import sys
sys.path[:0] = [{tests!r}]
from virtual_cluster.test_cluster import history_of
print(history_of({seed}))
"""


def history_of(seed: int) -> str:
    """A digest of everything that was written in a busy cluster, with controllers of all kinds."""
    once = {**pod("x")["spec"], "restartPolicy": "Never"}
    objects = [
        deployment("web", 20, "500m"),
        pod("big", "9"),
        workload("StatefulSet", "db", 2, pod("db")["spec"]),
        workload("DaemonSet", "agent", None, pod("agent", "10m")["spec"]),
        manifest("Job", "sums", spec={"completions": 3, "template": {"spec": once}}),
        claim("data"),
        service("web", ports=[{"port": 80}]),
        budget("web", "web", minAvailable=2),
    ]
    with SimulatedCluster(seed=seed) as cluster:
        writes = cluster.record(*WRITTEN)
        cluster.load([*objects, *(node(f"n{number}") for number in range(3))])
        lease = Lease("kube-system", "podium", LeaseTimes())
        for name in ("a", "b"):
            cluster.add_scheduler(name=name, options=ReplicaOptions(lease=lease), log=Log(v=-1))
        cluster.run_for(60)
        cluster.registry.delete("Node", "n1")
        cluster.run_until_quiet()
    seen = [(write.time, write.kind, write.type, write.after) for write in writes]
    return hashlib.sha256(msgspec.json.encode(seen)).hexdigest()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history_in_every_process() -> None:
    found = set()
    for hash_seed in ("0", "1"):
        code = HISTORY.format(tests=str(ROOT / "tests"), seed=7)
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
            check=True,
            capture_output=True,
            text=True,
        )
        found.add(answer.stdout)
    assert len(found) == 1
    assert history_of(8) not in {each.strip() for each in found}


def test_profiles_of_both_generations_schedule() -> None:
    for provider in (None, "DefaultProvider"):
        with SimulatedCluster() as cluster:
            cluster.load([node("n1"), pod("a")])
            cluster.add_scheduler(ProfileSource(provider=provider, environment={}).choose())
            assert cluster.run_until_quiet()
            assert nodes_of(cluster) == {"a": "n1"}
