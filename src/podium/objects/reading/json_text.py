"""JSON text as the API server reads it; null stands for a field that is absent.

Usually there is one; appended output, or one object per line, makes several.
"""

from __future__ import annotations

import re

import msgspec

from podium.errors import InputError
from podium.objects.kinds.meta import Plain

_BEGINS = re.compile(rb'\s*(?:\{\s*["}]|\[\s*[\[{\]])')
_PROBLEM = re.compile(r"(?:JSON is malformed: )?(?P<what>.*?) \(byte (?P<byte>\d+)\)")
_RAW = msgspec.json.Decoder(msgspec.Raw)


def looks_like_json(data: bytes) -> bool:
    """Whether *data* begins as JSON objects do, and YAML hardly ever."""
    return _BEGINS.match(data) is not None


def values(data: bytes) -> list[memoryview]:
    """The JSON values in *data*, one after the other; their syntax has been checked."""
    found = []
    rest = memoryview(data)
    while True:
        try:
            _RAW.decode(rest)
        except msgspec.DecodeError as error:
            match = _PROBLEM.fullmatch(str(error))
            if not match or match["what"] != "trailing characters":
                raise _malformed(match, data, len(data) - len(rest)) from None
            end = int(match["byte"]) - 1  # it names the byte after the first one too many
            found.append(rest[:end])
            rest = rest[end:]
        else:
            return [*found, rest]


def _malformed(match: re.Match[str] | None, data: bytes, offset: int) -> InputError:
    if not match:
        return InputError("is not readable JSON: it ends too early", hint="is the file complete?")
    before = data[: offset + int(match["byte"])]
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return InputError(f"is not readable JSON at line {line}, column {column}: {match['what']}")


#: Maps with free keys, and the value that a null entry of theirs gets. In all other objects a null
#: field is the same as an absent one.
_ZERO_ENTRY: dict[str, str | int] = {
    "labels": "",
    "annotations": "",
    "nodeSelector": "",
    "matchLabels": "",
    "selector": "",
    "requests": 0,
    "limits": 0,
    "capacity": 0,
    "allocatable": 0,
    "overhead": 0,
}
_SELECTOR_FIELDS = frozenset({"matchLabels", "matchExpressions"})


def without_nulls(value: Plain, under: str = "") -> Plain:
    """A copy of *value*, found *under* a field, with every `null` left out or made a zero."""
    if isinstance(value, list):
        return [{} if each is None else without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    if under in _ZERO_ENTRY and not _SELECTOR_FIELDS & value.keys():
        zero = _ZERO_ENTRY[under]
        return {key: zero if each is None else each for key, each in value.items()}
    return {key: without_nulls(each, key) for key, each in value.items() if each is not None}
