"""The Reserve stage: what the pod takes on the chosen node besides its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rows.rows import OneRow

if TYPE_CHECKING:
    from podium.engine.cycle.attempt import Attempt
    from podium.engine.framework.decision import Decision
    from podium.engine.state.view import View


def reserve(view: View, attempt: Attempt, decision: Decision, row: int) -> None:
    """Name the node in the decision, and what each reserve rule sets aside there.

    Nothing of the cluster changes: the caller keeps the reservations with the assumed pod, carries
    them out before binding, and drops them with the pod.
    """
    at = OneRow(view, row)
    for rule in attempt.profile.reserve_rules:
        reserved = rule.reserve(attempt.pod, at)
        if reserved is not None:
            decision.reservations[rule.name] = reserved
    decision.node = view.names[row]
