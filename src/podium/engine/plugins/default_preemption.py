"""DefaultPreemption: evict pods of lower priority, as few and as unimportant as possible.

Importance is priority, then time on the node. Budgets are charged in order of importance; whoever
would overdraw one is put back first.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.contracts import AttemptError
from podium.engine.decision import Preemption, Victims, fit_message
from podium.engine.extending import ask_victims
from podium.engine.fit import judge_with_nominated
from podium.engine.go_sort import go_sorted
from podium.engine.mass_trial import MassTrial, applies
from podium.engine.post_filter import Outcome, Scene
from podium.engine.preemption import (
    CRITERIA,
    choose_by,
    is_covered,
    lower_nominations,
    victims_of,
)
from podium.engine.trial import TrialRow
from podium.engine.verdicts import FITS
from podium.objects.names import quoted
from podium.objects.selector_faults import together
from podium.objects.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from podium.engine.pod_class import Resident
    from podium.engine.view import View
    from podium.objects.selectors import Selector
    from podium.objects.workloads import PodDisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
LEAVING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE = "no candidate node for preemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
#: Where a start time is missing: later than all others.
NOW = float("inf")


@lru_cache(maxsize=1 << 16)
def started_at(text: str | None) -> float:
    """A start time in seconds; one that is missing counts as now."""
    return datetime.fromisoformat(text).timestamp() if text else NOW


def importance(pod: Resident) -> tuple[int, float]:
    """Sorts more important pods first; those without a start time must be listed backwards."""
    return (-pod.priority, started_at(pod.started))


def more_important(one: Resident, other: Resident) -> bool:
    """Whether one comes before the other.

    "Now", which a missing start time counts as, is later at every look: of two pods without one
    each comes before the other.
    """
    if one.priority != other.priority:
        return one.priority > other.priority
    if not one.started and not other.started:
        return True
    return started_at(one.started) < started_at(other.started)


def by_importance(pods: Iterable[Resident]) -> list[Resident]:
    """Most important first; equals come out as they do in the real program."""
    return go_sorted(pods, more_important)


class DefaultPreemption:
    """The usual way to make room."""

    name = "DefaultPreemption"

    def __init__(
        self, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100
    ) -> None:
        self.percentage = min_candidate_nodes_percentage
        self.absolute = min_candidate_nodes_absolute

    def run(self, scene: Scene) -> Generator[Any, Any, Outcome]:
        """A node and its victims, or the words that say why there are none."""
        refusal = self._refusal(scene)
        if refusal:
            return Outcome("Unschedulable", f"preemption: {refusal}", Preemption(eligible=False))
        pod, view = scene.pod, scene.view
        candidates, reasons = self._candidates(scene)
        potential = view.names_of(scene.potential)
        if not candidates and reasons.errors:
            text = together(reasons.errors)
            failed = Preemption(eligible=True, potential=potential, error=text)
            return Outcome("Error", f"preemption: {text}", failed)
        if not candidates:
            others = len(view.order) - reasons.total_nodes
            reasons.counts[NOT_HELPFUL] += others
            if not reasons.counts[NOT_HELPFUL]:
                del reasons.counts[NOT_HELPFUL]
            text = fit_message(len(view.order), reasons.counts)
            none = Preemption(
                eligible=True,
                potential=potential,
                nomination="",
                cleared=((pod.uid, pod.key),) if pod.pod.status.nominated_node_name else (),
            )
            return Outcome("Unschedulable", f"preemption: {text}", none)
        if scene.profile.extenders:
            try:
                candidates = yield from ask_victims(
                    pod, view, scene.profile.extenders, candidates, _as_told
                )
            except AttemptError as error:
                failed = Preemption(eligible=True, potential=potential, error=str(error))
                return Outcome("Error", f"preemption: {error}", failed)
        node, tie, criterion = choose_by(candidates, (*CRITERIA, LATEST_START))
        if node is None:
            none = Preemption(eligible=True, potential=potential)
            return Outcome("Unschedulable", f"preemption: {NO_CANDIDATE}", none)
        found = Preemption(
            eligible=True,
            potential=potential,
            candidates=candidates,
            node=node,
            tie=tie,
            criterion=criterion,
            cleared=lower_nominations(pod, view, node),
            nomination=node,
        )
        return Outcome("Success", preemption=found)

    def _refusal(self, scene: Scene) -> str:
        pod, view = scene.pod, scene.view
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        row = view.row_of.get(pod.pod.status.nominated_node_name)
        if row is None or row not in scene.potential:
            return ""
        leaving = (r.evicted and r.priority < pod.priority for r in view.residents[row])
        return LEAVING if any(leaving) else ""

    def _candidates(self, scene: Scene) -> tuple[Mapping[str, Victims], _Reasons]:
        wanted = len(scene.potential) * self.percentage // 100
        wanted = min(max(wanted, self.absolute), len(scene.potential))
        if applies(scene.pod, scene.view, scene.active, scene.potential):
            return self._all_candidates(scene, wanted)
        candidates: dict[str, Victims] = {}
        reasons = _Reasons()
        for row in scene.potential.tolist():
            victims = self._victims_on(scene, row, reasons)
            if victims is not None:
                candidates[scene.view.names[row]] = victims
            enough = len(candidates) >= wanted
            if enough and any(not each.violations for each in candidates.values()):
                break
        return candidates, reasons

    def _all_candidates(self, scene: Scene, wanted: int) -> tuple[Mapping[str, Victims], _Reasons]:
        """The same for all rows at once."""
        trial = MassTrial(
            scene.pod, scene.view, scene.active, scene.potential, _told, by_importance=True
        )
        trial.sort(lambda pod: started_at(pod.started), _overdrawing)
        candidates, codes = trial.run()
        inhabited = np.bincount(trial.place, minlength=len(scene.potential)) > 0
        candidates = candidates.among(inhabited)
        last = candidates.up_to(wanted)
        if last is not None:
            # Beyond enough candidates nobody would have looked.
            return candidates.first(last + 1), _Reasons()
        reasons = _Reasons()
        reasons.add([NO_VICTIMS], int((~inhabited).sum()))
        rejected, counts = np.unique(codes[inhabited], return_counts=True)
        for code, number in zip(rejected.tolist(), counts.tolist(), strict=True):
            if code != FITS:
                reasons.add(scene.view.verdicts[code].reasons, number)
        return candidates, reasons

    def _victims_on(self, scene: Scene, row: int, reasons: _Reasons) -> Victims | None:
        pod, view = scene.pod, scene.view
        trial = TrialRow(view, row)
        lower = [r for r in view.residents[row] if r.priority < pod.priority]
        if not lower:
            reasons.add([NO_VICTIMS])
            return None
        for resident in lower:
            trial.remove(resident)
        code = judge_with_nominated(pod, trial, scene.active, fully=True)
        if trial.errors:
            reasons.errors += trial.errors.values()
            return None
        if code != FITS:
            reasons.add(view.verdicts[code].reasons)
            return None
        lower = by_importance(lower)
        protected = overdrawing(lower, view)
        victims, violations = [], 0
        for resident in (*protected, *(r for r in lower if r not in protected)):
            trial.add(resident)
            if judge_with_nominated(pod, trial, scene.active, fully=True) != FITS:
                trial.errors.clear()
                trial.remove(resident)
                victims.append(resident)
                violations += resident in protected
        if not victims:
            reasons.errors.append(
                f"expected at least one victim pod on node {quoted(view.names[row])}"
            )
            return None
        return _told(victims, violations)


def _told(victims: list[Resident], violations: int) -> Victims:
    """Victims, most important first."""
    # Already in order within each group; merged, equals keep theirs.
    victims.sort(key=importance)
    return victims_of(victims, violations, earliest=_earliest(victims))


def _as_told(victims: list[Resident], violations: int) -> Victims:
    """Victims in the order in which an extender named them."""
    return victims_of(victims, violations, earliest=_earliest(victims))


def _overdrawing(trial: MassTrial) -> np.ndarray:
    """As `overdrawing`, for the pods of many rows; each row is charged for itself."""
    overdrawn = np.zeros(len(trial.number), np.bool_)
    budgets = list(_budgets(trial.view))
    pods = trial.pods if budgets else []
    for budget, selector, allowed in budgets:
        known = {r.labels: is_covered(budget.namespace, selector, r) for r in pods}
        disrupted = budget.status.disrupted_pods or {}
        charged = np.fromiter(
            (known[r.labels] and r.key.partition("/")[2] not in disrupted for r in pods),
            np.int64,
            len(pods),
        )
        overdrawn |= (charged > 0) & (trial.running_count(charged) > allowed)
    return overdrawn


class _Reasons:
    """Why nodes are no candidates, counted."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.total_nodes = 0
        #: What went wrong on nodes where it could not be found out; matters if none is left.
        self.errors: list[str] = []

    def add(self, texts: Iterable[str], nodes: int = 1) -> None:
        """So many more nodes."""
        if nodes:
            self.counts.update(dict.fromkeys(filter(None, texts), nodes))
            self.total_nodes += nodes


