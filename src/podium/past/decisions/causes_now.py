"""The causes behind a recorded decision, as far as the cluster still is as it was.

A running scheduler records verdicts and scores and not what led to them. When a page or `podium
why` shows a pod, it is decided about once more. That happens on a copy of the cluster as it is now,
without the pod. What came out as it is recorded is shown with its causes. Other decisions are made
meanwhile: the copy is decided on in another thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from podium.cluster.simulation import Simulation
from podium.engine.framework.causes import CausedRejection, ScoreCause
from podium.library.explained_causes import add_causes, add_trace
from podium.library.reasoning.trace import selection_of
from podium.scheduler.state.cluster_copy import let_go

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.causes import PreemptionCauses
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.trace import DecisionTrace
    from podium.engine.state.verdicts import Verdict
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.cluster_copy import LiveCopy


@dataclass(frozen=True, slots=True)
class Causes:
    """What led to a decision, found after it."""

    rejections: tuple[CausedRejection, ...] = ()
    scores: tuple[ScoreCause, ...] = ()
    preemption: PreemptionCauses | None = None
    #: The decision step by step, if everything came out as it is recorded.
    trace: DecisionTrace | None = None

    def add_to(self, decision: Decision) -> None:
        """Make a decision show these causes."""
        decision.causes, decision.score_causes = self.rejections, self.scores
        decision.preemption_causes = self.preemption
        decision.trace = self.trace


def causes_of(
    cluster: LiveCopy,
    key: str,
    waiting: Pod | None,
    profiles: Sequence[Profile],
    recorded: Decision,
) -> Causes:
    """The causes of the decision about a pod that is *waiting*, or is on a node of the copy.

    The copy is used up. There are no causes if another pod has the name by now.
    """
    pod = waiting
    if pod is None:
        placed = cluster.take(key)
        pod = None if placed is None else placed.pod()
    if pod is None or pod.uid != recorded.uid:
        return Causes()
    now, profile = decided_on(cluster, pod, profiles)
    return _still_true(recorded, now, profile.ties)


def decided_on(
    cluster: LiveCopy, pod: Pod, profiles: Sequence[Profile]
) -> tuple[Decision, Profile]:
    """Decide about a pod on a copy of the cluster without it; the decision with its causes.

    The copy is used up.
    """
    bare = [replace(profile, extenders=()) for profile in profiles]
    simulation = Simulation(bare[0], others=bare[1:], now=cluster.decided_at)
    objects = cluster.objects()
    let_go(cluster.fixed)
    simulation.load(objects)
    let_go(objects.pods)
    columns, profile = simulation.cache.columns, simulation.profile_of(pod)
    columns.pods.groups.expect_all(cluster.members)
    for node, nominated in cluster.nominated.items():
        for each in nominated:
            simulation.nominate(each, node)
    simulation.decider.ties = cluster.ties
    order = np.array([columns.nodes.row_of[name] for name in cluster.order], np.int64)
    decision = simulation.decider.look(pod, profile, order=order)
    add_causes(columns, pod, profile, decision)
    add_trace(columns, pod, profile, decision)
    for residents in columns.pods.residents:
        residents.clear()
    let_go(columns.pods.by_uid)
    return decision, profile


def _still_true(recorded: Decision, now: Decision, ties: str) -> Causes:
    """The causes of what was decided now as it is recorded."""
    before, after = _verdicts(recorded), _verdicts(now)
    same = {name for name, verdict in after.items() if before.get(name) == verdict}
    rejections = []
    for each in now.causes:
        nodes = tuple(name for name in each.nodes if name in same)
        if nodes:
            rejections.append(CausedRejection(each.predicate, each.cause, nodes))
    raw = _raw_scores(recorded)
    scored = _raw_scores(now)
    scores = []
    for cause in now.score_causes:
        kept = tuple(
            one
            for one in cause.nodes
            if raw.get((cause.priority, one.node)) == scored[cause.priority, one.node]
        )
        if kept:
            scores.append(ScoreCause(cause.priority, cause.formula, kept))
    same_search = (
        recorded.preemption is not None
        and now.preemption is not None
        and list(recorded.preemption.candidates) == list(now.preemption.candidates)
    )
    preemption = now.preemption_causes if same_search else None
    all_same = (
        before == after
        and raw == scored
        and list(recorded.examined) == list(now.examined)
        and (same_search or recorded.preemption is None)
    )
    trace = None
    if all_same and now.trace is not None:
        # The tie is that of the decision; the counter has moved on since.
        trace = msgspec.structs.replace(now.trace, selection=selection_of(recorded, ties))
    return Causes(tuple(rejections), tuple(scores), preemption, trace)


def _verdicts(decision: Decision) -> dict[str, Verdict]:
    named = zip(decision.examined, decision.codes.tolist(), strict=True)
    return {name: decision.verdict(code) for name, code in named if code > 0}


def _raw_scores(decision: Decision) -> dict[tuple[str, str], int]:
    """The raw score by rule and node."""
    return {
        (column.name, name): score
        for column in decision.scores
        for name, score in zip(decision.feasible, column.raw.tolist(), strict=True)
    }
