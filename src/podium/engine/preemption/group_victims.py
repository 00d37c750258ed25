"""Victims where pods belong to groups: a pod alone, or all pods of a group together.

A pod of a group has the priority of its group. A group with the disruption mode `all` is one victim
with its pods on all nodes.

Upstream: pkg/scheduler/framework/preemption/{types,util}.go, Kubernetes v1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.preemption.budgets import with_coverage
from podium.engine.preemption.go_sort import go_sorted
from podium.engine.state.pod_class import NOT_STARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.engine.state.pod_class import Resident
    from podium.engine.state.tallies import LabelSet
    from podium.engine.state.view import View
    from podium.objects.kinds.pod_group import PodGroup
    from podium.objects.kinds.workloads import PodDisruptionBudget


class Victim:
    """Pods that are evicted together: one pod, or the placed pods of a group."""

    __slots__ = ("_started", "in_group", "pods", "priority")

    def __init__(
        self, pods: Sequence[Resident], priority: int, place: int, *, in_group: bool
    ) -> None:
        """*place* is its place in the list: missing start times are later, one after the other."""
        self.pods = tuple(pods)
        self.priority = priority
        #: Whether it is a group, or a pod of a group.
        self.in_group = in_group
        earliest = min(pod.started for pod in pods)
        self._started = (earliest, place if earliest == NOT_STARTED else 0)

    def comes_before(self, other: Victim) -> bool:
        """Whether it is more important: priority, groups, more pods, an earlier start."""
        if self.priority != other.priority:
            return self.priority > other.priority
        if self.in_group != other.in_group:
            return self.in_group
        if len(self.pods) != len(other.pods):
            return len(self.pods) > len(other.pods)
        return self._started < other._started


def group_of(view: View, pod: Resident) -> PodGroup | None:
    """The group that a pod names; None if it names none, or one that does not exist."""
    if not pod.group:
        return None
    namespace, _, name = pod.group.partition("/")
    return view.catalog.pod_groups.get(name, namespace)


def priority_of(view: View, pod: Resident) -> int:
    """The priority of a pod as a victim: that of its group, if it has one."""
    group = group_of(view, pod)
    return pod.priority if group is None else group.priority


def victims_on(view: View, rows: Iterable[int]) -> Iterator[Victim]:
    """Everything that could be evicted from some rows; groups with their pods on other rows."""
    seen: set[str] = set()
    place = 0
    for row in rows:
        for pod in view.pods.residents[row]:
            group = group_of(view, pod)
            priority = pod.priority if group is None else group.priority
            if group is None or not group.evicted_together:
                yield Victim((pod,), priority, place, in_group=bool(pod.group))
            elif group.key not in seen:
                seen.add(group.key)
                members = [each.resident for each in view.pods.groups.placed(group.key)]
                yield Victim(members, priority, place, in_group=True)
            else:
                continue
            place += 1


def by_importance(victims: Iterable[Victim]) -> list[Victim]:
    """The most important first; equals in the order in which Go's sort leaves them."""
    return go_sorted(victims, Victim.comes_before)


def violations_of(
    victims: Iterable[Victim], budgets: Iterable[PodDisruptionBudget]
) -> Iterator[tuple[Victim, int]]:
    """Each victim, and how many of its pods disruption budgets do not allow to evict.

    Pods are charged to their budgets in order, each up to the first budget that is exhausted.
    """
    left = [_Charged(budget, covers) for budget, covers in with_coverage(budgets)]
    for victim in victims:
        yield victim, sum(_violates(pod, left) for pod in victim.pods)


class _Charged:
    """A disruption budget, and how many pods it still allows to evict."""

    __slots__ = ("covers", "disrupted", "left")

    def __init__(self, budget: PodDisruptionBudget, covers: Callable[[LabelSet], bool]) -> None:
        self.left = budget.status.disruptions_allowed
        self.covers = covers
        self.disrupted = budget.status.disrupted_pods or {}


def _violates(pod: Resident, budgets: Sequence[_Charged]) -> bool:
    name = pod.key.partition("/")[2]
    for budget in budgets:
        if not budget.covers(pod.labels) or name in budget.disrupted:
            continue
        budget.left -= 1
        if budget.left < 0:
            return True
    return False
