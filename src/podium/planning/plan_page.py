"""A plan as one HTML page that loads nothing else, with pictures of the cluster and of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from podium.planning.plan_report import report_tables, seconds_text, share_text, summary
from podium.render.plain import printable

if TYPE_CHECKING:
    from podium.planning.results import Balance, Plan, TimelineEvent, Usage

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_WIDTH: Final = 960
_CELL: Final = 14
#: How many rows of a table the page shows; `-o json` has all.
_MOST_ROWS: Final = 500


def plan_page(plan: Plan) -> str:
    """The page as one document."""
    title = printable(f"Plan: {', '.join(each.change for each in plan.changes)}")
    style = files("podium.planning").joinpath("assets/plan.css").read_text("utf-8")
    tables = "\n".join(_table(header, rows) for header, rows in report_tables(plan) if rows)
    notes = [note for change in plan.changes for note in change.notes]
    noted = f"<ul>{''.join(f'<li>{_text(note)}</li>' for note in notes)}</ul>" if notes else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{_text(title)}</h1>
<p class="{"bad" if plan.leaves_pods else "good"}">{_text(summary(plan))}</p>
<p>{_text(plan.profile)}</p>
{noted}
<h2>Pods over time</h2>
{_timeline(plan.timeline, plan.seconds)}
<h2>Zones</h2>
{_zones(plan.before, plan.after)}
<h2>Nodes</h2>
<p>Each square is a node: the darker, the more of its CPU is requested. Outlined ones changed.</p>
{_nodes(plan.before, plan.after)}
{tables}
</main>
</body>
</html>
"""


def _text(text: str) -> str:
    return escape(printable(text))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = rows[:_MOST_ROWS]
    head = "".join(f"<th>{_text(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in shown
    )
    more = len(rows) - len(shown)
    note = f"<p>and {more} more; -o json has all</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _timeline(events: Sequence[TimelineEvent], seconds: float) -> str:
    """Steps of three curves: pods terminating, pods without a node, pods starting."""
    span = max(seconds, 1.0)
    curves = _counts(events)
    top = max((count for steps in curves.values() for _, count in steps), default=0)
    if top == 0:
        return "<p>No pod is created, moved or removed.</p>"
    height, left = 160, 40
    inner = _WIDTH - left - 10
    lines = []
    for name, steps in curves.items():
        points, last = [], 0
        for at, count in [*steps, (span, steps[-1][1] if steps else 0)]:
            x = left + inner * at / span
            points.append(f"{x:.1f},{_y(last, top, height)}")
            points.append(f"{x:.1f},{_y(count, top, height)}")
            last = count
        lines.append(f'<polyline class="{name}" points="{" ".join(points)}"/>')
    ticks = "".join(
        f'<text x="{left + inner * part / 4:.0f}" y="{height + 18}">'
        f"{seconds_text(span * part / 4)}</text>"
        for part in range(5)
    )
    legend = "".join(f'<span class="key {name}">{name}</span>' for name in curves)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height + 24}" role="img" '
        f'aria-label="pods terminating, waiting and starting over time">'
        f'<text x="0" y="12">{top}</text><text x="0" y="{height}">0</text>'
        f"{''.join(lines)}{ticks}</svg><p>{legend}</p>"
    )


def _y(count: int, top: int, height: int) -> str:
    return f"{height - (height - 8) * count / top:.1f}"


def _counts(events: Iterable[TimelineEvent]) -> dict[str, list[tuple[float, int]]]:
    """The number of pods in each state after each event."""
    states: dict[str, str] = {}
    counts = {"terminating": 0, "waiting": 0, "starting": 0}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in counts}
    after = {"created": "waiting", "bound": "starting", "terminating": "terminating"}
    for event in events:
        if event.what in {"change", "preempted"}:
            continue
        old, new = states.get(event.object, ""), after.get(event.what, "")
        states[event.object] = new
        for name, step in ((old, -1), (new, 1)):
            if name and old != new:
                counts[name] += step
                found[name].append((event.at, counts[name]))
    return found


def _zones(before: Balance, after: Balance) -> str:
    old = {each.name: each for each in before.zones}
    new = {each.name: each for each in after.zones}
    rows = []
    for name in sorted({*old, *new}):
        for label, usage in (("before", old.get(name)), ("after", new.get(name))):
            cells = "".join(f"<td>{_bar(usage, resource)}</td>" for resource in ("cpu", "memory"))
            pods = "-" if usage is None else f"{usage.pods} on {usage.nodes}"
            rows.append(f"<tr><td>{_text(name)}</td><td>{label}</td><td>{pods}</td>{cells}</tr>")
    return (
        "<table><thead><tr><th>ZONE</th><th></th><th>PODS ON NODES</th><th>CPU</th>"
        f"<th>MEMORY</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _bar(usage: Usage | None, resource: str) -> str:
    if usage is None:
        return "-"
    there = usage.allocatable.get(resource, 0)
    part = usage.requested.get(resource, 0) / there if there else 0.0
    return (
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="room" width="100" height="10"/>'
        f'<rect class="used" width="{min(part, 1.0) * 100:.1f}" height="10"/></svg> '
        f"{_text(share_text(usage, resource))}"
    )


def _nodes(before: Balance, after: Balance) -> str:
    """Two maps of all nodes, before and after; squares have the name and the numbers as title."""
    old = {each.name: each for each in before.nodes}
    new = {each.name: each for each in after.nodes}
    names = sorted({*old, *new})
    changed = {name for name in names if old.get(name) != new.get(name)}
    parts = [("before", old), ("after", new)]
    maps = "".join(f"<h3>{label}</h3>{_map(names, usages, changed)}" for label, usages in parts)
    return f'<div class="maps">{maps}</div>'


def _map(names: Sequence[str], usages: dict[str, Usage], changed: set[str]) -> str:
    across = _WIDTH // _CELL
    squares = []
    for number, name in enumerate(names):
        y, x = divmod(number, across)
        usage = usages.get(name)
        if usage is None:
            kind, opacity, title = "missing", 1.0, f"{name}: not there"
        else:
            there = usage.allocatable.get("cpu", 0)
            part = usage.requested.get("cpu", 0) / there if there else 0.0
            kind, opacity = "node", 0.08 + 0.92 * min(part, 1.0)
            title = f"{name}: cpu {share_text(usage, 'cpu')}, {usage.pods} pods"
        mark = " changed" if name in changed else ""
        squares.append(
            f'<rect class="{kind}{mark}" x="{x * _CELL + 1}" y="{y * _CELL + 1}" '
            f'width="{_CELL - 3}" height="{_CELL - 3}" fill-opacity="{opacity:.2f}">'
            f"<title>{_text(title)}</title></rect>"
        )
    height = ((len(names) - 1) // across + 1) * _CELL if names else 0
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(squares)}</svg>'
