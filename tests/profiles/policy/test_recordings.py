"""Every recorded scenario: the same configuration, or refused with the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_policy, from_provider

GOLDEN = Path(__file__).parents[2] / "golden" / "v1.13"
FILES = sorted(GOLDEN.glob("*.jsonl"))


def built(scenario: dict[str, Any]) -> Profile:
    given = scenario.get("options", {})
    options = Options(
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore", 100),
        hard_pod_affinity_symmetric_weight=given.get("hardPodAffinitySymmetricWeight", 1),
        disable_preemption=given.get("disablePreemption", False),
        feature_gates=given.get("featureGates", {}),
        max_pd_volumes=given.get("env", {}).get("KUBE_MAX_PD_VOLS"),
        accepts_other_names=False,
    )
    if scenario.get("policy") is not None:
        return from_policy(scenario["policy"], options)
    return from_provider(scenario["provider"], options)


def outcome(scenario: dict[str, Any]) -> dict[str, Any]:
    try:
        profile = built(scenario)
    except ConfigError as error:
        return {"configError": error.text}
    return {
        "predicates": list(profile.configured_predicates),
        "priorities": [f"{weighted.name}:{weighted.weight}" for weighted in profile.priorities],
    }


def test_there_are_recordings() -> None:
    assert len(FILES) == 16


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_configurations_come_out_as_recorded(path: Path) -> None:
    with path.open(encoding="utf-8") as lines:
        for scenario in map(json.loads, lines):
            recorded = scenario["expected"]
            expected = {
                key: recorded[key]
                for key in ("configError", "predicates", "priorities")
                if key in recorded
            }
            if "configError" not in recorded:
                expected.setdefault("priorities", [])  # an empty list was left out
            assert outcome(scenario) == expected, scenario["name"]
