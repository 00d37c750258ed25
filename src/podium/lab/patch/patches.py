"""Patches of all types but server-side apply: JSON patches, merge patches, strategic merge patches.

A JSON patch is a list of operations on paths (RFC 6902), with the errors of kube-apiserver. A
negative index counts from the end of a list, as it does in the library that kube-apiserver uses.

A strategic merge patch merges lists by a key of their items. It may have directives. `$patch:
delete` and `$patch: replace` stand in an object or in an item of a list. `$retainKeys` lists the
only fields to keep, `$setElementOrder/LIST` the order of items, `$deleteFromPrimitiveList/LIST` the
values to remove. Unknown fields are merged if they are objects, and replaced if they are lists.
Upstream: apimachinery/pkg/util/strategicpatch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from podium.lab.api.encoding import (
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    STRATEGIC_MERGE_PATCH,
    encode,
)
from podium.lab.api.status import StatusError, bad_request, unsupported_media_type
from podium.lab.schema import api_types
from podium.lab.schema.merge_keys import DEFAULT, REPLACE, MergeKeys, merge_keys
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
    if kind in ("add", "remove", "replace"):
        return _changed(document, path, kind, copy.deepcopy(operation.get("value")))
    if kind == "test":
        _test(document, path, operation.get("value"))
        return document
    if kind in ("move", "copy"):
        source = _pointer(operation.get("from"))
        value = copy.deepcopy(_get(document, source))
        if kind == "move":
            _changed(document, source, "remove")
        return _changed(document, path, "add", value)
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


def _changed(document: Any, path: list[str], action: str, value: Any = None) -> Any:
    """The document after the *action* at a path: add, replace or remove."""
    if not path:
        if action == "remove":
            raise _DoesNotApplyError
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, list) and action == "add":
        # An item may be added after the last one; from the end, that place is -1.
        at = len(parent) if last == "-" else _index(last, len(parent) + 1)
        parent.insert(at if at >= 0 else at + len(parent) + 1, value)
        return document
    place: Any = _index(last, len(parent)) if isinstance(parent, list) else last
    is_field = isinstance(parent, dict) and (action == "add" or last in parent)
    if not is_field and not isinstance(parent, list):
        raise _DoesNotApplyError
    if action == "remove":
        del parent[place]
    else:
        parent[place] = value
    return document


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


_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder", "$deleteFromPrimitiveList"


def strategic_merge(model: str, current: JsonObject, patch: JsonObject) -> JsonObject:
    """The object of this model (`V1Pod`) after the patch; neither argument is changed."""
    return _merged_object(model, current, patch)


def _merged_object(model: str, current: JsonObject, patch: JsonObject) -> JsonObject:
    if _DIRECTIVE in patch:
        return _directed(patch)
    result = _retained(current, patch)
    rest = {key: value for key, value in patch.items() if key != _RETAIN}
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _set_ordered_list(model, result, rest, key)
    for key, value in rest.items():
        if key.startswith(_DELETE):
            _delete_values(result, _list_name(key, _DELETE, "primitive list"), value)
        elif value is None:
            result.pop(key, None)
        else:
            _set_field(model, result, key, value)
    return result


def _directed(patch: JsonObject) -> JsonObject:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise bad_request(f"unknown patch type: {directive} in map: {_go_map(patch)}")


def _retained(current: JsonObject, patch: JsonObject) -> JsonObject:
    """The fields of the object that `$retainKeys` keeps."""
    if _RETAIN not in patch:
        return dict(current)
    wanted = patch[_RETAIN]
    message = "invalid patch format of retainKeys"
    if not isinstance(wanted, list):
        raise bad_request(message)
    for key, value in patch.items():
        free = value is None or key == _RETAIN or key.startswith((_DELETE, _ORDER))
        if not free and key not in wanted:
            raise bad_request(message)
    return {key: value for key, value in current.items() if key in wanted}


def _set_field(model: str, result: JsonObject, key: str, value: Any) -> None:
    """Set a field of the patch that is no directive."""
    held = result.get(key)
    inner, rules = _field(model, key)
    if isinstance(held, dict) and isinstance(value, dict):
        whole = rules.strategy == REPLACE
        result[key] = value if whole else _merged_object(inner, held, value)
    elif isinstance(held, list) and isinstance(value, list):
        result[key] = _merged_list(inner, rules, held, value) if rules.merges else value
    else:
        found = _without_directives(value)
        if found is _DELETED:
            result.pop(key, None)
        else:
            result[key] = found


def _field(model: str, key: str) -> tuple[str, MergeKeys]:
    """The model of a field or of its items, and how the field merges; empty if it is unknown."""
    if not model:
        return "", DEFAULT
    own = api_types.model(model)
    field = own.fields.get(key)
    if field is None:
        return "", DEFAULT
    # The keys of a map are no fields of the model of its values.
    inner = field.of if field.is_model and field.container != api_types.MAP else ""
    return inner, merge_keys(own.short, key)


def _merged_list(
    model: str, rules: MergeKeys, held: Sequence[Any], patch: Sequence[Any]
) -> list[Any]:
    if not held and not patch:
        return list(held)
    if not _are_objects(held, patch):
        return _in_order(_distinct([*held, *patch]), patch, held, "")
    if not rules.key:
        raise bad_request(f"cannot merge lists without merge key for {api_types.short_name(model)}")
    kept, items, replaced = _without_special(held, patch, rules.key)
    if replaced:
        return items
    merged = list(kept)
    for item in items:
        at = _find(merged, _key_of(item, rules.key), rules.key)
        if at < 0:
            merged.append(item)
        else:
            merged[at] = _merged_object(model, merged[at], item)
    return _in_order(merged, items, kept, rules.key)


def _without_special(
    held: Sequence[Any], patch: Sequence[Any], key: str
) -> tuple[list[Any], list[Any], bool]:
    """The held items that are not deleted, the items to merge, and whether these replace all."""
    kept, items, replaced = list(held), [], False
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if _DIRECTIVE not in item:
            items.append(item)
        elif directive == "delete":
            gone = _key_of(item, key)
            kept = [each for each in kept if not _same(each.get(key), gone)]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise bad_request("merging lists cannot yet be specified in the patch")
        else:
            raise bad_request(f"unknown patch type: {directive} in map: {_go_map(item)}")
    return kept, items, replaced


def _delete_values(result: JsonObject, key: str, values: Any) -> None:
    held = result.get(key)
    if isinstance(held, list) and isinstance(values, list):
        result[key] = [item for item in held if not any(_same(item, each) for each in values)]


def _set_ordered_list(model: str, result: JsonObject, rest: JsonObject, directive: str) -> None:
    """Set a list in the order of a `$setElementOrder`, and remove the list from *rest*."""
    order = rest.pop(directive)
    key = _list_name(directive, _ORDER, "setElementOrder list")
    if not isinstance(order, list):
        raise bad_request("invalid patch format of setElementOrder list")
    held, patch = result.get(key), rest.get(key)
    for value in (held, patch):
        if value is not None and not isinstance(value, list):
            raise bad_request("invalid patch format of setElementOrder list")
    inner, rules = _field(model, key)
    if held is None and patch is None:
        return
    _check_order(patch or [], order, rules.key)
    if patch is None:
        merged = list(held or [])
    elif held is None:
        merged = list(_without_directives(patch))
    else:
        merged = _merged_list(inner, rules, held, patch) if rules.merges else list(patch)
    rest.pop(key, None)
    if not merged:
        result[key] = merged
        return
    _are_objects(merged, order if rules.key else ())
    result[key] = _in_order(merged, order, held or [], rules.key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Raise 400 if the items of a patch are not in the order of its `$setElementOrder`."""
    if not patch or not order:
        return
    at = 0
    items = [item for item in patch if not (isinstance(item, dict) and _DIRECTIVE in item)]
    for wanted in order:
        if at < len(items) and _same(_value(items[at], key), _value(wanted, key)):
            at += 1
    if at < len(items):
        raise bad_request(
            f"The order in patch list:\n{_go(patch)}\n doesn't match {_ORDER} list:\n{_go(order)}\n"
        )


