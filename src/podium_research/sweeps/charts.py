"""Charts of a sweep: one panel per figure, a line per workload, a mark per configuration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from podium.render.html_page import page, text, text_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium_research.sweeps.results import Spread

_WIDTH, _LINE = 920, 26
#: Margins around the plot of a panel.
_LEFT, _TOP, _RIGHT, _BOTTOM = 150, 70, 24, 30
_TICKS = 5
#: Told apart by people who do not see all colours (Okabe and Ito), and in both schemes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a400")

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #334; }
.title { font-weight: 600; font-size: 14px; }
.grid { stroke: #889; stroke-opacity: .3; stroke-width: 1; }
.row { stroke: #889; stroke-opacity: .15; stroke-width: 1; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
@media (prefers-color-scheme: dark) { text { fill: #dde; } }
"""


def svg(spreads: Sequence[Spread], figure: str) -> str:
    """A panel of one figure: the mean as a mark, from the smallest to the largest as a line."""
    shown = [each for each in spreads if each.figure == figure]
    workloads = list(dict.fromkeys(each.workload for each in shown))
    configurations = list(dict.fromkeys(each.configuration for each in shown))
    height = _TOP + _LINE * len(workloads) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH} {height}">',
        f"<title>{text(figure)} by workload and configuration</title>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="12" y="22">{text(figure)}</text>',
        *_legend(configurations),
        *_panel(shown, workloads, configurations, height),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _legend(configurations: Sequence[str]) -> Iterator[str]:
    across = 12.0
    for place, name in enumerate(configurations):
        yield f'<circle cx="{across + 5:.0f}" cy="42" r="5" fill="{_colour(place)}"/>'
        yield f'<text x="{across + 14:.0f}" y="46">{text(name)}</text>'
        across += 30 + 7.2 * len(name)


def _panel(
    shown: Sequence[Spread], workloads: Sequence[str], configurations: Sequence[str], height: int
) -> Iterator[str]:
    ticks = _ticks(min(each.min for each in shown), max(each.max for each in shown))
    low, high = ticks[0], ticks[-1]

    def across(number: float) -> float:
        share = (number - low) / (high - low)
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * share, 1)

    for tick in ticks:
        yield f'<path class="grid" d="M{across(tick)} {_TOP - 8}V{height - _BOTTOM}"/>'
        yield f'<text class="middle" x="{across(tick)}" y="{height - 10}">{number(tick)}</text>'
    for place, name in enumerate(workloads):
        down = _TOP + _LINE * place + _LINE // 2
        yield f'<text class="end" x="{_LEFT - 10}" y="{down + 4}">{text(name)}</text>'
        yield f'<path class="row" d="M{_LEFT} {down}H{_WIDTH - _RIGHT}"/>'
    step = min(4.0, (_LINE - 8) / max(1, len(configurations)))
    for each in shown:
        place = configurations.index(each.configuration)
        middle = _TOP + _LINE * workloads.index(each.workload) + _LINE / 2
        height_of = round(middle + step * (place - (len(configurations) - 1) / 2), 1)
        colour, what = _colour(place), text(sentence(each))
        yield (
            f'<g><title>{what}</title><path stroke="{colour}" stroke-width="2" '
            f'd="M{across(each.min)} {height_of}H{across(each.max)}"/>'
            f'<circle cx="{across(each.mean)}" cy="{height_of}" r="3.5" fill="{colour}"/></g>'
        )


def sentence(each: Spread) -> str:
    """One mean with its spread, in words."""
    runs = f"{each.runs} runs" if each.runs != 1 else "1 run"
    spread = f"{number(each.min)} to {number(each.max)}, standard deviation {number(each.sd)}"
    return f"{each.workload}, {each.configuration}: {number(each.mean)} ({runs}, {spread})"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around a range."""
    if high <= low:
        low, high = low - 1, high + 1
    size = 10 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(size * n for n in (1, 2, 5, 10) if (high - low) / (size * n) <= _TICKS)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * tick, 10) for tick in range(first, last + 1)]


def number(value: float) -> str:
    """A number with at most five significant digits, and no more than it needs."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}"


def charts_page(title: str, spreads: Sequence[Spread], figures: Sequence[str]) -> str:
    """An HTML page with a panel and a table for each figure."""
    parts = [
        "<p>A mark is the mean over the seeds; a line goes from the smallest to the largest.</p>"
    ]
    for figure in figures:
        header, *rows = pivot(spreads, figure)
        parts += [svg(spreads, figure), text_table(header, rows, numbers=True)]
    return page(title, "\n".join(parts))


def pivot(spreads: Sequence[Spread], figure: str) -> list[tuple[str, ...]]:
    """A table of one figure: a row per workload, a column per configuration, mean ± spread."""
    shown = {(s.workload, s.configuration): s for s in spreads if s.figure == figure}
    configurations = list(dict.fromkeys(name for _, name in shown))
    rows = [("WORKLOAD", *configurations)]
    for workload in dict.fromkeys(name for name, _ in shown):
        cells = (shown.get((workload, each)) for each in configurations)
        rows.append((workload, *("" if cell is None else _mean(cell) for cell in cells)))
    return rows


def _mean(each: Spread) -> str:
    return (
        f"{number(each.mean)} ± {number(round(each.sd, 2))}" if each.runs > 1 else number(each.mean)
    )


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]
