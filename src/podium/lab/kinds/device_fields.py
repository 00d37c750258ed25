"""What kinds about devices have in common.

Upstream: pkg/apis/resource, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from podium.cel.environment import compile_expression
from podium.cel.errors import CompileError
from podium.errors import InputError
from podium.lab.api.field_errors import (
    FieldError,
    FieldErrors,
    duplicate,
    invalid_value,
    required,
    too_long,
    too_many,
)
from podium.lab.kinds.formats import age
from podium.lab.kinds.object_fields import name_of
from podium.lab.validation.device_names import validate_driver
from podium.objects.kinds.meta import JsonObject

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
MOST_ITEMS: Final = 32
_MOST_BYTES: Final = 10 * 1024


def set_taint_times(item: JsonObject, now: str) -> None:
    """Set when the taints of devices, or that of a rule, were added, where that is not given."""
    spec = item.get("spec") or {}
    if spec.get("taint"):
        spec["taint"].setdefault("timeAdded", now)
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


# Lists
def validate_items(
    items: Iterable[Any],
    path: str,
    check: Callable[[Any, str], Iterable[FieldError]],
    *,
    most: int = MOST_ITEMS,
    key: Callable[[Any], Any] | None = None,
) -> FieldErrors:
    """Validate the items of a list of limited length; *key* must differ from item to item."""
    listed = list(items)
    if len(listed) > most:
        yield too_many(path, len(listed), most)
        return
    for index, each in enumerate(listed):
        yield from check(each, f"{path}[{index}]")
    if key is None:
        return
    seen = set()
    for index, each in enumerate(listed):
        found = key(each)
        if found in seen:
            yield duplicate(f"{path}[{index}]", found)
        seen.add(found)


def validate_selector(selector: JsonObject, path: str) -> FieldErrors:
    """Validate a selector of devices."""
    cel = selector.get("cel")
    if cel is None:
        yield required(f"{path}.cel")
        return
    here, text = f"{path}.cel.expression", cel.get("expression") or ""
    if len(text.encode()) > _MOST_BYTES:
        yield too_long(here, "", _MOST_BYTES)
        return
    # The CEL library is loaded with the first selector, if there is one.

    try:
        found = compile_expression(text)
    except InputError as error:
        yield invalid_value(here, text, str(error))
        return
    if isinstance(found, CompileError):
        yield invalid_value(here, text, str(found))


def validate_config(config: JsonObject, path: str) -> FieldErrors:
    """Validate the configuration of a driver."""
    opaque, here = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        yield required(here)
        return
    yield from validate_driver(opaque.get("driver") or "", f"{here}.driver")
    yield from validate_raw(opaque.get("parameters"), f"{here}.parameters")


def validate_raw(value: Any, path: str) -> FieldErrors:
    """Validate the parameters of a driver: an object within a size."""
    if value is None:
        yield required(path)
    elif len(msgspec.json.encode(value)) > _MOST_BYTES:
        yield too_long(path, "", _MOST_BYTES)
    elif not isinstance(value, dict):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


def name_and_age(item: JsonObject, now: float) -> list[Any]:
    """Name and age."""
    return [name_of(item), age(item, now)]
