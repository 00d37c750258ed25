"""Comparing, merging and pruning objects field by field, as the ownership of fields demands.

A `FieldSchema` states how ownership divides a value. An atomic value has one owner as a whole. An
object is owned field by field, an associative list item by item. The keys or the value of an item
identify it. Fields that the API does not have are objects if their values are, and atomic
otherwise.

Upstream: sigs.k8s.io/structured-merge-diff (fieldpath, schema, typed).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from podium.lab.api.status import bad_request
from podium.lab.schema import api_types
from podium.lab.schema.merge_keys import (
    ATOMIC,
    ATOMIC_TYPES,
    GRANULAR,
    KEY_DEFAULTS,
    MAP,
    SET,
    merge_keys,
)
from podium.objects.kinds.meta import JsonObject

OBJECT, ASSOCIATIVE_LIST, UNKNOWN = "object", "associative list", "unknown"

#: A field (`f:spec`), or an item of a list by its keys (`k:{"name":"a"}`) or value (`v:"a"`).
PathElement = str
Path = tuple[PathElement, ...]
FieldSet = frozenset[Path]
EMPTY: FieldSet = frozenset()

_ABSENT: Any = object()
#: A set of fields as a tree; the key `.` marks a member that may have members below it.
_FieldTree = dict[PathElement, Any]


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """How ownership divides a value."""

    #: `ATOMIC`, `OBJECT`, `ASSOCIATIVE_LIST` or `UNKNOWN`.
    kind: str
    #: The model of an object, or of the values of a map or list.
    model: str = ""
    #: Of lists: the fields that identify an item, none for sets.
    keys: tuple[str, ...] = ()
    #: Of objects: whether the names of the fields are free, as those of labels are.
    is_map: bool = False
    #: Of maps and lists: the kind of their values.
    value_kind: str = ATOMIC

    def field(self, name: str) -> FieldSchema:
        """The schema of a field of an object or map."""
        if self.is_map:
            return FieldSchema(self.value_kind, self.model)
        return _field_schema(self.model, name) if self.kind == OBJECT else UNKNOWN_FIELD

    def item(self) -> FieldSchema:
        """The schema of the items of a list."""
        return FieldSchema(self.value_kind, self.model)

    def declares(self, name: str) -> bool:
        """Whether this is an object of a model that has the field."""
        if self.kind != OBJECT or self.is_map:
            return False
        return name in api_types.model(self.model).fields

    def item_element(self, item: Any) -> PathElement:
        """The path element of an item of a list; 400 if the item cannot be identified."""
        if not self.keys:
            if isinstance(item, dict | list) or item is None:
                raise bad_request("associative list without keys has an element that is no scalar")
            return f"v:{_compact(item)}"
        if not isinstance(item, dict):
            raise bad_request("associative list with keys may not have non-map elements")
        found = {key: item.get(key, KEY_DEFAULTS.get(key)) for key in sorted(self.keys)}
        found = {key: value for key, value in found.items() if value is not None}
        if not found:
            listed = " ".join(f'"{key}"' for key in self.keys)
            raise bad_request(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        return f"k:{_compact(found)}"

    def is_atomic(self, value: Any) -> bool:
        """Whether *value* has one owner as a whole."""
        if self.kind == ATOMIC:
            return True
        if isinstance(value, dict):
            return self.kind == ASSOCIATIVE_LIST
        return not (isinstance(value, list) and self.kind == ASSOCIATIVE_LIST)

    def children(self, value: Any) -> Iterator[tuple[PathElement, Any, FieldSchema]]:
        """The fields or items of a value that is not atomic."""
        if isinstance(value, dict):
            for name, each in value.items():
                yield f"f:{name}", each, self.field(name)
        else:
            item_schema = self.item()
            for each in value:
                yield self.item_element(each), each, item_schema


ATOMIC_FIELD = FieldSchema(ATOMIC)
UNKNOWN_FIELD = FieldSchema(UNKNOWN)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class CustomFieldSchema(FieldSchema):
    """How ownership divides a value of a custom object, by its structural schema."""

    #: The part of the schema that describes the value.
    structure: JsonObject = field(default_factory=dict, compare=False, repr=False)
    #: Whether this is a whole object, which has metadata.
    is_root: bool = False

    def field(self, name: str) -> FieldSchema:
        """The schema of a field of an object or map."""
        if self.is_root and name == "metadata":
            return FieldSchema(OBJECT, "V1ObjectMeta")
        if self.is_root and name in {"apiVersion", "kind"}:
            return ATOMIC_FIELD
        known = (self.structure.get("properties") or {}).get(name)
        if known is None:
            known = self.structure.get("additionalProperties")
        return _structural(known) if isinstance(known, dict) else UNKNOWN_FIELD

    def item(self) -> FieldSchema:
        """The schema of the items of a list."""
        items = self.structure.get("items")
        return _structural(items) if isinstance(items, dict) else UNKNOWN_FIELD

    def declares(self, name: str) -> bool:
        """Whether the schema has the field by its name."""
        if self.is_root and name in {"apiVersion", "kind", "metadata"}:
            return True
        return name in (self.structure.get("properties") or {})


def custom_schema(structure: JsonObject) -> FieldSchema:
    """The schema of a whole custom object."""
    return CustomFieldSchema(OBJECT, structure=structure, is_root=True)


def _structural(structure: JsonObject) -> FieldSchema:
    """The schema of a value by its part of a structural schema."""
    kind = structure.get("type")
    if kind == "array":
        list_type = structure.get("x-kubernetes-list-type")
        if list_type not in (MAP, SET):
            return ATOMIC_FIELD
        keys = tuple(structure.get("x-kubernetes-list-map-keys") or ())
        return CustomFieldSchema(ASSOCIATIVE_LIST, keys=keys, structure=structure)
    if kind == "object" or structure.get("properties"):
        if structure.get("x-kubernetes-map-type") == ATOMIC:
            return ATOMIC_FIELD
        is_map = isinstance(structure.get("additionalProperties"), dict)
        return CustomFieldSchema(OBJECT, is_map=is_map, structure=structure)
    return UNKNOWN_FIELD if structure.get("x-kubernetes-preserve-unknown-fields") else ATOMIC_FIELD


def kind_schema(kind: str, api_version: str = "") -> FieldSchema:
    """The schema of a whole object of a kind."""
    model = api_types.model_of_kind(kind, api_version)
    return FieldSchema(OBJECT, model) if api_types.has_model(model) else UNKNOWN_FIELD


@lru_cache(maxsize=4096)
def _field_schema(model: str, name: str) -> FieldSchema:
    """The schema of a field of a model."""
    own = api_types.model(model)
    field_type = own.fields.get(name)
    if field_type is None:
        return UNKNOWN_FIELD
    rules = merge_keys(own.short, name)
    value_kind = OBJECT if field_type.is_model else ATOMIC
    value_model = field_type.of if field_type.is_model else ""
    is_atomic_type = field_type.is_model and api_types.short_name(field_type.of) in ATOMIC_TYPES
    if field_type.container == api_types.LIST:
        if rules.list_type not in (MAP, SET):
            return ATOMIC_FIELD
        value_kind = ATOMIC if is_atomic_type else value_kind
        return FieldSchema(ASSOCIATIVE_LIST, value_model, rules.keys, value_kind=value_kind)
    if rules.map_type == ATOMIC or (is_atomic_type and rules.map_type != GRANULAR):
        return ATOMIC_FIELD
    if field_type.container == api_types.MAP:
        return FieldSchema(OBJECT, value_model, is_map=True, value_kind=value_kind)
    return FieldSchema(OBJECT, value_model) if field_type.is_model else ATOMIC_FIELD


# Sets of fields
def fields_of(schema: FieldSchema, value: JsonObject) -> FieldSet:
    """Every field that an object sets."""
    found: set[Path] = set()
    _collect(schema, value, (), found)
    return frozenset(found)


def _collect(schema: FieldSchema, value: Any, path: Path, found: set[Path]) -> None:
    if schema.is_atomic(value):
        found.add(path)
        return
    is_list = isinstance(value, list)
    for element, each, child_schema in schema.children(value):
        child_path = (*path, element)
        _collect(child_schema, each, child_path, found)
        if is_list or each is None or each == {} or not schema.declares(element[2:]):
            found.add(child_path)


def with_declared_parents(schema: FieldSchema, fields: FieldSet) -> FieldSet:
    """The fields, and the declared fields that contain them."""
    found = set(fields)
    for path in fields:
        parent = schema
        for at, element in enumerate(path[:-1]):
            name = element[2:]
            if element.startswith("f:"):
                if parent.declares(name):
                    found.add(path[: at + 1])
                parent = parent.field(name)
            else:
                parent = parent.item()
    return frozenset(found)


def undeclared(schema: FieldSchema, value: Any, path: Path = ()) -> Iterator[Path]:
    """The fields of an object that its type does not have."""
    if schema.is_atomic(value):
        return
    for element, each, child_schema in schema.children(value):
        if child_schema.kind == UNKNOWN:
            yield (*path, element)
        else:
            yield from undeclared(child_schema, each, (*path, element))


def path_text(path: Path) -> str:
    """A path as it is written in errors: `.spec.containers[name="a"].image`."""
    written = []
    for element in path:
        kind, text = element[0], element[2:]
        if kind == "f":
            written.append(f".{text}")
        elif kind == "k":
            keys = json.loads(text)
            listed = ",".join(f"{key}={_compact(value)}" for key, value in keys.items())
            written.append(f"[{listed}]")
        elif kind == "v":
            written.append(f"[={text}]")
        else:
            written.append(f"[{text}]")
    return "".join(written)


def field_tree(fields: FieldSet) -> _FieldTree:
    """The fields as a tree in which `.` marks the end of each path."""
    root: _FieldTree = {}
    for path in sorted(fields, key=_sort_key):
        node = root
        for element in path[:-1]:
            node = node.setdefault(element, {})
        node.setdefault(path[-1], {})["."] = {}
    return root


def _sort_key(path: Path) -> list[tuple[int, str]]:
    return [("fkvi".index(element[0]), element[2:]) for element in path]


def sorted_fields(fields: FieldSet) -> list[Path]:
    """The fields in the order of errors: those of one object before the fields inside them."""
    found: list[Path] = []

    def walk(node: _FieldTree, path: Path) -> None:
        elements = sorted((each for each in node if each != "."), key=lambda e: _sort_key((e,)))
        found.extend((*path, each) for each in elements if "." in node[each])
        for each in elements:
            walk(node[each], (*path, each))

    walk(field_tree(fields), ())
    return found


# Comparing
@dataclass(slots=True)
class FieldComparison:
    """The fields that differ between two states of an object."""

    removed: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    added: set[Path] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.removed or self.modified or self.added)


def compare(schema: FieldSchema, old: JsonObject, new: JsonObject) -> FieldComparison:
    """The fields that were removed, modified and added between *old* and *new*."""
    found = FieldComparison()
    _compare(schema, old, new, (), found)
    return found


def _compare(schema: FieldSchema, old: Any, new: Any, path: Path, found: FieldComparison) -> None:
    if old is not _ABSENT and new is not _ABSENT and _equal(old, new):
        return
    present = old if new is _ABSENT or (new is None and old is not _ABSENT) else new
    is_empty = not present and (old is _ABSENT or not old) and (new is _ABSENT or not new)
    if schema.is_atomic(present) or is_empty or _are_different_types(old, new):
        if old is _ABSENT:
            found.added.add(path)
        elif new is _ABSENT:
            found.removed.add(path)
        else:
            found.modified.add(path)
        return
    before, after = _children_by_element(schema, old), _children_by_element(schema, new)
    for element in [*before, *(each for each in after if each not in before)]:
        left, right = before.get(element), after.get(element)
        child_schema = (left or right or (None, ATOMIC_FIELD))[1]
        old_child = left[0] if left else _ABSENT
        new_child = right[0] if right else _ABSENT
        _compare(child_schema, old_child, new_child, (*path, element), found)
    if old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)


def _are_different_types(old: Any, new: Any) -> bool:
    """Whether one value is a list or object and the other is something else."""
    types = {type(value) for value in (old, new) if value is not _ABSENT and value is not None}
    return len(types) > 1 and bool(types & {dict, list})


def _children_by_element(
    schema: FieldSchema, value: Any
) -> dict[PathElement, tuple[Any, FieldSchema]]:
    if value is _ABSENT or value is None:
        return {}
    return {element: (each, child) for element, each, child in schema.children(value)}


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


# Merging and pruning
def merge(schema: FieldSchema, live: Any, config: Any, path: Path = ()) -> Any:
    """The live object with the fields of the configuration set."""
    if config is None or schema.is_atomic(config):
        return config
    if live is None or _are_different_types(live, config):
        live = type(config)()
    if isinstance(config, dict):
        result = dict(live)
        for element, each, child_schema in schema.children(config):
            name = element[2:]
            result[name] = merge(child_schema, live.get(name), each, (*path, element))
        return result
    return _merge_lists(schema, live, config, path)


def _merge_lists(schema: FieldSchema, live: list[Any], config: list[Any], path: Path) -> list[Any]:
    """The items in the configuration's order; the other live items keep their places."""
    configured: dict[PathElement, Any] = {}
    for item in config:
        element = schema.item_element(item)
        if element in configured:
            where, key = path_text(path), path_text((element,))
            raise bad_request(f"{where}: duplicate entries for key {key}")
        configured[element] = item
    left, right = [(schema.item_element(item), item) for item in live], list(configured)
    # Duplicates among the live items cannot be merged; the configured item replaces them.
    count = Counter(element for element, _ in left)
    mergeable = {element: item for element, item in left if count[element] == 1}
    shared = [element for element in right if element in count]
    item_schema, result = schema.item(), []
    while left or right:
        if left and left[0][0] not in configured:
            result.append(left.pop(0)[1])
            continue
        if left and (left[0][0] not in right or (shared and shared[0] != left[0][0])):
            # It is in the result already, or comes later in the configuration.
            left.pop(0)
            continue
        element = right.pop(0)
        live_item = mergeable.get(element)
        result.append(merge(item_schema, live_item, configured[element], (*path, element)))
        if left and left[0][0] == element:
            left.pop(0)
        if shared and shared[0] == element:
            shared.pop(0)
    return result


def remove(schema: FieldSchema, value: JsonObject, fields: FieldSet) -> JsonObject:
    """The object without these fields, and without objects and lists that become empty."""
    if not fields:
        return value
    found: JsonObject | None = _remove(schema, value, field_tree(fields))
    return found or {}


def _remove(schema: FieldSchema, value: Any, tree: _FieldTree) -> Any:
    if not value or schema.is_atomic(value):
        return value if not isinstance(value, dict | list) else None
    kept_items: list[Any] = []
    kept_fields: JsonObject = {}
    for element, each, child_schema in schema.children(value):
        node = tree.get(element)
        left = each
        if node is not None:
            if "." in node:
                continue
            left = _remove(child_schema, each, node)
            if left is None:
                continue
        if isinstance(value, dict):
            kept_fields[element[2:]] = left
        else:
            kept_items.append(left)
    return (kept_fields if isinstance(value, dict) else kept_items) or None
