"""The argument of RequestedToCapacityRatioPriority in a Policy, and its check."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from podium.engine.rules.v1_13 import MAX_SCORE
from podium.objects.kinds.meta import Int64

_MAX_UTILIZATION = 100


class ShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function from utilization to score."""

    utilization: Int64 = 0
    score: Int64 = 0


class CapacityRatioArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Score a node by its utilization with the pod on it."""

    shape: list[ShapePoint] = []


def shape_errors(points: list[tuple[int, int]]) -> Iterator[str]:
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
        if utilization > _MAX_UTILIZATION:
            yield f"utilization values must not be greater than {_MAX_UTILIZATION}. {found}"
        if score < 0:
            yield f"score values must not be less than 0. Score[{i}]=={score}"
        if score > MAX_SCORE:
            yield f"score valuses not be greater than {MAX_SCORE}. Score[{i}]=={score}"
