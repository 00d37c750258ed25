"""How many copies of one pod fit on each node, where each node can be looked at by itself.

Placing pods one after the other until one fails fills every node, whatever the order. That holds as
long as all rules look at one node only, and accept no node that they reject with fewer pods. Then
the number of copies per node is found by bisection, for all nodes at once, with the filter pipeline
of the engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.decision import fit_message
from podium.engine.framework.rule import Activity, Scope
from podium.engine.pipelines.filtering import active, run_filters
from podium.engine.rows.rows import ManyRows
from podium.engine.state.verdicts import FITS, histogram

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium.engine.framework.rule import FilterRule, Rule
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod


class FilledRows(ManyRows):
    """Rows of the view, with *copies* pods of the class *cls* added to each."""

    __slots__ = ("cls", "copies")
    modified = True

    def __init__(self, view: View, index: np.ndarray, cls: PodClass, copies: np.ndarray) -> None:
        super().__init__(view, index)
        self.cls, self.copies = cls, copies

    @override
    def only(self, places: np.ndarray) -> FilledRows:
        return FilledRows(self.view, self.index[places], self.cls, self.copies[places])

    @override
    def requested(self, resource: int) -> Any:
        taken = sum(amount for column, amount in self.cls.taken if column == resource)
        return super().requested(resource) + self.copies * taken

    @override
    def nonzero_requested(self, resource: int) -> Any:
        each = self.cls.nonzero_requests[resource]
        return super().nonzero_requested(resource) + self.copies * each

    @override
    def pod_count(self) -> Any:
        return super().pod_count() + self.copies


#: Where rules of Podium are defined; rules of users may say anything.
_BUILT_IN: Final = "podium.engine.rules."
#: Rules that stay idle while pods without affinity are added.
_POD_AFFINITY: Final = frozenset({"InterPodAffinity", "MatchInterPodAffinity"})
#: Rows with this many copies are not full for any reason that could be found.
_UNLIMITED: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Filled:
    """Nodes with as many copies of a pod as fit, and the verdict that one more gets on each."""

    nodes: tuple[str, ...]
    copies: np.ndarray
    codes: np.ndarray
    message: str


def can_fill(simulation: Simulation, pod: Pod) -> bool:
    """Whether every node can be filled by itself with copies of this pod."""
    view, profile = simulation.cache.columns, simulation.profile_of(pod)
    incoming = view.pods.incoming(pod)
    rules = (*profile.predicates, *profile.pre_filters)
    scores = [each.priority for each in profile.priorities]
    if profile.extenders or profile.permits or profile.reserves or view.pods.nominated:
        return False
    if any(gate.hold(incoming, view) for gate in profile.gates) or incoming.cls.carried:
        return False
    if any(check(incoming, view) for check in profile.checks) or not len(view.nodes.order):
        return False
    if not all(_is_built_in(rule) for rule in (*rules, *scores)):
        return False
    pre_filter = PreFilter(incoming, view, profile)
    if pre_filter.refused is not None or pre_filter.only is not None:
        return False
    return all(_is_of_row(rule, incoming, simulation) for rule in profile.predicates)


def fill(simulation: Simulation, pod: Pod, rows: np.ndarray | None = None) -> Filled | None:
    """Fill rows (all of them by default) with copies of the pod; None if there is no limit."""
    view, profile = simulation.cache.columns, simulation.profile_of(pod)
    incoming = view.pods.incoming(pod)
    index = view.nodes.order if rows is None else rows
    taking_part = PreFilter(incoming, view, profile).taking_part()
    rules = active(incoming, view, taking_part)

    def codes(copies: np.ndarray) -> np.ndarray:
        at = FilledRows(view, index, incoming.cls, copies)
        return run_filters(incoming, at, rules, check_all=profile.always_check_all).codes

    fits = np.zeros(len(index), np.int64)  # one more than the largest number of copies accepted
    above = np.ones(len(index), np.int64)  # some number of copies that is rejected, once found
    growing = codes(fits) == FITS
    above[~growing] = 0
    while growing.any():
        accepted = (codes(above) == FITS) & growing
        fits[accepted] = above[accepted]
        above[accepted] *= 2
        growing = accepted
        if above.max() > _UNLIMITED:
            return None
    # Each row accepts one more pod at `fits` copies and rejects it at `above`, or rejects it at 0.
    while (open_rows := above - fits > 1).any():
        middle = np.where(open_rows, (fits + above) // 2, fits)
        accepted = codes(middle) == FITS
        fits = np.where(open_rows & accepted, middle, fits)
        above = np.where(open_rows & ~accepted, middle, above)
    final = codes(above)
    nodes = tuple(view.nodes.names[row] for row in index.tolist())
    return Filled(nodes, above, final, _message(simulation, final))


def _message(simulation: Simulation, codes: np.ndarray) -> str:
    verdicts = simulation.cache.columns.verdicts
    reasons = Counter[str]()
    for code, number in histogram(codes).items():
        for reason in verdicts[code].reasons:
            reasons[reason] += number
    return fit_message(len(simulation.cache.columns.nodes.order), reasons)


def _is_built_in(rule: Rule) -> bool:
    return type(rule).__module__.startswith(_BUILT_IN)


def _is_of_row(rule: FilterRule, pod: Incoming, simulation: Simulation) -> bool:
    """Whether the rule reads only the node and the resources of a row, or nothing at all."""
    if rule.scope(pod.cls) <= Scope.RESOURCES:
        return True
    idle = rule.activity(pod, simulation.cache.columns) <= Activity.IDLE
    return idle and rule.name in _POD_AFFINITY and not pod.cls.has_pod_affinity
