"""Charts as SVG: a picture with panels, whose axes have round numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from podium.render.html_page import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: What a picture needs where no page gives it a style.
_STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #334; }
.title { font-weight: 600; font-size: 13px; }
.axis { stroke: #889; stroke-width: 1; }
.grid { stroke: #889; stroke-opacity: .25; stroke-width: 1; }
.line { fill: none; stroke: #1f6feb; stroke-width: 2; stroke-linejoin: round; }
.mean { stroke: #bf5b04; stroke-width: 1; stroke-dasharray: 5 4; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
@media (prefers-color-scheme: dark) { text { fill: #dde; } .line { stroke: #6cb0ff; } }
"""


_MOST_STEPS: Final = 5


def picture(
    width: int, height: int, title: str, parts: Iterable[str], *, in_page: bool = False
) -> str:
    """A whole picture; *parts* are SVG. A file of its own names the language, a page need not."""
    language = "" if in_page else ' xmlns="http://www.w3.org/2000/svg"'
    return "\n".join(
        [
            f'<svg{language} role="img" viewBox="0 0 {width} {height}">',
            f"<title>{text(title)}</title>",
            f"<style>{_STYLE}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def ticks(low: float, high: float) -> list[float]:
    """Round numbers around a range, with at most five steps inside it."""
    if high <= low:
        low, high = low - 1, high + 1
    size = 10 ** math.floor(math.log10((high - low) / _MOST_STEPS))
    step = next(size * n for n in (1, 2, 5, 10) if (high - low) / (size * n) <= _MOST_STEPS)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * tick, 10) for tick in range(first, last + 1)]


class Panel:
    """A plot: where the values of its axes are drawn, with lines and labels at some of them."""

    def __init__(
        self,
        size: tuple[int, int],
        margins: tuple[int, int, int, int],
        across: Sequence[float],
        upwards: Sequence[float] = (0, 1),
    ) -> None:
        """*margins* are left, top, right and bottom; the axes go from their first to last value."""
        (self.width, self.height), (self.left, self.top, right, bottom) = size, margins
        self.right, self.bottom = self.width - right, self.height - bottom
        self.across, self._upwards = across, (upwards[0], upwards[-1])

    def x(self, value: float) -> float:
        """Where a value of the horizontal axis is."""
        low, high = self.across[0], self.across[-1]
        return round(self.left + (self.right - self.left) * (value - low) / (high - low), 1)

    def y(self, value: float) -> float:
        """Where a value of the vertical axis is."""
        low, high = self._upwards
        return round(self.bottom - (self.bottom - self.top) * (value - low) / (high - low), 1)

    def level(self, value: float, kind: str = "grid") -> str:
        """A horizontal line."""
        return f'<path class="{kind}" d="M{self.left} {self.y(value)}H{self.right}"/>'

    def levels(self, values: Iterable[float], label: Callable[[float], str]) -> Iterator[str]:
        """Horizontal lines with their labels; the first one is the axis."""
        for place, value in enumerate(values):
            yield self.level(value, "grid" if place else "axis")
            where = f'x="{self.left - 6}" y="{self.y(value) + 4}"'
            yield f'<text class="end" {where}>{text(label(value))}</text>'

    def columns(self, values: Iterable[float], label: Callable[[float], str]) -> Iterator[str]:
        """Vertical lines with their labels below."""
        for value in values:
            across = self.x(value)
            yield f'<path class="grid" d="M{across} {self.top}V{self.bottom}"/>'
            where = f'x="{across}" y="{self.bottom + 18}"'
            yield f'<text class="middle" {where}>{text(label(value))}</text>'

    def line(self, kind: str, corners: Iterable[tuple[float, float]]) -> str:
        """A line through some points."""
        points = " ".join(f"{self.x(across)},{self.y(value)}" for across, value in corners)
        return f'<polyline class="{kind}" points="{points}"/>'
