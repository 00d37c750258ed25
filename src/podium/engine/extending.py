"""Where extenders take part in a decision: after the predicates, after the priorities, at the end.

The cycle yields a question and is sent the reply; how it is asked (HTTP, a function in a test) is
the business of whoever runs the cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.contracts import AttemptError

if TYPE_CHECKING:
    from collections.abc import Generator

    from podium.engine.cycle import Attempt
    from podium.engine.decision import Decision
    from podium.engine.pod_class import Incoming
    from podium.engine.profile import Extender
    from podium.engine.view import View


@dataclass(frozen=True, slots=True)
class AskFilter:
    """Which of these nodes does the extender leave? Answered by `Filtered` or `Failure`."""

    extender: Extender
    pod: Incoming
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes left, in the extender's order, and a message for some of the others."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskScores:
    """What does the extender give these nodes? Answered by `Scored` or `Failure`."""

    extender: Extender
    pod: Incoming
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """Score per node; a node may be named twice."""

    scores: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """The extender could not be asked, or answered with an error."""

    text: str


def interested(extender: Extender, pod: Incoming) -> bool:
    """Whether the extender looks after a resource that some container names."""
    if not extender.managed_resources:
        return True
    containers = (*(pod.pod.spec.containers or ()), *(pod.pod.spec.init_containers or ()))
    for container in containers:
        resources = container.resources
        for part in (resources.requests, resources.limits) if resources else ():
            if not extender.managed_resources.isdisjoint(part or {}):
                return True
    return False


def ask_filters(
    view: View, attempt: Attempt, feasible: np.ndarray, decision: Decision
) -> Generator[Any, Any, np.ndarray]:
    """Each extender in turn sees what the one before it left."""
    for extender in attempt.profile.extenders:
        if not len(feasible):
            break
        if not extender.filter_verb or not interested(extender, attempt.pod):
            continue
        names = tuple(view.names[row] for row in feasible.tolist())
        reply = yield AskFilter(extender, attempt.pod, names)
        if isinstance(reply, Failure):
            if extender.ignorable:
                continue
            raise AttemptError(reply.text)
        for name, message in reply.failed.items():
            decision.extender_failed.setdefault(name, []).append(message)
        feasible = view.rows_named([name for name in reply.nodes if name in view.row_of])
        decision.feasible_count = len(feasible)
    return feasible


def ask_priorities(
    view: View, attempt: Attempt, feasible: np.ndarray, totals: np.ndarray
) -> Generator[Any, Any, np.ndarray]:
    """Extenders add to the totals; their errors are ignored."""
    for extender in attempt.profile.extenders:
        if not extender.prioritize_verb or not interested(extender, attempt.pod):
            continue
        names = tuple(view.names[row] for row in feasible.tolist())
        reply = yield AskScores(extender, attempt.pod, names)
        if isinstance(reply, Failure):
            continue
        given = dict.fromkeys(names, 0)
        for name, number in reply.scores:
            given[name] = given.get(name, 0) + number * extender.weight
        totals = totals + np.fromiter((given[name] for name in names), np.int64, len(names))
    return totals
