"""Answers about devices that are kept between decisions equal fresh ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.cluster.simulation import Simulation
from podium.library.recordings.replay import profiles_of
from podium.library.recordings.scenarios import Scenario, objects_of, pending_of, scenario_of

RECORDINGS = Path(__file__).parents[3] / "golden" / "v1.36-devices"
FILES = sorted(RECORDINGS.glob("*.jsonl"))


class Forgetful(Simulation):
    """A simulation that keeps nothing about devices from one decision to the next."""

    def attempt(self, *args: Any, **options: Any) -> Any:
        self.cache.columns.ledgers.clear()
        return super().attempt(*args, **options)


def outcomes(made: Simulation, scenario: Scenario) -> list[object]:
    made.load(objects_of(scenario))
    return [
        (
            step.decision.node,
            step.decision.message,
            None if step.claims is None else msgspec.to_builtins(step.claims.claims),
        )
        for step in made.run(pending_of(scenario))
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_kept_answers_equal_fresh_ones(file: Path) -> None:
    for line in file.read_text().splitlines()[::4]:
        scenario = scenario_of(json.loads(line))
        first, *others = profiles_of(scenario)

        fast = outcomes(Simulation(first, others=others, listed_order=True), scenario)
        plain = outcomes(Forgetful(first, others=others, listed_order=True, fast=False), scenario)

        assert fast == plain, scenario.name
