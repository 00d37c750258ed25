"""A consolidation as text: which nodes can be emptied, the commands, and what holds the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.render.columns import Line
from podium.render.node_names import common_suffix
from podium.render.plain import counted
from podium.render.planning.text import table
from podium.what_if.plan.plan_report import bold, seconds_text

if TYPE_CHECKING:
    from podium.what_if.consolidate.consolidate import Consolidation

#: How many evicted pods are named for each node; `-o json` has all.
_MOST_PODS: Final = 3


def report(found: Consolidation) -> Iterator[Line]:
    """The lines of the report with their styles."""
    yield f"{found.profile}: {summary(found)}", bold()
    if found.empty:
        yield f"{counted(len(found.empty), 'node')} empty already: {', '.join(found.empty)}", {}
    names = [*found.empty, *(each.node for each in found.emptied)]
    suffix = common_suffix([*names, *(each.node for each in found.held)])
    rows = [
        (
            str(place),
            each.node.removesuffix(suffix),
            str(len(each.evictions)),
            _some(each.evictions),
        )
        for place, each in enumerate(found.emptied, 1)
    ]
    yield from table(("ORDER", "NODE", "EVICTIONS", "PODS"), rows)
    if found.commands:
        yield "", {}
        yield "COMMANDS, each after the one before has ended", bold()
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


def _some(pods: list[str]) -> str:
    more = f" and {len(pods) - _MOST_PODS} more" if len(pods) > _MOST_PODS else ""
    return f"{', '.join(pods[:_MOST_PODS])}{more}"
