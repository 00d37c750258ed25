"""Every field of every kind of recording is compared, and a field that is not compared is refused.

A field is known by its path with the names of nodes, plugins and claims left out. For each path the
smallest recorded scenario that has it is changed there and replayed.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cases import cases
from parity.recordings import GOLDEN, Place, Scenario, changed, leaves, other, part
from podium.errors import InputError
from podium.past.recordings.replay import replay

FOLDERS = sorted(folder for folder in GOLDEN.iterdir() if folder.is_dir())
#: Fields whose keys are names of nodes, plugins, claims or volumes.
MAPS = {"failed", "scores", "total", "candidates", "claims", "bind", "capacityRequests"}
NAME = "*"


def read(folder: Path) -> Iterator[Scenario]:
    for file in sorted(folder.glob("*.jsonl*")):
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        yield from map(json.loads, text.splitlines())


def structures(value: Any, kind: type, place: Place = ()) -> Iterator[Place]:
    """The place of every mapping, or of every list."""
    if isinstance(value, kind):
        yield place
    if isinstance(value, dict | list):
        for step, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from structures(each, kind, (*place, step))


def mappings(value: Any) -> Iterator[Place]:
    return structures(value, dict)


def lists(value: Any) -> Iterator[Place]:
    """The place of every list that is not empty."""
    return (place for place in structures(value, list) if part(value, place))


def path_of(place: Place) -> tuple[str, ...]:
    """The place without names and numbers."""
    found: list[str] = []
    for step in place:
        if isinstance(step, int):
            found.append("[]")
        elif found[-1:] and (found[-1] in MAPS or found[-2:] == ["scores", NAME]):
            found.append(NAME)
        else:
            found.append(step)
    return tuple(found)


def examples(folder: Path, find: Any) -> dict[tuple[str, ...], tuple[Scenario, Place]]:
    """Path -> the smallest scenario of the folder that has it, and where."""
    found: dict[tuple[str, ...], tuple[Scenario, Place]] = {}
    for scenario in sorted(read(folder), key=lambda each: len(json.dumps(each))):
        for place in find(scenario["expected"]):
            found.setdefault(path_of(place), (scenario, place))
    return found


def is_found(scenario: Scenario) -> bool:
    """Whether a replay tells that something is wrong, by a difference or by refusing."""
    try:
        return bool(replay(scenario).differences)
    except InputError:
        return True


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_changed_value_is_found_in_every_field(folder: Path) -> None:
    missed = []
    for path, (scenario, place) in examples(folder, leaves).items():
        wrong = changed(scenario, place, other(part(scenario["expected"], place)))
        if not is_found(wrong):
            missed.append(".".join(path))

    assert missed == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_field_that_no_replay_makes_is_found_everywhere(folder: Path) -> None:
    missed = []
    for path, (scenario, place) in examples(folder, mappings).items():
        wrong = copy.deepcopy(scenario)
        part(wrong["expected"], place)["cycles"] = [1]
        if not is_found(wrong):
            missed.append(".".join(path))

    assert missed == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_entry_that_is_left_out_is_found_in_every_list(folder: Path) -> None:
    missed = []
    for path, (scenario, place) in examples(folder, lists).items():
        wrong = changed(scenario, place, part(scenario["expected"], place)[1:])
        if not is_found(wrong):
            missed.append(".".join(path))

    assert missed == []


def small(folder: str) -> Scenario:
    return min(read(GOLDEN / folder), key=lambda each: len(json.dumps(each)))


@pytest.mark.parametrize("folder", ["v1.13", "v1.36"])
@cases(
    ("changes", "sentence"),
    {
        "scenario": ({"seed": 1}, "seed is a field that is not compared"),
        "expected": (
            {"expected": {"cycles": [], "steps": []}},
            "expected.cycles is a field that is not compared",
        ),
        "nothing expected": ({"expected": {}}, "expected is empty"),
        "step": (
            {"expected": {"steps": [{"pod": "a/b", "cycle": 1}]}},
            "expected.steps[0].cycle is a field that is not compared",
        ),
        "preempt": (
            {"expected": {"steps": [{"pod": "a/b", "preempt": {"evicted": []}}]}},
            "expected.steps[0].preempt.evicted is a field that is not compared",
        ),
        "an unknown release": ({"release": "v1.99.0"}, "release is 'v1.99.0'"),
        "an unknown kind": (
            {"objects": [{"kind": "Dragon", "metadata": {"name": "d"}}]},
            "objects[0].kind is 'Dragon', which is not read",
        ),
    },
)
def test_what_would_not_be_compared_is_refused_by_name(
    folder: str, changes: Scenario, sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        replay(small(folder) | changes)

    assert sentence in str(caught.value)


def test_a_configuration_of_another_generation_is_refused() -> None:
    with pytest.raises(InputError, match=r"a recording of v1\.36 has no field policy"):
        replay(small("v1.36") | {"release": "v1.36.4", "policy": {}})
