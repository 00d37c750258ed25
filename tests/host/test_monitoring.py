"""The dashboard and the alerts ask for metrics and labels that a running scheduler has."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from control_plane.harness import free_port
from host.conftest import Lab, Program
from waiting import until

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
METRIC = re.compile(r"\b(?:scheduler|podium|process)_\w+")
SELECTED = re.compile(r"(\w+)=~?\"")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
#: Labels that Prometheus adds itself.
ADDED = {"job", "le"}

Programs = Callable[..., Any]


def dashboard_expressions() -> Iterator[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def alert_expressions() -> Iterator[str]:
    rule = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text("utf-8"))
    for group in rule["spec"]["groups"]:
        yield from (each["expr"] for each in group["rules"])


def labels_of(expression: str) -> set[str]:
    grouped = (name.strip() for each in GROUPED.findall(expression) for name in each.split(","))
    return {*SELECTED.findall(expression), *grouped} - ADDED


def exposed(text: bytes) -> dict[str, set[str]]:
    """Sample name -> its labels."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def read_metrics(port: int) -> dict[str, set[str]]:
    """The metrics of a scheduler; none before it listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return exposed(answer.read())
    except urllib.error.URLError:
        return {}


@pytest.mark.slow
def test_every_query_names_metrics_and_labels_that_a_run_exposes(programs: Programs) -> None:
    port = free_port()
    lab = programs(Lab)  # its demo preempts, and one of its pods fits nowhere
    shadow = ("--shadow", "--leader-elect=false", "--listen", f"127.0.0.1:{port}")
    programs(Program, "run", "--kubeconfig", str(lab.kubeconfig), *shadow)
    lab.create_pods("a", "b")
    lacking = "podium_pending_pods_lacking"
    until("a pod that lacks a resource", lambda: lacking in exposed(lab.request("/metrics")))
    until("a shadow", lambda: "podium_shadow_placements_total" in read_metrics(port))
    known = exposed(lab.request("/metrics"))
    for name, labels in read_metrics(port).items():
        known.setdefault(name, set()).update(labels)

    wrong = [
        f"{metric}: {expression}"
        for expression in (*dashboard_expressions(), *alert_expressions())
        for metric in METRIC.findall(expression)
        if not labels_of(expression) <= known.get(metric, {"no such metric"}) | ADDED
        or metric not in known
    ]

    assert wrong == []


def test_a_metric_that_does_not_exist_is_seen() -> None:
    assert METRIC.findall('sum by (le) (rate(scheduler_nothing_bucket{job="a"}[5m]))') == [
        "scheduler_nothing_bucket"
    ]
    assert labels_of('sum by (le, queue) (x{job=~"a",result="b"})') == {"queue", "result"}


def test_dashboard_and_alerts_ask_something() -> None:
    assert len(list(dashboard_expressions())) >= 14
    assert len(list(alert_expressions())) >= 6
