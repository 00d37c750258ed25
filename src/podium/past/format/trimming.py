"""What a history keeps of an object: what a snapshot keeps, and its resourceVersion."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.trimming import ANNOTATIONS

if TYPE_CHECKING:
    from podium.objects.kinds.meta import Object, Value

T = TypeVar("T", bound="Object")


def recorded(kind: str, item: T, annotations: frozenset[str] = frozenset()) -> T:
    """The object without annotations that no rule reads; *annotations* are read by rules of users.

    An object that has nothing to be taken out is returned as it is.
    """
    given = item.metadata.annotations
    if given:
        kept = {
            key: text for key, text in given.items() if key in ANNOTATIONS or key in annotations
        }
        if len(kept) != len(given):
            item = replace(item, metadata=replace(item.metadata, annotations=kept or None))
    known = KINDS[kind]
    if known.template is not None:
        return _without_templates(item)
    return item if known.trim is None else known.trim(item)


def _without_templates(workload: T) -> T:
    """The workload alone: its pods exist, so that templates do not matter."""
    spec: Value = workload.spec  # type: ignore[attr-defined]
    names = {"template", "volume_claim_templates"}.intersection(spec.__struct_fields__)
    kept = replace(spec, **dict.fromkeys(names))
    return replace(workload, spec=kept)
