"""Every recorded decision of kube-scheduler v1.36 about pods with claims: zero differences.

And the other way round: a claim, a device or an error that is changed in a recording is found.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from podium.past.recordings.replay import replay

RECORDINGS = Path(__file__).parents[1] / "golden" / "v1.36-devices"
FILES = sorted(RECORDINGS.glob("*.jsonl"))
#: Scenarios and steps of each file, as the README of the recordings counts them.
COUNTS = {
    "admin": (25, 109),
    "basic": (25, 95),
    "constraints": (25, 74),
    "consumable": (25, 103),
    "errors": (25, 80),
    "extended": (25, 102),
    "mixed": (25, 383),
    "partitionable": (25, 115),
    "preemption": (25, 117),
    "prioritized": (25, 98),
    "shared_claims": (25, 103),
    "taints": (25, 115),
}

Scenario = dict[str, Any]


def read(file: Path) -> list[Scenario]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_no_recording_is_missing() -> None:
    assert [file.stem for file in FILES] == sorted(COUNTS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_replaying_a_recording_finds_no_difference(file: Path) -> None:
    replayed = [replay(scenario) for scenario in read(file)]

    assert [each for one in replayed for each in one.differences] == []
    assert (len(replayed), sum(one.steps for one in replayed)) == COUNTS[file.stem]


def first_step(field: str) -> tuple[Scenario, int]:
    """The first step of all files that has a field."""
    for file in FILES:
        for scenario in read(file):
            for index, step in enumerate(scenario["expected"]["steps"]):
                if step.get(field):
                    return scenario, index
    raise AssertionError(f"no recording has {field}")


@pytest.mark.parametrize("field", ["claims", "extended", "error"])
def test_what_was_not_recorded_is_a_difference(field: str) -> None:
    scenario, index = first_step(field)
    wrong = copy.deepcopy(scenario)
    del wrong["expected"]["steps"][index][field]

    assert field in {each.field for each in replay(wrong).differences}


def test_another_device_is_a_difference() -> None:
    scenario, index = first_step("claims")
    wrong = copy.deepcopy(scenario)
    [claim, *_] = wrong["expected"]["steps"][index]["claims"].values()
    claim["allocation"]["devices"]["results"][0]["device"] += "!"

    assert [each.field for each in replay(wrong).differences] == ["claims"]


def test_a_deleted_claim_is_not_an_unwritten_one() -> None:
    for scenario in read(RECORDINGS / "extended.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            if None in step.get("claims", {}).values():
                wrong = copy.deepcopy(scenario)
                claims = wrong["expected"]["steps"][index]["claims"]
                kept = {key: claim for key, claim in claims.items() if claim is not None}
                wrong["expected"]["steps"][index]["claims"] = kept

                assert [each.field for each in replay(wrong).differences] == ["claims"]
                return
    raise AssertionError("no recording deletes a claim")


def test_of_compile_errors_only_the_words_of_the_compiler_may_differ() -> None:
    file = RECORDINGS / "errors.jsonl"
    [scenario] = [each for each in read(file) if each["name"].endswith("broken-class")]
    text = json.dumps(scenario["expected"])

    other_words = text.replace("must evaluate to bool", "should have been a bool")
    another_class = text.replace("class bad:", "class worse:")

    assert other_words != text != another_class
    assert not replay(scenario | {"expected": json.loads(other_words)}).differences
    assert replay(scenario | {"expected": json.loads(another_class)}).differences
