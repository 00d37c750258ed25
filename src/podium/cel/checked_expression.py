"""The checked expression that the CEL library serializes, decoded into plain values.

The form is that of protobuf (`cel.expr.CheckedExpr`). Only what evaluation and checks need is read:
the tree of the expression, the type and place of every node, what qualified names refer to, and
the overload that a call was resolved to.

Literals are checked after the types: durations, moments and patterns must be valid, and the
elements of a list or map literal of one type. Upstream: cel-go's validators, which the environment
of Kubernetes switches on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from podium.cel.errors import CelError
from podium.cel.functions import to_duration, to_timestamp
from podium.cel.regular_expressions import PatternError, compile_pattern
from podium.cel.values import UInt
from podium.objects.protobuf.wire import fields, signed, varint

#: Number and value of each field of a message; the number says which type the value has.
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


#: A problem: the id of the node that has it, and what it is.
Issue = tuple[int, str]

_SHOWN_TYPES: Final = {
    "null_type": "null",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
}
#: Of an expression with more errors than this, the rest is counted.
_MOST_ERRORS: Final = 100


def literal_errors(text: str, checked: CheckedExpression) -> str:
    """What is wrong with literals, each error with its place in the text; empty if nothing."""
    found = [*_argument_issues(checked.root), *_mixed_literals(checked, checked.root)]
    places = sorted(
        ((*_line_and_column(text, checked.places.get(node, 0)), what) for node, what in found),
        key=lambda each: each[:2],
    )
    shown = [_shown(text, *each) for each in places[:_MOST_ERRORS]]
    if len(places) > _MOST_ERRORS:
        shown.append(f"{len(places) - _MOST_ERRORS} more errors were truncated")
    return "\n".join(shown)


def _argument_issues(root: Node) -> Iterator[Issue]:
    """The first argument of these functions, which is not the target of a method."""
    checks: dict[str, Callable[[Any], Any]] = {
        "duration": to_duration,
        "timestamp": to_timestamp,
        "matches": compile_pattern,
    }
    for node in _all_nodes(root):
        if not isinstance(node, Call) or node.function not in checks:
            continue
        arguments = node.arguments[1:] if node.is_member else node.arguments
        if not arguments or not isinstance(arguments[0], Constant):
            continue
        literal = arguments[0]
        try:
            checks[node.function](literal.value)
        except (CelError, PatternError):
            yield literal.id, f"invalid {node.function} argument"


def _mixed_literals(checked: CheckedExpression, node: Node) -> Iterator[Issue]:
    """Elements whose type is not that of the first; the arguments of `format` may differ."""
    if isinstance(node, Call) and node.function == "format":
        return
    if isinstance(node, ListLiteral):
        types = [
            _type_of_literal(checked, each, optional=place in node.optional)
            for place, each in enumerate(node.elements)
        ]
        yield from list(_mismatches(node.elements, types))[:1]
    elif isinstance(node, MapLiteral):
        keys = [entry.key for entry in node.entries]
        values = [entry.value for entry in node.entries]
        yield from _mismatches(keys, [_type_of_literal(checked, each) for each in keys])
        yield from _mismatches(
            values, [_type_of_literal(checked, e.value, optional=e.optional) for e in node.entries]
        )
    for each in inside(node):
        yield from _mixed_literals(checked, each)


def _mismatches(nodes: Sequence[Node], types: Sequence[CelType | None]) -> Iterator[Issue]:
    for node, found in zip(nodes, types, strict=True):
        wanted = types[0]
        if wanted is not None and found is not None and wanted.name != found.name:
            yield node.id, f"expected type '{_named(wanted)}' but found '{_named(found)}'"


def _type_of_literal(
    checked: CheckedExpression, node: Node, *, optional: bool = False
) -> CelType | None:
    found = checked.types.get(node.id)
    if optional and found is not None and found.of:
        return found.of[0]
    return found


def _named(kind: CelType) -> str:
    name = _SHOWN_TYPES.get(kind.name, kind.name)
    return f"{name}({', '.join(map(_named, kind.of))})" if kind.of else name


def _all_nodes(root: Node) -> Iterable[Node]:
    left = [root]
    while left:
        node = left.pop()
        yield node
        left.extend(inside(node))


def inside(node: Node) -> Sequence[Node]:
    """The nodes directly below a node."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.arguments
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Comprehension():
            return (node.over, node.start, node.condition, node.step, node.result)
    return ()


def _line_and_column(text: str, place: int) -> tuple[int, int]:
    before = text[:place]
    return before.count("\n") + 1, place - (before.rfind("\n") + 1)


def _shown(text: str, line: int, column: int, what: str) -> str:
    """An error as cel-go shows it: place, words, the line, and a mark below the place."""
    source = text.split("\n")[line - 1].replace("\t", " ")
    dots = "".join("." if each.isascii() else "\uff0e" for each in source[:column])
    mark = "^" if source[column : column + 1].isascii() else "\uff3e"
    return f"ERROR: <input>:{line}:{column + 1}: {what}\n | {source}\n | {dots}{mark}"
