"""One row with pods added and removed, to filter a node as it would be.

The second run of the filters with nominated pods and the search for victims use it. The row's
columns and the counts of its domains are read with the changes; nothing is written to the view.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from podium.engine.rows.rows import OneRow
from podium.engine.state.accounting import wrap
from podium.engine.state.label_column import ABSENT
from podium.engine.state.tallies import LabelSet, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from podium.engine.state.pod_class import PodClass, Port, Resident
    from podium.engine.state.view import View


class TrialRow(OneRow):
    """A row of the view with pods added and removed."""

    __slots__ = (
        "_carried",
        "_labels",
        "_nonzero_requested",
        "_pods",
        "_ports",
        "_requested",
        "added",
        "changes",
        "nominees",
    )
    modified = True

    def __init__(self, view: View, row: int) -> None:
        super().__init__(view, row)
        self._requested: dict[int, int] = defaultdict(int)
        self._nonzero_requested = [0, 0]
        self._carried: dict[Tally, int] = defaultdict(int)
        # By label set, not by tally: a tally may be created only after the change.
        self._labels: dict[LabelSet, int] = defaultdict(int)
        self._pods = list(view.pods.residents[row])
        self._ports = set(view.pods.ports[row])
        #: Every pod that was added (1) or removed (-1), in sequence.
        self.changes: list[tuple[Resident, int]] = []
        #: The pods on the row that were added, nominated ones apart.
        self.added: list[Resident] = []
        self.nominees: list[Resident] = []

    def copy(self) -> TrialRow:
        """The same row with the same changes, to be changed further."""
        other = TrialRow(self.view, self.row)
        other._requested = self._requested.copy()
        other._nonzero_requested = list(self._nonzero_requested)
        other._carried = self._carried.copy()
        other._labels = self._labels.copy()
        other._pods = list(self._pods)
        other._ports = set(self._ports)
        other.changes = list(self.changes)
        other.added = list(self.added)
        other.nominees = list(self.nominees)
        return other

    def add(self, pod: Resident, *, nominated: bool = False) -> None:
        """Add a pod to the row.

        A `nominated` pod is on no node yet: it requests resources and its own anti-affinity counts,
        but its labels do not count for the affinity of other pods.
        """
        self._count(pod, 1, labels=not nominated)
        self._pods.append(pod)
        self._ports.update(pod.cls.ports)
        (self.nominees if nominated else self.added).append(pod)

    def remove(self, pod: Resident) -> None:
        """Remove a pod from the row; its host ports are free even if another pod uses them too."""
        self._count(pod, -1, labels=True)
        self._pods = [other for other in self._pods if other.uid != pod.uid]
        self._ports.difference_update(pod.cls.ports)
        self.added = [other for other in self.added if other.uid != pod.uid]

    def _count(self, pod: Resident, sign: int, *, labels: bool) -> None:
        self.changes.append((pod, sign))
        for resource, number in pod.cls.taken:
            self._requested[resource] += sign * number
        self._nonzero_requested[0] += sign * pod.cls.nonzero_requests[0]
        self._nonzero_requested[1] += sign * pod.cls.nonzero_requests[1]
        for carried in pod.cls.carried:
            self._carried[carried.tally] += sign
        if labels:
            self._labels[pod.labels] += sign

    @override
    def requested(self, resource: int) -> Any:
        return wrap(super().requested(resource) + self._requested.get(resource, 0))

    @override
    def nonzero_requested(self, resource: int) -> Any:
        return wrap(super().nonzero_requested(resource) + self._nonzero_requested[resource])

    @override
    def pod_count(self) -> Any:
        return len(self._pods)

    @override
    def may_count(self, tally: Tally) -> bool:
        return True

    @override
    def on_row(self, tally: Tally) -> Any:
        return super().on_row(tally) + self._difference(tally)

    @override
    def domain(self, tally: Tally, key: str) -> Any:
        return super().domain(tally, key) + self._change(tally, key)

    @override
    def total(self, tally: Tally, key: str) -> Any:
        return super().total(tally, key) + self._change(tally, key)

    def _change(self, tally: Tally, key: str) -> int:
        return self._difference(tally) if self.label_ids(key) != ABSENT else 0

    def _difference(self, tally: Tally) -> int:
        labels = sum(n for labels, n in self._labels.items() if n and tally in labels.tallies)
        return self._carried.get(tally, 0) + labels

    @override
    def gained_labels(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Any:
        return sum(sign * fact(pod.labels) for pod, sign in self.changes)

    @override
    def gained_classes(self, key: Hashable, fact: Callable[[PodClass], int]) -> Any:
        return sum(sign * fact(pod.cls) for pod, sign in self.changes)

    @override
    def readded(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Any:
        return sum(fact(pod.labels) for pod in self.added)

    @override
    def residents(self) -> list[Resident]:
        return self._pods

    @override
    def ports(self) -> set[Port]:
        return self._ports

    @override
    def nominated_pods(self) -> list[Resident]:
        # A nominated pod is on no row, whether its labels count or not.
        return [pod for pod in self._pods if pod.row < 0]

    @override
    def labelled_pods(self) -> list[Resident]:
        return [pod for pod in self._pods if pod not in self.nominees]
