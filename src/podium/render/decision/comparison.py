"""Two schedulers side by side: where one would have put each pod, where the other did, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.render.decision import words
from podium.render.decision.as_json import API_VERSION
from podium.render.decision.explanation import ask
from podium.render.decision.reasoning import gaps, ranking
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Decision
    from podium.render.decision.reasoning import Gap

#: How a placement compares: the same node; another one that is as good by our scores; one that we
#: score lower; one that we turn down or did not look at; and we had found no node at all.
SAME, TIED, LOWER, REJECTED, UNPLACED = "same", "tied", "lower", "rejected", "unplaced"
KINDS: Final = (SAME, TIED, LOWER, REJECTED, UNPLACED)
_HEADS: Final = {
    TIED: "as good",
    LOWER: "scored lower",
    REJECTED: "turned down",
    UNPLACED: "no node found",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One pod: our node and theirs."""

    pod: str
    ours: str | None
    theirs: str
    kind: str
    #: Why it is not the same, in sentences.
    why: tuple[str, ...] = ()
    #: What put our node ahead of theirs, priority by priority.
    gaps: tuple[Gap, ...] = ()
    #: When it was noticed, in seconds since 1970.
    time: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """As data."""
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


def compared(decision: Decision, theirs: str, time: float = 0.0) -> Compared:
    """What our decision says about the node that the pod really went to."""
    pod, ours = decision.pod, decision.node
    if ours == theirs:
        return Compared(pod, ours, theirs, SAME, time=time)
    asked = ask(decision, theirs)
    sentences = tuple(words.verdict_on(decision, asked))
    if not decision.examined:
        sentences = ("what was thought of that node was not recorded",)
    if ours is None:
        why = (decision.message, *sentences)
        return Compared(pod, ours, theirs, UNPLACED, why, time=time)
    if asked.position is None or decision.totals is None:
        return Compared(pod, ours, theirs, REJECTED, sentences, time=time)
    apart = tuple(gaps(decision, ranking(decision)[0], asked.position))
    equal = int(decision.totals[asked.position]) == int(decision.totals.max())
    return Compared(pod, ours, theirs, TIED if equal else LOWER, sentences, apart, time)


@dataclass(slots=True)
class Agreement:
    """How often two schedulers agreed, and where they did not."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    #: Pods that got a node before we had decided about them.
    undecided: int = 0
    #: Pods that we have decided about and that have no node yet.
    waiting: int = 0
    differences: Sequence[Compared] = ()

    @property
    def pods(self) -> int:
        """How many placements were compared."""
        return sum(self.counts.values())

    @property
    def ratio(self) -> float:
        """The share of placements on our node, or on one that we find as good."""
        return (self.counts[SAME] + self.counts[TIED]) / self.pods if self.pods else 1.0

    def as_json(self) -> dict[str, Any]:
        """As data."""
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
    """The whole comparison as text: numbers first, then every difference with its reasons."""
    lines = [
        f"{counted(found.pods, 'placement')} compared, {found.ratio:.1%} agree",
        f"  {found.counts[SAME]:>8}  on the same node",
        f"  {found.counts[TIED]:>8}  on another node that is as good",
        f"  {found.counts[LOWER]:>8}  on a node that Podium scores lower",
        f"  {found.counts[REJECTED]:>8}  on a node that Podium turns down, or did not look at",
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
        lines.append(f"  {each.pod}: {each.ours or 'nowhere'}, really {each.theirs}")
        lines += [f"      {_HEADS[each.kind]}: {sentence}" for sentence in each.why[:1]]
        lines += [f"      {sentence}" for sentence in each.why[1:]]
        if each.gaps:
            parts = (f"{words.short(gap.priority)} {gap.points:+d}" for gap in each.gaps)
            lines.append(f"      points for {each.ours}: {', '.join(parts)}")
    if len(found.differences) > limit:
        lines.append(f"  and {len(found.differences) - limit} more")
    return "\n".join(lines) + "\n"
