"""Workloads that were slow, before and after, beside their goals; and what became slower.

python benchmarks/goals.py REV
PODIUM_SCHEDULER_PERF=…/test/integration/scheduler_perf python benchmarks/goals.py REV --growth

REV is an older commit, measured in turns with this tree as in `compare.py`; each figure is the
least CPU time of all rounds. Goals are in decisions a second on a machine where
SchedulingBasic/5000Nodes of REV does 16,000: they are scaled by what it does here. Upstream's own
workloads need the folder of its performance-config files. `--growth` adds 50,000 nodes: of each
template in the same proportion, and for preemption as full as before. `--limit` also compares all
workloads of `make bench` with the limit of 0.95; `--large` also measures the first decision in a
very large cluster. Memory is the peak of the process. What was measured becomes the section "Goals"
of RESULTS.md. `--api-server` measures `podium run` on a real API server instead, and writes a
section of its own. `--quick` takes small numbers everywhere, to see that all of it works, and
writes nothing.
"""

from __future__ import annotations

import argparse
import compileall
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import compare
import report
import run

#: What SchedulingBasic does on the machine that the goals are meant for.
BASIC = 16_000
PERF = "PODIUM_SCHEDULER_PERF"
RESULTS = Path(__file__).with_name("RESULTS.md")
#: The sizes of `--quick`, for `podium bench`; upstream's workloads take the number of pods only.
SMALL = ("--nodes", "50", "--existing", "20", "--pods", "20")


@dataclass
class Line:
    """One workload with its goal, and what was measured of it in both trees."""

    workload: str
    goal: float
    #: The performance-config file that has it, in upstream's folder; empty for a built-in one.
    file: str = ""
    #: Measure so many pods, to keep it short.
    pods: int | None = None
    #: Whether the goal is a multiple of the figure before.
    times: bool = False
    #: How many pods per node are placed before, where a larger cluster must be as full.
    filled: int | None = None
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    grown: float | None = None
    memory: dict[str, float] = field(default_factory=dict)


LINES = (
    Line("SchedulingBasic/5000Nodes", 1.5, times=True),
    Line("SchedulingPreferredPodAffinity/5000Nodes", 1.5, times=True),
    Line("SchedulingSpread/5000Nodes", 1.5, times=True),
    Line("SchedulingDaemonset/15000Nodes", 10_000, "misc", 3_000),
    Line("SchedulingMigratedInTreePVs/5000Nodes_5000Pods", 5_000, "volumes", 2_000),
    Line("SchedulingCSIPVs/5000Nodes_5000Pods", 5_000, "volumes", 2_000),
    Line("SchedulingInTreePVs/5000Nodes_2000Pods", 5_000, "volumes"),
    Line("SchedulingWithNodeInclusionPolicy/5000Nodes", 8_000, "topology_spreading"),
    Line("SchedulingOwnClass/5000Nodes", 5_000),
    Line("SchedulingOwnAntiAffinity/5000Nodes", 4_000),
    Line("Preemption/5000Nodes", 1_000, pods=200, filled=4),
)


def arguments_of(
    line: Line,
    generation: str,
    folder: Path | None,
    nodes: int | None = None,
    *,
    quick: bool = False,
) -> list[str] | None:
    """The arguments of `podium bench` for a line; None if upstream's folder is needed."""
    if line.file and folder is None:
        return None
    given = [line.workload, "--profile", generation]
    if line.file:
        assert folder is not None
        given += ["-f", str(folder / line.file / "performance-config.yaml")]
    if quick:
        return [*given, *(SMALL[-2:] if line.file else SMALL)]
    if line.pods is not None:
        given += ["--pods", str(line.pods)]
    if nodes is None:
        return given
    if line.filled is not None:
        given += ["--existing", str(nodes * line.filled)]
    return [*given, "--nodes", str(nodes)]


