"""A history that was decided again, or that went on with other rules, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.objects.times import shown_time
from podium.render.columns import PLAIN, TextTable
from podium.render.decision.pod_group import cycle_lines
from podium.render.plain import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.past.format.records import Decided, GroupDecided
    from podium.past.replay.other_rules import ComparedMoment
    from podium.past.replay.results import ReplayResult
    from podium.render.columns import Line

#: The most differences that are listed.
_MOST: Final = 20
_COLUMNS: Final = (
    "TIME",
    "PLACED",
    "BY OTHER",
    "PENDING",
    "SAME",
    "DIFFERENT",
    "EVICTED",
    "BY OTHER",
)


def continuation_lines(
    moments: Sequence[ComparedMoment], differences: Sequence[tuple[str, str | None, str | None]]
) -> Iterator[Line]:
    """The figures over time, then the pods that other rules give another node."""
    table = TextTable(*_COLUMNS, right=_COLUMNS[1:])
    for each in moments:
        placed = (each.recorded[0], each.other[0], each.pending, each.same, each.different)
        table.add(shown_time(each.time), *placed, each.recorded[1], each.other[1])
    yield from table.lines()
    yield "", PLAIN
    yield f"{len(differences)} pods have another node, or none", PLAIN
    for name, theirs, ours in differences[:_MOST]:
        yield f"  {name}: {ours or 'no node'} instead of {theirs or 'no node'}", PLAIN
    yield from _more(len(differences))


def replay_lines(result: ReplayResult, total: int) -> Iterator[Line]:
    """How many of *total* decisions are equal, how pod groups ended, and what differs."""
    done = result.equal + len(result.differences)
    yield f"{counted(done, 'decision')} made again, {result.equal} equal", PLAIN
    if result.cycles:
        equal = result.cycles - len(result.other_cycles)
        yield f"{counted(result.cycles, 'cycle')} of pod groups made again, {equal} equal", PLAIN
    for count, what in (
        (result.matrices, "with equal verdicts and scores of every node"),
        (result.asked_extenders, "took answers of extenders (not compared)"),
        (result.corrected, "corrected when they were made: kept answers were wrong"),
        (0 if result.complete else total - done, "not compared: interrupted"),
    ):
        if count:
            yield f"  {count:>8}  {what}", PLAIN
    yield from _groups(result)
    yield from _differences(result)


def _groups(result: ReplayResult) -> Iterator[Line]:
    """Each pod group as one thing: how its cycles ended."""
    for ended in list(result.groups.values())[:_MOST]:
        for found, last in ended:
            first = found.entry.attempt
            which = f"attempt {first}" if first == last else f"attempts {first} to {last}"
            head, *more = cycle_lines(found.decision)
            yield "", PLAIN
            yield f"{shown_time(found.entry.time)}  {which}", PLAIN
            yield from ((line, PLAIN) for line in (head, *(f"  {each}" for each in more)))
    if len(result.groups) > _MOST:
        yield "", PLAIN
        yield f"{len(result.groups) - _MOST} more pod groups are in -o json", PLAIN


def _differences(result: ReplayResult) -> Iterator[Line]:
    groups = [f"{_about(each.entry)}: {printable(each.difference)}" for each in result.other_cycles]
    pods = [f"{_about(each.entry)}: {printable(each.what)}" for each in result.differences]
    found = [*groups, *pods]
    if found:
        yield "", PLAIN
        yield "Differences:", PLAIN
    yield from ((f"  {text}", PLAIN) for text in found[:_MOST])
    yield from _more(len(found))


def _more(count: int) -> Iterator[Line]:
    if count > _MOST:
        yield f"  and {count - _MOST} more", PLAIN


def _about(entry: Decided | GroupDecided) -> str:
    name = getattr(entry, "pod", None) or f"pod group {entry.group}"
    return f"{shown_time(entry.time)}  {name}, attempt {entry.attempt}"
