"""Feasible rows by total score, so that picking the best does not scan."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort

import numpy as np

from podium.engine.verdicts import FITS


class ScoreIndex:
    """Feasible positions by total score, each list in node order."""

    __slots__ = ("_buckets", "_heap", "_totals", "order", "position_of")

    def __init__(self, order: np.ndarray, codes: np.ndarray, totals: np.ndarray) -> None:
        self.order = order
        self.position_of: dict[int, int] = {row: i for i, row in enumerate(order.tolist())}
        found = totals[order]
        fits = np.flatnonzero(codes[order] == FITS)
        self._totals: list[int | None] = [None] * len(order)
        self._buckets: dict[int, list[int]] = {}
        for position, total in zip(fits.tolist(), found[fits].tolist(), strict=True):
            self._totals[position] = total
            self._buckets.setdefault(total, []).append(position)
        self._heap = [-total for total in self._buckets]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def put(self, row: int, total: int | None) -> None:
        """The row's total changed; None when it does not fit any more."""
        position = self.position_of.get(row)
        if position is None or self._totals[position] == total:
            return
        before = self._totals[position]
        if before is not None:
            bucket = self._buckets[before]
            del bucket[bisect_left(bucket, position)]
        self._totals[position] = total
        if total is not None:
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
