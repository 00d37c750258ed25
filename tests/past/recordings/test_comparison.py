"""Recorded scenarios against what a replay gives: whatever is changed in one of them is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cases import cases
from podium.errors import InputError
from podium.past.recordings.comparison import ScenarioOutcome, compare
from podium.past.recordings.replay import run
from podium.past.recordings.scenarios import Expected, scenario_of

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[2] / "golden" / "v1.13"
FILES = sorted(GOLDEN.glob("*.jsonl"))


def recorded(file: str, index: int = 0) -> Any:
    return json.loads((GOLDEN / f"{file}.jsonl").read_text().splitlines()[index])


def differences(scenario: Any) -> list[tuple[str, Any, Any]]:
    """What a scenario gives, compared with what it says."""
    typed = scenario_of(scenario)
    outcome = run(typed)
    return [(d.where, d.expected, d.got) for d in compare("s", typed.expected, outcome)]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            yield from leaves(each, (*path, key))
    else:
        yield path, value


def changed(value: Any) -> Any:
    """The value with one character, digit or sign of it changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("1" if value[-1:] != "1" else "2")
    return ["n1"] if isinstance(value, list) else "n1"


@contextmanager
def change_at(value: Any, path: tuple[Any, ...]) -> Iterator[None]:
    """Change one place for a while."""
    for key in path[:-1]:
        value = value[key]
    before = value[path[-1]]
    value[path[-1]] = changed(before)
    yield
    value[path[-1]] = before


def unnoticed(scenario: Any) -> list[tuple[Any, ...]]:
    """The places where a change of what is expected would not be found."""
    expected = scenario["expected"]
    outcome = run(scenario_of(scenario))
    steps = expected.pop("steps")
    missed = [path for path in places(expected) if not found_at(path, expected, outcome)]
    for wanted, came in zip(steps, outcome.steps, strict=True):
        alone, only = {"steps": [wanted]}, ScenarioOutcome(steps=[came])
        missed += [path for path in places(alone) if not found_at(path, alone, only)]
    return missed


def places(value: Any) -> list[tuple[Any, ...]]:
    return [path for path, _ in leaves(value)]


def found_at(path: tuple[Any, ...], expected: Any, outcome: ScenarioOutcome) -> bool:
    with change_at(expected, path):
        return any(compare("s", msgspec.convert(expected, Expected), outcome))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_change_of_what_is_expected_goes_unnoticed(file: Path) -> None:
    """Every number, text and truth in some scenarios of each file, changed one at a time."""
    lines = sorted(file.read_text().splitlines(), key=len)

    assert [unnoticed(json.loads(line)) for line in lines[:3]] == [[], [], []]


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_change_anywhere_goes_unnoticed(file: Path) -> None:
    for line in file.read_text().splitlines():
        assert unnoticed(json.loads(line)) == []


def test_a_name_that_is_changed_is_noticed_as_well() -> None:
    scenario = recorded("preemption")
    steps = scenario["expected"]["steps"]
    failed = steps[0]["failed"]
    failed["n99"] = failed.pop("n01")
    steps[1]["preempt"]["candidates"]["n99"] = steps[1]["preempt"]["candidates"].pop("n03")

    found = differences(scenario)

    assert found[0][1:] == ({"n99": ["Insufficient cpu"]}, {"n01": ["Insufficient cpu"]})
    assert set(found[1][1]["candidates"]) == {"n99"}
    assert set(found[1][2]["candidates"]) == {"n03"}


def test_what_was_not_recorded_is_not_compared() -> None:
    scenario = recorded("preemption")
    for step in scenario["expected"]["steps"]:
        for key in ("failed", "feasible", "scores", "total", "attempt"):
            step.pop(key, None)
        step.get("preempt", {}).pop("victims", None)
    del scenario["expected"]["predicates"]

    assert differences(scenario) == []


def test_nothing_but_the_configuration_may_be_recorded() -> None:
    scenario = recorded("preemption")
    del scenario["expected"]["steps"]

    assert differences(scenario) == []


