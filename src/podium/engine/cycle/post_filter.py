"""The stage after filters that left no node: post-filters run, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.post_filter import FailedSearch, PostFilter


def run_post_filters(
    post_filters: Sequence[PostFilter], failed: FailedSearch, decision: Decision
) -> Generator[Any, Any, None]:
    """Run post-filters in order until one helps or fails; record the outcome in the decision."""
    reasons = []
    for plugin in post_filters:
        outcome = yield from plugin.run(failed)
        if outcome.preemption is not None:
            decision.preemption = outcome.preemption
        if outcome.released is not None:
            decision.released = outcome.released
        decision.post_code = outcome.code
        if outcome.code != "Unschedulable":
            decision.post_message = "" if outcome.code == "Success" else outcome.reason
            return
        reasons.append(outcome.reason)
        decision.post_message = ", ".join(reasons)
