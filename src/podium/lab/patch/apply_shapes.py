"""What ownership sees of the API's types: which values are one thing, and which have parts.

A `Shape` is a leaf (owned as a whole), an object with known fields, a map, or a list whose items
are told apart. Fields that the schema does not know are maps where they are objects, and leaves
otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from podium.lab.api.status import JsonDict, bad_request
from podium.lab.schema import api_types as schema
from podium.lab.schema.merge_keys import (
    ATOMIC,
    ATOMIC_TYPES,
    GRANULAR,
    KEY_DEFAULTS,
    MAP,
    SET,
    merge_keys,
)

LEAF, OBJECT, ITEMS, UNKNOWN = "leaf", "object", "items", "unknown"

#: A field: `f:spec`; an item of a list by its keys or value: `k:{"name":"a"}`, `v:"a"`.
Step = str
Path = tuple[Step, ...]
FieldSet = frozenset[Path]
EMPTY: FieldSet = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value is owned."""

    kind: str
    #: The library's model of an object, or of the values of a map or list.
    model: str = ""
    #: Of lists: the fields that tell items apart, none for sets.
    keys: tuple[str, ...] = ()
    #: Of maps: whether the names are the user's.
    is_map: bool = False
    #: Of maps and lists: the shape of what is in them.
    inner: str = LEAF

    def field(self, name: str) -> Shape:
        """The shape of a field of an object or map."""
        if self.is_map:
            return Shape(self.inner, self.model)
        return field_shape(self.model, name) if self.kind == OBJECT else UNKNOWN_SHAPE

    def item(self) -> Shape:
        """The shape of an item of a list."""
        return Shape(self.inner, self.model)

    def declares(self, name: str) -> bool:
        """Whether this is an object with such a field."""
        return self.kind == OBJECT and not self.is_map and name in schema.model(self.model).fields

    def step(self, item: Any) -> Step:
        """What an item of a list is called."""
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


LEAF_SHAPE = Shape(LEAF)
UNKNOWN_SHAPE = Shape(UNKNOWN)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def kind_shape(kind: str, api_version: str = "") -> Shape:
    """The shape of a whole object of a kind."""
    model = schema.model_of_kind(kind, api_version)
    return Shape(OBJECT, model) if schema.has_model(model) else UNKNOWN_SHAPE


@lru_cache(maxsize=4096)
def field_shape(model: str, name: str) -> Shape:
    """The shape of a field of a model."""
    own = schema.model(model)
    field = own.fields.get(name)
    if field is None:
        return UNKNOWN_SHAPE
    rules = merge_keys(own.short, name)
    inner = OBJECT if field.is_model else LEAF
    whole = field.is_model and schema.short_name(field.of) in ATOMIC_TYPES
    if field.container == schema.LIST:
        if rules.list_type not in (MAP, SET):
            return LEAF_SHAPE
        inner = LEAF if whole else inner
        return Shape(ITEMS, field.of if field.is_model else "", rules.keys, inner=inner)
    if rules.map_type == ATOMIC or (whole and rules.map_type != GRANULAR):
        return LEAF_SHAPE
    if field.container == schema.MAP:
        return Shape(OBJECT, field.of if field.is_model else "", is_map=True, inner=inner)
    return Shape(OBJECT, field.of) if field.is_model else LEAF_SHAPE


def is_leaf(shape: Shape, value: Any) -> bool:
    """Whether a value is owned as a whole."""
    if shape.kind == LEAF:
        return True
    if isinstance(value, dict):
        return shape.kind == ITEMS
    return not (isinstance(value, list) and shape.kind == ITEMS)


def parts(shape: Shape, value: Any) -> Iterator[tuple[Step, Any, Shape]]:
    """The parts of a value that is no leaf."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"f:{name}", each, shape.field(name)
    else:
        inner = shape.item()
        for each in value:
            yield shape.step(each), each, inner


def fields_of(shape: Shape, value: JsonDict) -> FieldSet:
    """Every field that an object sets."""
    found: set[Path] = set()
    _collect(shape, value, (), found)
    return frozenset(found)


def _collect(shape: Shape, value: Any, path: Path, found: set[Path]) -> None:
    if is_leaf(shape, value):
        found.add(path)
        return
    is_list = isinstance(value, list)
    for step, each, inner in parts(shape, value):
        below = (*path, step)
        _collect(inner, each, below, found)
        if is_list or each is None or each == {} or not shape.declares(step[2:]):
            found.add(below)


def with_named_parents(shape: Shape, fields: FieldSet) -> FieldSet:
    """The fields and the declared fields above them."""
    found = set(fields)
    for path in fields:
        here = shape
        for at, step in enumerate(path[:-1]):
            name = step[2:]
            if step.startswith("f:"):
                if here.declares(name):
                    found.add(path[: at + 1])
                here = here.field(name)
            else:
                here = here.item()
    return frozenset(found)


def path_text(path: Path) -> str:
    """A path for people: `.spec.containers[name="a"].image`."""
    written = []
    for step in path:
        kind, text = step[0], step[2:]
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


def undeclared(shape: Shape, value: Any, path: Path = ()) -> Iterator[Path]:
    """The fields of an object that its type does not have."""
    if is_leaf(shape, value):
        return
    for step, each, inner in parts(shape, value):
        if inner.kind == UNKNOWN:
            yield (*path, step)
        else:
            yield from undeclared(inner, each, (*path, step))
