"""What a decision was made from, row by row: kept only where two decisions are compared.

A decision from kept answers reads the best rows from an index and no verdict of any row. With an
`Evidence` in the attempt, the answers behind it are noted as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.fast.class_answers import ClassAnswers
    from podium.engine.state.pod_class import Incoming


class Evidence:
    """The verdict of every row, the total of every feasible row, and the best rows."""

    __slots__ = ("best", "codes", "feasible", "totals")

    def __init__(self) -> None:
        #: In the order of the attempt; None where the decision itself has the verdicts.
        self.codes: np.ndarray | None = None
        #: The rows that were scored, and their totals; None where nothing was scored.
        self.feasible: np.ndarray | None = None
        self.totals: np.ndarray | None = None
        #: The rows that shared the best total; None where there was no choice.
        self.best: np.ndarray | None = None

    def note_totals(self, feasible: np.ndarray, totals: np.ndarray) -> None:
        """Note the totals of the rows that were scored."""
        self.feasible, self.totals = feasible.copy(), totals.copy()

    def note_best(self, rows: np.ndarray, best: Sequence[int] | np.ndarray) -> None:
        """Note the best rows, given by their positions among some rows."""
        self.best = rows[np.asarray(best, np.int64)]

    def note_answers(self, pod: Incoming, order: np.ndarray, answers: ClassAnswers) -> None:
        """Note the kept answers from which a row was chosen."""
        self.codes = answers.fit(pod, order).codes.copy()
        feasible = order[self.codes == FITS]
        if len(feasible) > 1 and answers.profile.priorities:
            self.note_totals(feasible, answers.totals(pod, feasible))
