"""`make soak` runs all seeds of the simulated world, and says how many faults they held."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from world import test_world

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


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

    assert "| many seeds[0-499] | passed | 1.0 | 2026-11-16 | seeds: 500, faults: 7 |" in text
    assert "These seeds held 1,013 faults:" in text
    assert "| bind | 6 | 403 5, lost 1 |" in text
    assert "| watch | 1000 | cut 1000 |" in text
    assert "| (any) | 7 |" in text
    assert "Besides: compaction 4." in text


def test_other_tests_have_no_such_table(report: ModuleType) -> None:
    other = {"test": "long", "outcome": "passed", "seconds": 6.0, "figures": [("pods", 5)]}

    text = report.full_sizes([other], "2026-11-16")

    assert "| long | passed | 0.1 | 2026-11-16 | pods: 5 |" in text
    assert "faults" not in text


def test_lines_of_tests_that_were_not_run_stay(report: ModuleType) -> None:
    def told(name: str, *figures: tuple[str, int]) -> dict[str, object]:
        return {"test": name, "outcome": "passed", "seconds": 60.0, "figures": figures}

    seeds = told("many seeds[0-499]", ("fault bind 403", 2))
    first = report.full_sizes([told("long", ("pods", 5)), seeds], "2026-11-15")
    document = report.with_section("# Results\n\n## Speed\n\nfast\n", first)
    again = report.full_sizes([told("long", ("pods", 6))], "2026-11-16", document)
    document = report.with_section(document, again)

    assert "| long | passed | 1.0 | 2026-11-16 | pods: 6 |" in document
    assert "pods: 5" not in document
    assert "| many seeds[0-499] | passed | 1.0 | 2026-11-15 | faults: 2 |" in document
    assert document.count("| bind | 2 | 403 2 |") == 1
    assert document.count(report.FULL_SIZES) == 1


def test_goals_and_full_sizes_are_kept_by_other_benchmarks(report: ModuleType) -> None:
    where = {"date": "2026-11-16", "load when started": "0.0"}
    document = "# Results\n\n## Speed\n\nfast\n"
    document = report.with_section(document, report.full_sizes([], "2026-11-16"))
    goals = report.goals(["| basic | 1.5 times |"], "abc", where)
    document = report.with_section(document, goals, before=report.FULL_SIZES)

    kept = report.written_elsewhere(document)

    assert "fast" not in kept
    assert kept.index("| basic | 1.5 times |") < kept.index(report.FULL_SIZES)
