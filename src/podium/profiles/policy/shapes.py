"""The line from utilization to score of a RequestedToCapacityRatio priority."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.profiles.policy.validation import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.profiles.policy.document import CapacityRatio

Points = list[tuple[int, int]]
_FULL = 100


def shape(argument: CapacityRatio) -> Points:
    """Its points (utilization, score), refused where no line can be drawn through them."""
    points = [(point.utilization, point.score) for point in argument.shape]
    fault = next(_faults(points), None)
    if fault:
        raise ConfigError(
            f"invalid RequestedToCapacityRatioPriority arguments: {fault}",
            hint="utilization rises from 0 to 100, scores are 0 to 10",
        )
    return points


def _faults(points: Points) -> Iterator[str]:
    """What is wrong with a shape, in kube-scheduler's words, order and spelling."""
    if not points:
        yield "at least one point must be specified"
    for i, ((before, _), (after, _)) in enumerate(pairwise(points)):
        if before >= after:
            yield (
                "utilization values must be sorted. "
                f"Utilization[{i}]=={before} >= Utilization[{i + 1}]=={after}"
            )
    for i, (utilization, score) in enumerate(points):
        found = f"Utilization[{i}]=={utilization}"
        if utilization < 0:
            yield f"utilization values must not be less than 0. {found}"
        if utilization > _FULL:
            yield f"utilization values must not be greater than {_FULL}. {found}"
        if score < 0:
            yield f"score values must not be less than 0. Score[{i}]=={score}"
        if score > MAX_SCORE:
            yield f"score valuses not be greater than {MAX_SCORE}. Score[{i}]=={score}"
