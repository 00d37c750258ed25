"""Templates of objects in the language of Go's text/template, as in scheduler_perf.

An action in braces is an expression whose value is inserted (`{{Mod .Index 3}}`), an assignment
(`{{$n := or .numDevices 10}}`), or begins a block that ends with `{{end}}`: `{{range $i := …}}` for
each whole number below a number, `{{if …}} … {{else}}`. A dash inside of the braces removes the
white space before or after them. `.Index` and `.Count` are the number of an object and that of all.
The manifest is decoded once per distinct text, so equal pods are decoded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate
from podium.objects.reading.yaml_text import documents

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject, Object

_ACTION: Final = re.compile(r"\{\{(-?)(.*?)(-?)\}\}", re.DOTALL)
_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|:=|[()|]|[^\s()|]+')
_RANGE: Final = re.compile(r"(\$\w+)\s*:=\s*(.*)", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"(\$\w+)\s*:?=\s*(.*)", re.DOTALL)
#: The variable of the data that a template is filled in with.
_DOT: Final = "."


def _product(numbers: Sequence[float]) -> float:
    product: float = 1
    for number in numbers:
        product *= number
    return product


def _first_true(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _first_false(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "AddFloat": lambda *numbers: float(sum(numbers)),
    "AddInt": lambda *numbers: int(sum(numbers)),
    "DivideFloat": lambda one, two: one / two,
    "DivideInt": lambda one, two: int(one / two),
    "Int": int,
    "JSON": lambda value: msgspec.json.encode(value).decode(),
    "Mod": lambda one, two: int(one) % int(two),
    "MultiplyFloat": lambda *numbers: float(_product(numbers)),
    "MultiplyInt": lambda *numbers: int(_product(numbers)),
    "SubtractFloat": lambda one, two: float(one - two),
    "SubtractInt": lambda one, two: int(one - two),
    "and": _first_false,
    "eq": lambda one, *others: one in others,
    "ge": lambda one, two: one >= two,
    "gt": lambda one, two: one > two,
    "le": lambda one, two: one <= two,
    "lt": lambda one, two: one < two,
    "ne": lambda one, two: one != two,
    "not": lambda value: not value,
    "or": _first_true,
}

Names = dict[str, Any]
#: Yields the parts of the text that a piece of a template stands for.
_Piece = Callable[[Names], Iterator[str]]


def evaluate(expression: str, names: Names) -> Any:
    """The value of an expression; *names* are the fields of the data, and variables."""
    words = iter([*_WORD.findall(expression), ")"])
    try:
        value = _pipeline(words, names)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, StopIteration):
        value = None
    if value is None:
        fields = [f".{name}" for name in names if name[0] not in "$."]
        known = ", ".join([*fields, *FUNCTIONS])
        what = f"cannot fill in {{{{{expression.strip()}}}}}"
        raise InputError(what, hint=f"known: {known}") from None
    return value


def _pipeline(words: Iterator[str], names: Names) -> Any:
    """The value up to the closing parenthesis; each command passes its value on to the next."""
    parts: list[Any] = []
    passed: list[Any] = []
    while (word := next(words)) != ")":
        if word == "|":
            parts, passed = [], [_called([*parts, *passed])]
        elif word == "(":
            parts.append(_pipeline(words, names))
        elif word in FUNCTIONS and not parts:
            parts.append(FUNCTIONS[word])
        else:
            parts.append(_operand(word, names))
    return _called([*parts, *passed])


def _called(parts: list[Any]) -> Any:
    first, *arguments = parts
    if callable(first):
        return first(*arguments)
    if arguments:
        raise ValueError(first)
    return first


def _operand(word: str, names: Names) -> Any:
    if word == _DOT or word.startswith("$"):
        return names[word]
    if word.startswith("."):
        return names.get(word[1:])
    if word.startswith('"'):
        return word[1:-1]
    if word == "nil":
        return None
    return float(word) if "." in word else int(word)


class GoTemplate:
    """A text with actions in braces."""

    def __init__(self, text: str) -> None:
        self._pieces = _Parser(text).pieces()

    def filled(self, data: Mapping[str, Any]) -> str:
        """The text with the values of *data*."""
        names: Names = dict(data)
        return "".join(part for piece in self._pieces for part in piece(names))


class _Parser:
    """Makes the pieces of a template, block by block."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def pieces(self) -> list[_Piece]:
        """All pieces of the text."""
        found, end = self._block()
        if end:
            raise InputError(f"{{{{{end}}}}} has no beginning")
        return found

    def _block(self) -> tuple[list[_Piece], str]:
        """The pieces up to the end of a block, and the action that ends it."""
        found: list[_Piece] = []
        while self._at < len(self._tokens):
            is_action, text = self._tokens[self._at]
            self._at += 1
            word = text.split(maxsplit=1)[0] if is_action and text else ""
            if not is_action:
                found.append(_literal(text))
            elif word in {"end", "else"}:
                return found, text
            elif word == "range":
                found.append(self._range(text.removeprefix("range").strip()))
            elif word == "if":
                found.append(self._condition(text.removeprefix("if").strip()))
            else:
                found.append(_action(text))
        return found, ""

    def _range(self, text: str) -> _Piece:
        named = _RANGE.fullmatch(text)
        variable, expression = (named[1], named[2]) if named else (_DOT, text)
        body, end = self._block()
        _check_end(end, "range")

        def piece(names: Names) -> Iterator[str]:
            over = evaluate(expression, names)
            for value in range(over) if isinstance(over, int) else over:
                inner = {**names, variable: value, _DOT: value}
                for each in body:
                    yield from each(inner)

        return piece

    def _condition(self, expression: str) -> _Piece:
        body, end = self._block()
        otherwise: list[_Piece] = []
        if end.startswith("else if"):
            otherwise = [self._condition(end.removeprefix("else if").strip())]
        else:
            if end == "else":
                otherwise, end = self._block()
            _check_end(end, "if")

        def piece(names: Names) -> Iterator[str]:
            # A field that is not given counts as false.
            value = names.get(expression[1:]) if _is_field(expression) else None
            if not _is_field(expression):
                value = evaluate(expression, names)
            for each in body if value else otherwise:
                yield from each(names)

        return piece


