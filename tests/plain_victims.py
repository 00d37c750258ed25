"""The search for victims written plainly: one row after the other, one pod after the other.

What the engine finds in columns and batches must be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.engine.framework.decision import Victims
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.pipelines.filtering import run_filters_with_nominated
from podium.engine.preemption.go_sort import go_sorted
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.pod_class import NOT_STARTED, Resident
from podium.engine.state.verdicts import FITS
from podium.objects.kinds.workloads import PodDisruptionBudget
from podium.objects.selectors.selectors import SelectorError, from_label_selector


@dataclass
class Found:
    """The candidates in node order, and why the other rows that were tried are none."""

    candidates: dict[str, Victims] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


def covers(budget: PodDisruptionBudget, pod: Resident) -> bool:
    """Whether a budget covers a pod."""
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return False
    if selector.nothing or selector.empty or not pod.labels.labels:
        return False
    return pod.labels.namespace == budget.namespace and selector.matches(pod.labels.labels)


def exhausted(pods: list[Resident], budgets: list[PodDisruptionBudget]) -> list[Resident]:
    """v1.13: the pods that a budget without allowed disruptions covers."""
    used_up = [each for each in budgets if each.status.disruptions_allowed <= 0]
    return [pod for pod in pods if any(covers(each, pod) for each in used_up)]


def overdrawing(pods: list[Resident], budgets: list[PodDisruptionBudget]) -> list[Resident]:
    """v1.36: the pods, in this order, that overdraw a budget when all of them are charged."""
    allowed = [each.status.disruptions_allowed for each in budgets]
    found = []
    for pod in pods:
        overdrawn = False
        for number, budget in enumerate(budgets):
            disrupted = pod.key.partition("/")[2] in (budget.status.disrupted_pods or {})
            if covers(budget, pod) and not disrupted:
                allowed[number] -= 1
                overdrawn = overdrawn or allowed[number] < 0
        if overdrawn:
            found.append(pod)
    return found


def more_important(one: Resident, other: Resident) -> bool:
    """v1.36: whether one pod comes before the other."""
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.started == other.started == NOT_STARTED:
        return True
    return one.started < other.started


def tried(
    failed: FailedSearch,
    row: int,
    lower: list[Resident],
    protect: Callable[[list[Resident], list[PodDisruptionBudget]], list[Resident]],
    *,
    nominees_count: bool,
) -> tuple[int, str, list[Resident], list[Resident]]:
    """The verdict without the pods of lower priority, its error, the victims, and the protected.

    The pods of lower priority are given in order of importance.
    """
    trial = TrialRow(failed.view, row)
    for resident in lower:
        trial.remove(resident)

    def judged() -> int:
        return run_filters_with_nominated(
            failed.pod, trial, failed.rules, nominees_count_for_affinity=nominees_count
        )

    code = judged()
    if code != FITS:
        return code, trial.errors.get(0, ""), [], []
    protected = protect(lower, list(failed.view.catalog.budgets))
    victims = []
    for resident in (*protected, *(each for each in lower if each not in protected)):
        trial.add(resident)
        if judged() != FITS:
            trial.errors.clear()
            trial.remove(resident)
            victims.append(resident)
    return code, "", victims, protected


def listed(pods: list[Resident], protected: list[Resident], earliest: float) -> Victims:
    """Pods as victims, in this order."""
    return Victims(
        pods=tuple(pod.key for pod in pods),
        uids=tuple(pod.uid for pod in pods),
        priorities=tuple(pod.priority for pod in pods),
        violations=sum(pod in protected for pod in pods),
        earliest=earliest,
    )


def plain_v1_13(failed: FailedSearch) -> dict[str, Victims]:
    """The candidates of v1.13."""
    found = {}
    for row in failed.potential.tolist():
        lower = [r for r in failed.view.pods.residents[row] if r.priority < failed.pod.priority]
        lower.sort(key=lambda each: -each.priority)
        code, _, victims, protected = tried(failed, row, lower, exhausted, nominees_count=False)
        if code == FITS:
            found[failed.view.nodes.names[row]] = listed(victims, protected, 0.0)
    return found


def plain_v1_36(failed: FailedSearch, percentage: int, absolute: int) -> Found:
    """The candidates of v1.36, up to the row with which there are enough."""
    found, view = Found(), failed.view
    wanted = len(failed.potential) * percentage // 100
    wanted = min(max(wanted, absolute), len(failed.potential))
    for row in failed.potential.tolist():
        lower = [r for r in view.pods.residents[row] if r.priority < failed.pod.priority]
        if not lower:
            found.reasons["No preemption victims found for incoming pod"] += 1
            continue
        lower = go_sorted(lower, more_important)
        code, error, victims, protected = tried(
            failed, row, lower, overdrawing, nominees_count=True
        )
        if error:
            found.errors.append(error)
        elif code != FITS:
            found.reasons.update(set(filter(None, view.verdicts[code].reasons)))
        elif not victims:
            found.errors.append(
                f'expected at least one victim pod on node "{view.nodes.names[row]}"'
            )
        else:
            if protected and len(protected) < len(lower):
                victims = go_sorted(victims, more_important)
            highest = max(pod.priority for pod in victims)
            earliest = min(pod.started for pod in victims if pod.priority == highest)
            found.candidates[view.nodes.names[row]] = listed(victims, protected, earliest)
        enough = len(found.candidates) >= wanted
        if enough and any(not each.violations for each in found.candidates.values()):
            break
    return found
