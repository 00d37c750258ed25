"""`podium run` and `podium lab` as processes: what they share, and how they end."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from control_plane.harness import free_port
from host.conftest import Lab, Program
from waiting import until

BROKEN_EXTENDER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://127.0.0.1:9/extender
  filterVerb: filter
  enableHTTPS: true
  tlsConfig: {caFile: /nowhere/ca.crt}
"""
SENTENCE = "podium: the scheduler stopped: tlsConfig of extender https://127.0.0.1:9/extender: "

Programs = Callable[..., Any]


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A configuration whose extender cannot be asked: its certificate authority is missing."""
    file = tmp_path / "config.yaml"
    file.write_text(BROKEN_EXTENDER)
    return str(file)


def families(text: bytes) -> dict[str, tuple[str, frozenset[str]]]:
    """Metric -> its type and labels."""
    return {
        family.name: (
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels),
        )
        for family in text_string_to_metric_families(text.decode())
    }


def test_a_scheduler_that_dies_ends_the_lab(programs: Programs, broken: str) -> None:
    lab = programs(Lab, "--nodes", "2", "--config", broken)
    lab.create_pods("a")

    code = lab.ended()

    assert code == 2
    assert lab.err.startswith(SENTENCE)
    assert lab.err.count("\n") == 1


def test_a_scheduler_that_dies_ends_the_run_and_releases_its_lease(
    programs: Programs, broken: str
) -> None:
    lab = programs(Lab, "--nodes", "2", "--no-scheduler")
    lab.create_pods("a")
    flags = ("--kubeconfig", str(lab.kubeconfig), "--config", broken, "--listen", "127.0.0.1:0")

    program = programs(Program, "run", *flags, "--leader-elect-resource-name", "broken")
    code = program.ended()

    assert code == 2
    assert program.err.splitlines()[-1].startswith(SENTENCE)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/broken"
    lease = json.loads(lab.request(path))
    assert not lease["spec"].get("holderIdentity")
    assert lab.stop() == 0


def test_lab_and_run_have_the_same_metrics(programs: Programs) -> None:
    port = str(free_port())
    lab = programs(Lab, "--nodes", "2")
    other = programs(Lab, "--nodes", "2", "--no-scheduler")
    flags = (
        "--kubeconfig",
        str(other.kubeconfig),
        "--listen",
        f"127.0.0.1:{port}",
        "--leader-elect=false",
    )
    program = programs(Program, "run", *flags)
    for each in (lab, other):
        each.create_pods("a", "b", "c")
        until("all pods are bound", each.all_bound)

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        of_run = families(answer.read())
    of_lab = families(lab.request("/metrics"))

    assert of_lab == of_run
    assert of_lab["scheduler_pending_pods"] == ("gauge", frozenset({"queue"}))
    assert of_lab["scheduler_cache_size"] == ("gauge", frozenset({"type"}))
    assert program.stop() == 0
    assert (lab.stop(), lab.err) == (0, "")


def test_profiles_applied_from_a_page_keep_the_timings_of_their_rules(programs: Programs) -> None:
    lab = programs(Lab, "--nodes", "2")
    page = json.loads(lab.request("/podium/v1/profile"))
    weights = {each["name"]: 7 for each in page["profiles"][0]["priorities"]}

    def measured(plugin: str) -> float:
        return sum(
            sample.value
            for family in text_string_to_metric_families(lab.request("/metrics").decode())
            for sample in family.samples
            if sample.name == "scheduler_plugin_execution_duration_seconds_count"
            and sample.labels["plugin"] == plugin
        )

    lab.request("/podium/v1/profile", {"weights": weights}, "PUT")
    lab.create_pods(*(f"p{number}" for number in range(30)))
    until("all pods are bound", lab.all_bound)

    applied = json.loads(lab.request("/podium/v1/profile"))
    assert {each["weight"] for each in applied["profiles"][0]["priorities"]} == {7}
    assert measured("NodeResourcesFit") >= 3
