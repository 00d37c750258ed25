"""Compares the placements of another scheduler with Podium's decisions, and counts.

A `Judge` judges each placement in hindsight and reports it here. `podium history judge` feeds the
changes of a history to one (`judge_history`), `host.shadow.ShadowScheduler` those of a cluster.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from podium.objects.kinds.pod_group import PodGroup
from podium.past.format.reading import ObjectChange, SegmentStart
from podium.past.format.records import Checkpoint
from podium.past.judge.agreement import KINDS, SAME, Agreement, JudgedGroup, agreement_text
from podium.past.judge.judge import Judge
from podium.past.replay.replay import is_read
from podium.scheduler.telemetry.metric_types import Counters, gauges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from podium.past.format.reading import Entry
    from podium.past.judge.agreement import Judgement, PlacementComparison
    from podium.past.replay.replay import RulesOf


#: The most differences that are kept with their explanation.
MOST_DIFFERENCES: Final = 1_000
#: The most pod groups that are kept, the latest ones.
MOST_GROUPS: Final = 1_000


class Shadow:
    """Counts judgements, and keeps the differences."""

    def __init__(self, most_differences: int | None = MOST_DIFFERENCES) -> None:
        """Keep so many differences, the latest ones; None for all."""
        found = Agreement()
        self._counts, self._details = found.counts, found.details
        self._undecided = 0
        self._differences: deque[PlacementComparison] = deque(maxlen=most_differences)
        #: Set by the scheduler: the number of pods that are not judged yet, and of those that the
        #: other scheduler found no node for and Podium did.
        self.waiting: Callable[[], int] = lambda: 0
        self.missed: Callable[[], int] = lambda: 0
        #: The pod groups whose pods were judged, by `namespace/name`.
        self._groups: dict[str, JudgedGroup] = {}
        #: Set by the scheduler: how many pods of a group must have a node, where that is known.
        self.min_count: Callable[[str], int | None] = lambda _: None

    def judged(self, judgement: Judgement) -> None:
        """Count a judgement."""
        found = judgement.comparison
        if found is None:
            self._undecided += 1
            return
        self._counts[found.kind] += 1
        if group := judgement.pod.group:
            self._groups.setdefault(group, JudgedGroup(group)).counts[found.kind] += 1
            if len(self._groups) > MOST_GROUPS:
                del self._groups[next(iter(self._groups))]
        if found.detail:
            self._details[found.detail] += 1
        if found.kind != SAME:
            self._differences.appendleft(found)

    # Reading --------------------------------------------------------------------------------

    def agreement(self) -> Agreement:
        """The comparison so far."""
        for group in self._groups.values():
            known = self.min_count(group.name)
            group.min_count = group.min_count if known is None else known
        return Agreement(
            dict(self._counts),
            dict(self._details),
            self._undecided,
            self.waiting(),
            self.missed(),
            tuple(self._differences),
            tuple(self._groups.values()),
        )

    def as_json(self, *, verbose: bool = False) -> dict[str, Any]:
        """The comparison so far, as JSON data; *verbose*: with ties and other orders."""
        return self.agreement().as_json(verbose=verbose)

    def table(self, *, verbose: bool = False) -> str:
        """The comparison so far, as text; *verbose*: with ties and other orders."""
        return agreement_text(self.agreement(), verbose=verbose)

    def families(self) -> Iterator[Metric]:
        """The comparison so far, as metrics for `Metrics.more`."""
        found = self.agreement()
        counters = Counters(
            "podium_shadow_placements",
            "Placements of the other scheduler, by how they compare with what Podium decides.",
            ("result",),
        )
        for kind in KINDS:
            counters.add(_LABELS[kind], count=found.counts[kind])
        counters.add("undecided", count=found.undecided)
        yield counters.family()
        yield gauges(
            "podium_shadow_agreement_ratio",
            "Share of the placements that are on Podium's node or on one that it finds as good.",
            (),
            {(): found.ratio},
        )


#: Kinds as values of a label.
_LABELS: Final = dict(
    zip(
        KINDS,
        ("same", "as_good", "best_of_looked_at", "as_good_in_another_order", "different"),
        strict=True,
    )
)


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
