"""Measure an older commit and this tree alternately, and say where this tree is worse.

python benchmarks/compare.py REV                     workloads of `make bench`, and the mix
python benchmarks/compare.py REV --workloads 'Preemption/*' mix --repeat 5

REV is checked out into a temporary worktree. Each measurement is one workload in a fresh process of
`python -m podium bench`, so that the two trees need not have the same modules; `mix` is that of
`bench_mix.py`. Before and after take turns, because what disturbs a machine comes and goes. A
release that REV does not know is replaced by the newest older one that it knows.

Figures are CPU-ms per pod and the peak of memory in MiB, the least of all rounds. The ratio of
speed is before : after: above 1 this tree is faster. The ratio of memory is after : before: above 1
this tree needs more. The exit code is 1 if a workload is below the limit of speed, or above that of
memory.
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
#: The workload of `bench_mix.py`.
MIX = "mix"
GENERATIONS = ("v1.37", "v1.13")
#: A workload that takes no time.
SMALLEST = ("SchedulingBasic/500Nodes", "--nodes", "1", "--existing", "0", "--pods", "1")
#: The least ratio that is not called slower.
LIMIT = 0.95
#: The highest ratio that is not called larger.
MEMORY_LIMIT = 1.05


@dataclass
class Comparison:
    """One workload of one generation, and its figures in both trees."""

    name: str
    generation: str
    #: CPU-ms per pod.
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    #: Peaks of memory in MiB.
    memory_before: list[float] = field(default_factory=list)
    memory_after: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """How many times faster this tree is; None if one of the trees lacks the workload."""
        return min(self.before) / min(self.after) if self.before and self.after else None

    @property
    def memory_ratio(self) -> float | None:
        """How many times more memory this tree needs; None as for `ratio`."""
        before, after = self.memory_before, self.memory_after
        return min(after) / min(before) if before and after else None


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
    return printed(tree, "-m", "podium", "bench", *arguments, "-o", "json")


def mix(tree: Path, generation: str, *sizes: str) -> Any:
    """What `bench_mix.py` prints of a tree as JSON; None if it fails there."""
    script = str(Path(__file__).with_name("bench_mix.py"))
    return printed(tree, script, "--tree", str(tree), "--profiles", generation, "--alone", *sizes)


def printed(tree: Path, *command: str) -> Any:
    """What a command of Python prints as JSON; None if it fails."""
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    # 1 says that some pods were not placed, which is what some workloads are about.
    return json.loads(done.stdout) if done.returncode in {0, 1} and done.stdout else None


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
    """The workloads of this tree that match some pattern, as case/size; the mix comes last."""
    found = [MIX] if MIX in patterns else []
    others = [each for each in patterns if each != MIX]
    listed = bench(ROOT, *others, "--list") if others else []
    if others and not listed:
        sys.exit(f"compare.py: no workload matches {' '.join(others)}; see podium bench --list")
    return [f"{each['case']}/{each['size']}" for each in listed] + found


def known_to(tree: Path, generation: str) -> str:
    """The newest release that a tree knows, and this tree too, up to the one that is named.

    Ends the program if there is none.
    """
    sys.path.insert(0, str(ROOT / "src"))
    from podium.releases import RELEASES, minor_of  # noqa: PLC0415  the path comes first

    wanted = minor_of(generation)
    for each in reversed(RELEASES):
        minor = minor_of(each.name)
        if wanted and minor and minor <= wanted and bench(tree, *SMALLEST, "--profile", each.name):
            if each.name != generation:
                told = f"{generation} is not known there: {each.name} is compared"
                print(told, file=sys.stderr)
            return each.name
    sys.exit(f"compare.py: no release up to {generation} is known to both trees")


def figures(tree: Path, *arguments: str) -> tuple[float, float] | None:
    """CPU-ms per pod and the peak of memory in MiB of one run of `podium bench`.

    None if the tree or the generation lacks the workload.
    """
    found = bench(tree, *arguments)
    measured = [each for each in (found or {"results": []})["results"] if each.get("pods")]
    if not measured:
        return None
    pods = sum(each["pods"] for each in measured)
    cost = sum(each["cpuMsPerPod"] * each["pods"] for each in measured) / pods
    return cost, max(each["peakMemoryMiB"] for each in measured)


def mix_figures(tree: Path, generation: str, *sizes: str) -> tuple[float, float] | None:
    """CPU-ms per decision of the realistic mix, and the peak of memory in MiB."""
    found = mix(tree, generation, *sizes)
    return (found[0]["cpuMs"], found[0]["peakMemoryMiB"]) if found else None


def measure(
    before: Path, compared: Sequence[Comparison], sizes: Sequence[str], repeat: int
) -> None:
    """Run every workload in both trees, in turns; the tree that goes first changes every round."""
    for number in range(repeat):
        print(f"round {number + 1} of {repeat} …", file=sys.stderr, flush=True)
        for each in compared:
            turns = [
                (before, each.before, each.memory_before),
                (ROOT, each.after, each.memory_after),
            ]
            for tree, costs, peaks in turns if number % 2 == 0 else reversed(turns):
                if each.name == MIX:
                    found = mix_figures(tree, each.generation, *sizes)
                else:
                    found = figures(tree, each.name, "--profile", each.generation, *sizes)
                if found is not None:
                    costs.append(found[0])
                    peaks.append(found[1])


def table(compared: Sequence[Comparison]) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "| workload | profile | before, CPU-ms/pod | after, CPU-ms/pod | before : after "
        "| memory, after : before |"
    )
    yield "|---|---|---|---|---|---|"
    for each in compared:
        if not each.before and not each.after:
            continue  # the generation has no rule for it
        cells = [f"{min(figures):.4f}" if figures else "-" for figures in (each.before, each.after)]
        cells += ["-" if r is None else f"{r:.2f}" for r in (each.ratio, each.memory_ratio)]
        yield f"| {each.name} | {each.generation} | {' | '.join(cells)} |"


def slower(compared: Sequence[Comparison], limit: float) -> list[Comparison]:
    """Those whose ratio is below the limit."""
    return [each for each in compared if each.ratio is not None and each.ratio < limit]


def larger(compared: Sequence[Comparison], limit: float) -> list[Comparison]:
    """Those that need more memory than the limit allows."""
    found = [(each, each.memory_ratio) for each in compared]
    return [each for each, ratio in found if ratio is not None and ratio > limit]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", metavar="REV", help="the older commit")
    parser.add_argument(
        "--workloads",
        nargs="+",
        default=(*WORKLOADS, MIX),
        metavar="NAME",
        help="names or patterns of podium bench, or mix",
    )
    parser.add_argument(
        "--profiles", nargs="+", default=GENERATIONS, metavar="NAME", help="v1.37, v1.13 or both"
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="R", help="the least ratio allowed"
    )
    parser.add_argument(
        "--memory-limit",
        type=float,
        default=MEMORY_LIMIT,
        metavar="R",
        help="the highest ratio of memory allowed",
    )
    for size in ("nodes", "existing", "pods"):
        parser.add_argument(f"--{size}", type=int, metavar="N", help="as for podium bench")
    return parser.parse_args(given)


def main() -> int:
    """Measure, print the table, and name what is slower."""
    chosen = arguments()
    wanted = {size: getattr(chosen, size) for size in ("nodes", "existing", "pods")}
    sizes = [word for name, n in wanted.items() if n is not None for word in (f"--{name}", str(n))]
    found = names(chosen.workloads)
    with checked_out(chosen.revision) as before:
        check_source(before)
        check_source(ROOT)
        generations = dict.fromkeys(known_to(before, each) for each in chosen.profiles)
        compared = [Comparison(name, each) for name in found for each in generations]
        measure(before, compared, sizes, chosen.repeat)
    print("\n".join(table(compared)))
    late = slower(compared, chosen.limit)
    for each in late:
        print(f"slower than {chosen.limit:g}: {each.name} ({each.generation}), {each.ratio:.2f}")
    large = larger(compared, chosen.memory_limit)
    for each in large:
        told = f"{each.name} ({each.generation}), {each.memory_ratio:.2f}"
        print(f"more memory than {chosen.memory_limit:g}: {told}")
    if not any(each.ratio is not None for each in compared):
        print("nothing was measured in both trees")
        return 1
    return int(bool(late or large))


if __name__ == "__main__":
    sys.exit(main())
