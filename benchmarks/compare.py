"""Measure an older commit and this tree alternately, and say where this tree is slower.

python benchmarks/compare.py REV                                   workloads of `make bench`
python benchmarks/compare.py REV --workloads 'Preemption/*' --repeat 5

REV is checked out into a temporary worktree. Each measurement is one workload in a fresh process of
`python -m podium bench`, so that the two trees need not have the same modules; before and after
take turns, because what disturbs a machine comes and goes. The figure is CPU-ms per pod, the least
of all rounds. The ratio is before : after: above 1 this tree is faster. Below the limit for one
workload, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Those of `bench_workloads.py`.
WORKLOADS = ("*/5000Nodes",)
GENERATIONS = ("v1.37", "v1.13")
#: The least ratio that is not called slower.
LIMIT = 0.95


@dataclass
class Comparison:
    """One workload of one generation, and its figures in both trees."""

    name: str
    generation: str
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """How many times faster this tree is; None if one of the trees lacks the workload."""
        return min(self.before) / min(self.after) if self.before and self.after else None


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A folder with the older commit, removed afterwards; ends the program if there is none."""
    if not _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        sys.exit(f"{revision}: no such commit here; git log shows those that there are")
    with tempfile.TemporaryDirectory(prefix="podium-compare-") as folder:
        tree = Path(folder, "before")
        if not _git("worktree", "add", "--quiet", "--detach", str(tree), revision):
            sys.exit(f"{revision}: cannot be checked out")  # git has said why
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> bool:
    """Whether git did what was asked for; what it prints is left out."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0  # noqa: S603


def bench(tree: Path, *arguments: str) -> Any:
    """What `podium bench` of a tree prints as JSON; None if it refuses the arguments."""
    done = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-m", "podium", "bench", *arguments, "-o", "json"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    # 1 says that some pods were not placed, which is what some workloads are about.
    return json.loads(done.stdout) if done.returncode in {0, 1} else None


def check_source(tree: Path) -> None:
    """Refuse to measure a tree whose processes would import another one."""
    found = subprocess.run(
        [sys.executable, "-c", "import podium; print(podium.__file__)"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not Path(found).is_relative_to(tree):
        sys.exit(f"compare.py: {tree} would measure {found}; take it off the path")


def names(patterns: Sequence[str]) -> list[str]:
    """The workloads of this tree that match some pattern, as case/size."""
    listed = bench(ROOT, *patterns, "--list")
    if not listed:
        sys.exit(f"compare.py: no workload matches {' '.join(patterns)}; see podium bench --list")
    return [f"{each['case']}/{each['size']}" for each in listed]


def figure(tree: Path, comparison: Comparison, sizes: Sequence[str]) -> float | None:
    """CPU-ms per pod of one run; None if the tree or the generation lacks the workload."""
    found = bench(tree, comparison.name, "--profile", comparison.generation, *sizes)
    measured = [each for each in (found or {"results": []})["results"] if each.get("pods")]
    pods = sum(each["pods"] for each in measured)
    return sum(each["cpuMsPerPod"] * each["pods"] for each in measured) / pods if pods else None


def measure(
    before: Path, compared: Sequence[Comparison], sizes: Sequence[str], repeat: int
) -> None:
    """Run every workload in both trees, in turns; the tree that goes first changes every round."""
    for number in range(repeat):
        print(f"round {number + 1} of {repeat} …", file=sys.stderr, flush=True)
        for each in compared:
            turns = [(before, each.before), (ROOT, each.after)]
            for tree, figures in turns if number % 2 == 0 else reversed(turns):
                if (found := figure(tree, each, sizes)) is not None:
                    figures.append(found)


def table(compared: Sequence[Comparison]) -> Iterator[str]:
    """The lines of the report."""
    yield "| workload | profile | before, CPU-ms/pod | after, CPU-ms/pod | before : after |"
    yield "|---|---|---|---|---|"
    for each in compared:
        if not each.before and not each.after:
            continue  # the generation has no rule for it
        cells = [f"{min(figures):.4f}" if figures else "-" for figures in (each.before, each.after)]
        ratio = "-" if each.ratio is None else f"{each.ratio:.2f}"
        yield f"| {each.name} | {each.generation} | {' | '.join(cells)} | {ratio} |"


def slower(compared: Sequence[Comparison], limit: float) -> list[Comparison]:
    """Those whose ratio is below the limit."""
    return [each for each in compared if each.ratio is not None and each.ratio < limit]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", metavar="REV", help="the older commit")
    parser.add_argument(
        "--workloads", nargs="+", default=WORKLOADS, metavar="NAME", help="names or patterns"
    )
    parser.add_argument(
        "--profiles", nargs="+", default=GENERATIONS, metavar="NAME", help="v1.37, v1.13 or both"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="R", help="the least ratio allowed"
    )
    for size in ("nodes", "existing", "pods"):
        parser.add_argument(f"--{size}", type=int, metavar="N", help="as for podium bench")
    return parser.parse_args(given)


def main() -> int:
    """Measure, print the table, and name what is slower."""
    chosen = arguments()
    wanted = {size: getattr(chosen, size) for size in ("nodes", "existing", "pods")}
    sizes = [word for name, n in wanted.items() if n is not None for word in (f"--{name}", str(n))]
    compared = [
        Comparison(name, generation)
        for name in names(chosen.workloads)
        for generation in chosen.profiles
    ]
    with checked_out(chosen.revision) as before:
        check_source(before)
        check_source(ROOT)
        measure(before, compared, sizes, chosen.repeat)
    print("\n".join(table(compared)))
    late = slower(compared, chosen.limit)
    for each in late:
        print(f"slower than {chosen.limit:g}: {each.name} ({each.generation}), {each.ratio:.2f}")
    if not any(each.ratio is not None for each in compared):
        print("nothing was measured in both trees")
        return 1
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