def overdrawing(pods: list[Resident], view: View) -> list[Resident]:
    """The pods, most important first, whose eviction some budget does not allow any more.

    Every budget that covers a pod is charged, also after one of them is exhausted.
    """
    budgets = [list(entry) for entry in _budgets(view)]
    return [pod for pod in pods if _charge(pod, budgets)]


def _budgets(view: View) -> Iterator[tuple[PodDisruptionBudget, Selector, int]]:
    """Every budget that means some pods, with the disruptions it allows."""
    for budget in view.catalog.budgets:
        try:
            selector = from_label_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.empty and not selector.nothing:
            yield budget, selector, budget.status.disruptions_allowed


def _charge(pod: Resident, budgets: list[list[Any]]) -> bool:
    overdrawn = False
    for entry in budgets:
        budget, selector, _ = entry
        if is_covered(budget.namespace, selector, pod):
            if pod.key.partition("/")[2] in (budget.status.disrupted_pods or {}):
                continue
            entry[2] -= 1
            overdrawn = overdrawn or entry[2] < 0
    return overdrawn


def _earliest(victims: list[Resident]) -> float:
    """The earliest start among the victims of the highest priority."""
    highest = max((pod.priority for pod in victims), default=0)
    starts = [started_at(pod.started) for pod in victims if pod.priority == highest]
    return min(starts, default=NOW)


LATEST_START = ("latest start of the most important victims", lambda v: -v.earliest)
