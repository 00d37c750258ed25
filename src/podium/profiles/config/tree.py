"""A configuration file as plain values, before anything is known about its fields.

Objects keep their keys in order and repeated, numbers keep their spelling: the messages of the
real program show both.
"""

from __future__ import annotations

import json
from typing import Any


class Number(str):
    """A number as it is written in JSON."""

    __slots__ = ()


class Fields(tuple[tuple[str, Any], ...]):
    """The keys and values of an object, in the order they are read."""

    __slots__ = ()

    def get(self, key: str) -> Any:
        """The last value of a key, as a reader that does not mind repetition finds it."""
        return next((value for name, value in reversed(self) if name == key), None)


_LONGEST = 40

#: None, a bool, a Number, text, a list or Fields.
Tree = Any

_KINDS = {bool: "bool", Number: "number", str: "string", list: "array", Fields: "object"}


def kind_of(tree: Tree) -> str:
    """What JSON calls a value that is not null."""
    return _KINDS[type(tree)]


def plain(tree: Tree) -> Any:
    """The value in ordinary Python types."""
    if isinstance(tree, Fields):
        return {key: plain(value) for key, value in tree}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return _number(tree) if isinstance(tree, Number) else tree


def _number(text: Number) -> float | str:
    whole = text.lstrip("-").isdecimal() and len(text) <= _LONGEST
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return str(text)


def tree_of(value: Any) -> Tree:
    """The tree of a value that some reader of JSON gave."""
    if isinstance(value, dict):
        return Fields((str(key), tree_of(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return [tree_of(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(json.dumps(value))
    return value


def compact(tree: Tree) -> str:
    """The value as JSON on one line."""
    if isinstance(tree, Fields):
        return f"{{{','.join(f'{go_json(key)}:{compact(value)}' for key, value in tree)}}}"
    if isinstance(tree, list):
        return f"[{','.join(map(compact, tree))}]"
    return tree if isinstance(tree, Number) else go_json(tree)


_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def go_json(value: Any) -> str:
    """The value as Go writes JSON: no blanks, letters as they are, <, > and & escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(_HTML.get(character, character) for character in text)
