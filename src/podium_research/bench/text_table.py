"""Measurements as tables of text, as charts of throughput over time, and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.chart import Panel, picture, ticks
from podium.render.columns import aligned
from podium.render.html_page import page, text, text_list, text_table
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


_COLUMNS = 2
_WIDTH, _HEIGHT = 460, 230
#: Margins around the plot of a panel: left, top, right, bottom.
_MARGINS = (62, 46, 16, 30)


def svg(results: Sequence[Result]) -> str:
    """The panels of all measured workloads as an SVG image."""
    drawn = [result for result in results if result.windows]
    rows = -(-len(drawn) // _COLUMNS)
    parts = []
    for place, result in enumerate(drawn):
        left, top = place % _COLUMNS * _WIDTH, place // _COLUMNS * _HEIGHT
        parts += [f'<g transform="translate({left} {top})">', *_panel(result), "</g>"]
    size = _COLUMNS * _WIDTH, max(rows, 1) * _HEIGHT
    return picture(*size, "Pods per second over time", parts)


def _panel(result: Result) -> Iterator[str]:
    last, mean = result.seconds or 1.0, result.pods_per_second
    levels = ticks(0, max(1.0, *(window.pods_per_second for window in result.windows)))
    panel = Panel((_WIDTH, _HEIGHT), _MARGINS, (0, last), levels)
    yield f'<text class="title" x="{panel.left}" y="18">{text(result.workload)}</text>'
    told = f"{mean:,.0f} pods/s on average, {result.nodes:,} nodes"
    yield f'<text x="{panel.left}" y="35">{told}</text>'
    yield from panel.levels(levels, "{:,.0f}".format)
    yield panel.line("line", _steps(result))
    yield panel.level(mean, "mean")
    yield from panel.columns((0, last), lambda at: f"{three_digits(at)} s" if at else "0")


def _steps(result: Result) -> Iterator[tuple[float, float]]:
    """The corners of the line, a horizontal step per window."""
    start = 0.0
    for window in result.windows:
        yield start, window.pods_per_second
        yield window.seconds, window.pods_per_second
        start = window.seconds


def html(results: Sequence[Result], title: str) -> str:
    """An HTML page with the panels and a table of the figures."""
    measured = [cells(result) for result in results if not result.skipped]
    skipped = [f"{each.workload}, skipped: {each.skipped}" for each in results if each.skipped]
    table = text_table(TITLES, measured, numbers=True)
    return page(title, f"{svg(results)}\n{table}\n{text_list(skipped)}")
