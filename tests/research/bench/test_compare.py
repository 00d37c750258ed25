"""`benchmarks/compare.py` measures two trees in turns and names what became slower."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "benchmarks" / "compare.py"


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    spec = spec_from_file_location("compare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["compare"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("before", "after", "slow"),
    [
        pytest.param([0.10, 0.20], [0.30, 0.10], False, id="the least of each side counts"),
        pytest.param([0.10], [0.12], True, id="a fifth slower"),
        pytest.param([0.10], [0.104], False, id="within the limit"),
        pytest.param([0.10], [0.05], False, id="twice as fast"),
        pytest.param([], [0.10], False, id="a workload that the older commit lacks"),
    ],
)
def test_what_is_slower(
    compare: ModuleType, before: list[float], after: list[float], slow: bool
) -> None:
    each = compare.Comparison("SchedulingBasic/5000Nodes", "v1.36", before, after)

    assert compare.slower([each], 0.95) == ([each] if slow else [])


def test_the_table_has_a_line_for_each_workload(compare: ModuleType) -> None:
    found = [
        compare.Comparison("Preemption/5000Nodes", "v1.36", [0.2], [0.1], [90, 80], [88]),
        compare.Comparison("Younger/5000Nodes", "v1.36", [], [0.1]),
        compare.Comparison("TopologySpreading/5000Nodes", "v1.13"),
    ]

    assert list(compare.table(found))[2:] == [
        "| Preemption/5000Nodes | v1.36 | 0.2000 | 0.1000 | 2.00 | 1.10 |",
        "| Younger/5000Nodes | v1.36 | - | 0.1000 | - | - |",
    ]


@pytest.mark.parametrize(
    ("before", "after", "large"),
    [
        pytest.param([100], [106], True, id="six percent more"),
        pytest.param([100], [104], False, id="within the limit"),
        pytest.param([], [100], False, id="a workload that the older commit lacks"),
    ],
)
def test_what_needs_more_memory(
    compare: ModuleType, before: list[float], after: list[float], large: bool
) -> None:
    each = compare.Comparison("mix", "v1.36", [], [], before, after)

    assert compare.larger([each], 1.05) == ([each] if large else [])


def test_the_default_is_what_make_bench_measures(compare: ModuleType) -> None:
    script = (ROOT / "benchmarks" / "bench_workloads.py").read_text("utf-8")

    assert all(f'"{pattern}"' in script for pattern in compare.WORKLOADS)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a commit is needed to compare with")
def test_a_small_workload_and_the_mix_are_compared_with_a_commit() -> None:
    command = [sys.executable, str(SCRIPT), "HEAD"]
    sizes = ["--nodes", "5", "--existing", "2", "--pods", "2", "--repeat", "1"]
    workloads = ["--workloads", "SchedulingBasic/500Nodes", "mix"]

    done = subprocess.run(
        [*command, *workloads, *sizes, "--profiles", "v1.36", "--limit=0", "--memory-limit=9"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "| SchedulingBasic/500Nodes | v1.36 | 0." in done.stdout
    assert "| mix | v1.36 | 0." in done.stdout
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "podium-compare-" not in listed.stdout


@pytest.mark.parametrize(
    ("asked", "known", "found"),
    [
        pytest.param("v1.37", {"v1.13", "v1.36"}, "v1.36", id="an older one in its place"),
        pytest.param("v1.13", {"v1.13", "v1.36"}, "v1.13", id="the one that is asked for"),
        pytest.param("v1.35", {"v1.13", "v1.36"}, "v1.13", id="never a newer one"),
    ],
)
def test_the_newest_release_that_both_trees_know_is_compared(
    compare: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    known: set[str],
    found: str,
) -> None:
    def bench(_tree: Path, *words: str) -> object:
        return {"results": []} if words[-1] in known else None

    monkeypatch.setattr(compare, "bench", bench)

    assert compare.known_to(ROOT, asked) == found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a commit is needed to compare with")
@pytest.mark.parametrize("script", ["compare.py", "goals.py"])
def test_a_commit_that_is_not_there_is_said(script: str) -> None:
    told = subprocess.run(
        [sys.executable, f"benchmarks/{script}", "no-such-commit"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode != 0
    assert told.stderr.startswith("no-such-commit: no such commit here")
    assert told.stderr.count("\n") == 1, told.stderr