def measure_lines(
    trees: Sequence[tuple[Path, str]],
    lines: Sequence[Line],
    generation: str,
    folder: Path | None,
    repeat: int,
    *,
    quick: bool,
) -> None:
    """Run every line in both trees, in turns."""
    for number in range(repeat):
        for line in lines:
            given = arguments_of(line, generation, folder, quick=quick)
            if given is None:
                continue
            print(f"round {number + 1}: {line.workload} …", file=sys.stderr, flush=True)
            for tree, side in trees if number % 2 == 0 else tuple(reversed(trees)):
                found = compare.figures(tree, *given)
                if found is not None:
                    (line.before if side == "before" else line.after).append(found[0])
                    line.memory[side] = max(line.memory.get(side, 0.0), found[1])


def measure_mix(
    trees: Sequence[tuple[Path, str]], generation: str, repeat: int, *, quick: bool, growth: bool
) -> Iterator[Line]:
    """The realistic mix in both trees, without the extra that older ones have."""
    small = ("--quick",) if quick else ()
    [(older, _), (this, _)] = trees
    mix = Line("realistic mix (bench_mix.py)", 5_000)
    for _ in range(repeat):
        print(f"{mix.workload} …", file=sys.stderr, flush=True)
        before, after = [compare.mix_figures(tree, generation, *small) for tree in (older, this)]
        if before is not None and after is not None:
            mix.before.append(before[0])
            mix.after.append(after[0])
            mix.memory = {"before": before[1], "after": after[1]}
    if growth:
        print(f"{mix.workload}, 50,000 nodes …", file=sys.stderr, flush=True)
        found = compare.mix_figures(this, generation, *(small or ("--nodes", "50000")))
        mix.grown = found[0] if found else None
    yield mix


