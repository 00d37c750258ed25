"""Removing derived data that no present pod or node needs.

Pod classes, label sets, tallies and vocabularies grow with every kind of pod and every label value
that was ever seen. In a scheduler that runs for months they are trimmed from time to time to what
the present pods and nodes need; the rest is made again when it is needed. Nothing that a decision
depends on changes, history included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.state.pod_class import PodClass
from podium.engine.state.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.cluster.cache.columns import Columns
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import FactColumn

#: With fewer pod classes, and fewer additions and removals of nodes, trimming is not worthwhile.
MIN_CLASSES = 2048
MIN_EPOCHS = 16384


class Trimmer:
    """Trims columns when their pod classes have doubled since the last time."""

    def __init__(self, min_classes: int = MIN_CLASSES, min_epochs: int = MIN_EPOCHS) -> None:
        """Up to *min_classes* classes and *min_epochs* changes of nodes nothing is trimmed."""
        self._min_classes = self._max_classes = min_classes
        self._min_epochs = min_epochs
        self._epoch = 0

    def tidy(self, columns: Columns) -> bool:
        """Trim if it is worthwhile; returns whether it was."""
        epochs = columns.epoch - self._epoch
        if len(columns.classes) <= self._max_classes and epochs < self._min_epochs:
            return False
        trim(columns)
        self._max_classes = max(self._min_classes, 2 * len(columns.classes))
        self._epoch = columns.epoch
        return True


def trim(columns: Columns) -> None:
    """Keep what the placed and nominated pods and the nodes need.

    The epoch changes, so that answers cached per row are computed again.
    """
    live = {resident.cls.id: resident.cls for resident in _residents(columns)}
    columns.classes = {key: cls for key, cls in columns.classes.items() if cls.id in live}
    columns.class_list = dict(sorted(live.items()))
    for cls in live.values():
        cls.memo = {}
    labels = {id(each) for cls in live.values() for each in (cls.labels, cls.terminating_labels)}
    carried = {id(term) for cls in live.values() for term in cls.carried}
    columns.keep(lambda each: id(each) in labels, lambda term: id(term) in carried)
    columns.label_columns = {}
    columns.verdicts = Verdicts()
    for fact in columns.facts.columns():
        _trim_fact(fact)
    columns._last = (None, PodClass())  # noqa: SLF001
    columns.epoch += 1


def _residents(columns: Columns) -> Iterable[Resident]:
    for residents in (*columns.residents, *columns.nominated.values()):
        yield from residents


def _trim_fact(fact: FactColumn) -> None:
    """Number the values in use anew; 0 stays the absent one."""
    used = [0, *(number for number in np.unique(fact.ids).tolist() if number)]
    fact.ids = np.searchsorted(used, fact.ids).astype(fact.ids.dtype)
    fact.values = [fact.values[number] for number in used]
    fact.index = {value: number for number, value in enumerate(fact.values)}
