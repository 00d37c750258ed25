"""DeviceTaintRules add taints to the devices that they select, where that is a feature."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import node, pod
from builders_v1_36 import current, decision, device_class, device_slice, spec_with
from podium.engine.framework.decision import Decision
from podium.engine.rows.rows import OneRow
from podium.library.profiles import default_profile
from podium.objects.kinds.devices import (
    DeviceTaintRule,
    ResourceClaim,
    check_taint_rule,
)
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, PodResourceClaim

TAINTED = default_profile("v1.37")
MATCHING = [
    pytest.param({"driver": "gpu.example.com"}, id="the driver"),
    pytest.param({"pool": "n"}, id="the pool"),
    pytest.param({"device": "gpu-0"}, id="the device"),
    pytest.param({"driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}, id="all three"),
    pytest.param({}, id="an empty selector"),
    pytest.param(None, id="no selector, as kube-scheduler has it"),
]
OTHERS = [
    pytest.param({"driver": "nic.example.com"}, id="another driver"),
    pytest.param({"pool": "m"}, id="another pool"),
    pytest.param({"device": "gpu-1"}, id="another device"),
    pytest.param({"driver": "gpu.example.com", "pool": "m"}, id="one of two does not match"),
]


def rule(
    selector: dict[str, str] | None, name: str = "sick", effect: str = "NoSchedule", key: str = "a"
) -> DeviceTaintRule:
    spec: dict[str, Any] = {"taint": {"key": key, "value": "b", "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


def cluster(tolerations: list[dict[str, str]] | None = None) -> list[Object]:
    """A node with one GPU, and a claim for one."""
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": tolerations,
    }
    claim = {
        "metadata": {"name": "mine", "namespace": "default", "uid": "1"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }
    return [
        node("n"),
        device_class(),
        device_slice("n", {"name": "gpu-0"}),
        msgspec.convert(claim, ResourceClaim),
    ]


def wanted() -> Pod:
    return spec_with(
        pod("p"), resource_claims=[PodResourceClaim(name="c", resource_claim_name="mine")]
    )


def placed(*rules: DeviceTaintRule, tolerations: list[dict[str, str]] | None = None) -> Decision:
    return decision(wanted(), *cluster(tolerations), *rules, profile=TAINTED)


@pytest.mark.parametrize("selector", MATCHING)
def test_a_rule_keeps_claims_off_the_devices_that_it_selects(
    selector: dict[str, str] | None,
) -> None:
    found = placed(rule(selector))

    assert found.node is None
    assert "cannot allocate all claims" in found.message


@pytest.mark.parametrize("selector", OTHERS)
def test_a_rule_leaves_other_devices_alone(selector: dict[str, str]) -> None:
    assert placed(rule(selector)).node == "n"


def test_a_taint_that_is_tolerated_or_without_effect_keeps_nothing_off() -> None:
    tolerations = [{"key": "a", "operator": "Exists"}]

    assert placed(rule({}), tolerations=tolerations).node == "n"
    assert placed(rule({}, effect="None")).node == "n"
    assert placed(rule({}, effect="NoExecute")).node is None


def test_every_rule_that_selects_a_device_adds_its_taint() -> None:
    tolerations = [{"key": "a", "operator": "Exists"}]
    rules = rule({}), rule({"pool": "n"}, "other", key="c")

    assert placed(*rules, tolerations=tolerations).node is None


def test_rules_count_where_their_gate_is_on() -> None:
    found = decision(wanted(), *cluster(), rule({}), profile=default_profile("v1.36"))

    assert found.node == "n"


@pytest.mark.parametrize("fast", [True, False])
def test_rules_that_come_change_and_go(fast: bool) -> None:
    made = current(*cluster(), profile=TAINTED, fast=fast)
    shelf = made.cache.columns.catalog.device_taint_rules

    def node_now() -> str | None:
        return made.attempt(wanted()).node

    nodes = [node_now()]
    for change, item in (
        (shelf.put, rule({})),
        (shelf.put, rule({"pool": "m"})),
        (shelf.put, rule({"pool": "n"})),
        (shelf.drop, rule({"pool": "n"})),
    ):
        change(item)
        nodes.append(node_now())

    assert nodes == ["n", None, "n", None, "n"]


def test_the_cause_names_the_taint() -> None:
    made = current(*cluster(), rule({"device": "gpu-0"}), profile=TAINTED)
    columns = made.cache.columns
    plugin = next(each for each in TAINTED.predicates if each.name == "DynamicResources")

    causes = plugin.causes(columns.pods.incoming(wanted()), OneRow(columns, 0), {})

    assert "has the taint a=b:NoSchedule" in str(list(causes))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"taint": {"effect": "NoSchedule"}}, "spec.taint.key"),
        ({"taint": {"key": "a"}}, "spec.taint.effect"),
        ({"taint": {"key": "a", "effect": "PreferNoSchedule"}}, "spec.taint.effect"),
        (
            {"taint": {"key": "a", "effect": "None"}, "deviceSelector": {"pool": ""}},
            "spec.deviceSelector.pool",
        ),
    ],
)
def test_what_an_api_server_would_refuse(spec: dict[str, Any], path: str) -> None:
    found = msgspec.convert({"metadata": {"name": "r"}, "spec": spec}, DeviceTaintRule)

    assert [fault.path for fault in check_taint_rule(found)] == [path]
    assert not list(check_taint_rule(rule({"pool": "n"})))
