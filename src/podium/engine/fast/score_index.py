"""Feasible rows by total score, so that the best are found without a scan."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort

import numpy as np

from podium.engine.state.verdicts import FITS


class ScoreIndex:
    """Feasible positions by total score, each list in node order."""

    __slots__ = ("_buckets", "_heap", "_totals", "count", "order", "position_of")

    def __init__(self, order: np.ndarray, codes: np.ndarray, totals: np.ndarray) -> None:
        self.order = order
        self.position_of: dict[int, int] = dict(zip(order.tolist(), range(len(order)), strict=True))
        found = totals[order]
        fits = codes[order] == FITS
        # Objects, because some rows have no total at all.
        known = found.astype(object)
        known[~fits] = None
        self._totals: list[int | None] = known.tolist()
        positions = np.flatnonzero(fits)
        #: How many rows fit.
        self.count = len(positions)
        positions = positions[np.argsort(found[positions], kind="stable")]
        distinct, starts = np.unique(found[positions], return_index=True)
        parts = np.split(positions, starts[1:]) if len(distinct) else []
        self._buckets: dict[int, list[int]] = dict(
            zip(distinct.tolist(), map(np.ndarray.tolist, parts), strict=True)
        )
        self._heap = (-distinct[::-1]).tolist()
        heapq.heapify(self._heap)

    def put(self, row: int, total: int | None) -> None:
        """The row's total changed; None when it does not fit any more."""
        position = self.position_of.get(row)
        if position is None or self._totals[position] == total:
            return
        before = self._totals[position]
        if before is not None:
            bucket = self._buckets[before]
            del bucket[bisect_left(bucket, position)]
            self.count -= 1
        self._totals[position] = total
        if total is not None:
            self.count += 1
            known = self._buckets.get(total)
            if known is None:
                self._buckets[total] = [position]
                heapq.heappush(self._heap, -total)
            else:
                insort(known, position)

    def best(self) -> list[int]:
        """The positions that share the highest total; empty when nothing fits."""
        while self._heap:
            bucket = self._buckets[-self._heap[0]]
            if bucket:
                return bucket
            del self._buckets[-heapq.heappop(self._heap)]
        return []
