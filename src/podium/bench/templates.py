"""Templates of objects with expressions in braces, as in scheduler_perf.

An expression is `{{.Index}}`, `{{.Count}}`, or a function of them such as `{{Mod .Index 3}}`. The
manifest is decoded once per distinct list of values, so equal pods are decoded once.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.decode import decode
from podium.objects.reading.validate import validate
from podium.objects.reading.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.objects.kinds.meta import JsonObject, Object

_EXPRESSION = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
_WORD = re.compile(r"[()]|[^\s()]+")
#: The most objects of a template that are cached; some templates differ with every index.
_MAX_CACHED = 64
#: The name of an object whose template has none; the executor replaces it.
UNNAMED = "unnamed"

Number = int | float
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "AddFloat": lambda *numbers: float(sum(numbers)),
    "AddInt": lambda *numbers: int(sum(numbers)),
    "DivideFloat": lambda one, two: one / two,
    "DivideInt": lambda one, two: int(one / two),
    "Mod": lambda one, two: int(one) % int(two),
    "MultiplyFloat": lambda *numbers: float(_product(numbers)),
    "MultiplyInt": lambda *numbers: int(_product(numbers)),
    "SubtractFloat": lambda one, two: float(one - two),
    "SubtractInt": lambda one, two: int(one - two),
}


def _product(numbers: tuple[Number, ...]) -> Number:
    product: Number = 1
    for number in numbers:
        product *= number
    return product


def evaluate(expression: str, names: dict[str, int]) -> Number:
    """The value of an expression."""
    words = iter([*_WORD.findall(expression), ")"])
    try:
        value = _value(words, names)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, StopIteration):
        known = ", ".join([*names, *_FUNCTIONS])
        what = f"cannot fill in {{{{{expression.strip()}}}}}"
        raise InputError(what, hint=f"known: {known}") from None
    return value


def _value(words: Iterator[str], names: dict[str, int]) -> Number:
    """The value up to the closing parenthesis: a number, or a function of its arguments."""
    parts: list[Any] = []
    while (word := next(words)) != ")":
        if word == "(":
            parts.append(_value(words, names))
        elif word in names:
            parts.append(names[word])
        elif word in _FUNCTIONS and not parts:
            parts.append(_FUNCTIONS[word])
        else:
            parts.append(float(word) if "." in word else int(word))
    first, *arguments = parts
    result: Number = first(*arguments) if callable(first) else first
    if arguments and not callable(first):
        raise ValueError(first)
    return result


class Template:
    """A file with the manifest of one object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise InputError(f"cannot be read: {reason.lower()}", where=str(path)) from None
        self._expressions = _EXPRESSION.findall(self._text)
        self._cached: dict[tuple[Number, ...], Object] = {}

    def make(self, index: int, count: int) -> Object:
        """The object for an index, with the defaults of the API server."""
        values = self._values(index, count)
        found = self._cached.get(values)
        if found is None:
            found = decode_object(self._read(values), str(self.path))
            if len(self._cached) < _MAX_CACHED:
                self._cached[values] = found
        return found

    def _values(self, index: int, count: int) -> tuple[Number, ...]:
        names = {".Index": index, ".Count": count}
        try:
            return tuple(evaluate(expression, names) for expression in self._expressions)
        except InputError as error:
            raise error.located(where=str(self.path)) from None

    def _read(self, values: tuple[Number, ...]) -> JsonObject:
        left = iter(values)
        text = _EXPRESSION.sub(lambda _: str(next(left)), self._text)
        try:
            found = [document.value for document in documents(text)]
        except InputError as error:
            raise error.located(where=str(self.path)) from None
        if len(found) != 1 or not isinstance(found[0], dict):
            raise InputError("must hold exactly one object", where=str(self.path))
        manifest: JsonObject = found[0]
        return manifest


def decode_object(manifest: JsonObject, where: str) -> Object:
    """The object of a manifest, validated and with defaults."""
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict) and not metadata.get("name"):
        manifest = manifest | {"metadata": metadata | {"name": UNNAMED}}
    objects = decode(msgspec.json.encode(manifest), where)
    validate(objects)
    return _only_object(with_defaults(objects), where)


def _only_object(objects: Objects, where: str) -> Object:
    for kind in KINDS:
        for item in objects.of(kind):
            found: Object = item
            return found
    kinds = ", ".join(objects.unknown_kinds) or "nothing"
    raise InputError(f"holds {kinds}, which scheduling does not read", where=where)
