"""Plain values as JSON and YAML text."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import yaml

#: Text that every version of YAML reads as a string without quotes.
_PLAIN: Final = re.compile(r"[A-Za-z/_][A-Za-z0-9_./-]*")
#: Words that some version of YAML reads as a boolean or null.
_KEYWORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
#: Text that some version of YAML reads as a number.
_NUMERIC: Final = re.compile(r"[-+.0-9][-+.0-9a-fA-FoOxXeE_:]*")
#: Wide enough that no line is folded, so that sentences can be searched for.
_WIDTH: Final = 1_000_000


class _Dumper(yaml.CSafeDumper):
    """Quotes text that YAML 1.1 and 1.2 read differently."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write a value that occurs twice again, without an anchor."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _PLAIN.fullmatch(text):
        style = '"' if text.lower() in _KEYWORDS else None
    elif _NUMERIC.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    """A value as one YAML document, with the fields that it has as JSON."""
    plain = msgspec.to_builtins(value)
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


def to_json_text(value: Any) -> str:
    """A value as indented JSON that ends with a newline."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def to_json_line(value: Any) -> str:
    """A value as one line of JSON with sorted keys that ends with a newline."""
    return msgspec.json.encode(value, order="sorted").decode() + "\n"
