"""The pods of many rows as arrays: the row of each pod, its priority, what it requests and counts.

A fact about pods is computed once per pod class or label set, then looked up for every pod.
"""

from __future__ import annotations

from collections import defaultdict
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
#: Distinct values, and for each item the index of its value.
Interned = tuple[list[T], np.ndarray]


def interned(items: Iterable[T]) -> Interned[T]:
    """The distinct items in the order they first appear, and the index of each item among them."""
    number: defaultdict[T, int] = defaultdict()
    number.default_factory = number.__len__
    found = np.fromiter(map(number.__getitem__, items), np.int64)
    return list(number), found


def _narrowed(values: Interned[T], chosen: np.ndarray) -> Interned[T]:
    """Interned values of some of the items; values that none of them has are dropped."""
    distinct, number = values
    if len(chosen) == len(number):
        return distinct, number[chosen]
    used, found = np.unique(number[chosen], return_inverse=True)
    return list(map(distinct.__getitem__, used.tolist())), found


class PodArrays:
    """Pods with their positions in an array of rows."""

    def __init__(self, pods: list[Resident], position: np.ndarray) -> None:
        self.pods = pods
        #: For each pod, the index of its row in the array of rows.
        self.position = position

    @classmethod
    def on(cls, view: View, rows: np.ndarray) -> PodArrays:
        """All pods on these rows, row after row, each row in the view's order of its pods."""
        lists = list(map(view.pods.residents.__getitem__, rows.tolist()))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        position = np.repeat(np.arange(len(lists)), lengths)
        return cls(list(chain.from_iterable(lists)), position)

    @classmethod
    def none(cls) -> PodArrays:
        """No pods."""
        return cls([], np.zeros(0, np.int64))

    @classmethod
    def nominated(cls, view: View, rows: np.ndarray, pod: Incoming) -> PodArrays:
        """The other pods nominated to these rows whose priority is at least that of `pod`."""
        names, lists = list(view.pods.nominated), list(view.pods.nominated.values())
        known = np.fromiter(map(view.nodes.row_of.get, names, repeat(-1)), np.int64, len(names))
        position_of = np.full(view.nodes.capacity + 1, -1)
        position_of[rows] = np.arange(len(rows))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        pods = list(chain.from_iterable(lists))
        position = np.repeat(position_of[known], lengths)
        counts = np.fromiter(map(_PRIORITY, pods), np.int64, len(pods)) >= pod.priority
        others = np.fromiter(map(ne, map(_UID, pods), repeat(pod.uid)), np.bool_, len(pods))
        return cls(pods, position).only(np.flatnonzero((position >= 0) & counts & others))

    def __len__(self) -> int:
        return len(self.pods)

    def only(self, chosen: np.ndarray) -> PodArrays:
        """The pods with these indices, in the given order."""
        if len(chosen) == len(self.pods) and (chosen == np.arange(len(chosen))).all():
            return self
        made = PodArrays(list(map(self.pods.__getitem__, chosen.tolist())), self.position[chosen])
        # Columns that were computed for all pods need not be computed again for some of them.
        known = self.__dict__
        if "_classes" in known:
            made._classes = _narrowed(known["_classes"], chosen)
        if "_labels" in known:
            made._labels = _narrowed(known["_labels"], chosen)
        for column in ("priority", "started"):
            if column in known:
                made.__dict__[column] = known[column][chosen]
        return made

    def running_sum(self, numbers: np.ndarray) -> np.ndarray:
        """For each pod, the sum of `numbers` over its row's pods up to and including it.

        The pods must be listed row after row.
        """
        total = np.cumsum(numbers)
        is_first = np.ones(len(numbers), np.bool_)
        is_first[1:] = self.position[1:] != self.position[:-1]
        before = (total - numbers)[is_first]
        found: np.ndarray = total - before[np.cumsum(is_first) - 1]
        return found

    # Columns, with a value for each pod
    @cached_property
    def _classes(self) -> Interned[PodClass]:
        return interned(map(_CLASS, self.pods))

    @cached_property
    def _labels(self) -> Interned[LabelSet]:
        return interned(map(_LABELS, self.pods))

    @cached_property
    def priority(self) -> np.ndarray:
        """The priority of each pod."""
        return _looked_up(self._classes, _CLASS_PRIORITY)

    @cached_property
    def started(self) -> np.ndarray:
        """When each pod started, in seconds; infinity where that is not known."""
        return np.fromiter(map(_STARTED, self.pods), np.float64, len(self.pods))

    @cached_property
    def requests(self) -> dict[int, np.ndarray]:
        """For each resource that any of the pods requests, how much each pod requests of it."""
        classes, number = self._classes
        taken = list(map(_TAKEN, classes))
        lengths = np.fromiter(map(len, taken), np.int64, len(taken))
        owner = np.repeat(np.arange(len(taken)), lengths)
        flat = chain.from_iterable(chain.from_iterable(taken))
        pairs = np.fromiter(flat, np.int64, 2 * len(owner)).reshape(-1, 2)
        found = {}
        for resource in np.bincount(pairs[:, 0]).nonzero()[0].tolist():
            here = pairs[:, 0] == resource
            table = np.zeros(len(classes), np.int64)
            table[owner[here]] = pairs[here, 1]
            found[resource] = table[number]
        return found

    def requested(self, resource: int) -> np.ndarray:
        """How much of a resource each pod requests."""
        found = self.requests.get(resource)
        return np.zeros(len(self), np.int64) if found is None else found

    def by_class(self, fact: Callable[[PodClass], int]) -> np.ndarray:
        """A fact about the class of each pod."""
        return _looked_up(self._classes, fact)

    def by_labels(self, fact: Callable[[LabelSet], int]) -> np.ndarray:
        """A fact about the labels of each pod."""
        return _looked_up(self._labels, fact)

    def counted_by(self, tally: Tally) -> np.ndarray:
        """How often a tally counts each pod."""
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
        """Whether each pod uses a host port."""
        classes, number = self._classes
        uses = map(contains, map(_PORTS, classes), repeat(port))
        found: np.ndarray = np.fromiter(uses, np.bool_, len(classes))[number]
        return found


def _looked_up(values: Interned[T], fact: Callable[[T], int]) -> np.ndarray:
    distinct, number = values
    table = np.fromiter(map(fact, distinct), np.int64, len(distinct))
    found: np.ndarray = table[number]
    return found


_CLASS, _LABELS, _UID = attrgetter("cls"), attrgetter("labels"), attrgetter("uid")
_PRIORITY, _CLASS_PRIORITY = attrgetter("cls.priority"), attrgetter("priority")
_STARTED = attrgetter("started")
_TAKEN, _CARRIED, _PORTS = attrgetter("taken"), attrgetter("carried"), attrgetter("ports")
_TALLIES = attrgetter("tallies")
