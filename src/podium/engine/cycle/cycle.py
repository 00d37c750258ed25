"""One scheduling cycle: filter, score, select, reserve; or preempt.

The file to read first. The stages of the scheduling framework run in this order; PreFilter, Filter
and Score are in modules of their own. The engine decides up to and including what is reserved; the
caller carries out binding. The cycle is a generator: where an extender must be asked it yields the
question and is sent the reply. Without extenders it never yields, and `run` runs it through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.cycle.searching import find_feasible, potential_rows
from podium.engine.cycle.selecting import covers_all_rows, select_from_answers, select_node
from podium.engine.framework.decision import Decision
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.framework.rule import AttemptError, Refused
from podium.engine.rows.rows import OneRow

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from podium.engine.cycle.attempt import Attempt
    from podium.engine.fast.class_answers import ClassAnswers
    from podium.engine.framework.plan import RulePlan
    from podium.engine.framework.post_filter import PostFilter
    from podium.engine.framework.rule import Permission
    from podium.engine.state.reservation import Reservation
    from podium.engine.state.view import View

T = TypeVar("T")

NO_NODES = "no nodes available to schedule pods"


def run(steps: Generator[Any, Any, T]) -> T:
    """Run the cycle of a profile without extenders to its end."""
    try:
        question = next(steps)
    except StopIteration as done:
        decision: T = done.value
        return decision
    raise RuntimeError(f"{question!r} needs an answer; run the cycle with extenders")


def cycle(view: View, attempt: Attempt) -> Generator[Any, Any, Decision]:
    """Choose a node for the pod, or say why none fits and whether evicting pods would help."""
    pod, profile = attempt.pod, attempt.profile
    decision = Decision(pod.key, pod.uid, profile.name, nodes=len(view.nodes.order))
    decision.verdicts = view.verdicts
    for gate in profile.gates:
        held = gate.hold(pod, view)
        if held is not None:
            decision.held = held
            return decision
    try:
        _check(view, attempt, decision.nodes)
        pre_filter = PreFilter(pod, view, profile)
        attempt.mark("Basic checks done")
        row = None
        if pre_filter.refused is not None:
            decision.refused = pre_filter.refused
        else:
            answers = _kept_answers(attempt, pre_filter)
            if answers is not None and covers_all_rows(view, attempt):
                row = select_from_answers(view, attempt, answers, decision)
            if row is None:
                row = yield from _search(view, attempt, pre_filter, answers, decision)
        if row is not None:
            attempt.mark("Selecting host done")
            _reserve(view, attempt, pre_filter.plan, decision, row)
            if decision.reservations:
                attempt.mark("Reserving done")
        elif profile.post_filters:
            failed = FailedSearch(
                pod,
                view,
                pre_filter.taking_part(),
                potential_rows(view, attempt, decision),
                refused=decision.refused,
                rows=attempt.order[: len(decision.codes)],
                codes=decision.codes,
                prepared=pre_filter.asked,
                extenders=profile.extenders,
                min_batch_rows=profile.tuning.min_batch_rows,
                may_keep=attempt.answers is not None and not attempt.recording,
            )
            yield from _run_post_filters(profile.post_filters, failed, decision)
            attempt.mark("Preemption done")
    except AttemptError as error:
        decision.error, decision.failed_plugin = str(error), error.plugin
        decision.node_errors = error.nodes
    return decision


def _check(view: View, attempt: Attempt, nodes: int) -> None:
    """What must hold before any node is looked at, and how many there are."""
    for check in attempt.profile.checks:
        if text := check(attempt.pod, view):
            raise AttemptError(text)
    if not nodes:
        raise AttemptError(NO_NODES)


def _search(
    view: View,
    attempt: Attempt,
    pre_filter: PreFilter,
    answers: ClassAnswers | None,
    decision: Decision,
) -> Generator[Any, Any, int | None]:
    """Filter and score: the row that the pod goes to; None when none fits."""
    feasible: np.ndarray = yield from find_feasible(view, attempt, pre_filter, answers, decision)
    attempt.mark("Computing predicates done")
    if not len(feasible):
        return None
    return (yield from select_node(view, attempt, feasible, answers, decision))


def _kept_answers(attempt: Attempt, pre_filter: PreFilter) -> ClassAnswers | None:
    """The answers kept for the class of the pod, where they can be used."""
    if attempt.answers is None or attempt.recording or pre_filter.only is not None:
        return None
    return attempt.answers.of(attempt.pod)


def _reserve(view: View, attempt: Attempt, plan: RulePlan, decision: Decision, row: int) -> None:
    """Note in the decision the node and what is reserved there, or which permit rule rejects it.

    Nothing of the cluster changes: the caller keeps the reservations with the assumed pod, waits
    until the pod is permitted, carries the reservations out, binds the pod, and drops the
    reservations with the pod.
    """
    pod, profile = attempt.pod, attempt.profile
    if not plan.reserving and not profile.permits:
        decision.node = view.nodes.names[row]
        return
    at = OneRow(view, row)
    reservations: dict[str, Reservation] = {}
    waits: list[tuple[str, Permission]] = []
    for reserving in plan.reserving:
        reserved = reserving.reserve(pod, at)
        if reserved is not None:
            reservations[reserving.name] = reserved
    for permitting in profile.permits:
        permission = permitting.permit(pod, at)
        if permission.allowed:
            continue
        if permission.wait_seconds <= 0:
            decision.refused = Refused(permitting.name, permission.reason)
            return
        waits.append((permitting.name, permission))
    decision.reservations, decision.waits = reservations, tuple(waits)
    decision.node = view.nodes.names[row]


def _run_post_filters(
    post_filters: Sequence[PostFilter], failed: FailedSearch, decision: Decision
) -> Generator[Any, Any, None]:
    """Run post-filters in order until one helps or fails; record the outcome in the decision."""
    reasons = []
    for plugin in post_filters:
        outcome = yield from plugin.run(failed)
        if outcome.preemption is not None:
            decision.preemption = outcome.preemption
        if outcome.released is not None:
            decision.released = outcome.released
        decision.post_code = outcome.code
        if outcome.code != "Unschedulable":
            decision.post_message = outcome.reason
            return
        reasons.append(outcome.reason)
        decision.post_message = ", ".join(filter(None, reasons))
