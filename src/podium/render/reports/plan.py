"""A plan as text, and as a page with pictures of the cluster and of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from podium.render.chart import Panel, picture
from podium.render.columns import BOLD, YELLOW, Line, table
from podium.render.html_page import WIDTH, Square, bar, node_map, page, text, text_list, text_table
from podium.render.plain import common_suffix, format_amount
from podium.what_if.plan.results import seconds_text

if TYPE_CHECKING:
    from podium.what_if.plan.results import Balance, Plan, TimelineEvent, Usage

_NONE: Final = "<none>"
#: How many rows of the timeline and of the nodes are shown; `-o json` has all.
_MOST_EVENTS: Final = 40
_MOST_NODES: Final = 20
_MOST_NOTES: Final = 10
_MOST_ANYWAY: Final = 10


def report(plan: Plan) -> Iterator[Line]:
    """The lines of the report with their styles."""
    suffix = common_suffix(each.name for each in (*plan.before.nodes, *plan.after.nodes))
    if suffix:
        text = msgspec.json.encode(plan).replace(suffix.encode(), b"")
        plan = msgspec.json.decode(text, type=type(plan))
    yield f"{plan.profile}: {plan.summary()}", BOLD
    if suffix:
        yield f"names of nodes end in {suffix}, which is left out", {}
    yield from _changes(plan)
    styles = (None, YELLOW, YELLOW, YELLOW, None, None, None, None, YELLOW)
    for (header, rows), style in zip(report_tables(plan), styles, strict=True):
        yield from table(header, rows, style)
    yield from _groups(plan)
    yield from _anyway(plan)
    yield from table(("ZONE", *_USAGE), _usage_rows(plan.before.zones, plan.after.zones))
    yield from _nodes(plan.before, plan.after)
    yield from _timeline(plan)


def report_tables(plan: Plan) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Header and rows of the tables of pods; some have no rows."""
    return [
        (
            ("MOVED", "FROM", "TO", "NEW POD", "INTERRUPTED"),
            [
                (
                    each.pod,
                    each.from_node,
                    each.to_node,
                    "" if each.new_pod == each.pod else each.new_pod,
                    "-" if each.interrupted is None else seconds_text(each.interrupted),
                )
                for each in plan.moved
            ],
        ),
        (
            ("WITHOUT A NODE", "WAS ON", "REASON"),
            [
                (each.pod, each.from_node or _NONE, each.message)
                for each in plan.pending
                if not each.was_pending and not each.unknown
            ],
        ),
        (
            ("NODE NOT KNOWN", "WAS ON", "IT DEPENDS ON"),
            [
                (each.pod, each.from_node or _NONE, each.unknown)
                for each in plan.pending
                if not each.was_pending and each.unknown
            ],
        ),
        (
            ("GONE", "FROM", "BECAUSE"),
            [(each.pod, each.node or _NONE, each.reason) for each in plan.gone if not each.wanted],
        ),
        (
            ("REMOVED", "FROM", "BECAUSE"),
            [(each.pod, each.node or _NONE, each.reason) for each in plan.gone if each.wanted],
        ),
        (
            ("NEW", "NODE", "WORKLOAD"),
            [(each.pod, each.node, each.workload or _NONE) for each in plan.created],
        ),
        (
            ("PENDING AS BEFORE", "REASON"),
            [
                (each.pod, f"it depends on {each.unknown}" if each.unknown else each.message)
                for each in plan.pending
                if each.was_pending
            ],
        ),
        (
            ("EVICTED", "FROM", "FOR"),
            [(each.pod, each.node, each.preemptor) for each in plan.evicted],
        ),
        (
            ("BLOCKED", "ON", "BECAUSE"),
            [(each.pod, each.node, each.reason) for each in plan.blocked],
        ),
    ]


