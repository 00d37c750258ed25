"""Plain values as JSON and YAML text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Text that no reader of YAML, of whatever version, takes for anything but text.
_CERTAIN: Final = re.compile(r"[A-Za-z/_][A-Za-z0-9_./-]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
#: Text that some of them take for a number.
_NUMERIC: Final = re.compile(r"[-+.0-9][-+.0-9a-fA-FoOxXeE_:]*")
#: No line is folded: a sentence stays findable.
_WIDTH: Final = 1_000_000


class _Dumper(yaml.CSafeDumper):
    """Puts text in quotes where YAML 1.1 and 1.2 would disagree about it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Repeat what occurs twice; anchors are for machines."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _CERTAIN.fullmatch(text):
        style = '"' if text.lower() in _WORDS else None
    elif _NUMERIC.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    """One document."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


def to_yaml_stream(values: Iterable[Any]) -> str:
    """Several documents."""
    return "---\n".join(to_yaml(value) for value in values)


def to_json_text(value: Any) -> str:
    """Indented JSON, with a line end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_json_line(value: Any) -> str:
    """JSON on one line, keys sorted, with a line end."""
    return msgspec.json.encode(value, order="sorted").decode() + "\n"