def _is_field(expression: str) -> bool:
    return re.fullmatch(r"\.\w+", expression) is not None


def _check_end(end: str, block: str) -> None:
    if end != "end":
        raise InputError(f"{{{{{block}}}}} has no {{{{end}}}}")


def _literal(text: str) -> _Piece:
    def piece(_: Names) -> Iterator[str]:
        yield text

    return piece


def _action(text: str) -> _Piece:
    """An assignment, a comment, or a value that is inserted."""
    assigned = _ASSIGNMENT.fullmatch(text)

    def piece(names: Names) -> Iterator[str]:
        if text.startswith("/*"):
            return
        if assigned:
            names[assigned[1]] = evaluate(assigned[2], names)
        else:
            yield str(evaluate(text, names))

    return piece


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Actions and the text between them; whether it is an action, and its text."""
    at, trimmed = 0, False
    for found in _ACTION.finditer(text):
        before = text[at : found.start()]
        before = before.lstrip() if trimmed else before
        yield False, before.rstrip() if found[1] else before
        yield True, found[2].strip()
        at, trimmed = found.end(), bool(found[3])
    yield False, text[at:].lstrip() if trimmed else text[at:]


#: The most objects of a template that are cached; some templates differ with every index.
_MAX_CACHED = 64
#: The name of an object whose template has none; the executor replaces it.
UNNAMED = "unnamed"


class Template:
    """A file with the manifest of one object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise InputError(f"cannot be read: {reason.lower()}", where=str(path)) from None
        try:
            self._template = GoTemplate(text)
        except InputError as error:
            raise error.located(where=str(path)) from None
        self._cached: dict[str, Object] = {}

    def make(self, index: int, count: int, params: Mapping[str, Any] | None = None) -> Object:
        """The object for an index, with the defaults of the API server.

        *params* are values besides `.Index` and `.Count`.
        """
        text = self._filled(index, count, params or {})
        found = self._cached.get(text)
        if found is None:
            found = decode_object(self._read(text), str(self.path))
            if len(self._cached) < _MAX_CACHED:
                self._cached[text] = found
        return found

    def _filled(self, index: int, count: int, params: Mapping[str, Any]) -> str:
        try:
            return self._template.filled({"Index": index, "Count": count, **params})
        except InputError as error:
            raise error.located(where=str(self.path)) from None

    def _read(self, text: str) -> JsonObject:
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
