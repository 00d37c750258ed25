"""The recordings of kube-scheduler, and ways to make one of them wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from podium.past.recordings.comparison import Difference

GOLDEN = Path(__file__).parents[1] / "golden"
Scenario = dict[str, Any]
Place = tuple[str | int, ...]
#: Ends a place that means the key itself, not what it leads to.
KEY = "the key"


def files(folder: str) -> list[Path]:
    return sorted((GOLDEN / folder).glob("*.jsonl"))


def read(file: Path) -> list[Scenario]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def smallest(file: Path) -> list[Scenario]:
    """The scenarios of a file, the smallest first: what is compared does not depend on the size."""
    return sorted(read(file), key=lambda each: len(json.dumps(each)))


def shown(difference: Difference) -> str:
    place = f"{difference.scenario}: {difference.where}"
    return f"{place}\n  expected {difference.expected!r}\n  got      {difference.got!r}"


def leaves(
    value: Any, place: Place = (), *, keys: Callable[[Any], bool] = lambda _: False
) -> Iterator[Place]:
    """The place of every number and text, and of each key that leads to something with *keys*."""
    if isinstance(value, dict):
        for key, each in value.items():
            if keys(each):
                yield (*place, key, KEY)
            yield from leaves(each, (*place, key), keys=keys)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from leaves(each, (*place, index), keys=keys)
    elif value is not None:
        yield place


def part(value: Any, place: Place) -> Any:
    """What is at a place; for a key, the key itself."""
    if place[-1:] == (KEY,):
        return place[-2]
    for step in place:
        value = value[step]
    return value


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    # Texts of the CEL compiler may differ at their end.
    return value + 1 if isinstance(value, int) else f"!{value}"


def changed(scenario: Scenario, place: Place, new: Any) -> Scenario:
    """The scenario with something else expected at a place."""
    found = copy.deepcopy(scenario)
    if place[-1] == KEY:
        owner = part(found["expected"], place[:-2])
        owner[new] = owner.pop(place[-2])
    else:
        part(found["expected"], place[:-1])[place[-1]] = new
    return found


def without(scenario: Scenario, index: int, *fields: str) -> Scenario:
    """The scenario without a field of a step, or without a field of a field."""
    found = copy.deepcopy(scenario)
    del part(found["expected"]["steps"][index], fields[:-1])[fields[-1]]
    return found


def examples(
    sampled: dict[str, list[Scenario]], has: Callable[[Scenario], bool]
) -> Iterator[tuple[Scenario, int]]:
    """For each file, the first step that has what is looked for."""
    for scenarios in sampled.values():
        for scenario in scenarios:
            steps = scenario["expected"]["steps"]
            index = next((i for i, step in enumerate(steps) if has(step)), None)
            if index is not None:
                yield scenario, index
                break
