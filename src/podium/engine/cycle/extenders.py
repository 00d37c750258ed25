"""Where extenders take part in a cycle: after the filters, and after the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.decision import ScoreColumn
from podium.engine.framework.extenders import AskFilter, AskScores, Failure, Together, interested
from podium.engine.framework.rule import AttemptError
from podium.engine.state.accounting import wrap

if TYPE_CHECKING:
    from collections.abc import Generator

    from podium.engine.cycle.attempt import Attempt
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.view import View

#: The range of extenders' scores, in every generation.
EXTENDER_MAX_SCORE = 10


def ask_filters(
    view: View, attempt: Attempt, feasible: np.ndarray, decision: Decision
) -> Generator[Any, Any, np.ndarray]:
    """Each extender in turn sees what the one before it left."""
    for extender in attempt.profile.extenders:
        if not len(feasible):
            break
        if not extender.filter_verb or not interested(extender, attempt.pod):
            continue
        names = tuple(view.nodes.names[row] for row in feasible.tolist())
        reply = yield AskFilter(extender, attempt.pod, names)
        if isinstance(reply, Failure):
            if extender.ignorable:
                continue
            raise AttemptError(reply.text)
        failed = {name: list(messages) for name, messages in decision.extender_failed.items()}
        for name, message in {**reply.failed, **reply.unresolvable}.items():
            failed.setdefault(name, []).append(message)
        decision.extender_failed = failed
        decision.extender_hopeless |= reply.unresolvable.keys() & view.nodes.row_of.keys()
        feasible = view.nodes.rows_named(
            [name for name in reply.nodes if name in view.nodes.row_of]
        )
        decision.feasible_count = len(feasible)
    return feasible


def extender_scale(profile: Profile) -> int:
    """By what the answers of extenders are multiplied: they score up to 10, whatever rules do."""
    return profile.max_score // EXTENDER_MAX_SCORE


def ask_priorities(
    view: View, attempt: Attempt, feasible: np.ndarray, totals: np.ndarray
) -> Generator[Any, Any, tuple[np.ndarray, tuple[ScoreColumn, ...]]]:
    """The totals with what extenders add, and what each gave; their errors are ignored."""
    profile = attempt.profile
    asked = [e for e in profile.extenders if e.prioritize_verb and interested(e, attempt.pod)]
    if not asked:
        return totals, ()
    names = tuple(view.nodes.names[row] for row in feasible.tolist())
    questions = tuple(AskScores(extender, attempt.pod, names) for extender in asked)
    if len(questions) > 1:
        replies = yield Together(questions)
    else:
        replies = ((yield questions[0]),)
    scale = extender_scale(profile)
    columns = []
    for extender, reply in zip(asked, replies, strict=True):
        if isinstance(reply, Failure):
            continue
        given = dict.fromkeys(names, 0)
        for name, number in reply.scores:
            if name in given:
                given[name] = wrap(given[name] + number)
        score = np.fromiter(given.values(), np.int64, len(names)) * scale
        columns.append(ScoreColumn(extender.url_prefix, extender.weight, score, score))
        totals = totals + score * extender.weight
    return totals, tuple(columns)