def _in_order(items: list[Any], order: Sequence[Any], held: Sequence[Any], key: str) -> list[Any]:
    """The items in the order of the patch; others stay before the item that they preceded."""
    named = [item for item in items if _find(order, _value(item, key), key) >= 0]
    own = [item for item in items if _find(order, _value(item, key), key) < 0]
    named.sort(key=lambda item: _find(order, _value(item, key), key))
    own.sort(key=lambda item: _find(held, _value(item, key), key))
    result: list[Any] = []
    while named and own:
        left = _find(held, _value(own[0], key), key)
        right = _find(held, _value(named[0], key), key)
        result.append(own.pop(0) if 0 <= left < right else named.pop(0))
    return result + named + own


def _are_objects(*lists: Sequence[Any]) -> bool:
    """Whether the items are objects; an error if their types differ or if they are lists."""
    kinds = {type(item) for items in lists for item in items}
    if len(kinds) > 1:
        raise bad_request(f"list element types are not identical: {_go(list(lists))}")
    if list in kinds:
        message = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", message)
    return dict in kinds


def _list_name(directive: str, prefix: str, what: str) -> str:
    start, _, key = directive.partition("/")
    if start != prefix or not key:
        raise bad_request(f"invalid patch format of {what}")
    return key


_DELETED = object()


def _without_directives(value: Any) -> Any:
    """The value of a patch where there was none before: without directives and nulls."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _DELETED
        inner = (
            (key, _without_directives(each)) for key, each in value.items() if each is not None
        )
        return {key: each for key, each in inner if each is not _DELETED}
    if isinstance(value, list):
        items = (_without_directives(each) for each in value)
        return [each for each in items if each is not _DELETED]
    return value


def _value(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        raise bad_request(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    return _key_of(item, key)


def _key_of(item: JsonObject, key: str) -> Any:
    if key not in item:
        raise bad_request(f"map: {_go_map(item)} does not contain declared merge key: {key}")
    return item[key]


def _find(items: Sequence[Any], wanted: Any, key: str) -> int:
    for at, item in enumerate(items):
        if _same(item.get(key) if key and isinstance(item, dict) else item, wanted):
            return at
    return -1


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; 1 is not true."""
    return type(one) is type(other) and bool(one == other)


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not any(_same(item, each) for each in found):
            found.append(item)
    return found


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", type(None): "%!s(<nil>)"}
    return names.get(type(value), "[]interface {}")


def _go_map(value: JsonObject) -> str:
    return "map[" + " ".join(f"{key}:{_go(value[key])}" for key in sorted(value)) + "]"


def _go(value: Any) -> str:
    """A value as Go prints it with `%v`."""
    if isinstance(value, dict):
        return _go_map(value)
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
