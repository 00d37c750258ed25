"""How much more fits, and what would make a pod fit, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.render.columns import BOLD, PLAIN, YELLOW, table
from podium.render.plain import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.render.columns import Line
    from podium.what_if.capacity.results import Capacity
    from podium.what_if.fix.results import Fixes


def capacity_lines(found: Capacity) -> Iterator[Line]:
    """The result as text for a terminal."""
    yield f"{found.profile}: {counted(found.nodes, 'node')}", BOLD
    yield "", PLAIN
    yield found.sentence(), BOLD if found.pods else YELLOW
    if len(found.ratio) > 1:
        kinds = [(k, str(n), str(found.placed[k])) for k, n in found.ratio.items()]
        yield from table(("KIND", " IN RATIO", " PODS"), kinds)
    yield from table(
        ("WHAT RAN OUT FIRST", " NODES", " PODS", "WHICH"),
        [
            (", ".join(each.reasons), str(len(each.nodes)), str(each.pods), listed(each.nodes))
            for each in found.exhausted
        ],
    )
    if found.message and not found.exhausted and not found.unknown:
        yield f"  {found.message}", PLAIN
    helpful = [each for each in found.gains if each.pods]
    if found.gains and not helpful:
        names = ", ".join(each.shape for each in found.gains)
        yield "", PLAIN
        yield f"one more node like {names} adds none", PLAIN
    header: tuple[str, ...] = ("ONE MORE NODE LIKE", " NODES LIKE IT", " ADDS")
    rows: list[tuple[str, ...]] = [(g.shape, str(g.count or "-"), f"{g.pods}") for g in helpful]
    if found.want is not None:
        header = (*header, " FOR ALL")
        needed = [str(each.nodes) if each.nodes else "no number" for each in helpful]
        rows = [(*row, text) for row, text in zip(rows, needed, strict=True)]
    yield from table(header, rows)


def fix_lines(found: Fixes, most: int) -> Iterator[Line]:
    """The result as text for a terminal, with the first fixes only."""
    if found.node is not None:
        yield f"{found.pod} fits on {found.node} now; nothing needs to change", BOLD
        yield from ((f"  note: {note}", YELLOW) for note in found.notes)
        return
    yield f"{found.pod} fits nowhere now", YELLOW
    yield from ((f"  {text}", PLAIN) for text in (found.plain, found.message) if text)
    yield from ((f"  note: {note}", YELLOW) for note in found.notes)
    if found.preempts_on:
        evicted = ", ".join(found.preempts)
        yield f"  the scheduler itself would evict {evicted} from {found.preempts_on}", PLAIN
    yield "", PLAIN
    if not found.fixes:
        looked = "no edit" if found.complete else "no edit that was tried"
        yield f"{looked} of the kinds that are known, and no two of them, would help", YELLOW
        yield from ((f"  {sentence}", PLAIN) for sentence in (*found.advice, *found.untried))
        return
    for number, fix in enumerate(found.fixes[:most], 1):
        yield f"{number}. {fix.sentence}", BOLD
        yield f"   cost {fix.cost:g}, then it goes to {fix.node}", PLAIN
        for edit in fix.edits:
            yield from ((f"   {effect}", YELLOW) for effect in edit.effects)
            yield from ((f"   {line}", PLAIN) for line in edit.command.splitlines())
    if len(found.fixes) > most:
        yield "", PLAIN
        yield f"{counted(len(found.fixes) - most, 'more fix')}".replace("fixs", "fixes"), PLAIN
    if not found.complete:
        yield from [("", PLAIN), *((sentence, PLAIN) for sentence in found.untried)]