@pytest.mark.parametrize("key", ["host", "message", "preempt", "error"])
def test_absence_is_an_answer(key: str) -> None:
    for file in FILES:
        scenario = json.loads(file.read_text().splitlines()[0])
        steps = scenario["expected"]["steps"]
        if any(key in step for step in steps):
            break
    else:  # errors are rarer
        scenario = next(
            s
            for s in map(json.loads, (GOLDEN / "volumes.jsonl").read_text().splitlines())
            if any(key in step for step in s["expected"]["steps"])
        )
        steps = scenario["expected"]["steps"]
    step = next(step for step in steps if key in step)
    del step[key]

    [(where, expected, _)] = differences(scenario)

    assert where.endswith(f": {key}")
    assert expected is None


def test_scores_without_two_feasible_nodes_would_be_a_difference() -> None:
    scenario = recorded("mixed")
    step = next(step for step in scenario["expected"]["steps"] if "scores" in step)
    for key in ("scores", "total"):
        del step[key]
    step["feasible"] = step["feasible"][:1]

    assert [where.rpartition(": ")[2] for where, _, _ in differences(scenario)] == [
        "feasible",
        "scores",
        "total",
    ]


def test_a_star_may_be_written_out() -> None:
    scenario = recorded("mixed")
    step = next(s for s in scenario["expected"]["steps"] if "scores" in s)
    for name, column in step["scores"].items():
        if "*" in column:
            step["scores"][name] = dict.fromkeys(step["feasible"], column["*"])

    assert differences(scenario) == []


def test_nothing_can_be_written_in_several_ways() -> None:
    scenario = recorded("preemption")
    for step in scenario["expected"]["steps"]:
        for key, empty in (("error", None), ("host", None), ("feasible", []), ("failed", {})):
            step.setdefault(key, empty)

    assert differences(scenario) == []


def test_true_is_not_1() -> None:
    scenario = recorded("preemption")
    scenario["expected"]["steps"][0]["attempt"] = True

    assert [d[1:] for d in differences(scenario)] == [(True, 1)]


def test_missing_and_surplus_steps_are_differences() -> None:
    scenario = recorded("preemption")
    last = scenario["expected"]["steps"].pop()
    found = differences(scenario)
    assert [(expected, got["pod"]) for _, expected, got in found] == [(None, last["pod"])]

    scenario["expected"]["steps"] += [last, last]
    assert [(expected["pod"], got) for _, expected, got in differences(scenario)] == [
        (last["pod"], None)
    ]


def test_a_refused_configuration_is_compared_by_its_recorded_part() -> None:
    scenario = next(
        s
        for s in map(json.loads, (GOLDEN / "policy_variants.jsonl").read_text().splitlines())
        if "NoSuchPredicate" in s["expected"].get("configError", "")
    )
    assert differences(scenario) == []

    del scenario["expected"]["configError"]
    [(where, expected, got)] = differences(scenario)
    assert (where, expected) == ("configError", None)
    assert got == "Invalid configuration: Predicate type not found for NoSuchPredicate"


def plugin_scenario(**more: Any) -> Any:
    """What a recording of the plugin generation looks like."""
    step = {"pod": "default/p", "failed": {"n": {"plugin": "NodeName", "code": "Unschedulable"}}}
    return {"name": "s", "objects": [], "pending": [], "expected": {"steps": [step]}} | more


@cases(
    ("scenario", "generation"),
    {
        "steps without an attempt": (plugin_scenario(), "v1.36"),
        "a configuration": (plugin_scenario(config={}), "v1.36"),
        "a release": (plugin_scenario(release="v1.36.4", expected={"steps": []}), "v1.36"),
        "a provider": (plugin_scenario(provider="DefaultProvider"), "v1.13"),
        "a policy": (plugin_scenario(policy={}), "v1.13"),
        "no steps at all": (plugin_scenario(expected={"steps": []}), "v1.13"),
    },
)
def test_the_generation_is_known_by_what_it_has(scenario: Any, generation: str) -> None:
    assert scenario_of(scenario).generation.name == generation


def test_a_scenario_that_is_none_is_an_input_error() -> None:
    with pytest.raises(InputError, match="is not a recorded scenario"):
        scenario_of({"name": "x"})
