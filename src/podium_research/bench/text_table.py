"""Measurements as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.columns import aligned
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium_research.bench.definitions import BenchWorkload
    from podium_research.bench.measurement import Result

TITLES = (
    "Workload",
    "Nodes",
    "Existing",
    "Pods",
    "Placed",
    "Pods/s",
    "CPU ms/pod",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "Peak MiB",
)


def cells(result: Result) -> tuple[str, ...]:
    """The cells of one row, in the order of `TITLES`."""
    return (
        result.workload,
        str(result.nodes),
        str(result.existing),
        str(result.pods),
        str(result.placed),
        f"{result.pods_per_second:,.0f}",
        three_digits(result.cpu_ms_per_pod),
        *(three_digits(latency) for latency in result.latencies_ms),
        f"{result.peak_bytes / 2**20:,.0f}",
    )


def plan_table(results: Sequence[Result]) -> Iterator[str]:
    """The lines of a table for each workload: what is kept of each rule between its pods."""
    for result in results:
        if result.plan:
            yield ""
            yield printable(f"{result.workload}: what is kept of each rule between decisions")
            rows = [(each.rule, each.stage, each.kept, each.again) for each in result.plan]
            yield from aligned([("RULE", "STAGE", "KEPT", "ASKED AGAIN"), *rows])


def three_digits(number: float) -> str:
    """A number with about three significant digits."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.3f}"


def result_table(results: Sequence[Result]) -> Iterator[str]:
    """The lines of a table of measurements; skipped workloads follow with their reasons."""
    measured = [cells(result) for result in results if not result.skipped]
    if measured:
        yield from aligned([tuple(map(str.upper, TITLES)), *measured], range(1, len(TITLES)))
    for result in results:
        if result.skipped:
            yield printable(f"{result.workload}: skipped, {result.skipped}")


def workload_list(known: Sequence[BenchWorkload]) -> Iterator[str]:
    """The lines of a list of workloads: cases with their sizes and descriptions."""
    cases: dict[str, list[BenchWorkload]] = {}
    for workload in known:
        cases.setdefault(workload.case, []).append(workload)
    rows = [("WORKLOAD", "SIZES", "WHAT IT IS ABOUT")]
    for case, sizes in cases.items():
        about = sizes[0].description
        if sizes[0].needs:
            about += f" (needs {', '.join(sizes[0].needs)})"
        rows.append((case, " ".join(size.size for size in sizes), about))
    yield from aligned(rows)
