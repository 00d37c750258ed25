"""Decisions made twice, from kept answers and without any, and compared in every part.

A decider with a `Verification` decides one attempt in N both ways. Where the two differ, the
decision without kept answers is used, all kept answers are dropped, and the difference is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from podium.engine.cycle.evidence import Evidence
    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: Of how many nodes a difference names the verdicts, or the totals.
MOST_NAMED: Final = 5
#: How many differences a verification holds on to.
MOST_FOUND: Final = 100

#: Attributes of a decision that are compared as they are.
PLAIN_FIELDS: Final = (
    "node",
    "error",
    "failed_plugin",
    "node_errors",
    "extender_failed",
    "extender_hopeless",
    "feasible_count",
    "examined",
    "feasible",
    "tied",
    "cursor",
    "best",
    "reservations",
    "waits",
    "released",
    "post_code",
    "post_message",
    "held",
    "refused",
    "nominated",
    "consumed",
    "dropped",
)
#: Attributes of a preemption that are compared as they are; its candidates are listed first.
PREEMPTION_FIELDS: Final = (
    "eligible",
    "potential",
    "node",
    "tie",
    "criterion",
    "cleared",
    "error",
    "nomination",
)


class FieldDifference(NamedTuple):
    """One part of a decision that kept answers give otherwise."""

    field: str
    kept: str
    plain: str

    def __str__(self) -> str:
        return f"{self.field}: {self.kept} instead of {self.plain}"


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A decision that kept answers give otherwise than all rules asked about all nodes."""

    pod: Pod
    #: The name of the profile, and of its scheduler.
    profile: str
    scheduler: str
    #: The time of the decision, in seconds since 1970.
    time: float
    #: How many attempts the decider had made before this one.
    attempt: int
    #: The position of the journal of the cluster: its epoch, and how many rows were noted in it.
    journal: tuple[int, int]
    fields: tuple[FieldDifference, ...]
    kept: Decision
    plain: Decision

    def __str__(self) -> str:
        parts = "; ".join(map(str, self.fields))
        epoch, rows = self.journal
        where = f"attempt {self.attempt}, journal {epoch}:{rows}"
        return f"pod {self.pod.key} by {self.scheduler} ({self.profile}; {where}): {parts}"


@dataclass(slots=True)
class Verification:
    """Which attempts are decided both ways, and what came of it."""

    #: One attempt in so many is decided both ways; 0: none is.
    every: int = 1
    #: Called with each difference.
    report: Callable[[Discrepancy], None] | None = None
    #: How many decisions were compared, and how many of them differed.
    compared: int = 0
    differing: int = 0
    #: The first differences.
    found: list[Discrepancy] = field(default_factory=list)

    def note(self, difference: Discrepancy | None) -> None:
        """Count a comparison, and report what it found."""
        self.compared += 1
        if difference is None:
            return
        self.differing += 1
        if len(self.found) < MOST_FOUND:
            self.found.append(difference)
        if self.report is not None:
            self.report(difference)


class Sides(NamedTuple):
    """A decision and what it was made from."""

    decision: Decision
    evidence: Evidence


def differences(
    view: View, order: np.ndarray, kept: Sides, plain: Sides
) -> tuple[FieldDifference, ...]:
    """All parts in which two decisions about a pod differ."""
    return tuple(_differences(view, order, kept, plain))


def _differences(
    view: View, order: np.ndarray, kept: Sides, plain: Sides
) -> Iterator[FieldDifference]:
    ours, theirs = kept.decision, plain.decision
    for name in PLAIN_FIELDS:
        yield from _compared(name, getattr(ours, name), getattr(theirs, name))
    yield from _compared_rejections(view, ours, theirs)
    yield from _compared("message", ours.message, theirs.message)
    yield from _compared_preemptions(ours.preemption, theirs.preemption)
    yield from _compared_scores(ours, theirs)
    names = [view.nodes.names[row] for row in order.tolist()]
    codes, others = _codes(kept), _codes(plain)
    if len(codes) and len(others):
        shown = [_shown_verdict(view, code) for code in range(len(view.verdicts))]
        pairs = zip(names, codes.tolist(), others.tolist(), strict=False)
        wrong = [(f"verdict of {name}", shown[a], shown[b]) for name, a, b in pairs if a != b]
        yield from _few(wrong)
        yield from _compared("number of verdicts", len(codes), len(others))
    yield from _few(list(_compared_totals(view, kept.evidence, plain.evidence)))
    yield from _compared(
        "best nodes", _named(view, kept.evidence.best), _named(view, plain.evidence.best)
    )


