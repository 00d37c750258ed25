"""Arguments of VolumeBinding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.engine.rules.v1_36_arguments import POINT, ShapePoint, shape_errors
from podium.objects.field_errors import child, invalid
from podium.objects.go_json import go_json
from podium.objects.go_types import INT64, Slice


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """How long volumes may take to be bound, and how their capacity is scored."""

    bind_timeout_seconds: int = 600
    #: Not given is not the same as empty.
    shape: tuple[ShapePoint, ...] | None = None


def _complete(found: VolumeBindingArgs, gates: FeatureGates) -> VolumeBindingArgs:
    """A shape only where capacity is scored at all."""
    if found.shape or not gates["StorageCapacityScoring"]:
        return found
    return replace(found, shape=(ShapePoint(0, 10), ShapePoint(100, 0)))


def _check(found: VolumeBindingArgs, path: str, gates: FeatureGates) -> Errors:
    seconds, where = found.bind_timeout_seconds, child(path, "shape")
    if seconds < 0:
        yield invalid(
            child(path, "bindTimeoutSeconds"),
            str(seconds),
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if gates["StorageCapacityScoring"]:
        yield from shape_errors(found.shape or (), where)
    elif found.shape is not None:
        points = [{"Utilization": p.utilization, "Score": p.score} for p in found.shape]
        yield invalid(
            where,
            go_json(points),
            "unexpected field `shape`, remove it or turn on the feature gate "
            "StorageCapacityScoring",
        )


VOLUME_BINDING_ARGUMENTS: Final = Arguments(
    arguments_record(VolumeBindingArgs, bind_timeout_seconds=INT64, shape=Slice(POINT)),
    _check,
    _complete,
)
