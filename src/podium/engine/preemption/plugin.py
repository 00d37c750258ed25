"""DefaultPreemption: evict pods of lower priority, as few and as unimportant as possible.

Importance is priority, then time on the node. Disruption budgets are charged in order of
importance; the pods that would overdraw one are put back first.

Upstream: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.36.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from podium.engine.framework.decision import Preemption, Victims, fit_message
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    arguments_record,
)
from podium.engine.framework.post_filter import Outcome
from podium.engine.preemption.budgets import with_coverage
from podium.engine.preemption.criteria import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LATEST_START,
    LOWEST_FIRST_PRIORITY,
    LOWEST_PRIORITY_SUM,
)
from podium.engine.preemption.group_preemption import preempt_for_group
from podium.engine.preemption.group_victims import priority_of
from podium.engine.preemption.node_choice import choose_node
from podium.engine.preemption.row_search_groups import GroupCandidates, find_with_groups
from podium.engine.preemption.victim_order import by_importance, sorted_by_importance
from podium.engine.preemption.victim_policy import VictimPolicy
from podium.engine.preemption.victim_search import EvictingPostFilter, find_candidates, victims_of
from podium.engine.rules.plugins import never, range_errors
from podium.engine.state.pod_class import NOT_STARTED
from podium.engine.state.verdicts import FITS
from podium.objects.field_errors import child, invalid, together
from podium.objects.go_types import INT32
from podium.objects.names import quoted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from podium.engine.framework.post_filter import FailedGroup, FailedSearch, GroupOutcome
    from podium.engine.preemption.kept_victims import KeptCandidates
    from podium.engine.preemption.victim_search import Candidates
    from podium.engine.rows.pod_arrays import PodArrays
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.verdicts import Verdicts
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import PodDisruptionBudget

    AnyCandidates = Candidates | KeptCandidates | GroupCandidates

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


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """On how many nodes preemption is tried."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


def _check(found: DefaultPreemptionArgs, path: str, _: FeatureGates) -> Errors:
    percentage, absolute = found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    of_percentage = child(path, "minCandidateNodesPercentage")
    of_absolute = child(path, "minCandidateNodesAbsolute")
    yield from range_errors(percentage, path, "minCandidateNodesPercentage")
    if absolute < 0:
        yield invalid(of_absolute, str(absolute), "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(
            of_percentage, "0", "cannot be zero at the same time as minCandidateNodesAbsolute"
        )
        yield invalid(
            of_absolute, "0", "cannot be zero at the same time as minCandidateNodesPercentage"
        )


DEFAULT_PREEMPTION_ARGUMENTS: Final = Arguments(
    arguments_record(
        DefaultPreemptionArgs,
        min_candidate_nodes_percentage=INT32,
        min_candidate_nodes_absolute=INT32,
    ),
    _check,
)


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


def overdrawing_in_turn(pods: PodArrays, budgets: Iterable[PodDisruptionBudget]) -> np.ndarray:
    """As `overdrawing`, where a pod is charged to its budgets in order, up to an exhausted one."""
    charges = []
    for budget, covers in with_coverage(budgets):
        charged = pods.by_labels(covers) > 0
        disrupted = {f"{budget.namespace}/{name}" for name in budget.status.disrupted_pods or ()}
        if disrupted:
            known = map(disrupted.__contains__, map(_KEY, pods.pods))
            charged &= ~np.fromiter(known, np.bool_, len(pods))
        charges.append((budget.status.disruptions_allowed, charged.tolist()))
    overdrawn = np.zeros(len(pods), np.bool_)
    left: list[int] = []
    last = -1
    for index, row in enumerate(pods.position.tolist()):
        if row != last or not index:
            left, last = [allowed for allowed, _ in charges], row
        for place, (_, charged_pods) in enumerate(charges):
            if charged_pods[index]:
                left[place] -= 1
                if left[place] < 0:
                    overdrawn[index] = True
                    break
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


#: Where a pod is charged to its budgets only up to the first exhausted one.
POLICY_IN_TURN = replace(POLICY, protected=overdrawing_in_turn)


