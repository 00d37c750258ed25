"""The whole reasoning for one pod: which nodes were rejected and why, the scores, the choice."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.engine.framework.plan import plan_of
from podium.engine.state.accounting import NATIVE
from podium.library.decision_json import to_json
from podium.library.explained_causes import add_causes, add_trace
from podium.library.lookup import check_node, pod_named
from podium.library.notices import Notify, log_warning
from podium.library.pending_pods import pending, seen_by
from podium.library.pod_notes import PodNotes
from podium.library.reasoning.causes import nominees_of
from podium.library.simulations import open_simulation
from podium.render.decision.analysis import NodeReport, ResourceRoom, node_report
from podium.render.decision.causes import cause_data, causes_of_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.cluster.cache.columns import Columns
    from podium.cluster.simulation import Simulation
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.plan import PlanLine
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.trace import DecisionTrace
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


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


_PODS: Final = "pods"


def explain(
    objects: Objects,
    pod: Pod | str,
    profile: Profile,
    *,
    node: str | None = None,
    keep_node_name: bool = False,
    timed: bool = False,
    traced: bool = False,
    notify: Notify = log_warning,
) -> Explanation:
    """Decide about one pod, with all verdicts and scores; nothing is changed.

    *pod* is one of the *objects*, or its `NAME` or `NAMESPACE/NAME`. A running pod is taken off its
    node first. Other pending pods are not scheduled before it. With *node* the explanation also
    says what became of that node and how much of each resource is free there; *timed* adds how
    long each step took, *traced* what was computed in each. With *keep_node_name* the pod waits
    and insists on its `spec.nodeName`. *notify* is called with failures of extenders that are
    ignored.
    """
    wanted = pod_named(objects, pod) if isinstance(pod, str) else pod
    if node is not None:
        check_node(objects, node)
    with open_simulation(profile, notify=notify) as simulation:
        found = _decide(
            objects, wanted, simulation, node, keep_node_name=keep_node_name, traced=traced
        )
    if not timed:
        found.timings.clear()
        found.plan.clear()
    return found


def _decide(
    objects: Objects,
    pod: Pod,
    simulation: Simulation,
    node: str | None,
    *,
    keep_node_name: bool = False,
    traced: bool = False,
) -> Explanation:
    profile = simulation.profile
    actual = pod.spec.node_name or None
    running = actual is not None and not pod.finished
    timings: list[tuple[str, float]] = []
    with _step("load the cluster", timings):
        without = () if running else (pod,)
        simulation.load(seen_by(objects, {profile.scheduler_name}, without=without))
        if running:
            simulation.remove(pod.uid)
    waiting = pod if keep_node_name else replace(pod, spec=replace(pod.spec, node_name=""))
    steps = _Marks()
    group = None
    if profile.schedules_groups and waiting.group:
        with _step("decide about the group", timings):
            decision, group = _decide_group(objects, waiting, simulation, node, traced=traced)
    else:
        with _step("decide", timings):
            decision = simulation.attempt(waiting, recording=True, mark=steps.mark)
        timings += steps.taken
        with _step("find the causes", timings):
            add_causes(simulation.cache.columns, waiting, profile, decision, asked=node)
        if traced:
            with _step("trace the steps", timings):
                add_trace(simulation.cache.columns, waiting, profile, decision, asked=node)
    asked = node_report(decision, node) if node is not None else None
    if asked is not None:
        asked.room = list(_room(simulation.cache.columns, waiting, asked))
    about = PodNotes(objects, {profile.scheduler_name})
    evicts = decision.preemption is not None and bool(decision.preemption.victims)
    return Explanation(
        decision,
        pods=len(objects.pods),
        notes=[*about.of(pod, decision), *(about.of_evictions() if evicts else ())],
        ties=profile.ties,
        max_score=profile.max_score,
        actual=actual,
        never_preempts=pod.spec.preemption_policy == "Never",
        asked=asked,
        group=group,
        trace=decision.trace,
        timings=timings,
        plan=plan_of(simulation.cache.columns.pods.incoming(waiting).cls, profile).lines,
    )


def _decide_group(
    objects: Objects, pod: Pod, simulation: Simulation, node: str | None, *, traced: bool
) -> tuple[Decision, GroupDecision | None]:
    """Decide about the waiting pods of a group together, and explain one of them.

    What is found out about the pod is added while the cluster still is as it was for it: with the
    pods of the group that were tried before. No cycle is run for a group that is held.
    """
    names = {simulation.profile.scheduler_name}
    others = [
        each for each in pending(objects, names) if each.group == pod.group and each.key != pod.key
    ]
    order = {each.key: index for index, each in enumerate(objects.pods)}
    pods = sorted((*others, pod), key=lambda each: (-each.priority, order.get(each.key, 0)))
    simulation.groups.expect(pods)
    columns, profile = simulation.cache.columns, simulation.profile

    def explained(tried: Pod, decision: Decision) -> None:
        if tried.key != pod.key or decision.causes:
            return
        add_causes(columns, tried, profile, decision, asked=node)
        if traced:
            add_trace(columns, tried, profile, decision, asked=node)

    held = simulation.groups.hold(pods)
    if held is not None:
        found = next(each for each in simulation.groups.held(pods, held) if each.pod is pod)
        return found.decision, None
    group = simulation.groups.named(pod.group)
    assert group is not None, pod.group  # a missing group holds its pods
    simulation.decided = explained
    step = simulation.groups.run(group, pods, recording=True)
    own = next(each for each in step.steps if each.pod.key == pod.key)
    return own.decision, step.decision


class _Marks:
    """The steps of a decision, as kube-scheduler's trace names them, and their seconds."""

    def __init__(self) -> None:
        self._last = perf_counter()
        self.taken: list[tuple[str, float]] = []

    def mark(self, step: str) -> None:
        """End the step that is under way, and name it."""
        now = perf_counter()
        self.taken.append((f"  {step.removesuffix(' done')}", now - self._last))
        self._last = now


@contextmanager
def _step(name: str, timings: list[tuple[str, float]]) -> Iterator[None]:
    """Add the name and the seconds that the `with` block took."""
    begun = perf_counter()
    yield
    timings.append((name, perf_counter() - begun))


def _room(columns: Columns, pod: Pod, asked: NodeReport) -> Iterator[ResourceRoom]:
    """What the pod requests and what the node has, for every resource that the pod names."""
    row, incoming = columns.nodes.row_of[asked.node], columns.pods.incoming(pod)
    named = {index: resource for resource, index in columns.nodes.resources.items()}
    nominated = nominees_of(columns, asked.node, incoming)
    wanted = dict(enumerate(incoming.cls.wanted)) | incoming.cls.scalars
    for column, amount in wanted.items():
        if amount or named[column] in NATIVE[:2]:
            used = columns.pods.requested[column].item(row)
            there = columns.nodes.allocatable[column].item(row)
            promised = sum(dict(other.cls.taken).get(column, 0) for other in nominated)
            yield ResourceRoom(named[column], amount, used, there, promised)
    count, allowed = columns.pods.counts.item(row), columns.nodes.allowed_pods.item(row)
    yield ResourceRoom(_PODS, 1, count, allowed, len(nominated))
