"""Scores that are scaled so that the largest of all feasible rows becomes the highest score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.rule import ScoreRule
from podium.engine.rows.rows import K
from podium.engine.rows.written import written

if TYPE_CHECKING:
    from podium.engine.rows.rows import Ints, ManyRows, OneRow, Rows, Scalar
    from podium.engine.state.pod_class import Incoming


class ScaledScore(ScoreRule):
    """A score whose largest sum becomes `highest`."""

    normalizes = True
    highest: int
    #: Whether a sum of 0 becomes the highest score, and the largest sum 0.
    reverse = False

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """Scaled by the largest sum."""
        scaled: Any = self._scaled(at.highest(raw), at, raw)  # type: ignore[arg-type]
        return np.asarray(scaled)

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Ints[Scalar]:
        """The same for one row, written."""
        return self._scaled(written(among.highest(raw)), at, own)

    def _scaled(self, largest: int, at: Rows[K], raw: Ints[K]) -> Ints[K]:
        highest = self.highest
        if largest == 0:
            return at.full(highest) if self.reverse else raw
        scaled = at.divide(raw * highest, largest)
        return highest - scaled if self.reverse else scaled
