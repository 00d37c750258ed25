"""Results as columns, which pandas and polars take as they are: `pandas.DataFrame(frame(x))`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.cluster.simulation import Step
from podium.engine.framework.decision import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

Frame = dict[str, np.ndarray]


def frame(result: Any) -> Frame:
    """The columns of a result, all of the same length.

    A `Decision` has a row for each node that was looked at: whether it fits, the reasons, the score
    of each rule and the total. The steps of `simulate` have a row for each attempt. A `Plan` has a
    row for each pod that moved, came, went, was evicted or waits.
    """
    if isinstance(result, Decision):
        return _of_decision(result)
    if hasattr(result, "moved") and hasattr(result, "pending"):
        return _of_plan(result)
    if isinstance(result, Iterable):
        return _of_steps(list(result))
    raise TypeError(f"{type(result).__name__} has no columns; a Decision, steps or a Plan have")


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


_PLAN_COLUMNS = ("pod", "workload", "outcome", "from", "to", "message")


def _of_plan(plan: Any) -> Frame:
    rows = [
        *((p.pod, p.workload, "moved", p.from_node, p.to_node, "") for p in plan.moved),
        *((p.pod, p.workload, "created", "", p.node, "") for p in plan.created),
        *((p.pod, p.workload, "pending", p.from_node, "", p.message) for p in plan.pending),
        *((p.pod, p.workload, "gone", p.node, "", p.reason) for p in plan.gone),
        *((p.pod, "", "evicted", p.node, "", f"for {p.preemptor}") for p in plan.evicted),
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(_PLAN_COLUMNS)
    return {
        name: np.array(column, object) for name, column in zip(_PLAN_COLUMNS, columns, strict=True)
    }
