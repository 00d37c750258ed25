"""Pods with claims from files: placed, explained, and written as JSON and read again."""

from __future__ import annotations

from pathlib import Path

import msgspec

import podium
from podium.library.decision_json import from_json, to_json
from podium.library.profiles import Options, from_config
from podium.objects.kinds.registry import RESOURCE_CLAIM
from podium.profiles.config.build import default_config

PROFILE = from_config(default_config(), Options())[0]
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "devices" / "gpus.yaml")


def test_claims_are_made_from_templates_and_devices_run_out() -> None:
    objects = podium.read([EXAMPLE])

    assert len(objects.of(RESOURCE_CLAIM)) == 3
    nodes = [step.decision.node for step in podium.simulate(objects, PROFILE)]
    assert nodes == ["gpu-1", "gpu-1", None]


def test_the_devices_of_a_decision_survive_json() -> None:
    steps = list(podium.simulate(podium.read([EXAMPLE]), PROFILE, recording=True))

    data = msgspec.json.decode(msgspec.json.encode(to_json(steps[0].decision)))
    read = from_json(data)

    [claim] = data["claims"]
    assert [each["device"] for each in claim["devices"]] == ["gpu-0"]
    assert read.devices is not None
    [plan] = read.devices.claims
    assert plan.allocation is not None
    assert to_json(read)["claims"] == data["claims"]
