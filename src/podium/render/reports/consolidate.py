"""Which nodes can be emptied and which requests can be smaller, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.render.columns import BOLD, YELLOW, Line, table
from podium.render.plain import common_suffix, counted, format_amount, listed
from podium.render.reports.plan import report_tables
from podium.what_if.plan.results import seconds_text

if TYPE_CHECKING:
    from podium.what_if.consolidate.consolidation import Consolidation
    from podium.what_if.consolidate.right_sizing import ResizedWorkload, RightSizing


def report(found: Consolidation) -> Iterator[Line]:
    """The lines of the report with their styles."""
    yield f"{found.profile}: {summary(found)}", BOLD
    if found.empty:
        yield f"{counted(len(found.empty), 'node')} empty already: {', '.join(found.empty)}", {}
    names = [*found.empty, *(each.node for each in found.emptied)]
    suffix = common_suffix([*names, *(each.node for each in found.held)])
    rows = [
        (
            str(place),
            each.node.removesuffix(suffix),
            str(len(each.evictions)),
            listed(each.evictions),
        )
        for place, each in enumerate(found.emptied, 1)
    ]
    yield from table(("ORDER", "NODE", "EVICTIONS", "PODS"), rows)
    if found.commands:
        yield "", {}
        yield "COMMANDS, each after the one before has ended", BOLD
        for command in found.commands:
            yield command, {}
    held = [(each.node.removesuffix(suffix), each.pod, each.reason) for each in found.held]
    yield from table(("HELD", "BY", "BECAUSE"), held)
    if found.bound_ignores:
        yield "", {}
        yield f"The lower bound ignores: {'; '.join(found.bound_ignores)}", {}


def summary(found: Consolidation) -> str:
    """How many nodes can be emptied, and how many are needed at least."""
    part = f"{len(found.emptied)} of {counted(found.nodes, 'node')} can be emptied"
    if found.interrupted:
        part = f"interrupted; {part} at least"
    if found.emptied:
        evictions = sum(len(each.evictions) for each in found.emptied)
        part += f" with {counted(evictions, 'eviction')} in {seconds_text(found.seconds)}"
    part += f"; {found.needed} stay in use"
    if found.at_least is None:
        return part
    more = max(found.needed - found.at_least, 0)
    proven = f"at least {found.at_least} are needed by any placement"
    return f"{part}, {proven}" + (f": {more} more may be possible" if more else "")


def right_sizing_report(found: RightSizing) -> Iterator[Line]:
    """The lines of the report with their styles."""
    yield f"{found.profile}: {right_sizing_summary(found)}", BOLD
    rows = [
        (str(place), each.workload, str(each.pods), _change(each, "cpu"), _change(each, "memory"))
        for place, each in enumerate(found.resized, 1)
    ]
    yield from table(("ORDER", "WORKLOAD", "PODS", "CPU", "MEMORY"), rows)
    nodes = [
        ("before", *_needed(found.before, found.price_before)),
        ("after", *_needed(found.after, found.price_after)),
    ]
    yield from table(("NODES", "THERE", "NEEDED", "AT LEAST", "PRICE"), nodes)
    stranded = [
        (
            each.resource,
            format_amount(each.resource, each.free),
            f"{100 * each.free // each.allocatable if each.allocatable else 0} %",
        )
        for each in found.stranded
    ]
    yield from table(("FREE ON NEEDED NODES", "AMOUNT", "SHARE"), stranded)
    pending = report_tables(found.plan)[1]
    yield from table(*pending, YELLOW)
    for blocked in found.plan.blocked:
        yield f"{blocked.pod} on {blocked.node} cannot be evicted: {blocked.reason}", YELLOW


def right_sizing_summary(found: RightSizing) -> str:
    """How many nodes come free."""
    pods = sum(each.pods for each in found.resized)
    resized = f"{counted(pods, 'pod')} of {counted(len(found.resized), 'workload')} resized"
    if found.freed > 0:
        freed = f"{counted(found.freed, 'node')} fewer needed"
    elif found.freed < 0:
        freed = f"{counted(-found.freed, 'node')} more needed"
    else:
        freed = "no node comes free, so nothing is saved"
    left = sum(not each.was_pending for each in found.plan.pending)
    worse = f"; {counted(left, 'pod')} find no node" if left else ""
    return f"{resized}: {freed}{worse}"


def _change(each: ResizedWorkload, resource: str) -> str:
    before, after = each.before[resource], each.after[resource]
    if before == after:
        return format_amount(resource, before)
    return f"{format_amount(resource, before)} -> {format_amount(resource, after)}"


def _needed(found: Consolidation, price: float | None) -> tuple[str, str, str, str]:
    proven = "-" if found.at_least is None else str(found.at_least)
    return str(found.nodes), str(found.needed), proven, "-" if price is None else f"{price:g}"
