"""The whole reasoning for one pod: which nodes were rejected and why, the scores, the choice."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.engine.framework.plan import plan_of
from podium.engine.state.accounting import NATIVE
from podium.library.explained_causes import add_causes, add_trace
from podium.library.lookup import check_node, pod_named
from podium.library.notices import Notify, log_warning
from podium.library.pending import pending, seen_by
from podium.library.pod_notes import PodNotes
from podium.library.simulating import open_simulation
from podium.render.decision.explanation import Explanation, NodeReport, ResourceRoom, node_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.cluster.cache.columns import Columns
    from podium.cluster.simulation import Simulation
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

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
    row, kind = columns.nodes.row_of[asked.node], columns.pods.incoming(pod).cls
    named = {index: resource for resource, index in columns.nodes.resources.items()}
    nominated = [
        other
        for other in columns.pods.nominated.get(asked.node, ())
        if other.priority >= pod.priority and other.uid != pod.uid
    ]
    wanted = dict(zip(range(len(NATIVE)), kind.wanted, strict=True)) | kind.scalars
    for column, amount in wanted.items():
        if amount or named[column] in NATIVE[:2]:
            used = columns.pods.requested[column].item(row)
            there = columns.nodes.allocatable[column].item(row)
            promised = sum(dict(other.cls.taken).get(column, 0) for other in nominated)
            yield ResourceRoom(named[column], amount, used, there, promised)
    count, allowed = columns.pods.counts.item(row), columns.nodes.allowed_pods.item(row)
    yield ResourceRoom(_PODS, 1, count, allowed, len(nominated))
