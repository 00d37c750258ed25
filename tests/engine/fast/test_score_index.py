"""Indexes and tables give the best rows that a scan over all totals gives, after any changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import node, view
from podium.engine.fast.answer_columns import ScoreTable
from podium.engine.fast.score_index import UNFIT, ScoreIndex
from podium.engine.rows.row_groups import Grouping, GroupLayouts, RowGroups
from podium.engine.rows.rows import ManyRows
from podium.engine.state.tallies import Tally

KEYS = ("zone", "rack")
ZONES = st.sampled_from(["", "a", "b"])
TOTALS = st.one_of(st.none(), st.integers(0, 3))
NODES = st.lists(st.tuples(ZONES, ZONES, TOTALS), min_size=1, max_size=7)
CHANGES = st.lists(st.tuples(st.integers(0, 6), TOTALS, st.integers(0, 3)), max_size=12)


def scan(totals: list[int | None], scores: list[int]) -> list[int]:
    """The positions of the highest sums."""
    sums = [None if t is None else t + s for t, s in zip(totals, scores, strict=True)]
    highest = max((each for each in sums if each is not None), default=None)
    return [place for place, each in enumerate(sums) if each is not None and each == highest]


@given(
    nodes=NODES,
    changes=CHANGES,
    by_zone=st.lists(st.integers(0, 3), min_size=9, max_size=9),
    by_pods=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    by=st.sampled_from([(KEYS, False), (KEYS, True), ((), True), ((), False)]),
)
def test_indexes_equal_a_scan(
    nodes: list[tuple[str, str, int | None]],
    changes: list[tuple[int, int | None, int]],
    by_zone: list[int],
    by_pods: list[int],
    by: tuple[tuple[str, ...], bool],
) -> None:
    keys, tallied = by
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
    tally = Tally(columns.nodes.capacity, columns.nodes.label_column)
    grouping = Grouping(keys, (tally,) if tallied else ())
    groups = ScoreIndex(ManyRows(columns, order), grouping, kept)
    layouts = GroupLayouts(columns)

    def score(row: int, pods: int) -> int:
        zone, rack = (columns.nodes.label_column(key).ids.item(row) for key in KEYS)
        return (by_zone[3 * zone + rack] if keys else 0) + (by_pods[pods] if tallied else 0)

    def scores_of(some: RowGroups) -> list[int]:
        rows = some.rows.index.tolist()
        pods = some.tallied.get(tally, [0] * len(rows))
        return [score(row, number) for row, number in zip(rows, pods, strict=True)]

    for position, total, pods in [(None, None, 0), *changes]:
        if position is not None and position < len(order):
            row = int(order[position])
            totals[position] = total
            if pods != tally.on(row):
                tally.add(row, pods - tally.on(row))
            kept[row] = UNFIT if total is None else total
            groups.put(row, int(kept[row]))
        assert groups.count == sum(each is not None for each in totals)
        feasible = groups.feasible_groups()
        best = groups.best(feasible, scores_of(feasible))
        assert list(best) == scan(totals, [score(row, tally.on(row)) for row in order.tolist()])
        if not groups.count:
            continue
        layout = layouts.by(order, keys, len(order))
        assert layout is not None
        table = ScoreTable(layout, grouping.tallies, kept, groups.count)
        found = table.feasible_groups()
        assert sorted(zip(scores_of(found), table.counts(found), strict=True)) == sorted(
            zip(scores_of(feasible), groups.counts(feasible), strict=True)
        )
        assert list(table.best(found, scores_of(found))) == list(best)
        fits = tuple(each > 1 for each in scores_of(found))
        if any(fits):
            some = table.narrowed(fits)
            same = groups.narrowed(tuple(each > 1 for each in scores_of(feasible)))
            assert list(table.best(some, scores_of(some))) == list(
                groups.best(same, scores_of(same))
            )


def test_a_layout_is_kept_for_as_many_groups_as_were_wanted() -> None:
    """Or a small cluster would find no layout because another caller wanted fewer groups."""
    columns = view(*(node(f"n{i}", labels={"zone": f"z{i}"}) for i in range(3)))
    layouts = GroupLayouts(columns)
    assert layouts.by(columns.nodes.order, ("zone",), 1) is None
    assert layouts.by(columns.nodes.order, ("zone",), 3) is not None


def test_rows_whose_labels_changed_are_not_in_their_group_any_more() -> None:
    columns = view(node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"}))
    order = columns.nodes.order
    groups = ScoreIndex(ManyRows(columns, order), Grouping(("zone",)), np.zeros(64, np.int64))
    columns.put_node(node("n0", labels={"zone": "a", "disk": "ssd"}))
    assert groups.note_nodes({0})
    columns.put_node(node("n0", labels={"zone": "b"}))
    assert not groups.note_nodes({0})
