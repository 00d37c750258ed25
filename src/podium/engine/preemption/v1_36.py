"""DefaultPreemption: evict pods of lower priority, as few and as unimportant as possible.

Importance is priority, then time on the node. Budgets are charged in order of importance; whoever
would overdraw one is put back first.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.filtering import ERROR, judge_with_nominated
from podium.engine.cycle.post_filter import Outcome, Scene
from podium.engine.framework.decision import Preemption, Victims, fit_message
from podium.engine.framework.extenders import ask_victims
from podium.engine.framework.rule import AttemptError
from podium.engine.preemption.batch_filter import in_lockstep
from podium.engine.preemption.v1_13 import (
    CRITERIA,
    choose_by,
    is_covered,
    lower_nominations,
    victims_of,
)
from podium.engine.preemption.victim_order import sorted_by_importance
from podium.engine.preemption.victim_search import MassTrial
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.pod_class import NOT_STARTED
from podium.engine.state.verdicts import FITS
from podium.objects.names import quoted
from podium.objects.selectors.faults import together
from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import PodDisruptionBudget
    from podium.objects.selectors.selectors import Selector

NEVER = "not eligible due to preemptionPolicy=Never."
LEAVING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE = "no candidate node for preemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
_KEY = attrgetter("key")


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
                    pod, view, scene.profile.extenders, candidates, _told
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
        together = in_lockstep(scene.pod, scene.view, scene.active, scene.potential)
        if together is not None:
            return self._all_candidates(scene, wanted, together)
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

    def _all_candidates(
        self, scene: Scene, wanted: int, together: np.ndarray
    ) -> tuple[Mapping[str, Victims], _Reasons]:
        """The same for all rows at once."""
        trial = MassTrial(
            scene.pod,
            scene.view,
            scene.active,
            scene.potential,
            _told,
            together=together,
            by_importance=True,
        )
        trial.sort(_overdrawing)
        candidates, fit = trial.run()
        inhabited = np.bincount(trial.crowd.place, minlength=len(scene.potential)) > 0
        fits = (fit.codes == FITS) & inhabited
        candidates = candidates.with_victims()
        last = candidates.up_to(wanted)
        if last is not None:
            # Beyond enough candidates nobody would have looked.
            return candidates.first(last + 1), _Reasons()
        reasons = _Reasons()
        reasons.add([NO_VICTIMS], int((~inhabited).sum()))
        rejected, counts = np.unique(fit.codes[inhabited], return_counts=True)
        for code, number in zip(rejected.tolist(), counts.tolist(), strict=True):
            if code > FITS:
                reasons.add(scene.view.verdicts[code].reasons, number)
        failed = (fit.codes == ERROR) & inhabited
        harmless = fits & ~candidates.alive
        fit.errors.update(
            (place, _harmless(scene.view.names[scene.potential[place]]))
            for place in np.flatnonzero(harmless).tolist()
        )
        places = np.flatnonzero(failed | harmless).tolist()
        reasons.errors += map(fit.errors.__getitem__, places)
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
        lower = sorted_by_importance(lower)
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
            reasons.errors.append(_harmless(view.names[row]))
            return None
        if protected and len(protected) < len(lower):
            victims = sorted_by_importance(victims)
        return _told(victims, violations)


def _harmless(node: str) -> str:
    return f"expected at least one victim pod on node {quoted(node)}"


def _told(victims: list[Resident], violations: int) -> Victims:
    """Victims in this order, with the start of the most important ones."""
    return victims_of(victims, violations, earliest=_earliest(victims))


def _overdrawing(trial: MassTrial) -> np.ndarray:
    """As `overdrawing`, for the pods of many rows; each row is charged for itself."""
    crowd = trial.crowd
    overdrawn = np.zeros(len(crowd), np.bool_)
    for budget, selector, allowed in _budgets(trial.view):
        charged = crowd.by_labels(partial(is_covered, budget.namespace, selector))
        gone = {f"{budget.namespace}/{name}" for name in budget.status.disrupted_pods or ()}
        if gone:
            known = map(gone.__contains__, map(_KEY, crowd.pods))
            charged &= ~np.fromiter(known, np.bool_, len(crowd))
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
        if is_covered(budget.namespace, selector, pod.labels):
            if pod.key.partition("/")[2] in (budget.status.disrupted_pods or {}):
                continue
            entry[2] -= 1
            overdrawn = overdrawn or entry[2] < 0
    return overdrawn


def _earliest(victims: list[Resident]) -> float:
    """The earliest start among the victims of the highest priority."""
    highest = max((pod.priority for pod in victims), default=0)
    starts = [pod.started for pod in victims if pod.priority == highest]
    return min(starts, default=NOT_STARTED)


LATEST_START = ("latest start of the most important victims", lambda v: -v.earliest)
