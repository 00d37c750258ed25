"""Measurements as charts of throughput over time, and as a page with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.html_page import page, text, text_list, text_table
from podium_research.bench.text_table import TITLES, cells, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium_research.bench.measurement import Result

_COLUMNS = 2
_WIDTH, _HEIGHT = 460, 230
#: Margins around the plot of a panel.
_LEFT, _TOP, _RIGHT, _BOTTOM = 62, 46, 16, 30
_TICKS = 4

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #334; }
.title { font-weight: 600; font-size: 13px; }
.axis { stroke: #889; stroke-width: 1; }
.grid { stroke: #889; stroke-opacity: .25; stroke-width: 1; }
.line { fill: none; stroke: #1f6feb; stroke-width: 2; stroke-linejoin: round; }
.mean { stroke: #bf5b04; stroke-width: 1; stroke-dasharray: 5 4; }
.end { text-anchor: end; }
@media (prefers-color-scheme: dark) { text { fill: #dde; } .line { stroke: #6cb0ff; } }
"""


def svg(results: Sequence[Result]) -> str:
    """The panels of all measured workloads as an SVG image."""
    drawn = [result for result in results if result.windows]
    rows = -(-len(drawn) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH, max(rows, 1) * _HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}">',
        "<title>Pods per second over time</title>",
        f"<style>{_STYLE}</style>",
    ]
    for place, result in enumerate(drawn):
        left, top = place % _COLUMNS * _WIDTH, place // _COLUMNS * _HEIGHT
        parts.append(f'<g transform="translate({left} {top})">')
        parts += _panel(result)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(result: Result) -> Iterator[str]:
    yield f'<text class="title" x="{_LEFT}" y="18">{text(result.workload)}</text>'
    mean, nodes = result.pods_per_second, f"{result.nodes:,} nodes"
    yield f'<text x="{_LEFT}" y="35">{mean:,.0f} pods/s on average, {nodes}</text>'
    most = round_up(max(window.pods_per_second for window in result.windows))
    last = result.seconds or 1.0
    plot = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def across(seconds: float) -> float:
        return round(_LEFT + plot[0] * seconds / last, 1)

    def down(speed: float) -> float:
        return round(_TOP + plot[1] * (1 - speed / most), 1)

    for tick in range(_TICKS + 1):
        value = most * tick / _TICKS
        kind = "grid" if tick else "axis"
        yield f'<path class="{kind}" d="M{_LEFT} {down(value)}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="end" x="{_LEFT - 6}" y="{down(value) + 4}">{value:,.0f}</text>'
    points = _steps(result)
    path = " ".join(f"{across(seconds)},{down(speed)}" for seconds, speed in points)
    yield f'<polyline class="line" points="{path}"/>'
    yield f'<path class="mean" d="M{_LEFT} {down(mean)}H{_WIDTH - _RIGHT}"/>'
    bottom = _HEIGHT - 10
    yield f'<text x="{_LEFT}" y="{bottom}">0</text>'
    yield f'<text class="end" x="{_WIDTH - _RIGHT}" y="{bottom}">{three_digits(last)} s</text>'


def _steps(result: Result) -> Iterator[tuple[float, float]]:
    """The corners of the line, a horizontal step per window."""
    start = 0.0
    for window in result.windows:
        yield start, window.pods_per_second
        yield window.seconds, window.pods_per_second
        start = window.seconds


def round_up(number: float) -> float:
    """The smallest round number that is not less than *number*."""
    if number <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= number:
        power *= 10
    while power > number:
        power /= 10
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= number)


def html(results: Sequence[Result], title: str) -> str:
    """An HTML page with the panels and a table of the figures."""
    measured = [cells(result) for result in results if not result.skipped]
    skipped = [f"{each.workload}, skipped: {each.skipped}" for each in results if each.skipped]
    table = text_table(TITLES, measured, numbers=True)
    return page(title, f"{svg(results)}\n{table}\n{text_list(skipped)}")
