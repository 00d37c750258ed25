"""DefaultPreemption of v1.36: evict pods of lower priority, as few and as unimportant as possible.

Importance is priority, then time on the node. Disruption budgets are charged in order of
importance; the pods that would overdraw one are put back first.

Upstream: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.36.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from podium.engine.framework.decision import Preemption, Victims, fit_message
from podium.engine.framework.declaration import PluginDeclaration
from podium.engine.framework.post_filter import Outcome
from podium.engine.preemption.budgets import with_coverage
from podium.engine.preemption.criteria import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LATEST_START,
    LOWEST_FIRST_PRIORITY,
    LOWEST_PRIORITY_SUM,
)
from podium.engine.preemption.node_choice import choose_node
from podium.engine.preemption.v1_36_arguments import (
    DEFAULT_PREEMPTION_ARGUMENTS,
    DefaultPreemptionArgs,
)
from podium.engine.preemption.victim_order import by_importance, sorted_by_importance
from podium.engine.preemption.victim_policy import VictimPolicy
from podium.engine.preemption.victim_search import EvictingPostFilter, find_candidates, victims_of
from podium.engine.rules.v1_36_wakeups import never
from podium.engine.state.pod_class import NOT_STARTED
from podium.engine.state.verdicts import FITS
from podium.objects.field_errors import together
from podium.objects.names import quoted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.kept_victims import KeptCandidates
    from podium.engine.preemption.victim_search import Candidates
    from podium.engine.rows.pod_arrays import PodArrays
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.verdicts import Verdicts
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import PodDisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
LEAVING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE = "no candidate node for preemption"
NOT_HELPFUL = "Preemption is not helpful for scheduling"

CRITERIA = (
    FEWEST_VIOLATIONS,
    LOWEST_FIRST_PRIORITY,
    LOWEST_PRIORITY_SUM,
    FEWEST_VICTIMS,
    LATEST_START,
)
_KEY = attrgetter("key")


def overdrawing(pods: PodArrays, budgets: Iterable[PodDisruptionBudget]) -> np.ndarray:
    """Which pods, the most important of each row first, some budget does not allow to evict.

    Every row is charged by itself. A pod is charged to every budget that covers it, also to one
    that is exhausted, unless the budget's status lists it as disrupted already.
    """
    overdrawn = np.zeros(len(pods), np.bool_)
    for budget, covers in with_coverage(budgets):
        charged = pods.by_labels(covers)
        disrupted = {f"{budget.namespace}/{name}" for name in budget.status.disrupted_pods or ()}
        if disrupted:
            known = map(disrupted.__contains__, map(_KEY, pods.pods))
            charged &= ~np.fromiter(known, np.bool_, len(pods))
        overdrawn |= (charged > 0) & (pods.running_sum(charged) > budget.status.disruptions_allowed)
    return overdrawn


def victims_with_start(pods: Sequence[Resident], violations: int) -> Victims:
    """Pods as victims, with the earliest start among those of the highest priority."""
    highest = max((pod.priority for pod in pods), default=0)
    starts = [pod.started for pod in pods if pod.priority == highest]
    return victims_of(pods, violations, earliest=min(starts, default=NOT_STARTED))


POLICY = VictimPolicy(
    order=by_importance,
    sorted_pods=sorted_by_importance,
    protected=overdrawing,
    nominees_count_for_affinity=True,
    accepts_no_victims=False,
    lists_by_importance=True,
    victims=victims_with_start,
)


class DefaultPreemption(EvictingPostFilter):
    """The plugin; its arguments say how many candidates are enough."""

    victim_policy = POLICY
    kinds = ("PodDisruptionBudget",)
    name = "DefaultPreemption"
    evicts_pods = True

    def __init__(
        self, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100
    ) -> None:
        self.percentage = min_candidate_nodes_percentage
        self.absolute = min_candidate_nodes_absolute

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Choose a node and its victims, or report why there are none."""
        if refusal := _refusal(failed):
            return Outcome("Unschedulable", f"preemption: {refusal}", Preemption(eligible=False))
        candidates = self.candidates(failed)
        if not candidates:
            return _no_candidates(failed, candidates)
        found = yield from choose_node(failed, candidates, POLICY, CRITERIA)
        if found.error:
            return Outcome("Error", f"preemption: {found.error}", found)
        if found.node is None:
            return Outcome("Unschedulable", f"preemption: {NO_CANDIDATE}", found)
        return Outcome("Success", preemption=found)

    def candidates(self, failed: FailedSearch) -> Candidates | KeptCandidates:
        """The first candidates in node order, as many as are enough."""
        wanted = len(failed.potential) * self.percentage // 100
        wanted = min(max(wanted, self.absolute), len(failed.potential))
        return find_candidates(failed, POLICY, wanted=wanted)


def _refusal(failed: FailedSearch) -> str:
    """Why the pod may not preempt; empty if it may."""
    pod, view = failed.pod, failed.view
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    row = view.nodes.row_of.get(pod.pod.status.nominated_node_name)
    if row is None or row not in failed.potential:
        return ""
    leaving = (r.evicted and r.priority < pod.priority for r in view.pods.residents[row])
    return LEAVING if any(leaving) else ""


def _no_candidates(failed: FailedSearch, candidates: Candidates | KeptCandidates) -> Outcome:
    pod, view = failed.pod, failed.view
    potential = view.nodes.names_of(failed.potential)
    if errors := list(errors_of(candidates, view)):
        text = together(errors)
        error = Preemption(eligible=True, potential=potential, error=text)
        return Outcome("Error", f"preemption: {text}", error)
    reasons = reasons_of(candidates, view.verdicts)
    if others := len(view.nodes.order) - len(potential):
        reasons[NOT_HELPFUL] += others
    none = Preemption(
        eligible=True,
        potential=potential,
        nomination="",
        cleared=((pod.uid, pod.key),) if pod.pod.status.nominated_node_name else (),
    )
    text = fit_message(len(view.nodes.order), reasons)
    return Outcome("Unschedulable", f"preemption: {text}", none)


def errors_of(candidates: Candidates | KeptCandidates, view: View) -> Iterator[str]:
    """The errors on rows that are no candidates, in node order.

    It is an error when the pod fits after all pods of lower priority were put back.
    """
    for tried in candidates.tried:
        harmless = tried.has_lower & (tried.codes == FITS)
        harmless[tried.candidates] = False
        texts = tried.errors | {
            position: f"expected at least one victim pod on node {quoted(name)}"
            for position, name in zip(
                np.flatnonzero(harmless).tolist(),
                view.nodes.names_of(tried.rows[harmless]),
                strict=True,
            )
        }
        yield from map(texts.__getitem__, sorted(texts))


def reasons_of(candidates: Candidates | KeptCandidates, verdicts: Verdicts) -> Counter[str]:
    """How many rows are no candidates for which reason."""
    reasons: Counter[str] = Counter()
    for tried in candidates.tried:
        if alone := int((~tried.has_lower).sum()):
            reasons[NO_VICTIMS] += alone
        codes, counts = np.unique(tried.codes[tried.codes > FITS], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            reasons.update(dict.fromkeys(filter(None, verdicts[code].reasons), count))
    return reasons


def _preemption(found: DefaultPreemptionArgs) -> DefaultPreemption:
    return DefaultPreemption(
        found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    )


DEFAULT_PREEMPTION: Final = PluginDeclaration(
    "DefaultPreemption",
    "preEnqueue postFilter",
    "evict pods of lower priority",
    post_filter=_preemption,
    arguments=DEFAULT_PREEMPTION_ARGUMENTS,
    events={"Pod Delete": never},
)
