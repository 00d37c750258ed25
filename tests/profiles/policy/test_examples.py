"""The policies among the examples load and say what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.engine.framework.profile import Profile
from podium.profiles.policy.build import Options, from_policy, parse_policy

POLICIES = Path(__file__).parents[3] / "examples" / "policies"


def loaded(name: str) -> Profile:
    path = POLICIES / name
    return from_policy(parse_policy(path.read_text("utf-8"), name), Options(), name)


@pytest.mark.parametrize("path", sorted(POLICIES.iterdir()), ids=lambda path: path.name)
def test_every_example_loads(path: Path) -> None:
    assert loaded(path.name).name == f"v1.13 policy {path.name}"


def test_the_example_with_an_order_of_its_own() -> None:
    made = loaded("order.json")

    assert [rule.name for rule in made.predicates] == [
        "HostName",
        "CheckNodeUnschedulable",
        "PodFitsHostPorts",
        "PodFitsResources",
        "PodToleratesNodeTaints",
        "NoDiskConflict",
        "MatchNodeSelector",
    ]
    assert [(weighted.name, weighted.weight) for weighted in made.priorities] == [
        ("BalancedResourceAllocation", 1),
        ("EqualPriority", 1),
        ("LeastRequestedPriority", 1),
        ("ServiceSpreadingPriority", 1),
    ]


def test_examples_for_both_programs_need_no_notes() -> None:
    assert [loaded(name).notes for name in ("pack-nodes.json", "gpu-extender.json")] == [(), ()]
