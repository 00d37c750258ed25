"""What is declared about the arguments of a plugin, and what the arguments of several share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from podium.objects.field_errors import child, invalid, key_faults, required
from podium.objects.go_types import INT32, INT64, STRING, Field, Struct, record
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.profiles.config.feature_gates import FeatureGates

A = TypeVar("A")
#: Error sentences, in the order in which kube-scheduler reports them.
Errors = Iterator[str]
MAX_UTILIZATION: Final = 100
MAX_WEIGHT: Final = 100
_MAX_SCORE: Final = 10


@dataclass(frozen=True)
class Arguments(Generic[A]):
    """How the arguments of a plugin are read, completed and checked.

    A field that is left out gets the default of the class that `schema` makes; `complete` settles
    what one field alone cannot tell (an empty list that means two resources).
    """

    schema: Struct
    #: Yields what is wrong with the arguments at a path; the path may be empty.
    check: Callable[[A, str, FeatureGates], Errors]
    complete: Callable[[A, FeatureGates], A] | None = None
    #: The plugin whose arguments the check of the document takes these for, if not its own:
    #: kube-scheduler looks for `NodeResourcesFitArgs` there, so that arguments of NodeResourcesFit
    #: are checked only when the plugin is made.
    checked_as: str = ""

    @property
    def kind(self) -> str:
        """The kind of the arguments, named after the plugin (`NodeAffinityArgs`)."""
        return self.schema.name

    def completed(self, given: A | None, gates: FeatureGates) -> A:
        """The arguments with everything filled in; None: nothing is given."""
        found: A = self.schema.make() if given is None else given
        return found if self.complete is None else self.complete(found, gates)


#: Arguments may say their kind and version.
TYPE_META: Final = {
    "kind": Field("", STRING, "TypeMeta"),
    "apiVersion": Field("", STRING, "TypeMeta"),
}


def arguments_record(make: Callable[..., Any], **fields: Any) -> Struct:
    """The schema of arguments: a struct that is named after the class."""
    made = record(f"v1.{make.__name__}", make, **fields)
    return Struct(made.go, made.make, {**TYPE_META, **made.fields})


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and its weight."""

    name: str = ""
    weight: int = 0


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
RESOURCE: Final = record("v1.ResourceSpec", ResourceSpec, name=STRING, weight=INT64)


def with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """cpu and memory if there are none; a weight of 0 means 1."""
    return tuple(replace(each, weight=each.weight or 1) for each in resources or DEFAULT_RESOURCES)


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
        if not 0 <= point.score <= _MAX_SCORE:
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
