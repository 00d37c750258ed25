"""Patches of all types but server-side apply, which is in `server_side_apply`.

A JSON patch is a list of operations on paths (RFC 6902), with the errors of kube-apiserver. A
negative index counts from the end of a list, as it does in the library that kube-apiserver uses.
"""

from __future__ import annotations

import copy
from typing import Any

from podium.lab.api.encoding import (
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    STRATEGIC_MERGE_PATCH,
    encode,
)
from podium.lab.api.status import StatusError, bad_request, unsupported_media_type
from podium.lab.patch.strategic_merge import strategic_merge
from podium.lab.schema import api_types
from podium.objects.field_errors import pointer_keys
from podium.objects.kinds.meta import JsonObject

#: The most operations of a patch.
_MOST_OPERATIONS = 10_000
#: The most bytes of JSON that the operations `copy` of one patch may add.
_MOST_COPIED = 3 * 1024 * 1024
#: No list has as many elements as a number with more digits.
_LONGEST_INDEX = 18
JSON_NAMES: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
_REJECTED = "the server rejected our request due to an error in our request"


class _DoesNotApplyError(Exception):
    """The path of an operation does not exist, its test fails, or it copies too much."""


def apply_json_patch(current: JsonObject, patch: object) -> JsonObject:
    """The object after all operations of the patch; *current* is not changed."""
    operations = _operations(patch)
    document: Any = copy.deepcopy(current)
    copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                copied = _copied(copied, document, operation)
            document = _apply(document, operation)
    except _DoesNotApplyError:
        raise StatusError(422, "Invalid", _REJECTED) from None
    if not isinstance(document, dict):
        raise StatusError(422, "Invalid", _REJECTED)
    return document


def _copied(before: int, document: Any, operation: JsonObject) -> int:
    """The bytes that a patch has copied, with those of this operation."""
    copied = before + len(encode(_get(document, _pointer(operation.get("from")))))
    if copied > _MOST_COPIED:
        raise _DoesNotApplyError
    return copied


def _operations(patch: object) -> list[JsonObject]:
    if not isinstance(patch, list):
        raise _cannot_unmarshal(patch, "Patch")
    if len(patch) > _MOST_OPERATIONS:
        message = (
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_MOST_OPERATIONS}, got {len(patch)}"
        )
        raise StatusError(413, "RequestEntityTooLarge", message)
    for operation in patch:
        if not isinstance(operation, dict):
            raise _cannot_unmarshal(operation, "Operation")
    return patch


def _cannot_unmarshal(value: object, wanted: str) -> StatusError:
    kind = JSON_NAMES.get(type(value), "number")
    return bad_request(f"json: cannot unmarshal {kind} into Go value of type jsonpatch.{wanted}")


def _apply(document: Any, operation: JsonObject) -> Any:
    kind, path = operation.get("op"), _pointer(operation.get("path"))
    if kind == "add":
        return _added(document, path, copy.deepcopy(operation.get("value")))
    if kind == "remove":
        _remove(document, path)
        return document
    if kind == "replace":
        return _replaced(document, path, copy.deepcopy(operation.get("value")))
    if kind == "test":
        _test(document, path, operation.get("value"))
        return document
    if kind in ("move", "copy"):
        source = _pointer(operation.get("from"))
        value = copy.deepcopy(_get(document, source))
        if kind == "move":
            _remove(document, source)
        return _added(document, path, value)
    raise _DoesNotApplyError


def _pointer(text: object) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _DoesNotApplyError
    return pointer_keys(text)


def _get(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document))]
        else:
            raise _DoesNotApplyError
    return document


def _index(part: str, length: int) -> int:
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise _DoesNotApplyError
    if len(digits) > _LONGEST_INDEX:
        raise _DoesNotApplyError
    number = int(part)
    if not -length <= number < length:
        raise _DoesNotApplyError
    return number


def _added(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        # An item may be added after the last one; from the end, that place is -1.
        at = len(parent) if last == "-" else _index(last, len(parent) + 1)
        parent.insert(at if at >= 0 else at + len(parent) + 1, value)
    else:
        raise _DoesNotApplyError
    return document


def _replaced(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict) and last in parent:
        parent[last] = value
    elif isinstance(parent, list):
        parent[_index(last, len(parent))] = value
    else:
        raise _DoesNotApplyError
    return document


def _remove(document: Any, path: list[str]) -> None:
    if not path:
        raise _DoesNotApplyError
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict) and last in parent:
        del parent[last]
    elif isinstance(parent, list):
        del parent[_index(last, len(parent))]
    else:
        raise _DoesNotApplyError


def _test(document: Any, path: list[str], value: Any) -> None:
    try:
        found = _get(document, path)
    except _DoesNotApplyError:
        if value is None:
            return
        raise
    if not _equal(found, value):
        raise _DoesNotApplyError


def _equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def apply_patch(kind: str, content_type: str, current: JsonObject, patch: object) -> JsonObject:
    """The object of this kind, empty for custom ones, after the patch; no argument is changed."""
    model = api_types.model_of_kind(kind, str(current.get("apiVersion", ""))) if kind else ""
    model = model if api_types.has_model(model) else ""
    if content_type == JSON_PATCH:
        result = apply_json_patch(current, patch)
    elif content_type == MERGE_PATCH:
        if not isinstance(patch, dict):
            raise bad_request("Invalid JSON Patch")
        result = merge_patch(copy.deepcopy(current), copy.deepcopy(patch))
    elif content_type == STRATEGIC_MERGE_PATCH:
        if not isinstance(patch, dict):
            found = JSON_NAMES.get(type(patch), "number")
            wanted = "Go value of type map[string]interface {}"
            raise bad_request(f"json: cannot unmarshal {found} into {wanted}")
        result = strategic_merge(model, copy.deepcopy(current), copy.deepcopy(patch))
    else:
        raise unsupported_media_type(PATCH_TYPES)
    return without_nulls(model, result)


def merge_patch(current: Any, patch: Any) -> Any:
    """The value after a merge patch (RFC 7386): objects merge, null removes, others replace."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def without_nulls(model: str, value: JsonObject) -> JsonObject:
    """The object without fields that are null; null in a map of strings becomes empty."""
    known = api_types.model(model).fields if model else {}
    result: JsonObject = {}
    for key, each in value.items():
        field = known.get(key)
        if each is None:
            continue
        if field is None:
            result[key] = _without_nulls("", each)
        elif field.container == api_types.MAP and isinstance(each, dict):
            kept = {name: item for name, item in each.items() if item is not None}
            empty = dict.fromkeys(each, "") if field.of == api_types.STRING else {}
            result[key] = empty | kept
        else:
            result[key] = _without_nulls(field.of if field.is_model else "", each)
    return result


def _without_nulls(model: str, value: Any) -> Any:
    if isinstance(value, dict):
        return without_nulls(model, value)
    if isinstance(value, list):
        return [_without_nulls(model, each) for each in value]
    return value
