"""Answers about devices that are kept between decisions equal fresh ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import node, pod
from builders_v1_36 import device_class, device_slice, spec_with, view
from podium.cluster.simulation import Simulation
from podium.engine.rows.rows import OneRow
from podium.engine.rules.devices.plugin import DynamicResources
from podium.objects.kinds.devices import ResourceClaim
from podium.objects.kinds.pod import PodResourceClaim
from podium.past.recordings.replay import profiles_of
from podium.past.recordings.scenarios import Scenario, objects_of, pending_of, scenario_of

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


@pytest.mark.parametrize("first", [0, 1])
def test_a_limit_of_steps_applies_to_the_profile_that_has_it(first: int) -> None:
    requests = [
        {"name": f"r{i}", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount"}}
        for i in range(3)
    ]
    columns = view(
        node("n"),
        device_class(),
        device_slice("n", {"name": "a"}, {"name": "b"}),
        msgspec.convert(
            {
                "metadata": {"name": "mine", "namespace": "default", "uid": "1"},
                "spec": {"devices": {"requests": requests}},
            },
            ResourceClaim,
        ),
    )
    claims = [PodResourceClaim(name="c", resource_claim_name="mine")]
    wanted = columns.pods.incoming(spec_with(pod("p"), resource_claims=claims))
    patient, hasty = DynamicResources(), DynamicResources(max_steps=1)
    errors = {}

    for rule in (patient, hasty) if first == 0 else (hasty, patient):
        at = OneRow(columns, 0)
        rule.filter(wanted, at)
        errors[rule] = at.errors.get(0)

    assert errors[patient] is None
    assert "timed out trying to allocate devices" in (errors[hasty] or "")
