"""Every recorded decision of kube-scheduler v1.36, replayed: zero differences, nothing filtered.

And the other way round: whatever is changed in a recording, the replay finds it. A recording that
agrees proves something only if one that does not would have been noticed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import InputError
from podium.past.recordings.comparison import Difference
from podium.past.recordings.replay import replay

RECORDINGS = Path(__file__).parents[1] / "golden" / "v1.36"
FILES = sorted(RECORDINGS.glob("*.jsonl"))
#: Scenarios and steps of each file, as the README of the recordings counts them.
COUNTS = {
    "image_locality": (40, 132),
    "interpod_affinity": (40, 123),
    "mixed": (12, 497),
    "node_affinity": (40, 123),
    "ports": (40, 177),
    "preemption": (40, 147),
    "profiles": (40, 191),
    "resource_scores": (40, 176),
    "resources": (40, 118),
    "taints": (40, 145),
    "topology_spread": (40, 113),
    "unschedulable": (40, 159),
    "volumes": (40, 139),
}

Scenario = dict[str, Any]
Place = tuple[str | int, ...]
#: Ends a place that means the key itself, not what it leads to.
KEY = "the key"


def read(file: Path) -> list[Scenario]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def shown(difference: Difference) -> str:
    place = f"{difference.scenario}: {difference.where}"
    return f"{place}\n  expected {difference.expected!r}\n  got      {difference.got!r}"


def test_no_recording_is_missing() -> None:
    assert [file.stem for file in FILES] == sorted(COUNTS)


def test_the_readme_counts_the_same() -> None:
    rows = [line.split("|") for line in (RECORDINGS / "README.md").read_text().splitlines()]
    told = {
        cells[1].strip().removesuffix(".jsonl"): (int(cells[2]), int(cells[3]))
        for cells in rows
        if len(cells) > 3 and cells[1].strip().endswith(".jsonl")
    }

    assert told == COUNTS


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_replaying_a_recording_finds_no_difference(file: Path) -> None:
    replayed = [replay(scenario) for scenario in read(file)]

    differences = [shown(d) for one in replayed for d in one.differences]
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
    assert (len(replayed), sum(one.steps for one in replayed)) == COUNTS[file.stem]


# The comparison can be trusted --------------------------------------------------------------------

#: What is compared does not depend on the size of a scenario: small ones, and all kinds of steps.
SAMPLED = {file.stem: sorted(read(file), key=lambda s: len(json.dumps(s)))[::3] for file in FILES}
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


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """The place of every number and text, and of every key that leads to something."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each not in ([], {}, None):
                yield (*place, key, KEY)
            yield from leaves(each, (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from leaves(each, (*place, index))
    elif value is not None:
        yield place


def part(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def other_than(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}!"


def changed(scenario: Scenario, place: Place) -> Scenario:
    """The scenario with something else expected at a place among the steps."""
    found = copy.deepcopy(scenario)
    steps = found["expected"]["steps"]
    if place[-1] == KEY:
        owner, key = part(steps, place[:-2]), place[-2]
        owner[other_than(key)] = owner.pop(key)
    else:
        owner, key = part(steps, place[:-1]), place[-1]
        owner[key] = other_than(owner[key])
    return found


#: File, number of the scenario and place of all that could be wrong in it.
PLACES = [
    (name, number, place)
    for name, scenarios in SAMPLED.items()
    for number, scenario in enumerate(scenarios)
    for place in leaves(scenario["expected"]["steps"])
]


@given(chosen=st.sampled_from(PLACES))
@settings(max_examples=120)
def test_one_number_or_text_changed_anywhere_is_found(chosen: tuple[str, int, Place]) -> None:
    name, number, place = chosen
    scenario = SAMPLED[name][number]

    assert is_found(changed(scenario, place)), f"{scenario['name']}: {place}"


def is_found(scenario: Scenario) -> bool:
    """Whether a changed recording differs, or is refused for a field that nothing compares."""
    try:
        return bool(replay(scenario).differences)
    except InputError as error:
        return "is a field that is not compared" in str(error)


def examples(field: str) -> Iterator[tuple[Scenario, int]]:
    """For each file, the first step that has the field and something in it."""
    for scenarios in SAMPLED.values():
        steps = (
            (scenario, index)
            for scenario in scenarios
            for index, step in enumerate(scenario["expected"]["steps"])
            if step.get(field)
        )
        yield from (found for found in [next(steps, None)] if found is not None)


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
    found = list(examples(field))
    assert found, "no recording has the field"

    for scenario, index in found:
        step = scenario["expected"]["steps"][index]
        for place in leaves(step[field]):
            if place[-1:] == (KEY,):
                continue  # a field of another name is refused
            wrong = changed(scenario, (index, field, *place))

            [difference, *_] = replay(wrong).differences

            assert difference.scenario == scenario["name"]
            assert field in {difference.field, "pod"}
            break


@pytest.mark.parametrize(
    "field",
    ["best", "message", "nominated", "placed", "preempt", "preenqueue", "prefilter", "retry"],
)
def test_an_answer_that_was_not_recorded_is_a_difference(field: str) -> None:
    for scenario, index in examples(field):
        wrong = copy.deepcopy(scenario)
        del wrong["expected"]["steps"][index][field]

        assert field in {d.field for d in replay(wrong).differences}, scenario["name"]


@pytest.mark.parametrize("field", ["ties", "clearedNominations"])
def test_what_preemption_did_not_tell_is_a_difference(field: str) -> None:
    looked_at = 0
    for scenario in read(RECORDINGS / "preemption.jsonl"):
        for index, step in enumerate(scenario["expected"]["steps"]):
            if field in step.get("preempt", {}):
                wrong = copy.deepcopy(scenario)
                del wrong["expected"]["steps"][index]["preempt"][field]
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
