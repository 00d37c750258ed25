"""Error sentences for values of the wrong type: the field, what was expected, what was found."""

from __future__ import annotations

import re

import msgspec

from podium.errors import InputError
from podium.objects.field_errors import joined
from podium.objects.kinds.meta import JsonObject, Plain
from podium.objects.reading.collection import label

_MESSAGE = re.compile(r"Expected `(?P<expected>[^`]*)`(?:, got `(?P<got>[^`]*)`)?")
_BOUND = re.compile(r"Expected `int` (?P<bound>[<>]=) (?P<limit>-?\d+)")
_PATH = re.compile(r" - at `(?:key` in `)?(?P<path>\$[^`]*)`")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing (null)",
    "int | float | str": "a quantity",
}


def explain(error: msgspec.ValidationError, kind: str, value: JsonObject) -> InputError:
    """The error sentence for *error*, raised while *value* was decoded as an object of *kind*."""
    path, found = _locate(str(error), value)
    what, hint = _words(str(error), found)
    return InputError(what, object=name_of(kind, value), path=path, hint=hint)


def _words(message: str, found: Plain) -> tuple[str, str]:
    bound = _BOUND.match(message)
    if bound:
        side = "at most" if bound["bound"] == "<=" else "at least"
        return f"is {found}", f"it must be {side} {bound['limit']}"
    match = _MESSAGE.match(message)
    if not match:
        return message.partition(" - at ")[0], ""
    expected = match["expected"].removesuffix(" | null")
    wanted = _WORDS.get(expected, expected)
    got = _WORDS.get(match["got"] or "", "something else")
    shown = f" ({_shown(found)})" if isinstance(found, str | int | float) else ""
    return f"expected {wanted}, got {got}{shown}", _hint(expected, found)


def _hint(expected: str, found: Plain) -> str:
    if expected == "str" and isinstance(found, bool | int | float):
        return f'write it in quotes: "{_shown(found)}"'
    if expected == "int" and isinstance(found, str) and found.isdecimal():
        return f"write it without quotes: {found}"
    return ""


def _shown(found: str | float) -> str:
    if isinstance(found, bool):
        return str(found).lower()
    text = repr(found) if isinstance(found, str) else str(found)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _locate(message: str, value: Plain) -> tuple[str, Plain]:
    """The path of the field and its value; `[...]` stands for the first entry of that type."""
    match = _PATH.search(message)
    got = _MESSAGE.match(message)
    path = ""
    for step in _STEP.finditer(match["path"] if match else ""):
        if step["field"]:
            path, value = joined(path, step["field"]), _entry(value, step["field"])
        elif step["index"] != "...":
            path, value = f"{path}[{step['index']}]", _entry(value, int(step["index"]))
        elif isinstance(value, dict):
            wrong = got["got"] if got else None
            key = next((key for key, each in value.items() if _type(each) == wrong), None)
            path, value = joined(path, str(key)), value.get(key)
    return path, value


def _entry(value: Plain, key: str | int) -> Plain:
    try:
        return value[key]
    except (TypeError, KeyError, IndexError):
        return None


def _type(value: Plain) -> str:
    names = {dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def name_of(kind: str, value: JsonObject) -> str:
    """How error sentences refer to an object that could not be decoded."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return kind
    name = metadata.get("name") or metadata.get("generateName")
    namespace = metadata.get("namespace")
    if not isinstance(name, str):
        return kind
    return label(kind, namespace if isinstance(namespace, str) else None, name)
