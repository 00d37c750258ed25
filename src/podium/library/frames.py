"""Answers in a notebook: columns, which pandas and polars take as they are, and a table.

`pandas.DataFrame(frame(x))` works for every answer, decision and run.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from podium.cluster.simulation import Step
from podium.engine.framework.decision import Decision
from podium.render.columns import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

Frame = dict[str, np.ndarray]
#: So many rows of an answer are shown in a notebook.
_MOST_ROWS: Final = 60


class TabularAnswer:
    """The base of answers with rows: a sentence in a shell, a table in a notebook, columns."""

    __slots__ = ()

    def rows(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The names of columns, and the rows."""
        raise NotImplementedError

    def to_frame(self) -> Frame:
        """The rows in columns, which pandas and polars take."""
        return frame(self)

    def _repr_html_(self) -> str:
        """What `repr` says, and the first rows as a table."""
        names, rows = self.rows()
        shown = [["" if cell is None else str(cell) for cell in row] for row in rows[:_MOST_ROWS]]
        lines = [repr(self)[1:-1], "", *aligned([names, *shown])]
        if len(rows) > _MOST_ROWS:
            lines.append(f"and {len(rows) - _MOST_ROWS} more")
        return f"<pre>{escape(chr(10).join(lines))}</pre>"


def frame(result: Any) -> Frame:
    """The columns of a result, all of the same length.

    A `Decision`, and the `Explanation` of one, has a row for each node that was looked at: whether
    it fits, the reasons, the score of each rule and the total. The steps of `simulate` have a row
    for each attempt. All other results have `rows` of their own.
    """
    decision = getattr(result, "decision", result)
    if isinstance(decision, Decision):
        return _of_decision(decision)
    if hasattr(result, "rows"):
        names, rows = result.rows()
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return {name: _column(values) for name, values in zip(names, columns, strict=True)}
    if isinstance(result, Iterable):
        return _of_steps(list(result))
    raise TypeError(f"{type(result).__name__} has no columns; a Decision, steps or a Plan have")


def _column(values: Sequence[Any]) -> np.ndarray:
    is_number = bool(values) and all(isinstance(each, int | float) for each in values)
    return np.array(values) if is_number else np.array(values, object)


def _of_decision(decision: Decision) -> Frame:
    names = list(decision.examined or decision.feasible)
    at = {name: place for place, name in enumerate(decision.feasible)}
    places = np.array([at.get(name, -1) for name in names], np.int64)
    failed = decision.failed()
    found: Frame = {
        "node": np.array(names, object),
        "fits": places >= 0,
        "reasons": np.array(["; ".join(failed.get(name, ())) for name in names], object),
    }
    columns: Sequence[tuple[str, np.ndarray]] = [
        (column.name, column.score) for column in decision.scores
    ]
    if decision.totals is not None:
        columns = [*columns, ("total", decision.totals)]
    for name, values in columns:
        spread = np.full(len(names), np.nan)
        spread[places >= 0] = np.asarray(values)[places[places >= 0]]
        found[name] = spread
    found["chosen"] = np.array([name == decision.node for name in names], np.bool_)
    return found


def _of_steps(steps: Sequence[Step]) -> Frame:
    decisions = [step.decision for step in steps]
    return {
        "pod": np.array([step.pod.key for step in steps], object),
        "attempt": np.array([step.attempt for step in steps], np.int64),
        "node": np.array([each.node or "" for each in decisions], object),
        "feasible": np.array([each.feasible_count for each in decisions], np.int64),
        "tied": np.array([each.tied for each in decisions], np.int64),
        "message": np.array(
            ["" if each.node is not None else each.message for each in decisions], object
        ),
    }
