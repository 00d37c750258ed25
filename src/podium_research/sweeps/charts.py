"""Charts of a sweep: one panel per figure, a line per workload, a mark per configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.chart import Panel, picture, ticks
from podium.render.html_page import page, text, text_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium_research.sweeps.results import Spread

_WIDTH, _LINE = 920, 26
#: Margins around the plot of a panel: left, top, right, bottom.
_MARGINS = (150, 70, 24, 30)
#: Told apart by people who do not see all colours (Okabe and Ito), and in both schemes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b8a400")


def svg(spreads: Sequence[Spread], figure: str) -> str:
    """A panel of one figure: the mean as a mark, from the smallest to the largest as a line."""
    shown = [each for each in spreads if each.figure == figure]
    workloads = list(dict.fromkeys(each.workload for each in shown))
    configurations = list(dict.fromkeys(each.configuration for each in shown))
    panel = Panel(
        (_WIDTH, _MARGINS[1] + _LINE * len(workloads) + _MARGINS[3]),
        _MARGINS,
        ticks(min(each.min for each in shown), max(each.max for each in shown)),
    )
    parts = [
        f'<text class="title" x="12" y="22">{text(figure)}</text>',
        *_legend(configurations),
        *_panel(panel, shown, workloads, configurations),
    ]
    return picture(_WIDTH, panel.height, f"{figure} by workload and configuration", parts)


def _legend(configurations: Sequence[str]) -> Iterator[str]:
    across = 12.0
    for place, name in enumerate(configurations):
        yield f'<circle cx="{across + 5:.0f}" cy="42" r="5" fill="{_colour(place)}"/>'
        yield f'<text x="{across + 14:.0f}" y="46">{text(name)}</text>'
        across += 30 + 7.2 * len(name)


def _panel(
    panel: Panel,
    shown: Sequence[Spread],
    workloads: Sequence[str],
    configurations: Sequence[str],
) -> Iterator[str]:
    yield from panel.columns(panel.across, number)
    for place, name in enumerate(workloads):
        down = panel.top + _LINE * place + _LINE // 2
        yield f'<text class="end" x="{panel.left - 10}" y="{down + 4}">{text(name)}</text>'
        yield f'<path class="grid" d="M{panel.left} {down}H{panel.right}"/>'
    step = min(4.0, (_LINE - 8) / max(1, len(configurations)))
    for each in shown:
        place = configurations.index(each.configuration)
        middle = panel.top + _LINE * workloads.index(each.workload) + _LINE / 2
        height_of = round(middle + step * (place - (len(configurations) - 1) / 2), 1)
        colour, what = _colour(place), text(sentence(each))
        yield (
            f'<g><title>{what}</title><path stroke="{colour}" stroke-width="2" '
            f'd="M{panel.x(each.min)} {height_of}H{panel.x(each.max)}"/>'
            f'<circle cx="{panel.x(each.mean)}" cy="{height_of}" r="3.5" fill="{colour}"/></g>'
        )


def sentence(each: Spread) -> str:
    """One mean with its spread, in words."""
    runs = f"{each.runs} runs" if each.runs != 1 else "1 run"
    spread = f"{number(each.min)} to {number(each.max)}, standard deviation {number(each.sd)}"
    return f"{each.workload}, {each.configuration}: {number(each.mean)} ({runs}, {spread})"


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
