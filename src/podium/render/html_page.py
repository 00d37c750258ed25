"""HTML pages that load nothing else, and the parts of their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Final

from podium.render.plain import printable

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def text(plain: object) -> str:
    """Plain text as HTML."""
    return escape(printable(str(plain)))


def html_page(title: str, style: str, body: str, scripts: str = "") -> str:
    """A whole page; *body* and *scripts* are HTML."""
    policy = f"{_POLICY}; script-src 'unsafe-inline'" if scripts else _POLICY
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{text(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
{scripts}</body>
</html>
"""


#: The width of pictures, in the units of their own.
WIDTH: Final = 960
_CELL: Final = 14
#: How many rows of a table the page shows; `-o json` has all.
_MOST_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class Square:
    """A node on a map of nodes."""

    #: The used share, from 0 to 1; None if the node is not there.
    share: float | None
    #: What is shown of the node under the pointer.
    title: str
    changed: bool = False


def page(title: str, body: str) -> str:
    """A whole page with a heading and the *body*, which is HTML."""
    style = files("podium.render").joinpath("assets/planning.css").read_text("utf-8")
    return html_page(title, style, f"<h1>{text(title)}</h1>\n{body}")


def text_list(lines: Iterable[str]) -> str:
    """Lines of text as a list; nothing without lines."""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False
) -> str:
    """A table of text, of which at most the first rows are shown.

    With *numbers* all columns but the first are flush right.
    """
    shown = rows[:_MOST_ROWS]
    head = "".join(f"<th>{text(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in shown)
    more = len(rows) - len(shown)
    note = f"<p>and {more} more; -o json has all</p>" if more else ""
    kind = ' class="numbers"' if numbers else ""
    return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def bar(share: float) -> str:
    """A share as a bar."""
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="room" width="100" height="10"/>'
        f'<rect class="used" width="{min(share, 1.0) * 100:.1f}" height="10"/></svg>'
    )


def node_map(squares: Sequence[Square]) -> str:
    """A map of nodes: the darker a square, the larger its share; changed ones are outlined."""
    across = WIDTH // _CELL
    drawn = []
    for number, each in enumerate(squares):
        y, x = divmod(number, across)
        kind, opacity = "missing", 1.0
        if each.share is not None:
            kind, opacity = "node", 0.08 + 0.92 * min(each.share, 1.0)
        mark = " changed" if each.changed else ""
        drawn.append(
            f'<rect class="{kind}{mark}" x="{x * _CELL + 1}" y="{y * _CELL + 1}" '
            f'width="{_CELL - 3}" height="{_CELL - 3}" fill-opacity="{opacity:.2f}">'
            f"<title>{text(each.title)}</title></rect>"
        )
    height = ((len(squares) - 1) // across + 1) * _CELL if squares else 0
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(drawn)}</svg>'
