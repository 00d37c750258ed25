"""Everything that is told about one pod: the decision and what stands around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.render.decision.as_json import to_json

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision
    from podium.engine.state.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Room:
    """One resource on one node: what the pod wants and what is there."""

    resource: str
    wanted: int
    used: int
    allocatable: int

    @property
    def free(self) -> int:
        """What is left for the pod."""
        return self.allocatable - self.used


@dataclass(slots=True)
class Asked:
    """The node that somebody asked about."""

    node: str
    #: Why it was turned down; None if it fits or was not looked at.
    verdict: Verdict | None = None
    #: Its position among the feasible nodes, if it is one.
    position: int | None = None
    #: What an extender said.
    messages: list[str] = field(default_factory=list)
    room: list[Room] = field(default_factory=list)


@dataclass(slots=True)
class Explanation:
    """A decision with its surroundings."""

    decision: Decision
    #: How many pods the cluster has, where that is known.
    pods: int | None
    #: How the choice among equals is made.
    ties: str = "round-robin"
    #: The best score a priority gives.
    max_score: int = 10
    #: Where the pod runs now.
    actual: str | None = None
    #: Whether the pod itself says that it evicts nobody.
    never_preempts: bool = False
    asked: Asked | None = None
    #: What was done, and how many seconds it took.
    timings: list[tuple[str, float]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The decision, with what is only known here."""
        found = to_json(self.decision)
        if self.actual is not None:
            found["actual"] = self.actual
        if self.asked is not None:
            found["asked"] = _asked(self.asked, self.decision)
        if self.timings:
            found["timings"] = [{"step": s, "seconds": round(t, 6)} for s, t in self.timings]
        return found


def ask(decision: Decision, node: str) -> Asked:
    """What the decision says about one node."""
    asked = Asked(node, messages=list(decision.extender_failed.get(node, ())))
    if node in decision.examined:
        code = int(decision.codes[list(decision.examined).index(node)])
        asked.verdict = decision.verdict(code) if code > 0 else None
    if node in decision.feasible:
        asked.position = list(decision.feasible).index(node)
    return asked


def _asked(asked: Asked, decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"node": asked.node, "fits": asked.position is not None}
    if asked.verdict is not None:
        found["predicate"] = asked.verdict.predicate
        found["reasons"] = list(asked.verdict.reasons)
        found["curable"] = asked.verdict.curable
    elif asked.messages:
        found["reasons"] = asked.messages
    if asked.position is not None and decision.totals is not None:
        found["total"] = int(decision.totals[asked.position])
    found["room"] = [
        {"resource": r.resource, "wanted": r.wanted, "used": r.used, "allocatable": r.allocatable}
        for r in asked.room
    ]
    return found
