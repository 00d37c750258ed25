"""What differs between the generations in the search for victims."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np

    from podium.engine.framework.decision import Victims
    from podium.engine.rows.pod_arrays import PodArrays
    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.workloads import PodDisruptionBudget


class VictimPolicy(msgspec.Struct, frozen=True):
    """How a generation searches for victims."""

    #: Indices of the pods, row after row, the most important pod of each row first.
    order: Callable[[PodArrays], np.ndarray]
    #: The pods of one row in that order.
    sorted_pods: Callable[[Iterable[Resident]], list[Resident]]
    #: Which pods, given in that order, disruption budgets protect.
    protected: Callable[[PodArrays, Iterable[PodDisruptionBudget]], np.ndarray]
    #: Whether the pods nominated to a node count for the affinity of others.
    nominees_count_for_affinity: bool
    #: Whether a node that no pod must leave is a candidate.
    accepts_no_victims: bool
    #: Whether victims are listed by importance; otherwise in the order in which they were put back.
    lists_by_importance: bool
    #: Makes the `Victims` of a node from pods in listed order and the number of violated budgets.
    victims: Callable[[Sequence[Resident], int], Victims]
