"""The pods of many rows as arrays: where each of them is, and what it counts for.

Facts are asked once per class or set of labels and then looked up for every pod.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter, contains, countOf, ne
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.engine.state.pod_class import Incoming, PodClass, Port, Resident
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.view import View

T = TypeVar("T")


def numbered(items: Iterable[T]) -> tuple[list[T], np.ndarray]:
    """The distinct items, and which of them each one is."""
    listed = list(items)
    distinct = dict.fromkeys(listed)
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    found = np.fromiter(map(number.__getitem__, listed), np.int64, len(listed))
    return list(distinct), found


def _narrowed(kinds: tuple[list[T], np.ndarray], chosen: np.ndarray) -> tuple[list[T], np.ndarray]:
    """The same for some of the items."""
    distinct, number = kinds
    used, found = np.unique(number[chosen], return_inverse=True)
    return list(map(distinct.__getitem__, used.tolist())), found


class Crowd:
    """Some pods, each at a place among some rows."""

    def __init__(self, pods: list[Resident], place: np.ndarray, size: int) -> None:
        self.pods = pods
        self.place = place
        #: How many places there are.
        self.size = size

    @classmethod
    def on(cls, view: View, rows: np.ndarray) -> Crowd:
        """All pods of these rows, row after row."""
        lists = list(map(view.residents.__getitem__, rows.tolist()))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        place = np.repeat(np.arange(len(lists)), lengths)
        return cls(list(chain.from_iterable(lists)), place, len(rows))

    @classmethod
    def promised(cls, view: View, rows: np.ndarray, pod: Incoming) -> Crowd:
        """The pods promised to these rows that another pod has to reckon with."""
        names, lists = list(view.nominated), list(view.nominated.values())
        known = np.fromiter(map(view.row_of.get, names, repeat(-1)), np.int64, len(names))
        place_of = np.full(view.capacity + 1, -1)
        place_of[rows] = np.arange(len(rows))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        pods = list(chain.from_iterable(lists))
        place = np.repeat(place_of[known], lengths)
        strong = np.fromiter(map(_PRIORITY, pods), np.int64, len(pods)) >= pod.priority
        others = np.fromiter(map(ne, map(_UID, pods), repeat(pod.uid)), np.bool_, len(pods))
        return cls(pods, place, len(rows)).only(np.flatnonzero((place >= 0) & strong & others))

    def __len__(self) -> int:
        return len(self.pods)

    def only(self, chosen: np.ndarray) -> Crowd:
        """Some of the pods, in the given order."""
        if len(chosen) == len(self.pods) and (chosen == np.arange(len(chosen))).all():
            return self
        made = Crowd(
            list(map(self.pods.__getitem__, chosen.tolist())), self.place[chosen], self.size
        )
        # What is known of the pods already holds for some of them.
        known = self.__dict__
        if "_classes" in known:
            made._classes = _narrowed(known["_classes"], chosen)
        if "_labels" in known:
            made._labels = _narrowed(known["_labels"], chosen)
        if "priority" in known:
            made.priority = known["priority"][chosen]
        return made

    # Facts, one for each pod
    @cached_property
    def _classes(self) -> tuple[list[PodClass], np.ndarray]:
        return numbered(map(_CLASS, self.pods))

    @cached_property
    def _labels(self) -> tuple[list[LabelSet], np.ndarray]:
        return numbered(map(_LABELS, self.pods))

    @cached_property
    def priority(self) -> np.ndarray:
        """The priority of each."""
        return self._look_up(self._classes, _OWN_PRIORITY)

    @cached_property
    def amounts(self) -> dict[int, np.ndarray]:
        """Per resource column that any of them uses, what each takes."""
        classes, number = self._classes
        taken = list(map(_TAKEN, classes))
        lengths = np.fromiter(map(len, taken), np.int64, len(taken))
        owner = np.repeat(np.arange(len(taken)), lengths)
        flat = chain.from_iterable(chain.from_iterable(taken))
        pairs = np.fromiter(flat, np.int64, 2 * len(owner)).reshape(-1, 2)
        found = {}
        for column in np.unique(pairs[:, 0]).tolist():
            here = pairs[:, 0] == column
            table = np.zeros(len(classes), np.int64)
            table[owner[here]] = pairs[here, 1]
            found[column] = table[number]
        return found

    def by_class(self, fact: Callable[[PodClass], int]) -> np.ndarray:
        """A fact of the class of each."""
        return self._look_up(self._classes, fact)

    def by_labels(self, fact: Callable[[LabelSet], int]) -> np.ndarray:
        """A fact of the labels of each."""
        return self._look_up(self._labels, fact)

    def counted_by(self, tally: Tally) -> np.ndarray:
        """What each counts for in a tally."""
        if tally.carried is not None:
            classes, number = self._classes
            times = map(countOf, map(_CARRIED, classes), repeat(tally.carried))
            table = np.fromiter(times, np.int64, len(classes))
        else:
            labels, number = self._labels
            table = np.fromiter(
                map(contains, map(_TALLIES, labels), repeat(tally)), np.int64, len(labels)
            )
        found: np.ndarray = table[number]
        return found

    def using(self, port: Port) -> np.ndarray:
        """Which of them use a host port."""
        classes, number = self._classes
        uses = map(contains, map(_PORTS, classes), repeat(port))
        found: np.ndarray = np.fromiter(uses, np.bool_, len(classes))[number]
        return found

    def _look_up(self, kinds: tuple[list[T], np.ndarray], fact: Callable[[T], int]) -> np.ndarray:
        distinct, number = kinds
        table = np.fromiter(map(fact, distinct), np.int64, len(distinct))
        found: np.ndarray = table[number]
        return found


_CLASS, _LABELS, _UID = attrgetter("cls"), attrgetter("labels"), attrgetter("uid")
_PRIORITY, _OWN_PRIORITY = attrgetter("cls.priority"), attrgetter("priority")
_TAKEN, _CARRIED, _PORTS = attrgetter("taken"), attrgetter("carried"), attrgetter("ports")
_TALLIES = attrgetter("tallies")
