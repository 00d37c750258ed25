"""`make soak` runs all seeds of the simulated world, and says how many faults they held."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from world import test_world

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield import_module("report")
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_every_seed_is_run_once() -> None:
    test = test_world.test_many_seeds
    marks = {mark.name: mark for mark in test.pytestmark}  # type: ignore[attr-defined]
    seeds = [seed for chunk in marks["parametrize"].args[1] for seed in chunk]

    assert "soak" in marks
    assert seeds == list(range(10_000))


def test_the_faults_of_all_tests_are_added_up_by_kind(report: ModuleType) -> None:
    def told(name: str, **faults: int) -> dict[str, object]:
        figures = [(f"fault {kind.replace('_', ' ')}", count) for kind, count in faults.items()]
        return {
            "test": name,
            "outcome": "passed",
            "seconds": 60.0,
            "figures": [("seeds", 500), *figures],
        }

    text = report.full_sizes(
        [
            told("many seeds[0-499]", bind_403=2, bind_lost=1, compaction=4),
            told("many seeds[500-999]", bind_403=3, watch_cut=1000, server_down=7),
        ],
        "2026-11-16",
    )

    assert "| many seeds[0-499] | passed | 1.0 | seeds: 500, faults: 7 |" in text
    assert "These seeds held 1,013 faults:" in text
    assert "| bind | 6 | 403 5, lost 1 |" in text
    assert "| watch | 1000 | cut 1000 |" in text
    assert "| (any) | 7 |" in text
    assert "Besides: compaction 4." in text


def test_other_tests_have_no_such_table(report: ModuleType) -> None:
    other = {"test": "long", "outcome": "passed", "seconds": 6.0, "figures": [("pods", 5)]}

    text = report.full_sizes([other], "2026-11-16")

    assert "| long | passed | 0.1 | pods: 5 |" in text
    assert "faults" not in text
