"""Many rows with pods added and taken away, each row for itself: `TrialRow` for all at once.

`Trials` holds what was done, as a number per row for whatever some rule asked about; `TrialRows` is
how rules read it. Nothing is written to the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.rows.many import ManyRows
from podium.engine.rows.one import conflict
from podium.engine.rows.pod_arrays import Crowd
from podium.engine.state.tallies import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from podium.engine.state.pod_class import Incoming, PodClass, Port
    from podium.engine.state.tallies import Flags, Ints, LabelSet, Tally
    from podium.engine.state.view import View


class Trials:
    """Pods that are taken off their rows at first, and put back one by one."""

    def __init__(
        self, pod: Incoming, view: View, rows: np.ndarray, crowd: Crowd, *, fully: bool
    ) -> None:
        self.view, self.rows, self.crowd = view, rows, crowd
        #: Pods that were promised the rows; they are added where a row is looked at as `crowded`.
        self.promised = Crowd.promised(view, rows, pod)
        #: Whether a promised pod counts for everything, also for the affinity of others.
        self.fully = fully
        self.gone = np.ones(len(crowd), np.bool_)
        #: For each question: what each pod counts for, and the sum over the pods gone, per row.
        self._asked: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        self._extra: dict[Hashable, np.ndarray] = {}
        self._whole: dict[Hashable, np.ndarray] = {}
        #: Which rows were promised to somebody.
        self.crowded = np.zeros(len(rows), np.bool_)
        self.crowded[self.promised.place] = True
        self._ports = {port: self._port(port) for port in _in_question(pod.cls.ports, view)}
        self._promised_ports = np.zeros(len(rows), np.bool_)
        if pod.cls.ports and len(self.promised):
            wanted = pod.cls.ports
            clash = self.promised.by_class(lambda cls: _clash(cls, wanted))
            self._promised_ports[self.promised.place[clash > 0]] = True

    def _port(self, port: Port) -> tuple[np.ndarray, np.ndarray]:
        """Where a port is in use, and which pods use it; free once any of these has gone."""
        used = np.isin(self.rows, list(self.view.port_rows.get(port, ())))
        users = self.crowd.using(port)
        used[self.crowd.place[users]] = False
        return used, users

    def put_back(self, pods: np.ndarray) -> None:
        """Put pods back on their rows, at most one on each."""
        self._move(pods, 1)

    def take(self, pods: np.ndarray) -> None:
        """Take pods off their rows again."""
        self._move(pods, -1)

    def _move(self, pods: np.ndarray, sign: int) -> None:
        places = self.crowd.place[pods]
        self.gone[pods] = sign < 0
        for weights, sums in self._asked.values():
            sums[places] += sign * weights[pods]
        for used, users in self._ports.values():
            used[places[users[pods]]] = sign > 0

    def change(
        self,
        key: Hashable,
        weigh: Callable[[Crowd], np.ndarray],
        places: np.ndarray,
        *,
        crowded: bool,
    ) -> np.ndarray:
        """By how much a sum over the pods of each row differs from what it was."""
        if key not in self._asked:
            weights = weigh(self.crowd).astype(np.int64)
            sums = np.zeros(len(self.rows), np.int64)
            np.subtract.at(sums, self.crowd.place[self.gone], weights[self.gone])
            self._asked[key] = (weights, sums)
        found: np.ndarray = self._asked[key][1][places]
        if crowded:
            if key not in self._extra:
                self._extra[key] = np.zeros(len(self.rows), np.int64)
                np.add.at(self._extra[key], self.promised.place, weigh(self.promised))
            found = found + self._extra[key][places]
        return found

    def returned(
        self, key: Hashable, weigh: Callable[[Crowd], np.ndarray], places: np.ndarray
    ) -> np.ndarray:
        """A sum over the pods that were put back on each row."""
        gone = self.change(key, weigh, places, crowded=False)
        if key not in self._whole:
            self._whole[key] = np.zeros(len(self.rows), np.int64)
            np.add.at(self._whole[key], self.crowd.place, self._asked[key][0])
        found: np.ndarray = gone + self._whole[key][places]
        return found

    def port_in_use(self, places: np.ndarray, *, crowded: bool) -> np.ndarray:
        """Where a port in conflict with those of the pod is in use."""
        found = np.zeros(len(places), np.bool_)
        for used, _ in self._ports.values():
            found |= used[places]
        return found | self._promised_ports[places] if crowded else found


def _in_question(wanted: Iterable[Port], view: View) -> set[Port]:
    return {port for other in wanted for port in view.ports_like(other)}


def _clash(cls: PodClass, wanted: tuple[Port, ...]) -> bool:
    return any(conflict(port, other) for port in cls.ports for other in wanted)


class TrialRows(ManyRows):
    """Some of the rows of a trial, as they are at the moment."""

    __slots__ = ("crowded", "places", "trials")
    on_trial = True

    def __init__(self, trials: Trials, places: np.ndarray, *, crowded: bool) -> None:
        super().__init__(trials.view, trials.rows[places])
        self.trials = trials
        self.places = places
        #: Whether the pods that were promised the rows are on them.
        self.crowded = crowded

    def _change(self, key: Hashable, weigh: Callable[[Crowd], np.ndarray]) -> np.ndarray:
        return self.trials.change(key, weigh, self.places, crowded=self.crowded)

    def requested(self, resource: int) -> Ints:
        """With the changes."""
        return super().requested(resource) + self._change(
            ("requested", resource), lambda crowd: _amount(crowd, resource)
        )

    def pod_count(self) -> Ints:
        """With the changes."""
        return super().pod_count() + self._change("pods", lambda crowd: np.ones(len(crowd)))

    def on_row(self, tally: Tally) -> Ints:
        """With the changes."""
        return super().on_row(tally) + self._difference(tally)

    def domain(self, tally: Tally, key: str) -> Ints:
        """With the changes, which all happen in the row's own domain."""
        return super().domain(tally, key) + self._within(tally, key)

    def total(self, tally: Tally, key: str) -> Ints:
        """With the changes: a number for each row."""
        return super().total(tally, key) + self._within(tally, key)

    def _within(self, tally: Tally, key: str) -> np.ndarray:
        return np.where(self.label_ids(key) != ABSENT, self._difference(tally), 0)

    def _difference(self, tally: Tally) -> np.ndarray:
        # A promised pod has no node of its own yet: its labels may not count, its terms do.
        counts = tally.carried is not None or self.trials.fully
        return self.trials.change(
            tally,
            lambda crowd: crowd.counted_by(tally),
            self.places,
            crowded=self.crowded and counts,
        )

    def gained_labels(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Ints:
        """The sum of a fact of the labels over all pods added, less that over those taken away."""
        return self._change(("labels", key), lambda crowd: crowd.by_labels(fact))

    def gained_classes(self, key: Hashable, fact: Callable[[PodClass], int]) -> Ints:
        """The same, of a fact of the class."""
        return self._change(("classes", key), lambda crowd: crowd.by_class(fact))

    def returned(self, key: Hashable, fact: Callable[[LabelSet], int]) -> Ints:
        """The sum of a fact of the labels over all pods put back."""
        return self.trials.returned(
            ("labels", key), lambda crowd: crowd.by_labels(fact), self.places
        )

    def port_conflict(self, wanted: Iterable[Port]) -> Flags:  # noqa: ARG002 - those of the pod
        """With the changes."""
        return self.trials.port_in_use(self.places, crowded=self.crowded)


def _amount(crowd: Crowd, resource: int) -> np.ndarray:
    found = crowd.amounts.get(resource)
    return np.zeros(len(crowd), np.int64) if found is None else found