def _compared(name: str, kept: Any, plain: Any) -> Iterator[FieldDifference]:
    if kept != plain:
        yield FieldDifference(name, _shown(kept), _shown(plain))


def _compared_rejections(view: View, kept: Decision, plain: Decision) -> Iterator[FieldDifference]:
    """How many nodes were rejected, by the verdict."""
    if kept.histogram != plain.histogram:
        ours, theirs = (
            {_shown_verdict(view, code): count for code, count in each.histogram.items()}
            for each in (kept, plain)
        )
        yield FieldDifference("rejections", _shown(ours), _shown(theirs))


def _few(found: list[tuple[str, str, str]]) -> Iterator[FieldDifference]:
    """The first of many differences, and how many more there are."""
    for each in islice(found, MOST_NAMED):
        yield FieldDifference(*each)
    if len(found) > MOST_NAMED:
        yield FieldDifference(found[0][0].split(" of ")[0] + "s", f"{len(found)} others", "these")


def _compared_preemptions(
    kept: Preemption | None, plain: Preemption | None
) -> Iterator[FieldDifference]:
    if kept is None or plain is None:
        yield from _compared("preemption", kept, plain)
        return
    yield from _compared("candidates", list(kept.candidates), list(plain.candidates))
    for node in [node for node in kept.candidates if node in plain.candidates]:
        ours, theirs = kept.candidates[node], plain.candidates[node]
        yield from _compared(f"victims on {node}", ours, theirs)
    for name in PREEMPTION_FIELDS:
        yield from _compared(f"preemption.{name}", getattr(kept, name), getattr(plain, name))


def _compared_scores(kept: Decision, plain: Decision) -> Iterator[FieldDifference]:
    """The scores of each rule, which decisions have that keep everything."""
    ours, theirs = ({column.name: column for column in each.scores} for each in (kept, plain))
    yield from _compared("scored by", list(ours), list(theirs))
    for name in ours.keys() & theirs.keys():
        one, other = ours[name], theirs[name]
        yield from _compared(f"scores of {name}", one.score.tolist(), other.score.tolist())
        yield from _compared(f"raw scores of {name}", one.raw.tolist(), other.raw.tolist())


def _codes(side: Sides) -> np.ndarray:
    codes = side.evidence.codes
    return side.decision.codes if codes is None else codes


def _compared_totals(view: View, kept: Evidence, plain: Evidence) -> Iterator[tuple[str, str, str]]:
    if kept.totals is None or plain.totals is None:
        return
    ours, theirs = _by_node(view, kept), _by_node(view, plain)
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one != other:
            yield f"total of {name}", _shown(one), _shown(other)


def _by_node(view: View, evidence: Evidence) -> Mapping[str, int]:
    assert evidence.feasible is not None
    assert evidence.totals is not None
    names = (view.nodes.names[row] for row in evidence.feasible.tolist())
    return dict(zip(names, evidence.totals.tolist(), strict=True))


def _named(view: View, rows: np.ndarray | None) -> list[str] | None:
    return None if rows is None else [view.nodes.names[row] for row in rows.tolist()]


def _shown_verdict(view: View, code: int) -> str:
    verdict = view.verdicts[code]
    if not code:
        return "fits"
    return f"{verdict.predicate} ({', '.join(verdict.reasons)})"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = str(value) if isinstance(value, str | int) else repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
