"""The comparison itself can be trusted: whatever is changed in a recording, it is found.

A recording that agrees proves something only if one that does not would have been noticed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.recordings import (
    GOLDEN,
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
from podium.past.recordings.replay import replay

pytestmark = pytest.mark.slow

DIGIT = re.compile(r"\d")
SMALL = {file.stem: smallest(file)[:12] for file in files("v1.13")}


def with_another_digit(value: Any) -> Any:
    """The same with its last digit changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 if value % 10 != 9 else value - 1
    [*_, last] = DIGIT.finditer(value)
    other = str((int(last[0]) + 1) % 10)
    return value[: last.start()] + other + value[last.end() :]


def has_digit(value: Any) -> bool:
    return isinstance(value, int) or bool(DIGIT.search(value))


#: File, scenario and place of everything with a digit in it.
DIGITS = [
    (name, number, place)
    for name, scenarios in SMALL.items()
    for number, scenario in enumerate(scenarios)
    for place in leaves(scenario["expected"], keys=lambda _: True)
    if has_digit(part(scenario["expected"], place))
]


@given(chosen=st.sampled_from(DIGITS))
@settings(max_examples=100)
def test_one_digit_changed_anywhere_is_found(chosen: tuple[str, int, Place]) -> None:
    name, number, place = chosen
    scenario = SMALL[name][number]
    wrong = changed(scenario, place, with_another_digit(part(scenario["expected"], place)))

    assert replay(wrong).differences, f"{scenario['name']}: {place}"


FIELDS = (
    "pod",
    "attempt",
    "error",
    "failed",
    "feasible",
    "scores",
    "total",
    "host",
    "message",
    "preempt",
)


def with_field(field: str) -> Iterator[tuple[Scenario, int]]:
    return examples(SMALL, lambda step: field in step)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_compared(field: str) -> None:
    found = list(with_field(field))
    assert found, "no recording has the field"

    for scenario, index in found:
        step = scenario["expected"]["steps"][index]
        place = next(leaves(step[field]))
        whole: Place = ("steps", index, field, *place)
        value = part(scenario["expected"], whole)
        other = value + 1 if isinstance(value, int) else f"{value}!"

        [difference, *_] = replay(changed(scenario, whole, other)).differences

        assert difference.scenario == scenario["name"]
        assert field in difference.where


@pytest.mark.parametrize("field", ["error", "host", "message", "preempt"])
def test_an_answer_that_is_absent_is_compared_too(field: str) -> None:
    for scenario, index in with_field(field):
        assert replay(without(scenario, index, field)).differences, scenario["name"]


@pytest.mark.parametrize("field", ["failed", "scores", "total"])
def test_other_fields_that_were_not_recorded_are_not_compared(field: str) -> None:
    for scenario, index in with_field(field):
        assert replay(without(scenario, index, field)).differences == [], scenario["name"]


@pytest.mark.parametrize(
    "field",
    [
        "eligible",
        "potentialNodes",
        "candidates",
        "node",
        "tie",
        "victims",
        "numPDBViolations",
        "clearedNominations",
    ],
)
def test_every_part_of_a_preemption_is_compared(field: str) -> None:
    looked_at = 0
    for scenario in SMALL["preemption"] + read(GOLDEN / "v1.13/preemption.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            value = step.get("preempt", {}).get(field)
            if value in (None, [], {}) and not isinstance(value, int):
                continue
            wrong = copy.deepcopy(scenario)
            wrong["expected"]["steps"][index]["preempt"][field] = other_than(value)
            assert replay(wrong).differences, f"{scenario['name']}: step {index}"
            looked_at += 1
            break
        if looked_at == 3:
            return
    assert looked_at, "no recording has the field"


def other_than(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}!"
        case list():
            return value[1:]
        case dict():
            return {key: value[key] for key in list(value)[1:]}
    raise AssertionError(value)


def test_a_tie_that_was_not_recorded_is_a_difference() -> None:
    for scenario in read(GOLDEN / "v1.13/preemption.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            if "tie" in step.get("preempt", {}):
                wrong = copy.deepcopy(scenario)
                del wrong["expected"]["steps"][index]["preempt"]["tie"]
                assert replay(wrong).differences
                return
    raise AssertionError("no recording has a tie")


def test_a_step_too_many_or_too_few_is_found() -> None:
    for scenarios in SMALL.values():
        scenario = next(s for s in scenarios if s["expected"]["steps"])
        steps = scenario["expected"]["steps"]
        fewer = scenario | {"expected": scenario["expected"] | {"steps": steps[:-1]}}
        more = scenario | {"expected": scenario["expected"] | {"steps": [*steps, steps[-1]]}}

        assert replay(fewer).differences
        assert replay(more).differences


def test_a_configuration_that_should_be_refused_is_found_and_so_is_one_that_should_not() -> None:
    refused = next(
        s for s in read(GOLDEN / "v1.13/policy_variants.jsonl") if "configError" in s["expected"]
    )
    accepted = SMALL["policy_variants"][0]
    wrong = copy.deepcopy(refused)
    del wrong["expected"]["configError"]

    assert replay(wrong).differences
    assert replay(accepted | {"expected": accepted["expected"] | {"configError": "no"}}).differences
    assert replay(changed(refused, ("configError",), "other words")).differences


@pytest.mark.parametrize("what", ["predicates", "priorities"])
def test_the_configured_rules_are_compared(what: str) -> None:
    for scenarios in SMALL.values():
        scenario = next(s for s in scenarios if s["expected"].get(what))
        fewer = scenario["expected"][what][1:]

        assert replay(changed(scenario, (what,), fewer)).differences


def test_a_changed_cluster_is_found() -> None:
    # The other way round: the recording is right and the objects are not.
    scenario = copy.deepcopy(SMALL["resources"][0])
    for item in scenario["objects"]:
        if item["kind"] == "Node":
            item["spec"] = item.get("spec", {}) | {"unschedulable": True}

    assert replay(scenario).differences
