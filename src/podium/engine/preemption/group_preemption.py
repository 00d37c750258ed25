"""Preemption for a pod group. The whole cluster is one place: no candidates, no choice of a node.

All pods of lower priority are removed, and the group is scheduled once. The nodes found then are
fixed. Victims are put back, those protected by budgets first and the most important first; one with
which a pod of the group does not fit on its node any more is evicted.

Upstream: pkg/scheduler/framework/preemption/podgrouppreemption.go, Kubernetes v1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.group_decision import SUCCESS, GroupPreemption
from podium.engine.framework.post_filter import GroupOutcome
from podium.engine.pipelines.filtering import run_filters_with_nominated
from podium.engine.preemption.group_victims import (
    by_importance,
    priority_of,
    victims_on,
    violations_of,
)
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from podium.engine.framework.post_filter import FailedGroup, GroupTrial, TrialPlacement
    from podium.engine.preemption.group_victims import Victim

PREFIX: Final = "pod group preemption: "
NEVER: Final = "not eligible due to preemptionPolicy=Never."
ONGOING: Final = "ongoing preemption on nominated nodes"
NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


def preempt_for_group(failed: FailedGroup) -> Generator[Any, Any, GroupOutcome]:
    """The pods to evict so that the group fits, or why evicting pods does not help."""
    if any(pod.pod.spec.preemption_policy == "Never" for pod in failed.pods):
        return GroupOutcome("Unschedulable", PREFIX + NEVER)
    if _is_ongoing(failed):
        named = {pod.uid: pod.pod.status.nominated_node_name for pod in failed.pods}
        ongoing = GroupPreemption(nominated=named, ongoing=True)
        return GroupOutcome(SUCCESS, PREFIX + ONGOING, ongoing)
    everything = victims_on(failed.view, failed.rows.tolist())
    victims = [each for each in everything if each.priority < failed.group.priority]
    if not victims:
        return GroupOutcome("UnschedulableAndUnresolvable", PREFIX + NO_VICTIMS)
    with failed.trial() as trial:
        return (yield from _search(failed, trial, victims))


def _is_ongoing(failed: FailedGroup) -> bool:
    """Whether a node nominated to a pod of the group holds a pod that was evicted and is leaving.

    Only pods of lower priority count.
    """
    view, priority = failed.view, failed.group.priority
    for node in {pod.pod.status.nominated_node_name for pod in failed.pods} - {""}:
        row = view.nodes.row_of.get(node)
        if row is None or view.nodes.objects[row] is None:
            continue
        for pod in view.pods.residents[row]:
            if pod.evicted and priority_of(view, pod) < priority:
                return True
    return False


def _search(
    failed: FailedGroup, trial: GroupTrial, victims: Sequence[Victim]
) -> Generator[Any, Any, GroupOutcome]:
    for victim in victims:
        for pod in victim.pods:
            trial.remove(pod)
    attempt, placements = yield from trial.schedule()
    if attempt.code != SUCCESS:
        return GroupOutcome(attempt.code, PREFIX + attempt.message, trial=attempt)
    found = violations_of(by_importance(victims), failed.view.catalog.budgets)
    charged = list(found)
    evicted, violations = [], 0
    for victim, violating in (
        *(each for each in charged if each[1]),
        *(each for each in charged if not each[1]),
    ):
        if not _reprieve(failed, trial, victim, placements):
            evicted.append(victim)
            violations += violating
    view = failed.view
    pods = [pod for victim in by_importance(evicted) for pod in victim.pods]
    preemption = GroupPreemption(
        pods=tuple(pod.key for pod in pods),
        uids=tuple(pod.uid for pod in pods),
        nodes=tuple(view.nodes.names[pod.row] for pod in pods),
        violations=violations,
        nominated={each.pod.uid: view.nodes.names[each.row] for each in placements},
    )
    text = f"found a placement for podgroup, preempting {len(pods)} victims"
    return GroupOutcome(SUCCESS, PREFIX + text, preemption, attempt)


def _reprieve(
    failed: FailedGroup,
    trial: GroupTrial,
    victim: Victim,
    placements: Sequence[TrialPlacement],
) -> bool:
    """Put a victim back, and see whether each pod of the group still fits on its node in turn."""
    for pod in victim.pods:
        trial.put_back(pod)
    assumed: list[TrialPlacement] = []
    try:
        for placement in placements:
            code = run_filters_with_nominated(
                placement.pod,
                TrialRow(failed.view, placement.row),
                placement.rules,
                nominees_count_for_affinity=True,
            )
            if code != FITS:
                return False
            trial.assume(placement)
            assumed.append(placement)
    finally:
        for placement in reversed(assumed):
            trial.forget(placement)
        if len(assumed) < len(placements):
            for pod in victim.pods:
                trial.remove(pod)
    return True
