"""Judges the placements of a whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.objects.kinds.pod_group import PodGroup
from podium.past.format.reading import ObjectChange, SegmentStart
from podium.past.format.records import Checkpoint
from podium.past.judge.judge import Judge
from podium.past.replay.replay import is_read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.past.format.reading import Entry
    from podium.past.judge.shadow import Shadow
    from podium.past.replay.replay import RulesOf


def judge_history(entries: Iterable[Entry], rules_of: RulesOf, shadow: Shadow) -> None:
    """Feed the changes of a history to a judge, which reports to *shadow*.

    A segment that continues the one before begins with a checkpoint, which says nothing new; one
    that begins with an empty cluster is of another run, and is judged apart.
    """
    judge: Judge | None = None
    in_checkpoint = False
    missed = 0
    minimum: dict[str, int] = {}

    def finish() -> None:
        nonlocal missed
        if judge is not None:
            judge.finish()
            missed += judge.missed

    for entry in entries:
        if isinstance(entry, SegmentStart):
            in_checkpoint = judge is not None and not entry.empty
            if not in_checkpoint:
                finish()
                judge = _new_judge(entry.header, rules_of, shadow)
        elif isinstance(entry, Checkpoint):
            in_checkpoint = False
        elif isinstance(entry, ObjectChange) and not in_checkpoint and is_read(entry.kind):
            assert judge is not None
            if isinstance(entry.new, PodGroup):
                minimum[entry.key] = entry.new.min_count
            judge.feed(entry)
            judge.advance()
    finish()
    waiting = judge.waiting if judge is not None else 0
    shadow.min_count = minimum.get
    shadow.missed = lambda: missed
    shadow.waiting = lambda: waiting


def _new_judge(header: dict[str, Any], rules_of: RulesOf, shadow: Shadow) -> Judge:
    return Judge(rules_of(header), shadow.judged)
