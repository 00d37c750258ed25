"""Removing derived data that no present pod or node needs.

Pod classes, label sets, tallies and vocabularies grow with every kind of pod and every label value
that was ever seen. In a scheduler that runs for months they are trimmed from time to time to what
the present pods and nodes need; the rest is made again when it is needed. Nothing that a decision
depends on changes, history included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.cluster.cache.columns import Columns

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
        epochs = columns.journal.epoch - self._epoch
        if len(columns.pods.classes) <= self._max_classes and epochs < self._min_epochs:
            return False
        columns.trim()
        self._max_classes = max(self._min_classes, 2 * len(columns.pods.classes))
        self._epoch = columns.journal.epoch
        return True
