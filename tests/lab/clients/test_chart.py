"""A chart with custom resources, installed by kubectl: the one on the PATH and Debian's 1.20."""

from __future__ import annotations

import json
from pathlib import Path

from lab.clients.kubectl import Kubectl

CHART = Path(__file__).parent / "chart"


def test_a_chart_with_custom_resources_is_installed_changed_and_removed(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(CHART / "crds.yaml"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    done = kubectl.run("apply", "-f", str(CHART / "application.yaml"))
    assert done.code == 0, done.err
    assert "error" not in done.err.lower()
    assert "the lab calls no webhooks" in done.err
    assert "this APIService is kept and idle" in done.err
    kubectl("-n", "factory", "rollout", "status", "deployment/controller", "--timeout=120s")
    again = kubectl("apply", "-f", str(CHART / "application.yaml"))
    assert "widget.factory.example.com/one unchanged" in again
    assert "created" not in again

    table = kubectl("-n", "factory", "get", "widgets")
    assert table.split()[:4] == ["NAME", "REPLICAS", "READY", "AGE"]
    assert "one    3" in table
    assert "COLOR" in kubectl("-n", "factory", "get", "wd", "-o", "wide")
    made = json.loads(kubectl("-n", "factory", "get", "widget", "one", "-o", "json"))
    assert made["spec"]["parts"] == [{"name": "wheel", "count": 4}, {"name": "bell", "count": 2}]
    assert made["metadata"]["generation"] == 1
    assert "What the widget shall be." in kubectl("explain", "widgets.spec")
    assert "widgets" in kubectl("api-resources", "--api-group=factory.example.com")
    assert "city: Berlin" in kubectl("get", "factory", "main", "-o", "yaml")

    kubectl("-n", "factory", "scale", "widgets/one", "--replicas=5")
    patch = '{"spec":{"color":"blue"}}'
    kubectl("-n", "factory", "patch", "widget", "one", "--type=merge", "-p", patch)
    made = json.loads(kubectl("-n", "factory", "get", "widget", "one", "-o", "json"))
    assert (made["spec"]["replicas"], made["spec"]["color"]) == (5, "blue")
    wrong = kubectl.run(
        "-n", "factory", "patch", "widget", "one", "--type=merge", "-p", '{"spec":{"color":"pink"}}'
    )
    assert wrong.code == 1
    assert (
        'spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"'
        in wrong.err
    ) or ('supported values: "blue", "green", "red"' in wrong.err)

    kubectl("delete", "crd", "widgets.factory.example.com", "--timeout=120s")
    assert kubectl.run("-n", "factory", "get", "widgets").code == 1
    kubectl("delete", "namespace", "factory", "--timeout=120s")