def rows(lines: Sequence[Line], scale: float) -> Iterator[str]:
    """The table, a line for each workload."""
    yield (
        "| workload | before, decisions/s | after | after : before | goal | met "
        "| CPU time of 50,000 nodes : this | memory, after : before |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines:
        if not line.after:
            yield f"| {line.workload} | - | - | - | {line.goal:,.0f} | not measured | - | - |"
            continue
        after = 1000 / min(line.after)
        before = 1000 / min(line.before) if line.before else None
        ratio = f"{after / before:.2f}" if before else "-"
        if line.times:
            goal, met = f"{line.goal:g} times", before is not None and after >= line.goal * before
        else:
            wanted = line.goal * scale
            goal, met = f"{wanted:,.0f} ({line.goal:,.0f} scaled)", after >= wanted
        grown = "-" if line.grown is None else f"{line.grown / min(line.after):.1f}"
        pair = line.memory
        memory = f"{pair['after'] / pair['before']:.2f}" if len(pair) == 2 else "-"
        shown = f"{before:,.0f}" if before else "-"
        yield (
            f"| {line.workload} | {shown} | {after:,.0f} | {ratio} | {goal} | "
            f"{'yes' if met else 'no'} | {grown} | {memory} |"
        )


def first_decision(trees: Sequence[tuple[Path, str]], *, quick: bool) -> Iterator[str]:
    """The first decision in a very large cluster."""
    yield "The first decision after 100,000 nodes and 1,000,000 pods were loaded (goal: 30 CPU-ms):"
    for tree, side in trees:
        print(f"100,000 nodes, {side} …", file=sys.stderr, flush=True)
        small = ("--quick",) if quick else ()
        found = compare.printed(tree, str(tree / "benchmarks" / "bench_memory.py"), *small)
        shown = found.get("firstCpuMs", found) if found else "not measured"
        yield f"{side}: {shown}"


@dataclass
class RunLine:
    """A goal of `podium run`, which is the less the better, and what was measured in both trees."""

    name: str
    goal: float
    script: str
    #: The name of the figure in what the script prints.
    figure: str
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


RUN_LINES = (
    RunLine("CPU-ms per pod, start included", 0.55, "bench_cluster.py", "CPU ms/pod"),
    RunLine("start, s", 3.0, "bench_large_cluster.py", "start (s)"),
    RunLine("500 reports/s, % of a core", 5.0, "bench_large_cluster.py", "% of a core"),
)


def run_figures(tree: Path, name: str, *, quick: bool) -> dict[str, float]:
    """What a script measures of `podium run` of a tree; the script is always that of this tree."""
    more = ["--workload", "basic"] if name == "bench_cluster.py" else []
    found = compare.printed(
        tree, str(Path(__file__).with_name(name)), *more, *(["--quick"] if quick else [])
    )
    figures = found["podium"]["basic"] if found and more else found
    return figures or {}


def measure_run(
    trees: Sequence[tuple[Path, str]], repeat: int, scale: float, *, quick: bool
) -> Iterator[str]:
    """The table of `podium run` on a real API server, measured in both trees in turns."""
    lines = RUN_LINES
    for number in range(repeat):
        for name in sorted({line.script for line in lines}):
            for tree, side in trees if number % 2 == 0 else tuple(reversed(trees)):
                print(f"round {number + 1}: {name}, {side} …", file=sys.stderr, flush=True)
                compileall.compile_dir(tree / "src", quiet=1)
                found = run_figures(tree, name, quick=quick)
                for line in lines:
                    if line.script == name and line.figure in found:
                        (line.before if side == "before" else line.after).append(found[line.figure])
    yield "| `podium run` on a real API server | before | after | after : before | goal | met |"
    yield "|---|---|---|---|---|---|"
    for line in lines:
        if not line.before or not line.after:
            yield f"| {line.name} | - | - | - | {line.goal:g} | not measured |"
            continue
        before, after, wanted = min(line.before), min(line.after), line.goal / scale
        yield (
            f"| {line.name} | {before:.3g} | {after:.3g} | {after / before:.2f} "
            f"| {wanted:.3g} ({line.goal:g} scaled) | {'yes' if after <= wanted else 'no'} |"
        )


def main() -> int:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", metavar="REV", help="the older commit")
    parser.add_argument("--repeat", type=int, default=2, metavar="N", help="rounds")
    parser.add_argument("--growth", action="store_true", help="also with 50,000 nodes")
    parser.add_argument("--limit", action="store_true", help="also all workloads of make bench")
    parser.add_argument("--large", action="store_true", help="also 100,000 nodes, 1,000,000 pods")
    parser.add_argument("--api-server", action="store_true", help="podium run instead")
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    given = parser.parse_args()
    quick = given.quick
    folder = Path(os.environ[PERF]) if os.environ.get(PERF) else None
    # The first line is the measure of the machine.
    lines = list(LINES[:1] if given.api_server else LINES)
    failed = 0
    where = run.machine()
    told: list[str] = []
    with compare.checked_out(given.revision) as older:
        compare.check_source(older)
        trees = ((older, "before"), (compare.ROOT, "after"))
        generation = compare.known_to(older, compare.GENERATIONS[0])
        measure_lines(trees, lines, generation, folder, given.repeat, quick=quick)
        scale = 1000 / min(lines[0].before) / BASIC if lines[0].before else 1.0
        if given.api_server:
            told += measure_run(trees, given.repeat, scale, quick=quick)
            write(told, report.run_goals, given.revision, where, quick=quick)
            return 0
        if given.growth:
            for line in lines:
                words = arguments_of(line, generation, folder, 50_000, quick=quick)
                found = compare.figures(compare.ROOT, *words) if words is not None else None
                line.grown = found[0] if found else None
        lines += measure_mix(trees, generation, given.repeat, quick=quick, growth=given.growth)
        told += rows(lines, scale)
        if given.large:
            told += ["", *first_decision(trees, quick=quick)]
        if given.limit:
            compared = [
                compare.Comparison(name, each)
                for name in compare.names(compare.WORKLOADS)
                for each in (generation, compare.GENERATIONS[-1])
            ]
            compare.measure(older, compared, SMALL if quick else (), given.repeat)
            told += ["", *compare.table(compared)]
            late = compare.slower(compared, compare.LIMIT)
            for each in late:
                told.append(f"\nslower than {compare.LIMIT:g}: {each.name} ({each.generation})")
            failed = int(bool(late))
    write(told, report.goals, given.revision, where, quick=quick)
    return failed


def write(
    lines: list[str],
    section: Callable[[list[str], str, dict[str, str]], str],
    revision: str,
    where: dict[str, str],
    *,
    quick: bool,
) -> None:
    """Print the tables and, unless they are of small numbers, write them to RESULTS.md."""
    print("\n".join(lines))
    if not quick:
        document = RESULTS.read_text("utf-8")
        text = section(lines, revision, where)
        RESULTS.write_text(report.with_section(document, text, before=report.FULL_SIZES), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
