"""What several plugins have in common: the range of scores, checks of arguments, hints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from podium.engine.framework.choices import WakeUps
from podium.engine.framework.declaration import Errors
from podium.objects.field_errors import child, invalid, key_faults, required
from podium.objects.go_types import INT32, record
from podium.objects.kinds.pod import Pod
from podium.objects.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SCORE = 100
MAX_UTILIZATION: Final = 100
MAX_WEIGHT: Final = 100
_MAX_SHAPE_SCORE: Final = 10


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the function from utilization (0 to 100) to score (0 to 10)."""

    utilization: int = 0
    score: int = 0


POINT: Final = record("v1.UtilizationShapePoint", ShapePoint, utilization=INT32, score=INT32)


def shape_errors(points: tuple[ShapePoint, ...], path: str) -> Errors:
    """What is wrong with a function from utilization to score."""
    if not points:
        yield required(path, "at least one point must be specified")
    for index, (before, after) in enumerate(pairwise(points), 1):
        if before.utilization >= after.utilization:
            where, shown = f"{path}[{index}].utilization", str(after.utilization)
            yield invalid(where, shown, "values must be sorted in increasing order")
            break
    for index, point in enumerate(points):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            where, shown = f"{path}[{index}].utilization", str(point.utilization)
            yield invalid(where, shown, "not in valid range [0, 100]")
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            where, shown = f"{path}[{index}].score", str(point.score)
            yield invalid(where, shown, "not in valid range [0, 10]")


def label_key_errors(key: str, path: str) -> Errors:
    """What is wrong with a label key, or with a name of the same form."""
    for fault in key_faults(key):
        yield invalid(path, quoted(key), fault)


def range_errors(number: int, path: str, field: str) -> Errors:
    """What is wrong with a number that must be 0 to 100."""
    if not 0 <= number <= MAX_WEIGHT:
        yield invalid(child(path, field), str(number), "not in valid range [0, 100]")


def always(_waiting: Pod, _old: object, _new: object) -> bool:
    """Every such event may help."""
    return True


def never(_waiting: Pod, _old: object, _new: object) -> bool:
    """No such event helps."""
    return False


def is_self(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself changed."""
    return new.uid == waiting.uid


#: Those of most releases.
WAKE_UPS: Final = WakeUps()


def counted_by(wake_ups: WakeUps, old: Pod | None, new: Pod | None) -> Callable[[Pod], bool]:
    """Which pods count for others in an event: those on nodes, or also those nominated to one."""
    labels = old is not None and new is not None
    nominated = wake_ups.nominated_labels_count if labels else wake_ups.nominated_pods_count
    return holds_place if nominated else is_placed


def is_placed(pod: Pod) -> bool:
    """Whether the pod has a node."""
    return bool(pod.spec.node_name)


def holds_place(pod: Pod) -> bool:
    """Whether the pod counts on a node: it has one or is nominated to one."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
