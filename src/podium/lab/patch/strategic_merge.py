"""Strategic merge patches: merge patches that merge lists by a key of their items.

Besides plain values, a patch may hold directives: `$patch: delete` and `$patch: replace` in an
object or in an item of a list, `$retainKeys` with the only fields to keep, `$setElementOrder/LIST`
with the order of items, `$deleteFromPrimitiveList/LIST` with values to remove. Unknown fields are
merged if they are objects, and replaced if they are lists.

Upstream: apimachinery/pkg/util/strategicpatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.lab.api.status import StatusError, bad_request
from podium.lab.schema import api_types
from podium.lab.schema.merge_keys import DEFAULT, REPLACE, MergeKeys, merge_keys
from podium.objects.kinds.meta import JsonObject

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
