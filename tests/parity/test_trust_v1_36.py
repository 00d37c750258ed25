"""Whatever is changed in a recording of v1.36, the replay finds it.

A recording that agrees proves something only if one that does not would have been noticed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.recordings import (
    GOLDEN,
    KEY,
    Place,
    Scenario,
    changed,
    examples,
    files,
    leaves,
    part,
    read,
    smallest,
    without,
)
from podium.errors import InputError
from podium.past.recordings.replay import replay

RECORDINGS = GOLDEN / "v1.36"
FILES = files("v1.36")
#: Small ones and large ones: all kinds of steps.
SAMPLED = {file.stem: smallest(file)[::3] for file in FILES}
FIELDS = (
    "best",
    "failed",
    "feasible",
    "message",
    "nominated",
    "placed",
    "pod",
    "preempt",
    "preenqueue",
    "prefilter",
    "retry",
    "scores",
    "total",
    "volumes",
)


def other_than(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}!"


def wrong_at(scenario: Scenario, place: Place) -> Scenario:
    """The scenario with something else expected at a place."""
    return changed(scenario, place, other_than(part(scenario["expected"], place)))


def with_field(field: str) -> Iterator[tuple[Scenario, int]]:
    return examples(SAMPLED, lambda step: bool(step.get(field)))


#: File, number of the scenario and place of all that could be wrong in it.
PLACES = [
    (name, number, place)
    for name, scenarios in SAMPLED.items()
    for number, scenario in enumerate(scenarios)
    for place in leaves(scenario["expected"], keys=lambda each: each not in ([], {}, None))
    if place != ("steps", KEY)
]


@given(chosen=st.sampled_from(PLACES))
@settings(max_examples=120)
def test_one_number_or_text_changed_anywhere_is_found(chosen: tuple[str, int, Place]) -> None:
    name, number, place = chosen
    scenario = SAMPLED[name][number]

    assert is_found(wrong_at(scenario, place)), f"{scenario['name']}: {place}"


def is_found(scenario: Scenario) -> bool:
    """Whether a changed recording differs, or is refused for a field that nothing compares."""
    try:
        return bool(replay(scenario).differences)
    except InputError as error:
        return "is a field that is not compared" in str(error)


def test_the_fields_are_all_there_are() -> None:
    recorded = {
        field
        for scenarios in SAMPLED.values()
        for scenario in scenarios
        for step in scenario["expected"]["steps"]
        for field in step
    }

    assert recorded == set(FIELDS)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_compared(field: str) -> None:
    found = list(with_field(field))
    assert found, "no recording has the field"

    for scenario, index in found:
        step = scenario["expected"]["steps"][index]
        place = next(leaves(step[field]), None)
        if place is None:
            continue
        wrong = wrong_at(scenario, ("steps", index, field, *place))

        [difference, *_] = replay(wrong).differences

        assert difference.scenario == scenario["name"]
        assert field in {difference.field, "pod"}


@pytest.mark.parametrize(
    "field",
    ["best", "message", "nominated", "placed", "preempt", "preenqueue", "prefilter", "retry"],
)
def test_an_answer_that_was_not_recorded_is_a_difference(field: str) -> None:
    for scenario, index in with_field(field):
        wrong = without(scenario, index, field)

        assert field in {d.field for d in replay(wrong).differences}, scenario["name"]


@pytest.mark.parametrize("field", ["ties", "clearedNominations"])
def test_what_preemption_did_not_tell_is_a_difference(field: str) -> None:
    looked_at = 0
    for scenario in read(RECORDINGS / "preemption.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            if field in step.get("preempt", {}):
                wrong = without(scenario, index, "preempt", field)
                assert replay(wrong).differences, scenario["name"]
                looked_at += 1
    assert looked_at


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_step_too_many_or_too_few_is_found(file: Path) -> None:
    scenario = SAMPLED[file.stem][0]
    steps = scenario["expected"]["steps"]

    assert replay(scenario | {"expected": {"steps": steps[:-1]}}).differences
    assert replay(scenario | {"expected": {"steps": [*steps, steps[-1]]}}).differences


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_changed_cluster_is_found(file: Path) -> None:
    # The other way round: the recording is right and the objects are not.
    scenario = next(s for s in SAMPLED[file.stem] if s["expected"]["steps"][0].get("feasible"))
    wrong = copy.deepcopy(scenario)
    for item in wrong["objects"]:
        if item["kind"] == "Node":
            item["spec"] = item.get("spec", {}) | {"unschedulable": True}
    for pending in wrong["pending"]:
        pending["spec"].pop("tolerations", None)

    assert replay(wrong).differences
