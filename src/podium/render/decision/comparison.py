"""The decisions of a shadow scheduler compared with where the pods were placed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.render.decision import sentences
from podium.render.decision.analysis import ranking, score_gaps
from podium.render.decision.as_json import API_VERSION
from podium.render.decision.explanation import node_report
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Decision
    from podium.render.decision.analysis import ScoreGap

#: How the node of a pod compares with the decision: the same node; another one with the same
#: total; one with a lower total; one that was rejected or not examined; no node was found.
SAME, TIED, LOWER, REJECTED, UNPLACED = "same", "tied", "lower", "rejected", "unplaced"
KINDS: Final = (SAME, TIED, LOWER, REJECTED, UNPLACED)
_KIND_TEXTS: Final = {
    TIED: "as good",
    LOWER: "scored lower",
    REJECTED: "rejected",
    UNPLACED: "no node found",
}


@dataclass(frozen=True, slots=True)
class PlacementComparison:
    """The node that was decided on for a pod, and the one that it was placed on."""

    pod: str
    ours: str | None
    theirs: str
    kind: str
    #: Why they differ, in sentences.
    why: tuple[str, ...] = ()
    #: The differences of the scores of the two nodes, by priority.
    gaps: tuple[ScoreGap, ...] = ()
    #: When the placement was seen, in seconds since 1970.
    time: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        found: dict[str, Any] = {
            "pod": self.pod,
            "ours": self.ours,
            "theirs": self.theirs,
            "kind": self.kind,
            "why": list(self.why),
        }
        if self.gaps:
            found["priorities"] = [
                {
                    "priority": gap.priority,
                    "weight": gap.weight,
                    "ours": gap.mine,
                    "theirs": gap.theirs,
                    "points": gap.points,
                }
                for gap in self.gaps
            ]
        return found


def compare_placement(decision: Decision, theirs: str, time: float = 0.0) -> PlacementComparison:
    """The decision compared with *theirs*, the node that the pod was placed on."""
    pod, ours = decision.pod, decision.node
    if ours == theirs:
        return PlacementComparison(pod, ours, theirs, SAME, time=time)
    report = node_report(decision, theirs)
    why = tuple(sentences.node_sentences(decision, report))
    if not decision.examined:
        why = ("the verdict on that node was not recorded",)
    if ours is None:
        why = (decision.message, *why)
        return PlacementComparison(pod, ours, theirs, UNPLACED, why, time=time)
    if report.position is None or decision.totals is None:
        return PlacementComparison(pod, ours, theirs, REJECTED, why, time=time)
    score_differences = tuple(score_gaps(decision, ranking(decision)[0], report.position))
    equal = int(decision.totals[report.position]) == int(decision.totals.max())
    kind = TIED if equal else LOWER
    return PlacementComparison(pod, ours, theirs, kind, why, score_differences, time)


@dataclass(slots=True)
class Agreement:
    """How many decisions agree with the placements, and how the others differ."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    #: Pods that were placed before a decision about them was made.
    undecided: int = 0
    #: Pods with a decision that are not placed yet.
    waiting: int = 0
    differences: Sequence[PlacementComparison] = ()

    @property
    def pods(self) -> int:
        """The number of placements that were compared."""
        return sum(self.counts.values())

    @property
    def ratio(self) -> float:
        """The share of placements on the same node, or on one with the same total."""
        return (self.counts[SAME] + self.counts[TIED]) / self.pods if self.pods else 1.0

    def as_json(self) -> dict[str, Any]:
        """The numbers and differences as plain data."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Agreement",
            "pods": self.pods,
            "agreement": round(self.ratio, 6),
            **self.counts,
            "undecided": self.undecided,
            "waiting": self.waiting,
            "differences": [each.as_json() for each in self.differences],
        }


def agreement_text(found: Agreement, limit: int = 50) -> str:
    """The numbers, and then at most *limit* differences with their reasons."""
    lines = [
        f"{counted(found.pods, 'placement')} compared, {found.ratio:.1%} agree",
        f"  {found.counts[SAME]:>8}  on the same node",
        f"  {found.counts[TIED]:>8}  on another node with the same total",
        f"  {found.counts[LOWER]:>8}  on a node that Podium scores lower",
        f"  {found.counts[REJECTED]:>8}  on a node that Podium rejects, or did not examine",
        f"  {found.counts[UNPLACED]:>8}  where Podium found no node",
    ]
    if found.undecided:
        lines.append(f"  {found.undecided:>8}  placed before Podium had decided (not compared)")
    if found.waiting:
        lines.append(f"  {found.waiting:>8}  decided, not placed yet")
    if not found.differences:
        return "\n".join(lines) + "\n"
    lines += ["", "Differences, the latest first:"]
    for each in list(found.differences)[:limit]:
        lines.append(f"  {each.pod}: {each.ours or 'no node'}, actually on {each.theirs}")
        lines += [f"      {_KIND_TEXTS[each.kind]}: {sentence}" for sentence in each.why[:1]]
        lines += [f"      {sentence}" for sentence in each.why[1:]]
        if each.gaps:
            parts = (f"{sentences.short(gap.priority)} {gap.points:+d}" for gap in each.gaps)
            lines.append(f"      points for {each.ours}: {', '.join(parts)}")
    if len(found.differences) > limit:
        lines.append(f"  and {len(found.differences) - limit} more")
    return "\n".join(lines) + "\n"
