"""Whatever is changed in a recording, the replay finds it.

A recording that agrees proves something only if one that does not would have been noticed.
`test_every_field.py` changes every field once; here anything is changed anywhere.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

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
    other,
    part,
    read,
    smallest,
    without,
)
from podium.errors import InputError
from podium.past.recordings.replay import replay

pytestmark = pytest.mark.slow

#: Small recordings and large ones of each form: all kinds of steps.
SAMPLED = {
    "v1.13": {file.stem: smallest(file)[:12] for file in files("v1.13")},
    "v1.36": {file.stem: smallest(file)[::3] for file in files("v1.36")},
}
FILES = [(form, file) for form, scenarios in SAMPLED.items() for file in scenarios]
#: Form, file, number of the scenario and place of all that could be wrong in it.
PLACES = [
    (form, file, number, place)
    for form, file in FILES
    for number, scenario in enumerate(SAMPLED[form][file])
    for place in leaves(scenario["expected"], keys=lambda each: each not in ([], {}, None))
    if place != ("steps", KEY)
]


@given(chosen=st.sampled_from(PLACES))
@settings(max_examples=220)
def test_one_number_or_text_changed_anywhere_is_found(chosen: tuple[str, str, int, Place]) -> None:
    form, file, number, place = chosen
    scenario = SAMPLED[form][file][number]
    wrong = changed(scenario, place, other(part(scenario["expected"], place)))

    assert is_found(wrong), f"{scenario['name']}: {place}"


def is_found(scenario: Scenario) -> bool:
    """Whether a changed recording differs, or is refused for a field that nothing compares."""
    try:
        return bool(replay(scenario).differences)
    except InputError as error:
        return "is a field that is not compared" in str(error)


def with_field(form: str, field: str) -> Iterator[tuple[Scenario, int]]:
    """For each file, the first step that says something in a field."""
    found = list(examples(SAMPLED[form], lambda step: bool(step.get(field))))
    assert found, "no recording has the field"
    return iter(found)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        *(("v1.13", field) for field in ("error", "host", "message", "preempt")),
        *(("v1.36", field) for field in ("best", "message", "nominated", "placed", "preempt")),
        *(("v1.36", field) for field in ("preenqueue", "prefilter", "retry")),
    ],
)
def test_an_answer_that_was_not_recorded_is_a_difference(form: str, field: str) -> None:
    for scenario, index in with_field(form, field):
        found = replay(without(scenario, index, field)).differences

        assert found, scenario["name"]
        assert form == "v1.13" or field in {each.field for each in found}


@pytest.mark.parametrize("field", ["failed", "scores", "total"])
def test_other_fields_that_were_not_recorded_are_not_compared(field: str) -> None:
    for scenario, index in with_field("v1.13", field):
        assert replay(without(scenario, index, field)).differences == [], scenario["name"]


@pytest.mark.parametrize(
    ("form", "field"),
    [("v1.13", "tie"), ("v1.36", "ties"), ("v1.36", "clearedNominations")],
)
def test_what_preemption_did_not_tell_is_a_difference(form: str, field: str) -> None:
    looked_at = 0
    for scenario in read(GOLDEN / form / "preemption.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            if field in step.get("preempt", {}):
                wrong = without(scenario, index, "preempt", field)
                assert replay(wrong).differences, scenario["name"]
                looked_at += 1
    assert looked_at


@pytest.mark.parametrize(("form", "file"), FILES)
def test_a_step_too_many_or_too_few_is_found(form: str, file: str) -> None:
    scenario = next(each for each in SAMPLED[form][file] if each["expected"].get("steps"))
    steps = scenario["expected"]["steps"]

    assert replay(changed(scenario, ("steps",), steps[:-1])).differences
    assert replay(changed(scenario, ("steps",), [*steps, steps[-1]])).differences


def test_a_configuration_that_should_be_refused_is_found_and_so_is_one_that_should_not() -> None:
    refused = next(
        s for s in read(GOLDEN / "v1.13/policy_variants.jsonl") if "configError" in s["expected"]
    )
    accepted = SAMPLED["v1.13"]["policy_variants"][0]
    wrong = copy.deepcopy(refused)
    del wrong["expected"]["configError"]

    assert replay(wrong).differences
    assert replay(changed(accepted, ("configError",), "no")).differences
    assert replay(changed(refused, ("configError",), "other words")).differences


@pytest.mark.parametrize(("form", "file"), FILES)
def test_a_changed_cluster_is_found(form: str, file: str) -> None:
    # The other way round: the recording is right and the objects are not.
    scenario = next(
        each
        for each in read(GOLDEN / form / f"{file}.jsonl")
        if any(
            step.get("feasible") or step.get("host") for step in each["expected"].get("steps", ())
        )
    )
    wrong = copy.deepcopy(scenario)
    for item in wrong["objects"]:
        if item["kind"] == "Node":
            item["spec"] = item.get("spec", {}) | {"unschedulable": True}
    for pending in wrong["pending"]:
        pending["spec"].pop("tolerations", None)

    assert replay(wrong).differences
