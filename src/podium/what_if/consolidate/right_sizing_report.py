"""Right-sizing as text: what is resized, which nodes come free, what is stranded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.render.columns import Line
from podium.render.plain import counted
from podium.render.planning.text import table
from podium.render.quantities import format_amount
from podium.what_if.plan.plan_report import bold, report_tables, warning

if TYPE_CHECKING:
    from podium.what_if.consolidate.consolidate import Consolidation
    from podium.what_if.consolidate.right_sizing import ResizedWorkload, RightSizing


def report(found: RightSizing) -> Iterator[Line]:
    """The lines of the report with their styles."""
    yield f"{found.profile}: {summary(found)}", bold()
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
    yield from table(*pending, warning())
    for blocked in found.plan.blocked:
        yield f"{blocked.pod} on {blocked.node} cannot be evicted: {blocked.reason}", warning()


def summary(found: RightSizing) -> str:
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
