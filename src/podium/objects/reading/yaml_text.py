"""YAML text to plain values, the way kubectl reads it.

Built on the parser's events rather than on a ready-made loader, for three reasons: timestamps and
sexagesimal numbers must stay text (`12:30` is a value, not 750), nesting and aliases need a limit
that ends in a sentence, and dumps of tens of megabytes must not take minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import yaml

from podium.errors import InputError
from podium.objects.kinds.meta import Plain
from podium.objects.reading.yaml_faults import fault_of

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH = 100
#: Values that aliases may stand for in one document; a manifest uses dozens.
_ALIASED = 1_000_000

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"yes|Yes|YES|true|True|TRUE|on|On|ON")
_FALSE = re.compile(r"no|No|NO|false|False|FALSE|off|Off|OFF")
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_LONGEST_NUMBER = 1000
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"


class YamlDocument(NamedTuple):
    """One document of a stream and the line on which it begins."""

    line: int
    value: Plain


#: Gives every document of a text that is not empty, as `documents` does.
ParseYaml = Callable[[str], Iterable[YamlDocument]]


def documents(text: str) -> Iterator[YamlDocument]:
    """Every document of *text* that is not empty."""
    try:
        yield from _documents(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, text) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = str(error).splitlines()[0] if str(error) else "no further details"
        raise InputError(f"is not readable YAML: {what}") from None


def _documents(events: Iterator[yaml.Event]) -> Iterator[YamlDocument]:
    builder = _Builder()
    line = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder()
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.root is not None:
                yield YamlDocument(line, builder.root)
        elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent):
            if not builder.begun:
                line = _line(event)
            builder.take(event)


class _Open(NamedTuple):
    """A list or mapping that has not ended; a mapping holds keys and values in turn."""

    mapping: bool
    parts: list[Plain]
    anchor: str | None
    weight_before: int


class _Builder:
    """Puts the events of one document together, without recursion."""

    def __init__(self) -> None:
        self.begun = False
        self.root: Plain = None
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Plain, int]] = {}
        self.weight = 0  # values so far, aliases counted with all that they stand for
        self.aliased = 0
        self.merge_line = 0  # of the last key <<

    def take(self, event: yaml.Event) -> None:
        self.begun = True
        if isinstance(event, yaml.ScalarEvent):
            if event.value == _MERGE:
                self.merge_line = _line(event)
            self.put(_scalar(event), event.anchor, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self.open) >= _DEPTH:
                raise InputError(f"line {_line(event)}: is nested deeper than {_DEPTH} levels")
            self.check_key(event)
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.open.append(_Open(mapping, [], event.anchor, self.weight))
        elif isinstance(event, yaml.AliasEvent):
            self.alias(event)
        else:
            ended = self.open.pop()
            value = _mapping(ended.parts, self.merge_line) if ended.mapping else ended.parts
            self.put(value, ended.anchor, self.weight - ended.weight_before + 1, added=1)

    def check_key(self, event: yaml.Event) -> None:
        """Refuse a list or mapping in the place of a key."""
        if self.open and self.open[-1].mapping and len(self.open[-1].parts) % 2 == 0:
            raise InputError(f"line {_line(event)}: a key must be a plain value")

    def put(self, value: Plain, anchor: str | None, weight: int, added: int | None = None) -> None:
        self.weight += weight if added is None else added
        if anchor is not None:
            self.anchors[anchor] = (value, weight)
        if self.open:
            self.open[-1].parts.append(value)
        else:
            self.root = value

    def alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        if event.anchor not in self.anchors:
            raise InputError(f"line {line}: the alias *{event.anchor} stands for nothing")
        value, weight = self.anchors[event.anchor]
        if isinstance(value, dict | list):
            self.check_key(event)
        self.aliased += weight
        if self.aliased > _ALIASED:
            raise InputError(f"line {line}: aliases stand for more than {_ALIASED} values")
        self.put(value, None, weight)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _mapping(parts: list[Plain], merge_line: int) -> dict[Plain, Plain]:
    found: dict[Plain, Plain] = {}
    merged: list[Plain] = []
    pairs = iter(parts)
    for key, value in zip(pairs, pairs, strict=True):
        if key == _MERGE:
            merged += value if isinstance(value, list) else [value]
        else:
            found[key if isinstance(key, str) else _key(key)] = value
    for base in merged:
        if not isinstance(base, dict):
            raise InputError(f"line {merge_line}: << takes a mapping")
        for key, value in base.items():
            found.setdefault(key, value)
    return found


def _key(key: Plain) -> str:
    """A key that is no text becomes the text that JSON has for it."""
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)


def _scalar(event: yaml.ScalarEvent) -> Plain:
    if event.tag is None or event.tag == "!":
        return _plain(event.value) if event.implicit[0] else event.value
    name = event.tag.removeprefix(_TAG)
    if name == event.tag or name not in {"str", "int", "float", "bool", "null"}:
        raise InputError(f"line {_line(event)}: the tag {event.tag} is not known")
    return event.value if name == "str" else _plain(event.value)


@lru_cache(maxsize=1 << 16, typed=True)
def _plain(text: str) -> Plain:
    """What an unquoted scalar stands for."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if len(text) <= _LONGEST_NUMBER:
        if _INT.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return _real(text.replace("_", "").lower())
    return text


def _integer(text: str) -> int | str:
    digits = text.lstrip("+-")
    base = {"0b": 2, "0x": 16}.get(digits[:2], 8 if digits.startswith("0") else 10)
    try:
        return int(text, base)
    except ValueError:  # "0b" and "0x" without digits
        return text


def _real(text: str) -> float:
    return float(text.replace(".", "") if text.endswith(("inf", "nan")) else text)


def _unreadable(error: yaml.MarkedYAMLError, text: str) -> InputError:
    fault = fault_of(error, text)
    if fault is None:
        return InputError(f"is not readable YAML: {error.problem or error.context}")
    return InputError(f"is not readable YAML at {fault.place}: {fault.what}", hint=fault.hint)
