"""Indexes and tables give the best rows that a scan over all totals gives, after any changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import node, view
from podium.engine.fast.score_index import UNFIT, GroupIndex, ScoreIndex
from podium.engine.fast.score_table import GroupLayouts, GroupTable, ScoreTable
from podium.engine.rows.rows import ManyRows

KEYS = ("zone", "rack")
ZONES = st.sampled_from(["", "a", "b"])
TOTALS = st.one_of(st.none(), st.integers(0, 3))
NODES = st.lists(st.tuples(ZONES, ZONES, TOTALS), min_size=1, max_size=7)
CHANGES = st.lists(st.tuples(st.integers(0, 6), TOTALS), max_size=12)


def scan(totals: list[int | None], scores: list[int]) -> list[int]:
    """The positions of the highest sums."""
    sums = [None if t is None else t + s for t, s in zip(totals, scores, strict=True)]
    highest = max((each for each in sums if each is not None), default=None)
    return [place for place, each in enumerate(sums) if each is not None and each == highest]


@given(nodes=NODES, changes=CHANGES, by_zone=st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_indexes_equal_a_scan(
    nodes: list[tuple[str, str, int | None]],
    changes: list[tuple[int, int | None]],
    by_zone: list[int],
) -> None:
    objects = [
        node(f"n{i}", labels={k: v for k, v in zip(KEYS, pair, strict=True) if v})
        for i, (*pair, _) in enumerate(nodes)
    ]
    columns = view(*objects)
    order = columns.nodes.order[::-1].copy()
    totals = [total for *_, total in nodes][::-1]
    kept = np.full(columns.nodes.capacity, UNFIT, np.int64)
    for row, total in zip(order.tolist(), totals, strict=True):
        kept[row] = UNFIT if total is None else total
    index = ScoreIndex(order, kept)
    groups = GroupIndex(ManyRows(columns, order), KEYS, kept)
    layouts = GroupLayouts(columns)

    def score(row: int) -> int:
        zone, rack = (columns.nodes.label_column(key).ids.item(row) for key in KEYS)
        return by_zone[3 * zone + rack]

    for position, total in [(None, None), *changes]:
        if position is not None and position < len(order):
            totals[position] = total
            index.put(int(order[position]), total)
            groups.put(int(order[position]), total)
            kept[order[position]] = UNFIT if total is None else total
        assert index.best() == scan(totals, [0] * len(totals))
        assert index.count == groups.count == sum(each is not None for each in totals)
        feasible = groups.feasible_groups(columns)
        rows = feasible.rows.index.tolist()
        best = groups.best(feasible, [score(row) for row in rows])
        assert list(best) == scan(totals, [score(row) for row in order.tolist()])
        if not index.count:
            continue
        assert ScoreTable(kept[order], index.count).best().tolist() == index.best()
        layout = layouts.by(order, KEYS, len(order))
        assert layout is not None
        table = GroupTable(layout, kept, index.count)
        assert table.feasible_groups(columns).rows.index.tolist() == rows
        assert table.counts(feasible) == groups.counts(feasible)
        fits = tuple(score(row) > 0 for row in rows)
        for some in (feasible, table.narrowed(columns, fits)):
            scores = [score(row) for row in some.rows.index.tolist()]
            if scores:
                assert list(table.best(some, scores)) == list(groups.best(some, scores))
