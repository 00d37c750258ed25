"""Measurements as charts of throughput over time, and as a page with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.chart import Panel, picture, ticks
from podium.render.html_page import page, text, text_list, text_table
from podium_research.bench.text_table import TITLES, cells, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium_research.bench.measurement import Result

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
