"""A plan as one HTML page that loads nothing else, with pictures of the cluster and of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podium.render.html_page import (
    WIDTH,
    Square,
    bar,
    node_map,
    page,
    text,
    text_list,
    text_table,
)
from podium.what_if.plan.plan_report import (
    groups_table,
    report_tables,
    seconds_text,
    share_text,
    summary,
)

if TYPE_CHECKING:
    from podium.what_if.plan.results import Balance, Plan, TimelineEvent, Usage


def plan_page(plan: Plan) -> str:
    """The page as one document."""
    every = [*report_tables(plan), groups_table(plan)]
    tables = "\n".join(text_table(header, rows) for header, rows in every if rows)
    notes = [*plan.notes, *(note for change in plan.changes for note in change.notes)]
    body = f"""<p class="{"bad" if plan.makes_worse else "good"}">{text(summary(plan))}</p>
<p>{text(plan.profile)}</p>
{text_list(notes)}
<h2>Pods over time</h2>
{_timeline(plan.timeline, plan.seconds)}
<h2>Zones</h2>
{_zones(plan.before, plan.after)}
<h2>Nodes</h2>
<p>Each square is a node: the darker, the more of its CPU is requested. Outlined ones changed.</p>
{_nodes(plan.before, plan.after)}
{tables}"""
    return page(f"Plan: {', '.join(each.change for each in plan.changes)}", body)


def _timeline(events: Sequence[TimelineEvent], seconds: float) -> str:
    """Steps of three curves: pods terminating, pods without a node, pods starting."""
    span = max(seconds, 1.0)
    curves = _counts(events)
    top = max((count for steps in curves.values() for _, count in steps), default=0)
    if top == 0:
        return "<p>No pod is created, moved or removed.</p>"
    height, left = 160, 40
    inner = WIDTH - left - 10
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
        f'<svg viewBox="0 0 {WIDTH} {height + 24}" role="img" '
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
            rows.append(f"<tr><td>{text(name)}</td><td>{label}</td><td>{pods}</td>{cells}</tr>")
    return (
        "<table><thead><tr><th>ZONE</th><th></th><th>PODS ON NODES</th><th>CPU</th>"
        f"<th>MEMORY</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _bar(usage: Usage | None, resource: str) -> str:
    if usage is None:
        return "-"
    return f"{bar(_share(usage, resource))} {text(share_text(usage, resource))}"


def _share(usage: Usage, resource: str) -> float:
    there = usage.allocatable.get(resource, 0)
    return usage.requested.get(resource, 0) / there if there else 0.0


def _nodes(before: Balance, after: Balance) -> str:
    """Two maps of all nodes, before and after; squares have the name and the numbers as title."""
    old = {each.name: each for each in before.nodes}
    new = {each.name: each for each in after.nodes}
    names = sorted({*old, *new})
    changed = {name for name in names if old.get(name) != new.get(name)}
    maps = "".join(
        f"<h3>{label}</h3>{node_map([_square(name, usages, changed) for name in names])}"
        for label, usages in (("before", old), ("after", new))
    )
    return f'<div class="maps">{maps}</div>'


def _square(name: str, usages: dict[str, Usage], changed: set[str]) -> Square:
    usage = usages.get(name)
    if usage is None:
        return Square(None, f"{name}: not there", name in changed)
    title = f"{name}: cpu {share_text(usage, 'cpu')}, {usage.pods} pods"
    return Square(_share(usage, "cpu"), title, name in changed)
