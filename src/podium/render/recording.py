"""Decisions in the form that recordings of the real scheduler have.

One step per attempt, as `docs/recordings.md` describes it; `podium schedule -o recording` writes
it and `podium verify` compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from podium.engine.decision import Decision, Preemption


def step(decision: Decision, attempt: int) -> dict[str, Any]:
    """One attempt."""
    found: dict[str, Any] = {"pod": decision.pod, "attempt": attempt}
    if decision.error:
        found["error"] = decision.error
    failed = decision.failed()
    if failed:
        found["failed"] = failed
    if decision.feasible:
        found["feasible"] = list(decision.feasible)
    if decision.totals is not None:
        if decision.scores:
            found["scores"] = {
                column.name: _column(decision.feasible, column.score) for column in decision.scores
            }
        found["total"] = _column(decision.feasible, decision.totals)
    if decision.node is not None:
        found["host"] = decision.node
    elif not decision.error:
        found["message"] = decision.message
    if decision.preemption is not None:
        found["preempt"] = preempt(decision.preemption)
    return found


def _column(nodes: Sequence[str], values: np.ndarray) -> dict[str, int]:
    """Node -> value, or `*` -> value when all are equal."""
    numbers = values.tolist()
    if len(set(numbers)) == 1:
        return {"*": numbers[0]}
    return dict(zip(nodes, numbers, strict=True))


def preempt(preemption: Preemption) -> dict[str, Any]:
    """The outcome of preemption."""
    node = preemption.node
    chosen = preemption.candidates[node] if node is not None else None
    found: dict[str, Any] = {
        "eligible": preemption.eligible,
        "potentialNodes": list(preemption.potential),
        "candidates": {
            name: {"victims": sorted(victims.pods), "numPDBViolations": victims.violations}
            for name, victims in preemption.candidates.items()
        },
        "node": node,
        "victims": sorted(chosen.pods) if chosen else [],
        "numPDBViolations": chosen.violations if chosen else 0,
        "clearedNominations": sorted(key for _, key in preemption.cleared),
    }
    if preemption.tie:
        found["tie"] = list(preemption.tie)
    return found
