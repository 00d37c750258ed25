"""The checked expression that the CEL library serializes, decoded into plain values.

The form is that of protobuf (`cel.expr.CheckedExpr`). Only what evaluation and checks need is read:
the tree of the expression, the type and place of every node, what qualified names refer to, and
the overload that a call was resolved to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from podium.cel.values import UInt
from podium.objects.protobuf.wire import fields, signed, varint

#: Number and value of each field of a message; what type the value has, the number tells.
_fields: Final[Callable[[bytes], Iterator[tuple[int, Any]]]] = fields
_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "any", 2: "google.protobuf.Timestamp", 3: "google.protobuf.Duration"}


class CelType(NamedTuple):
    """The type of a node: its name, and the types of what it holds."""

    name: str
    of: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        inside = f"({', '.join(map(str, self.of))})" if self.of else ""
        return f"{self.name}{inside}"


DYN: Final = CelType("dyn")


class Constant(NamedTuple):
    """A literal."""

    id: int
    value: Any


class Ident(NamedTuple):
    """A variable."""

    id: int
    name: str


class Select(NamedTuple):
    """A field of a value, or the question whether it has that field."""

    id: int
    operand: Node
    field: str
    test_only: bool


class Call(NamedTuple):
    """A function or an operator; a method has its target as the first argument."""

    id: int
    function: str
    arguments: tuple[Node, ...]
    is_member: bool


class ListLiteral(NamedTuple):
    """A list; some elements may be optional and then may be left out."""

    id: int
    elements: tuple[Node, ...]
    optional: frozenset[int]


class MapEntry(NamedTuple):
    """An entry of a map."""

    key: Node
    value: Node
    optional: bool


class MapLiteral(NamedTuple):
    """A map."""

    id: int
    entries: tuple[MapEntry, ...]


class Comprehension(NamedTuple):
    """A loop over a list or a map, made by a macro."""

    id: int
    variable: str
    second_variable: str
    over: Node
    result_variable: str
    start: Node
    condition: Node
    step: Node
    result: Node


Node = Constant | Ident | Select | Call | ListLiteral | MapLiteral | Comprehension


@dataclass(slots=True)
class CheckedExpression:
    """A decoded expression."""

    root: Node
    types: dict[int, CelType] = field(default_factory=dict)
    #: The variables that qualified names refer to, by the id of the node.
    names: dict[int, str] = field(default_factory=dict)
    #: The overloads that a call may have; one where the types of the arguments are known.
    overloads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    #: Where a node is in the text, in characters.
    places: dict[int, int] = field(default_factory=dict)

    @property
    def type(self) -> CelType:
        """The type of the whole expression."""
        return self.types.get(self.root.id, DYN)


def decode(data: bytes) -> CheckedExpression:
    """Decode a `CheckedExpr`, serialized within an `Any`."""
    found = CheckedExpression(Constant(0, None))
    for number, value in _fields(dict(_fields(data))[2]):
        if number == 2:
            _note_reference(found, value)
        elif number == 3:
            entry = dict(_fields(value))
            found.types[signed(entry.get(1, 0))] = _type(entry.get(2, b""))
        elif number == 4:
            found.root = _node(value)
        elif number == 5:
            for inner, content in _fields(value):
                if inner == 4:
                    place = dict(_fields(content))
                    found.places[signed(place.get(1, 0))] = place.get(2, 0)
    return found


def _note_reference(found: CheckedExpression, data: bytes) -> None:
    """What one node refers to: a variable by its name, or a function by its overloads."""
    entry = dict(_fields(data))
    identity = signed(entry.get(1, 0))
    name, overloads = "", []
    for number, value in _fields(entry.get(2, b"")):
        if number == 1:
            name = value.decode()
        elif number == 3:
            overloads.append(value.decode())
    if overloads:
        found.overloads[identity] = tuple(overloads)
    elif name:
        found.names[identity] = name


def _type(data: bytes) -> CelType:
    for number, value in _fields(data):
        return _TYPES.get(number, _unknown_type)(value)
    return DYN


def _unknown_type(_: Any) -> CelType:
    return DYN


def _abstract_type(data: bytes) -> CelType:
    name = next(value for number, value in _fields(data) if number == 1).decode()
    return CelType(name, tuple(_type(value) for number, value in _fields(data) if number == 2))


def _types(data: bytes) -> tuple[CelType, ...]:
    return tuple(_type(value) for _, value in _fields(data))


#: The fields of a type, of which one is set.
_TYPES: Final[dict[int, Callable[[Any], CelType]]] = {
    2: lambda _: CelType("null_type"),
    3: lambda value: CelType(_PRIMITIVES.get(value, "dyn")),
    4: lambda value: CelType("wrapper", (CelType(_PRIMITIVES.get(value, "dyn")),)),
    5: lambda value: CelType(_WELL_KNOWN.get(value, "dyn")),
    6: lambda value: CelType("list", _types(value)),
    7: lambda value: CelType("map", _types(value)),
    9: lambda value: CelType(value.decode()),
    11: lambda _: CelType("type"),
    14: _abstract_type,
}


def _node(data: bytes) -> Node:
    identity, kind, content = 0, 0, b""
    for number, value in _fields(data):
        if number == 2:
            identity = signed(value)
        else:
            kind, content = number, value
    return _READERS[kind](identity, content)


#: The fields of a constant, of which one is set.
_CONSTANTS: Final[dict[int, Callable[[Any], Any]]] = {
    2: bool,
    3: signed,
    4: UInt,
    5: lambda value: float(np.frombuffer(value, "<f8")[0]),
    6: bytes.decode,
    7: bytes,
}


def _constant(identity: int, data: bytes) -> Node:
    for number, value in _fields(data):
        if number in _CONSTANTS:
            return Constant(identity, _CONSTANTS[number](value))
    return Constant(identity, None)


def _ident(identity: int, data: bytes) -> Node:
    return Ident(identity, dict(_fields(data))[1].decode())


def _select(identity: int, data: bytes) -> Node:
    found = dict(_fields(data))
    return Select(identity, _node(found[1]), found[2].decode(), bool(found.get(3, 0)))


def _call(identity: int, data: bytes) -> Node:
    target, function, arguments = None, "", []
    for number, value in _fields(data):
        if number == 1:
            target = _node(value)
        elif number == 2:
            function = value.decode()
        else:
            arguments.append(_node(value))
    given = arguments if target is None else [target, *arguments]
    return Call(identity, function, tuple(given), target is not None)


def _list(identity: int, data: bytes) -> Node:
    elements: list[Node] = []
    optional: set[int] = set()
    for number, value in _fields(data):
        if number == 1:
            elements.append(_node(value))
        elif isinstance(value, int):
            optional.add(value)
        else:  # packed
            at = 0
            while at < len(value):
                index, at = varint(value, at)
                optional.add(index)
    return ListLiteral(identity, tuple(elements), frozenset(optional))


def _map(identity: int, data: bytes) -> Node:
    entries = []
    for number, value in _fields(data):
        if number == 2:
            found = dict(_fields(value))
            entries.append(MapEntry(_node(found[3]), _node(found[4]), bool(found.get(5, 0))))
    return MapLiteral(identity, tuple(entries))


def _comprehension(identity: int, data: bytes) -> Node:
    found = dict(_fields(data))
    return Comprehension(
        identity,
        found.get(1, b"").decode(),
        found.get(8, b"").decode(),
        _node(found[2]),
        found.get(3, b"").decode(),
        _node(found[4]),
        _node(found[5]),
        _node(found[6]),
        _node(found[7]),
    )


_READERS: Final = {
    3: _constant,
    4: _ident,
    5: _select,
    6: _call,
    7: _list,
    8: _map,
    9: _comprehension,
}
