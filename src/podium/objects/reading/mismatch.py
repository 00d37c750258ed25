"""A value of the wrong type, said in words: which field, what was expected, what came."""

from __future__ import annotations

import re

import msgspec

from podium.errors import InputError
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
_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def explain(error: msgspec.ValidationError, kind: str, value: JsonObject) -> InputError:
    """The sentence for *error*, met while reading *value* as an object of *kind*."""
    path, culprit = _locate(str(error), value)
    what, hint = _words(str(error), culprit)
    return InputError(what, object=name_of(kind, value), path=path, hint=hint)


def _words(message: str, culprit: Plain) -> tuple[str, str]:
    bound = _BOUND.match(message)
    if bound:
        side = "at most" if bound["bound"] == "<=" else "at least"
        return f"is {culprit}", f"it must be {side} {bound['limit']}"
    match = _MESSAGE.match(message)
    if not match:
        return message.partition(" - at ")[0], ""
    expected = match["expected"].removesuffix(" | null")
    wanted = _WORDS.get(expected, expected)
    got = _WORDS.get(match["got"] or "", "something else")
    shown = f" ({_shown(culprit)})" if isinstance(culprit, str | int | float) else ""
    return f"expected {wanted}, got {got}{shown}", _hint(expected, culprit)


def _hint(expected: str, culprit: Plain) -> str:
    if expected == "str" and isinstance(culprit, bool | int | float):
        return f'write it in quotes: "{_shown(culprit)}"'
    if expected == "int" and isinstance(culprit, str) and culprit.isdecimal():
        return f"write it without quotes: {culprit}"
    return ""


def _shown(culprit: str | float) -> str:
    if isinstance(culprit, bool):
        return str(culprit).lower()
    text = repr(culprit) if isinstance(culprit, str) else str(culprit)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _locate(message: str, value: Plain) -> tuple[str, Plain]:
    """The path in our notation and the value there; `[...]` is any entry that does not fit."""
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


def joined(path: str, key: str) -> str:
    """*path* and a key below it: `requests.cpu`, `requests["nvidia.com/gpu"]`."""
    if not _SIMPLE_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def name_of(kind: str, value: JsonObject) -> str:
    """What to call an object that may not be one, from the little that is known of it."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return kind
    name = metadata.get("name") or metadata.get("generateName")
    namespace = metadata.get("namespace")
    if not isinstance(name, str):
        return kind
    return label(kind, namespace if isinstance(namespace, str) else None, name)
