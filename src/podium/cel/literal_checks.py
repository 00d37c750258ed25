"""Checks of the literals of an expression, after its types were checked.

Literal durations, moments and patterns must be valid, and the elements of a list or map literal of
one type. Upstream: cel-go's validators, which the environment of Kubernetes switches on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from podium.cel.checked_expression import (
    Call,
    CelType,
    CheckedExpression,
    Comprehension,
    Constant,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
)
from podium.cel.errors import CelError
from podium.cel.functions import to_duration, to_timestamp
from podium.cel.regular_expressions import PatternError, compile_pattern

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
            _type(checked, each, optional=place in node.optional)
            for place, each in enumerate(node.elements)
        ]
        yield from list(_mismatches(node.elements, types))[:1]
    elif isinstance(node, MapLiteral):
        keys = [entry.key for entry in node.entries]
        values = [entry.value for entry in node.entries]
        yield from _mismatches(keys, [_type(checked, each) for each in keys])
        yield from _mismatches(
            values, [_type(checked, e.value, optional=e.optional) for e in node.entries]
        )
    for each in inside(node):
        yield from _mixed_literals(checked, each)


def _mismatches(nodes: Sequence[Node], types: Sequence[CelType | None]) -> Iterator[Issue]:
    for node, found in zip(nodes, types, strict=True):
        wanted = types[0]
        if wanted is not None and found is not None and wanted.name != found.name:
            yield node.id, f"expected type '{_named(wanted)}' but found '{_named(found)}'"


def _type(checked: CheckedExpression, node: Node, *, optional: bool = False) -> CelType | None:
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