def groups_table(plan: Plan) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the pod groups that a plan concerns."""
    rows: list[tuple[str, ...]] = [
        (
            each.group,
            str(each.min_count),
            f"{len(each.placed)} of {len(each.placed) + len(each.without_node)}",
            str(each.missing),
            ", ".join(sorted(set(each.placed.values()))) or _NONE,
        )
        for each in plan.groups
    ]
    return ("POD GROUP", "NEEDS", "ON A NODE", "MISSING", "NODES"), rows


def _groups(plan: Plan) -> Iterator[Line]:
    """The pod groups as one thing each, with the reasons of those that wait."""
    yield from table(*groups_table(plan))
    for each in plan.groups:
        for number, sentence in enumerate(each.why):
            yield f"{'  ' if number else ''}{sentence}", {} if number else YELLOW


def _changes(plan: Plan) -> Iterator[Line]:
    yield from table(
        ("CHANGE", "BEGAN", "AT REST"),
        [
            (
                each.change,
                seconds_text(each.began),
                "not within the limit" if each.unfinished else seconds_text(each.ended),
            )
            for each in plan.changes
        ],
    )
    notes = [note for change in plan.changes for note in change.notes]
    for note in notes[:_MOST_NOTES]:
        yield f"  note: {note}", {}
    if len(notes) > _MOST_NOTES:
        yield f"  and {len(notes) - _MOST_NOTES} more notes; -o json has all", {}


def _anyway(plan: Plan) -> Iterator[Line]:
    """What happened to the cluster as it was, before the first change."""
    rows = [(seconds_text(each.at), each.text) for each in plan.anyway]
    yield from table(("BEFORE THE CHANGES", "WHAT HAPPENS ANYWAY"), rows[:_MOST_ANYWAY])
    if len(rows) > _MOST_ANYWAY:
        yield f"and {len(rows) - _MOST_ANYWAY} more events; -o json has all", {}


_USAGE: Final = ("NODES", "PODS", "CPU", "MEMORY")


def _usage_rows(before: Sequence[Usage], after: Sequence[Usage]) -> list[tuple[str, ...]]:
    """A row for each zone or node that exists before or after: both values, where they differ."""
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    rows = []
    for name in sorted({*old, *new}):
        first, last = old.get(name), new.get(name)
        cells = zip(_usage_cells(first), _usage_cells(last), strict=True)
        rows.append((name, *(one if one == two else f"{one} → {two}" for one, two in cells)))
    return rows


def _usage_cells(usage: Usage | None) -> tuple[str, str, str, str]:
    if usage is None:
        return ("-", "-", "-", "-")
    return (
        str(usage.nodes),
        str(usage.pods),
        share_text(usage, "cpu"),
        share_text(usage, "memory"),
    )


def share_text(usage: Usage, resource: str) -> str:
    """Requested of allocatable, such as `3500m/8 (44%)`."""
    used, there = usage.requested.get(resource, 0), usage.allocatable.get(resource, 0)
    percent = f" ({used * 100 / there:.0f}%)" if there else ""
    return f"{format_amount(resource, used)}/{format_amount(resource, there)}{percent}"


def _nodes(before: Balance, after: Balance) -> Iterator[Line]:
    """The nodes whose use has changed."""
    old = {each.name: each for each in before.nodes}
    new = {each.name: each for each in after.nodes}
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    shown = set(changed[:_MOST_NODES])
    rows = _usage_rows(
        [each for each in before.nodes if each.name in shown],
        [each for each in after.nodes if each.name in shown],
    )
    yield from table(("NODE", *_USAGE[1:]), [(row[0], *row[2:]) for row in rows])
    if len(changed) > _MOST_NODES:
        yield f"and {len(changed) - _MOST_NODES} more nodes that changed; -o json has all", {}


def _timeline(plan: Plan) -> Iterator[Line]:
    yield from table(
        ("TIME", "WHAT HAPPENS"),
        [(seconds_text(each.at), each.text) for each in plan.timeline[:_MOST_EVENTS]],
    )
    if len(plan.timeline) > _MOST_EVENTS:
        yield f"and {len(plan.timeline) - _MOST_EVENTS} more events; -o json has all", {}


def plan_page(plan: Plan) -> str:
    """The page as one document."""
    every = [*report_tables(plan), groups_table(plan)]
    tables = "\n".join(text_table(header, rows) for header, rows in every if rows)
    notes = [*plan.notes, *(note for change in plan.changes for note in change.notes)]
    body = f"""<p class="{"bad" if plan.makes_worse else "good"}">{text(plan.summary())}</p>
<p>{text(plan.profile)}</p>
{text_list(notes)}
<h2>Pods over time</h2>
{_pods_over_time(plan.timeline, plan.seconds)}
<h2>Zones</h2>
{_zones(plan.before, plan.after)}
<h2>Nodes</h2>
<p>Each square is a node: the darker, the more of its CPU is requested. Outlined ones changed.</p>
{_node_maps(plan.before, plan.after)}
{tables}"""
    return page(f"Plan: {', '.join(each.change for each in plan.changes)}", body)


def _pods_over_time(events: Sequence[TimelineEvent], seconds: float) -> str:
    """Steps of three curves: pods terminating, pods without a node, pods starting."""
    span = max(seconds, 1.0)
    curves = _counts(events)
    top = max((count for steps in curves.values() for _, count in steps), default=0)
    if top == 0:
        return "<p>No pod is created, moved or removed.</p>"
    panel = Panel((WIDTH, 184), (40, 8, 10, 24), (0, span), (0, top))
    lines = []
    for name, steps in curves.items():
        corners, last = [], 0
        for at, count in [*steps, (span, steps[-1][1] if steps else 0)]:
            corners += [(at, last), (at, count)]
            last = count
        lines.append(panel.line(name, corners))
    parts = [
        *panel.levels((0, top), str),
        *panel.columns([span * part / 4 for part in range(5)], seconds_text),
        *lines,
    ]
    legend = "".join(f'<span class="key {name}">{name}</span>' for name in curves)
    title = "Pods terminating, waiting and starting over time"
    drawn = picture(WIDTH, panel.height, title, parts, in_page=True)
    return f"{drawn}<p>{legend}</p>"


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


def _node_maps(before: Balance, after: Balance) -> str:
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
