"""How many feasible nodes are enough, and where the search for them ends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.filtering import merged_errors
from podium.engine.state.verdicts import FITS, histogram

if TYPE_CHECKING:
    from podium.engine.cycle.attempt import Attempt
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.pipelines.filtering import Fit
    from podium.engine.state.view import View

NO_PLACES = np.zeros(0, np.int64)


def wanted_nodes(nodes: int, percentage: int, *, adaptive: bool = False) -> int:
    """How many feasible nodes are enough.

    `adaptive`: 0 percent stands for a share that shrinks as the cluster grows.
    """
    if adaptive and percentage == 0:
        percentage = max(5, 50 - nodes // 125)
    if nodes < 100 or not 0 < percentage < 100:
        return nodes
    return max(nodes * percentage // 100, 100)


def wanted_by(profile: Profile, nodes: int) -> int:
    """How many feasible nodes are enough for a profile."""
    if profile.wants_all_nodes:
        return nodes
    if profile.first_if_equal and not profile.compares_nodes:
        return 1
    percentage = profile.percentage_of_nodes_to_score
    return wanted_nodes(nodes, percentage, adaptive=profile.adaptive_sampling)


def sample(
    view: View, attempt: Attempt, fit: Fit, only: frozenset[str] | None, decision: Decision
) -> np.ndarray:
    """The feasible rows, up to the wanted number, in node order.

    Verdicts and errors of rows beyond that do not count: these were never looked at. What was
    looked at is noted in the decision.
    """
    order, codes = attempt.order, fit.codes
    names_once = view.nodes.names_once(order)
    counted = fit.rejections if names_once else None
    fits = NO_PLACES
    if counted is None or counted.total() < len(order):
        fits = (codes == FITS).nonzero()[0]
    nodes = len(view.nodes.order) if only is None else len(only & view.nodes.row_of.keys())
    want = wanted_by(attempt.profile, nodes)
    seen = len(order)
    if len(fits) > want:
        # The search stops at the first feasible node too many, which is dropped again.
        seen = int(fits[want])
        decision.consumed, decision.dropped = seen + 1, True
        fits = fits[:want]
    else:
        decision.consumed = seen
    if only is not None:
        inside = np.isin(
            order[:seen], [view.nodes.row_of[n] for n in only if n in view.nodes.row_of]
        )
        decision.consumed = int(inside.sum()) + decision.dropped
    failed = np.sort(np.fromiter(fit.errors, np.int64, len(fit.errors)))
    errors = list(map(fit.errors.__getitem__, failed[failed < seen].tolist()))
    if errors:
        text = merged_errors(errors) if attempt.profile.all_errors else errors[0]
        places = failed[failed < seen].tolist()
        rules, position = attempt.profile.predicates, int(fit.positions[places[0]])
        plugin = rules[position].name if position < len(rules) else ""
        named: dict[str, str] = {}
        if attempt.recording:
            names = (view.nodes.names[row] for row in order[places].tolist())
            named = dict(zip(names, errors, strict=True))
        raise AttemptError(text, plugin=plugin, nodes=named)
    decision.feasible_count = len(fits)
    decision.codes = codes[:seen]
    if len(fits) < seen:
        decision.histogram = _rejections(
            order[:seen],
            decision.codes,
            counted if seen == len(order) else None,
            names_once=names_once,
        )
    if attempt.recording:
        decision.examined = [view.nodes.names[row] for row in order[:seen].tolist()]
    return order if len(fits) == len(order) else order[fits]


def _rejections(
    rows: np.ndarray, codes: np.ndarray, counted: Counter[int] | None, *, names_once: bool
) -> Counter[int]:
    """How many of the rows were rejected with which verdict, each row once, in order of codes."""
    if counted is not None:
        return Counter(dict(sorted(counted.items())))
    return histogram(codes if names_once else codes[np.unique(rows, return_index=True)[1]])
