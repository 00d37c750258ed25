"""A plan as text: what moved, what is left, what blocks, and how full zones and nodes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.render.columns import Line
from podium.render.node_names import common_suffix
from podium.render.plain import counted
from podium.render.planning.text import table
from podium.render.quantities import format_amount

if TYPE_CHECKING:
    from podium.what_if.plan.results import Balance, Plan, Usage

_NONE: Final = "<none>"
#: How many rows of the timeline and of the nodes are shown; `-o json` has all.
_MOST_EVENTS: Final = 40
_MOST_NODES: Final = 20
_MOST_NOTES: Final = 10
_MOST_ANYWAY: Final = 10


def bold() -> dict[str, Any]:
    """The style of headings."""
    return {"bold": True}


def warning() -> dict[str, Any]:
    """The style of what needs attention."""
    return {"fg": "yellow"}


def report(plan: Plan) -> Iterator[Line]:
    """The lines of the report with their styles."""
    suffix = common_suffix(each.name for each in (*plan.before.nodes, *plan.after.nodes))
    if suffix:
        text = msgspec.json.encode(plan).replace(suffix.encode(), b"")
        plan = msgspec.json.decode(text, type=type(plan))
    yield f"{plan.profile}: {summary(plan)}", bold()
    if suffix:
        yield f"names of nodes end in {suffix}, which is left out", {}
    yield from _changes(plan)
    styles = (None, warning(), warning(), warning(), None, None, None, None, warning())
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
            yield f"{'  ' if number else ''}{sentence}", {} if number else warning()


def summary(plan: Plan) -> str:
    """What follows, in one sentence."""
    parts = []
    if plan.interrupted:
        parts.append("interrupted")
    if plan.moved:
        parts.append(f"{counted(len(plan.moved), 'pod')} moved")
    if plan.created:
        parts.append(f"{counted(len(plan.created), 'pod')} new")
    removed = sum(each.wanted for each in plan.gone)
    if removed:
        parts.append(f"{counted(removed, 'pod')} removed")
    if plan.evicted:
        parts.append(f"{counted(len(plan.evicted), 'pod')} evicted by preemption")
    if plan.blocked:
        parts.append(f"{counted(len(plan.blocked), 'eviction')} blocked")
    lost = len(plan.gone) - removed
    if lost:
        parts.append(f"{counted(lost, 'pod')} gone and not created anew")
    parts += _left_text(plan)
    return f"{', '.join(parts)}, after {seconds_text(plan.seconds)}"


def _left_text(plan: Plan) -> list[str]:
    """How many pods have no node now, and how many of those had none before."""
    fresh = [each for each in plan.pending if not each.was_pending]
    unknown = sum(bool(each.unknown) for each in fresh)
    left, before = len(fresh) - unknown, len(plan.pending) - len(fresh)
    none = "no more pods without a node" if before else "no pod without a node"
    parts = [f"{counted(left, 'pod')} without a node" if left else none]
    if unknown:
        parts.append(f"{counted(unknown, 'pod')} whose node is not known")
    if before:
        parts.append(f"{counted(before, 'pod')} pending as before")
    return parts


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


def seconds_text(seconds: float) -> str:
    """A duration, in seconds or minutes."""
    return f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}m"
