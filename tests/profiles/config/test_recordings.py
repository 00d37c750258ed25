"""Every configuration among the recordings loads, and runs what was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.generations.v1_36 import V1_36
from podium.profiles.config.build import config_from, default_config, from_config
from podium.profiles.policy.build import Options

GOLDEN = Path(__file__).parents[2] / "golden" / "v1.36"
FILES = sorted(GOLDEN.glob("*.jsonl"))

assert FILES, "there are no recordings of v1.36"


def scenarios(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_configurations_load_and_score_with_what_was_recorded(path: Path) -> None:
    for scenario in scenarios(path):
        given = scenario.get("config")
        found = (
            default_config(generation=V1_36)
            if given is None
            else config_from(given, generation=V1_36)
        )
        profiles = {p.scheduler_name: p for p in from_config(found, Options())}
        weights = {
            name: {weighted.name: weighted.weight for weighted in profile.priorities}
            for name, profile in profiles.items()
        }
        pending = {
            f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}": pod
            for pod in scenario["pending"]
        }
        for step in scenario["expected"]["steps"]:
            scheduler = pending[step["pod"]]["spec"].get("schedulerName", "default-scheduler")
            for plugin, nodes in step.get("scores", {}).items():
                for node, score in nodes.items():
                    weight = weights[scheduler][plugin]
                    where = f"{scenario['name']}: {step['pod']} on {node}: {plugin}"
                    assert score["score"] == score["normalized"] * weight, where
