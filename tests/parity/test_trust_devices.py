"""A claim, a device or an error that is changed in a recording with claims is found."""

from __future__ import annotations

import copy
import json

import pytest

from parity.recordings import GOLDEN, Scenario, files, read, without
from podium.past.recordings.replay import replay

RECORDINGS = GOLDEN / "v1.36-devices"


def first_step(field: str) -> tuple[Scenario, int]:
    """The first step of all files that has a field."""
    for file in files(RECORDINGS.name):
        for scenario in read(file):
            for index, step in enumerate(scenario["expected"]["steps"]):
                if step.get(field):
                    return scenario, index
    raise AssertionError(f"no recording has {field}")


@pytest.mark.parametrize("field", ["claims", "extended", "error"])
def test_what_was_not_recorded_is_a_difference(field: str) -> None:
    scenario, index = first_step(field)

    assert field in {each.field for each in replay(without(scenario, index, field)).differences}


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
