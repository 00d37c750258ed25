"""Many rows with pods removed, put back or added, each row by itself: `TrialRow` in columns.

`PodRemovals` records which pods are off their rows, and keeps, for every quantity that a rule has
read, its change per row. `TrialRows` is what rules read. Nothing is written to the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.rows import ManyRows, conflict
from podium.engine.state.label_column import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from podium.engine.state.pod_class import Incoming, PodClass, Port
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.view import View

    #: How much each pod contributes to some quantity of its row.
    Weigh = Callable[[PodArrays], np.ndarray]


class PodRemovals:
    """Pods that are removed from their rows at first and can be put back one by one.

    Pods nominated to the rows are kept apart: they count only where `with_nominees` is asked for.
    """

    def __init__(
        self,
        pod: Incoming,
        view: View,
        rows: np.ndarray,
        pods: PodArrays,
        *,
        nominees_count_for_affinity: bool,
    ) -> None:
        self.view, self.rows, self.pods = view, rows, pods
        self.nominees = PodArrays.nominated(view, rows, pod)
        self.nominees_count_for_affinity = nominees_count_for_affinity
        #: Whether each row has nominees.
        self.has_nominees = np.zeros(len(rows), np.bool_)
        self.has_nominees[self.nominees.position] = True
        self._removed = np.ones(len(pods), np.bool_)
        #: For each quantity: what each pod contributes, and minus the sum over the removed pods of
        #: each row.
        self._changes: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        #: For each quantity, the sums per row over the nominees, and over all pods.
        self._of_nominees: dict[Hashable, np.ndarray] = {}
        self._of_all: dict[Hashable, np.ndarray] = {}
        conflicting = {each for one in pod.cls.ports for each in view.pods.conflicting_ports(one)}
        self._ports = {port: self._port(port) for port in conflicting}
        self._nominee_ports = np.zeros(len(rows), np.bool_)
        if pod.cls.ports and len(self.nominees):
            wanted = pod.cls.ports
            clash = self.nominees.by_class(lambda cls: _clash(cls, wanted))
            self._nominee_ports[self.nominees.position[clash > 0]] = True

    def _port(self, port: Port) -> tuple[np.ndarray, np.ndarray]:
        """On which rows a host port is in use, and which of the pods use it.

        It is free as soon as any of its users is removed: the ports of a node are a set.
        """
        used = np.isin(self.rows, list(self.view.pods.port_rows.get(port, ())))
        users = self.pods.using(port)
        used[self.pods.position[users]] = False
        return used, users

    def put_back(self, pods: np.ndarray) -> None:
        """Put pods back on their rows, at most one on each row."""
        self._move(pods, 1)

    def remove(self, pods: np.ndarray) -> None:
        """Remove pods that were put back, at most one from each row."""
        self._move(pods, -1)

    def _move(self, pods: np.ndarray, sign: int) -> None:
        positions = self.pods.position[pods]
        self._removed[pods] = sign < 0
        for weights, sums in self._changes.values():
            sums[positions] += sign * weights[pods]
        for used, users in self._ports.values():
            used[positions[users[pods]]] = sign > 0

    def change(
        self, key: Hashable, weigh: Weigh, positions: np.ndarray, *, with_nominees: bool
    ) -> np.ndarray:
        """How much a sum over the pods of each row differs from the view's."""
        if key not in self._changes:
            weights = weigh(self.pods).astype(np.int64)
            sums = np.zeros(len(self.rows), np.int64)
            removed = self._removed
            np.subtract.at(sums, self.pods.position[removed], weights[removed])
            self._changes[key] = (weights, sums)
        found: np.ndarray = self._changes[key][1][positions]
        if with_nominees:
            if key not in self._of_nominees:
                self._of_nominees[key] = np.zeros(len(self.rows), np.int64)
                weights = weigh(self.nominees)
                np.add.at(self._of_nominees[key], self.nominees.position, weights)
            found = found + self._of_nominees[key][positions]
        return found

    def returned(self, key: Hashable, weigh: Weigh, positions: np.ndarray) -> np.ndarray:
        """A sum over the pods that were put back on each row."""
        removed = self.change(key, weigh, positions, with_nominees=False)
        if key not in self._of_all:
            self._of_all[key] = np.zeros(len(self.rows), np.int64)
            np.add.at(self._of_all[key], self.pods.position, self._changes[key][0])
        found: np.ndarray = removed + self._of_all[key][positions]
        return found

    def port_in_use(self, positions: np.ndarray, *, with_nominees: bool) -> np.ndarray:
        """On which rows a host port is in use that conflicts with one of the incoming pod."""
        found = np.zeros(len(positions), np.bool_)
        for used, _ in self._ports.values():
            found |= used[positions]
        return found | self._nominee_ports[positions] if with_nominees else found


def _clash(cls: PodClass, wanted: tuple[Port, ...]) -> bool:
    return any(conflict(port, other) for port in cls.ports for other in wanted)


class TrialRows(ManyRows):
    """Some of the rows that pods are removed from, as they are at the moment."""

    __slots__ = ("positions", "removals", "with_nominees")
    modified = True

    def __init__(
        self, removals: PodRemovals, positions: np.ndarray, *, with_nominees: bool
    ) -> None:
        super().__init__(removals.view, removals.rows[positions])
        self.removals = removals
        #: The indices of these rows among those of the removals.
        self.positions = positions
        #: Whether the pods nominated to the rows are on them.
        self.with_nominees = with_nominees

    @override
    def only(self, places: np.ndarray) -> TrialRows:
        return TrialRows(self.removals, self.positions[places], with_nominees=self.with_nominees)

    def _change(self, key: Hashable, weigh: Weigh) -> np.ndarray:
        return self.removals.change(key, weigh, self.positions, with_nominees=self.with_nominees)

    @override
    def requested(self, resource: int) -> Any:
        change = self._change(("requested", resource), lambda pods: pods.requested(resource))
        return super().requested(resource) + change

    @override
    def pod_count(self) -> Any:
        return super().pod_count() + self._change("pods", lambda pods: np.ones(len(pods)))

    @override
    def may_count(self, tally: Tally) -> bool:
        return True

    @override
    def on_row(self, tally: Tally) -> Any:
        return super().on_row(tally) + self._difference(tally)

    @override
    def domain(self, tally: Tally, key: str) -> Any:
        return super().domain(tally, key) + self._within(tally, key)

    @override
    def total(self, tally: Tally, key: str) -> Any:
        return super().total(tally, key) + self._within(tally, key)

    def _within(self, tally: Tally, key: str) -> np.ndarray:
        return np.where(self.label_ids(key) != ABSENT, self._difference(tally), 0)

    def _difference(self, tally: Tally) -> np.ndarray:
        # A nominee is on no node yet: its labels may not count for the affinity of others, its own
        # affinity terms always do.
        counts = tally.carried is not None or self.removals.nominees_count_for_affinity
        return self.removals.change(
            tally,
            lambda pods: pods.counted_by(tally),
            self.positions,
            with_nominees=self.with_nominees and counts,
        )

    @override
    def gained_labels(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Any:
        return self._change(("labels", key), lambda pods: pods.by_labels(fact))

    @override
    def gained_classes(self, key: Hashable, fact: Callable[[PodClass], int]) -> Any:
        return self._change(("classes", key), lambda pods: pods.by_class(fact))

    @override
    def readded(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Any:
        return self.removals.returned(
            ("labels", key), lambda pods: pods.by_labels(fact), self.positions
        )

    @override
    def port_conflict(self, wanted: Iterable[Port]) -> Any:
        return self.removals.port_in_use(self.positions, with_nominees=self.with_nominees)