class DefaultPreemption(EvictingPostFilter):
    """The plugin; its arguments say how many candidates are enough."""

    victim_policy = POLICY
    criteria = CRITERIA
    kinds: tuple[str, ...] = ("PodDisruptionBudget",)
    name = "DefaultPreemption"
    evicts_pods = True

    def __init__(
        self,
        min_candidate_nodes_percentage: int = 10,
        min_candidate_nodes_absolute: int = 100,
        *,
        charges_all_budgets: bool = True,
        tells_victims: bool = False,
        knows_groups: bool = False,
    ) -> None:
        """*tells_victims*: the message names the node and the number of victims.

        *knows_groups*: a pod of a pod group has the priority of its group, and groups may be
        evicted as a whole.
        """
        self.percentage = min_candidate_nodes_percentage
        self.absolute = min_candidate_nodes_absolute
        self.victim_policy = POLICY if charges_all_budgets else POLICY_IN_TURN
        self.tells_victims = tells_victims
        self.knows_groups = knows_groups
        if knows_groups:
            self.kinds = ("PodDisruptionBudget", "PodGroup")

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Choose a node and its victims, or report why there are none."""
        if refusal := self._refusal(failed):
            return Outcome("Unschedulable", f"preemption: {refusal}", Preemption(eligible=False))
        candidates = self.candidates(failed)
        if not candidates:
            return _no_candidates(failed, candidates)
        found = yield from choose_node(failed, candidates, self.victim_policy, CRITERIA)
        if found.error:
            return Outcome("Error", f"preemption: {found.error}", found)
        if found.node is None:
            return Outcome("Unschedulable", f"preemption: {NO_CANDIDATE}", found)
        return Outcome("Success", self._told(found, found.node), found)

    def _told(self, found: Preemption, node: str) -> str:
        if not self.tells_victims:
            return ""
        victims = len(found.candidates[node].pods)
        placement = f"found a potential placement for pod on node {node}"
        return f"preemption: {placement}, preempting {victims} victims"

    def run_for_group(self, failed: FailedGroup) -> Generator[Any, Any, GroupOutcome]:
        """Choose victims in the whole cluster for a pod group, or report why there are none."""
        return (yield from preempt_for_group(failed))

    def _refusal(self, failed: FailedSearch) -> str:
        """Why the pod may not preempt; empty if it may."""
        pod, view = failed.pod, failed.view
        if pod.pod.spec.preemption_policy == "Never":
            return NEVER
        row = view.nodes.row_of.get(pod.pod.status.nominated_node_name)
        if row is None or row not in failed.potential:
            return ""
        leaving = (each for each in view.pods.residents[row] if each.evicted)
        if self.knows_groups:
            lower = any(priority_of(view, each) < pod.priority for each in leaving)
        else:
            lower = any(each.priority < pod.priority for each in leaving)
        return LEAVING if lower else ""

    def candidates(self, failed: FailedSearch) -> AnyCandidates:
        """The first candidates in node order, as many as are enough."""
        wanted = len(failed.potential) * self.percentage // 100
        wanted = min(max(wanted, self.absolute), len(failed.potential))
        if self.knows_groups and failed.view.pods.groups:
            return find_with_groups(failed, self.victim_policy, wanted=wanted)
        return find_candidates(failed, self.victim_policy, wanted=wanted)


def _no_candidates(failed: FailedSearch, candidates: AnyCandidates) -> Outcome:
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


def errors_of(candidates: AnyCandidates, view: View) -> Iterator[str]:
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


def reasons_of(candidates: AnyCandidates, verdicts: Verdicts) -> Counter[str]:
    """How many rows are no candidates for which reason."""
    reasons: Counter[str] = Counter()
    for tried in candidates.tried:
        if alone := int((~tried.has_lower).sum()):
            reasons[NO_VICTIMS] += alone
        codes, counts = np.unique(tried.codes[tried.codes > FITS], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            reasons.update(dict.fromkeys(filter(None, verdicts[code].reasons), count))
    return reasons


def _preemption(found: DefaultPreemptionArgs, context: PluginContext) -> DefaultPreemption:
    return DefaultPreemption(
        found.min_candidate_nodes_percentage,
        found.min_candidate_nodes_absolute,
        charges_all_budgets=context.choices.charges_all_budgets,
        tells_victims=context.choices.tells_preemption,
        knows_groups=context.choices.pod_groups and context.gates["GenericWorkload"],
    )


DEFAULT_PREEMPTION: Final = PluginDeclaration(
    "DefaultPreemption",
    "preEnqueue postFilter",
    "evict pods of lower priority",
    post_filter=_preemption,
    arguments=DEFAULT_PREEMPTION_ARGUMENTS,
    events={"Pod Delete": never},
)
