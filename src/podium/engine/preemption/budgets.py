"""PodDisruptionBudgets: which pods they cover."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from podium.engine.state.tallies import LabelSet
    from podium.objects.kinds.workloads import PodDisruptionBudget
    from podium.objects.selectors.selectors import Selector

    Covers = Callable[[LabelSet], bool]


def with_coverage(
    budgets: Iterable[PodDisruptionBudget],
) -> Iterator[tuple[PodDisruptionBudget, Covers]]:
    """Each budget with a test of whether it covers pods of a label set.

    A budget whose selector is invalid, missing or empty covers no pods and is left out.
    """
    for budget in budgets:
        try:
            selector = from_label_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.nothing and not selector.empty:
            yield budget, partial(_covers, budget.namespace, selector)


def _covers(namespace: str, selector: Selector, pods: LabelSet) -> bool:
    """Pods without labels are covered by no budget, whatever its selector says."""
    return bool(pods.labels) and pods.namespace == namespace and selector.matches(pods.labels)
