"""A decision with everything else that an explanation of it shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from podium.render.decision.as_json import to_json
from podium.render.decision.causes import cause_data, causes_of_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.plan import PlanLine
    from podium.engine.framework.trace import DecisionTrace
    from podium.engine.state.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class ResourceRoom:
    """One resource on one node: how much the pod requests, and how much there is."""

    resource: str
    wanted: int
    used: int
    allocatable: int
    #: What pods that are nominated to the node request.
    promised: int = 0

    @property
    def free(self) -> int:
        """The allocatable amount that no pod on the node, or nominated to it, requests."""
        return self.allocatable - self.used - self.promised


@dataclass(slots=True)
class NodeReport:
    """What a decision says about one node."""

    node: str
    #: Why it was rejected; None if it fits or was not examined.
    verdict: Verdict | None = None
    #: Its position among the feasible nodes, if it is one.
    position: int | None = None
    #: Why an extender rejected it.
    messages: list[str] = field(default_factory=list)
    room: list[ResourceRoom] = field(default_factory=list)


@dataclass(slots=True, repr=False)
class Explanation:
    """A decision, and what is known of the pod and the cluster besides."""

    decision: Decision
    #: How many pods the cluster has, where that is known.
    pods: int | None
    #: The tie-break between nodes with the best total.
    ties: str = "round-robin"
    #: The highest score of a priority.
    max_score: int = 10
    #: The node that the pod runs on.
    actual: str | None = None
    #: Whether the pod has `preemptionPolicy: Never`.
    never_preempts: bool = False
    #: What a reader has to know beside the decision, one sentence each.
    notes: list[str] = field(default_factory=list)
    #: The node that the user asks about.
    asked: NodeReport | None = None
    #: The cycle of its pod group that the decision is part of.
    group: GroupDecision | None = None
    #: The decision step by step, where that is asked for.
    trace: DecisionTrace | None = None
    #: The steps of the command and their seconds.
    timings: list[tuple[str, float]] = field(default_factory=list)
    #: What is done about each rule for such pods, where the steps are timed.
    plan: list[PlanLine] = field(default_factory=list)

    def __repr__(self) -> str:
        """Where the pod goes."""
        node = self.decision.node
        return f"<Explanation: {self.decision.pod} {f'goes to {node}' if node else 'has no node'}>"

    def _repr_html_(self) -> str:
        """The outcome and what to know about it, for notebooks."""
        reason = self.decision.message or self.decision.error
        lines = [repr(self)[1:-1], *([reason] if reason else []), *self.notes]
        return f"<pre>{escape(chr(10).join(lines))}</pre>"

    def __getitem__(self, node: str) -> NodeReport:
        """What the decision says about a node."""
        if node not in self.decision.examined and node not in self.decision.feasible:
            raise KeyError(f"{node} was not looked at")
        return node_report(self.decision, node)

    def as_json(self) -> dict[str, Any]:
        """The decision as plain data, with the other parts of the explanation."""
        found = to_json(self.decision, group=self.group)
        if self.notes:
            found["notes"] = list(self.notes)
        if self.actual is not None:
            found["actual"] = self.actual
        if self.asked is not None:
            found["asked"] = _report_data(self.asked, self.decision)
        if self.trace is not None:
            found["trace"] = msgspec.json.decode(msgspec.json.encode(self.trace))
        if self.timings:
            found["timings"] = [{"step": s, "seconds": round(t, 6)} for s, t in self.timings]
        if self.plan:
            found["plan"] = plan_data(self.plan)
        return found


def plan_data(lines: Iterable[PlanLine]) -> list[dict[str, str]]:
    """What is done about each rule, as plain data."""
    return [
        {
            "stage": each.stage,
            "rule": each.rule,
            "scope": each.scope.name.lower(),
            "kept": each.kept,
            "askedAgain": each.again,
        }
        for each in lines
    ]


def node_report(decision: Decision, node: str) -> NodeReport:
    """What the decision says about one node."""
    report = NodeReport(node, messages=list(decision.extender_failed.get(node, ())))
    if node in decision.examined:
        code = int(decision.codes[list(decision.examined).index(node)])
        report.verdict = decision.verdict(code) if code > 0 else None
    if node in decision.feasible:
        report.position = list(decision.feasible).index(node)
    return report


def _report_data(report: NodeReport, decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"node": report.node, "fits": report.position is not None}
    if report.verdict is not None:
        found["predicate"] = report.verdict.predicate
        found["reasons"] = list(report.verdict.reasons)
        found["curable"] = report.verdict.curable
        if len(report.verdict.by_rule) > 1:
            found["byRule"] = [
                {"predicate": name, "reasons": list(reasons)}
                for name, reasons in report.verdict.by_rule
            ]
        causes = causes_of_node(decision, report.node)
        if causes:
            found["causes"] = [cause_data(each) for each in causes]
    elif report.messages:
        found["reasons"] = report.messages
    if report.position is not None and decision.totals is not None:
        found["total"] = int(decision.totals[report.position])
    found["room"] = [
        {
            "resource": r.resource,
            "wanted": r.wanted,
            "used": r.used,
            "promised": r.promised,
            "allocatable": r.allocatable,
        }
        for r in report.room
    ]
    return found
