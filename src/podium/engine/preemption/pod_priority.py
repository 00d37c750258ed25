"""Preemption of v1.13: evict pods of lower priority where that makes the pod fit.

Upstream: Preempt and selectVictimsOnNode in pkg/scheduler/core/generic_scheduler.go, v1.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.decision import Preemption
from podium.engine.framework.post_filter import Outcome
from podium.engine.preemption.budgets import with_coverage
from podium.engine.preemption.criteria import (
    FEWEST_VICTIMS,
    FEWEST_VIOLATIONS,
    LOWEST_FIRST_PRIORITY,
    LOWEST_PRIORITY_SUM,
)
from podium.engine.preemption.node_choice import choose_node
from podium.engine.preemption.victim_order import by_priority, sorted_by_priority
from podium.engine.preemption.victim_policy import VictimPolicy
from podium.engine.preemption.victim_search import EvictingPostFilter, find_candidates, victims_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.rows.pod_arrays import PodArrays
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import PodDisruptionBudget

CRITERIA = (FEWEST_VIOLATIONS, LOWEST_FIRST_PRIORITY, LOWEST_PRIORITY_SUM, FEWEST_VICTIMS)


def covered_by_exhausted_budgets(
    pods: PodArrays, budgets: Iterable[PodDisruptionBudget]
) -> np.ndarray:
    """Which pods are covered by a budget that allows no disruption.

    Evicting several pods under a budget that allows one violates nothing.
    """
    exhausted = [
        covers
        for budget, covers in with_coverage(budgets)
        if budget.status.disruptions_allowed <= 0
    ]
    if not exhausted:
        return np.zeros(len(pods), np.bool_)
    return pods.by_labels(lambda labels: any(covers(labels) for covers in exhausted)) > 0


POLICY = VictimPolicy(
    order=by_priority,
    sorted_pods=sorted_by_priority,
    protected=covered_by_exhausted_budgets,
    nominees_count_for_affinity=False,
    accepts_no_victims=True,
    lists_by_importance=False,
    victims=victims_of,
)


class PodPriorityPreemption(EvictingPostFilter):
    """The preemption that the feature gate PodPriority turns on; it reports no status."""

    victim_policy = POLICY
    criteria = CRITERIA
    kinds = ("PodDisruptionBudget",)
    name = "PodPriority"
    evicts_pods = True

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Choose a node and its victims where evicting pods makes the pod fit."""
        pod, view = failed.pod, failed.view
        if not eligible(pod, view):
            return Outcome("", preemption=Preemption(eligible=False))
        if not len(failed.potential):
            cleared = Preemption(eligible=True, nomination="", cleared=((pod.uid, pod.key),))
            return Outcome("", preemption=cleared)
        candidates = find_candidates(failed, POLICY)
        found = yield from choose_node(failed, candidates, POLICY, CRITERIA)
        return Outcome("", preemption=found)


def eligible(pod: Incoming, view: View) -> bool:
    """Whether the pod may preempt: no pod of lower priority is leaving its nominated node."""
    if pod.pod.spec.preemption_policy == "Never":
        return False
    row = view.nodes.row_of.get(pod.pod.status.nominated_node_name)
    if row is None:
        return True
    return not any(p.terminating and p.priority < pod.priority for p in view.pods.residents[row])
