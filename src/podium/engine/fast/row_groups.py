"""Rows that a priority cannot tell apart, so that one of them is asked for all.

Where only topology domains count, three zones stand for five thousand nodes. A priority says by
which label keys it tells rows apart (`alike`); whatever it computes over all feasible rows (the
highest, the lowest, how many domains there are) is the same over one row of each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.rows.many import ManyRows

if TYPE_CHECKING:
    from podium.engine.framework.rule import Priority
    from podium.engine.state.pod_class import Incoming

#: So many times fewer kinds than rows there must be.
FEWER = 8


def told_apart(
    priority: Priority, pod: Incoming, at: ManyRows
) -> tuple[ManyRows, np.ndarray | None]:
    """One row of each kind, and which of them stands for each row; or all rows as they are."""
    ask = getattr(priority, "alike", None)
    keys = ask(pod, at.view) if ask is not None and at.memo is not None else None
    if not keys:
        return at, None
    first, of_row, memo = at.remembered(("alike", keys), lambda: _kinds(at, keys))
    if len(first) * FEWER > len(at):
        return at, None
    return ManyRows(at.view, at.index[first], memo), of_row


def _kinds(at: ManyRows, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, dict[Any, Any]]:
    """The first row of each kind, the kind of each row, and what is to be remembered of them."""
    ids = at.label_ids(keys[0]).astype(np.int64)
    for key in keys[1:]:
        ids = ids * len(at.view.label_column(key).values) + at.label_ids(key)
    _, first, of_row = np.unique(ids, return_index=True, return_inverse=True)
    return first, of_row, {}
