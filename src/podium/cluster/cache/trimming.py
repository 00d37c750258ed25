"""Forgetting what no pod and no node needs any more.

Classes, label sets, tallies and vocabularies grow with every kind of pod and every label value that
was ever seen. In a program that runs for months they are trimmed now and then to what the pods and
nodes of today need; the rest is made again when it is asked for. Nothing that a decision depends on
changes, history included.
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

#: Below so many classes and so many comings and goings of nodes nothing is gained.
FEW_CLASSES = 2048
MANY_EPOCHS = 16384


class Trimmer:
    """Knows when trimming is due: when there is twice as much as was left the last time."""

    def __init__(self, few: int = FEW_CLASSES) -> None:
        """Up to *few* classes nothing is done."""
        self._few = self._most_classes = few
        self._epoch = 0

    def tidy(self, columns: Columns) -> bool:
        """Trim if it is due; whether it was."""
        if len(columns.classes) <= self._most_classes and columns.epoch - self._epoch < MANY_EPOCHS:
            return False
        trim(columns)
        self._most_classes = max(self._few, 2 * len(columns.classes))
        self._epoch = columns.epoch
        return True


def trim(columns: Columns) -> None:
    """Keep what the pods on nodes, the nominated ones and the nodes need.

    Whoever remembers answers about rows finds the epoch changed, and asks again.
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
