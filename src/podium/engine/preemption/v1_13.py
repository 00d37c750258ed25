"""Which pods to evict so that a pod fits.

On every node where that could help, all pods of lower priority are taken away; if the pod fits
then, they are put back one by one, most important first and those protected by a budget before the
others, and whoever makes the pod fit no more is a victim. Then the node that costs least is chosen.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.filtering import judge_with_nominated
from podium.engine.framework.decision import Preemption, Victims
from podium.engine.framework.extenders import ask_victims
from podium.engine.framework.rule import AttemptError
from podium.engine.preemption.batch_filter import in_lockstep
from podium.engine.preemption.victim_search import MassTrial, MassVictims
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS
from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.tallies import LabelSet
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import PodDisruptionBudget
    from podium.objects.selectors.selectors import Selector


def preempt(
    pod: Incoming, view: View, profile: Profile, potential: np.ndarray
) -> Generator[Any, Any, Preemption]:
    """What evicting pods could do; `potential` are the rows where it may help, in node order."""
    if not eligible(pod, view):
        return Preemption(eligible=False)
    names = view.names_of(potential)
    if not names:
        return Preemption(eligible=True, nomination="", cleared=((pod.uid, pod.key),))
    candidates = find_candidates(pod, view, profile, potential)
    if profile.extenders:
        try:
            candidates = yield from ask_victims(
                pod, view, profile.extenders, candidates, victims_of
            )
        except AttemptError as error:
            return Preemption(eligible=True, potential=names, error=str(error))
    node, tie, criterion = choose(candidates)
    cleared = lower_nominations(pod, view, node) if node is not None else ()
    return Preemption(
        eligible=True,
        potential=names,
        candidates=candidates,
        node=node,
        tie=tie,
        criterion=criterion,
        cleared=cleared,
        nomination=node,
    )


def find_candidates(
    pod: Incoming, view: View, profile: Profile, potential: np.ndarray
) -> Mapping[str, Victims]:
    """The victims on every row where evicting pods makes the pod fit."""
    together = in_lockstep(pod, view, profile.predicates, potential)
    if together is not None:
        trial = MassTrial(
            pod,
            view,
            profile.predicates,
            potential,
            victims_of,
            together=together,
            by_importance=False,
        )
        trial.sort(_protected)
        return trial.run()[0]
    found = ((view.names[row], victims_on(pod, view, profile, row)) for row in potential.tolist())
    return {name: victims for name, victims in found if victims is not None}


def _protected(trial: MassTrial) -> np.ndarray:
    """Which pods some exhausted budget covers; asked once per set of labels."""
    budgets = list(exhausted_budgets(trial.view.catalog.budgets))
    if not budgets:
        return np.zeros(len(trial.crowd), np.bool_)
    return trial.crowd.by_labels(lambda labels: any(covers(labels) for covers in budgets)) > 0


def eligible(pod: Incoming, view: View) -> bool:
    """Not while pods of lower priority are already leaving the node it was promised."""
    if pod.pod.spec.preemption_policy == "Never":
        return False
    row = view.row_of.get(pod.pod.status.nominated_node_name)
    if row is None:
        return True
    return not any(p.terminating and p.priority < pod.priority for p in view.residents[row])


def victims_on(pod: Incoming, view: View, profile: Profile, row: int) -> Victims | None:
    """The pods that must leave a node for the pod to fit; None when even that does not help."""
    trial = TrialRow(view, row)
    lower = [resident for resident in view.residents[row] if resident.priority < pod.priority]
    for resident in lower:
        trial.remove(resident)
    if judge_with_nominated(pod, trial, profile.predicates) != FITS:
        return None
    lower.sort(key=lambda resident: -resident.priority)
    budgets = list(exhausted_budgets(view.catalog.budgets))
    protected = [r for r in lower if any(covers(r.labels) for covers in budgets)]
    victims, violations = [], 0
    for resident in (*protected, *(r for r in lower if r not in protected)):
        trial.add(resident)
        if judge_with_nominated(pod, trial, profile.predicates) != FITS:
            trial.errors.clear()
            trial.remove(resident)
            victims.append(resident)
            violations += resident in protected
    return victims_of(victims, violations)


def victims_of(pods: Sequence[Resident], violations: int, earliest: float = 0.0) -> Victims:
    """Pods as victims, in this order."""
    return Victims(
        pods=tuple(pod.key for pod in pods),
        uids=tuple(pod.uid for pod in pods),
        priorities=tuple(pod.priority for pod in pods),
        violations=violations,
        earliest=earliest,
    )


def exhausted_budgets(
    budgets: Iterable[PodDisruptionBudget],
) -> Iterable[Callable[[LabelSet], bool]]:
    """For each budget that allows no disruption: whether it covers pods with these labels."""
    for budget in budgets:
        if budget.status.disruptions_allowed > 0:
            continue
        try:
            selector = from_label_selector(budget.spec.selector)
        except SelectorError:
            continue
        if selector.nothing or selector.empty:
            continue
        yield partial(is_covered, budget.namespace, selector)


def is_covered(namespace: str, selector: Selector, pods: LabelSet) -> bool:
    """Whether a budget with this namespace and selector means pods with these labels."""
    return bool(pods.labels) and pods.namespace == namespace and selector.matches(pods.labels)


Criterion = tuple[str, "Callable[[Victims], float]"]

#: In this order, as long as more than one node is left. The "highest" priority is that of the
#: first victim, which is one protected by a budget if there is any.
CRITERIA: tuple[Criterion, ...] = (
    ("fewest budget violations", lambda v: v.violations),
    ("lowest highest priority", lambda v: v.priorities[0]),
    ("lowest sum of priorities", lambda v: sum(p + (1 << 31) for p in v.priorities)),
    ("fewest victims", lambda v: len(v.pods)),
)


def choose(candidates: Mapping[str, Victims]) -> tuple[str | None, tuple[str, ...], str]:
    """The cheapest node by the usual criteria."""
    return choose_by(candidates, CRITERIA)


def choose_by(
    candidates: Mapping[str, Victims], criteria: Sequence[Criterion]
) -> tuple[str | None, tuple[str, ...], str]:
    """The cheapest node, those as cheap as it, and what decided."""
    if not candidates:
        return None, (), ""
    names = list(candidates)
    columns = candidates.costs() if isinstance(candidates, MassVictims) else {}
    left = np.arange(len(names))
    told = [] if columns else list(candidates.values())
    victims = columns["fewest victims"] if columns else np.array([len(v.pods) for v in told])
    if not victims.all():
        free = tuple(map(names.__getitem__, np.flatnonzero(victims == 0).tolist()))
        return free[0], free if len(free) > 1 else (), "no victims"
    decided = "only candidate"
    for criterion, cost in criteria:
        if len(left) == 1:
            break
        if criterion in columns:
            costs = columns[criterion][left]
        else:
            costs = np.array([cost(candidates[names[i]]) for i in left.tolist()])
        left, decided = left[costs == costs.min()], criterion
    if len(left) > 1:
        tie = tuple(map(names.__getitem__, left.tolist()))
        return tie[0], tie, "first in node order"
    return names[left[0]], (), decided


def lower_nominations(pod: Incoming, view: View, node: str) -> tuple[tuple[str, str], ...]:
    """Pods of lower priority that were promised the node: their promise is taken back."""
    return tuple(
        (other.uid, other.key)
        for other in view.nominated.get(node, ())
        if other.priority < pod.priority
    )
