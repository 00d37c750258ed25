"""YAML text to values, converted to JSON as kube-scheduler does it before decoding.

Only the first document counts. Keys are sorted, numbers are written as in JSON, and of repeated
keys the last one counts; the repetition is reported. The error messages are those of go-yaml.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

import yaml
from typing_extensions import override

from podium.objects.names import quoted
from podium.objects.reading.yaml_text import EventBuilder, OpenCollection, line_of
from podium.profiles.config.json_values import Fields, JsonValue, Number

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LONGEST_NUMBER: Final = 400
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"

_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "off", "Off", "OFF"], False),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)"
    r"|(?P<d>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}
_NOT_FINITE: Final = {".nan": "NaN", ".inf": "+Inf", "-.inf": "-Inf"}
_NAMES: Final = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}


class YamlError(ValueError):
    """The text is not YAML, or cannot be written as JSON."""


class RepeatedKey(NamedTuple):
    """A key that is set twice, and the line of the second value."""

    line: int
    key: str

    def __str__(self) -> str:
        return f"line {self.line}: key {self.key} already set in map"


def parse(text: str) -> tuple[JsonValue, list[RepeatedKey]]:
    """The first document, and the keys that it sets more than once."""
    try:
        root, builder = _first_document(text)
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"yaml: {_place(error)}{error.problem or 'cannot be read'}") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(f"yaml: {str(error).splitlines()[0] if str(error) else error!r}") from None
    return _json(root), builder.repeated_keys


def _place(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml reports it: its scanner counts from 1, its parser from 0."""
    mark = error.problem_mark
    line = mark.line if mark else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    if not line and error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def _first_document(text: str) -> tuple[Any, _Builder]:
    builder = _Builder()
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            builder.take(event)
    return builder.root.value if builder.root is not None else None, builder


class _Part(NamedTuple):
    """A value, the line on which it begins, and whether it is the key `<<`."""

    value: Any
    line: int
    merges: bool = False


class _Builder(EventBuilder):
    """Builds one document as go-yaml does, and notes the keys that are set twice."""

    most_aliased = 400_000  # a configuration uses dozens

    def __init__(self) -> None:
        super().__init__()
        self.repeated_keys: list[RepeatedKey] = []

    @override
    def scalar(self, event: yaml.ScalarEvent) -> _Part:
        merges = event.value == _MERGE and event.implicit[0]
        return _Part(_scalar(event), line_of(event), merges)

    @override
    def collection(self, ended: OpenCollection) -> _Part:
        parts = ended.parts
        value = self.mapping(parts) if ended.mapping else [part.value for part in parts]
        return _Part(value, line_of(ended.start))

    @override
    def repeated(self, value: _Part, event: yaml.AliasEvent) -> _Part:
        return _Part(value.value, line_of(event))

    @override
    def fault(self, what: str, event: yaml.Event) -> YamlError:
        name = getattr(event, "anchor", "")
        told = {
            "deep": "exceeded max depth",
            "inside": f"anchor '{name}' value contains itself",
            "unknown": f"unknown anchor '{name}' referenced",
            "aliased": "document contains excessive aliasing",
        }
        return YamlError(f"yaml: {told[what]}")

    def mapping(self, parts: list[_Part]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        pairs = iter(parts)
        for key, value in zip(pairs, pairs, strict=True):
            if key.merges:
                # Later entries of a list of mappings yield to earlier ones.
                bases = value.value if isinstance(value.value, list) else [value.value]
                for base in reversed(bases):
                    self.merge(base, found, value.line)
            elif isinstance(key.value, dict | list):
                raise YamlError("yaml: invalid map key: a key must be a plain value")
            else:
                self.set(found, _key(key.value), value)
        return found

    def merge(self, base: Any, found: dict[Any, Any], line: int) -> None:
        if not isinstance(base, dict):
            raise YamlError("yaml: map merge requires map or sequence of maps as the value")
        for key, value in base.items():
            self.set(found, key, _Part(value, line))

    def set(self, found: dict[Any, Any], key: Any, part: _Part) -> None:
        if key in found:
            self.repeated_keys.append(RepeatedKey(part.line, _shown(key)))
        found[key] = part.value


def _key(key: Any) -> Any:
    """A key that is equal to another only if it is so in Go: 1 and True are not."""
    return key if isinstance(key, str) else (type(key), key)


def _shown(key: Any) -> str:
    """A key as Go's `%#v` shows it."""
    if isinstance(key, str):
        return quoted(key)
    kind, value = key
    return "<nil>" if kind is type(None) else _key_text(value)


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag = (event.tag or "").removeprefix(_TAG)
    if not event.tag:
        return _resolved(event.value) if event.implicit[0] else event.value
    if tag in (event.tag, "str"):
        return event.value
    if tag == "binary":
        return _decoded(event.value)
    if tag not in {"bool", "int", "float", "null", "timestamp"}:
        return event.value
    found = _resolved(event.value)
    if tag == "float" and isinstance(found, int) and not isinstance(found, bool):
        return float(found)
    name = _NAMES[type(found)]
    if name not in (tag, "str" if tag == "timestamp" else tag):
        raise YamlError(f"yaml: cannot decode !!{name} `{event.value}` as a !!{tag}")
    return found


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise YamlError("yaml: !!binary value contains invalid base64 data") from None


def _resolved(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    bare = text if text[0] == "." else text.replace("_", "")
    whole = _INTEGER.fullmatch(bare)
    if whole:
        kind = whole.lastgroup or "d"
        number = int(whole[kind], _BASES[kind]) * (-1 if whole["sign"] == "-" else 1)
        if -(1 << 63) <= number < 1 << 63 or (number < 1 << 64 and not whole["sign"]):
            return number
    if _FLOAT.fullmatch(bare):
        real = float(bare)
        return text if math.isinf(real) else real
    return text


def _json(value: Any) -> JsonValue:
    """A value as JSON: objects sorted by key, numbers as text."""
    if isinstance(value, dict):
        named = {_key_name(key): each for key, each in value.items()}
        return Fields((key, _json(named[key])) for key in sorted(named))
    if isinstance(value, list):
        return [_json(each) for each in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise YamlError(f"json: unsupported value: {_NOT_FINITE[_key_text(value)]}")
    return Number(_number(value))


def _key_name(key: Any) -> str:
    if isinstance(key, str):
        return key
    kind, value = key
    if kind is type(None):
        raise YamlError("unsupported map key of type: %!s(<nil>), key: <nil>")
    return _key_text(value)


def _key_text(value: float) -> str:
    """The text of a key that is not a string."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return _number(value)


def _number(value: float) -> str:
    """A number as Go writes it into JSON."""
    if isinstance(value, int):
        return str(value)
    if value and not 1e-6 <= abs(value) < 1e21:
        mantissa, _, exponent = f"{Decimal(repr(value)):e}".partition("e")
        return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
