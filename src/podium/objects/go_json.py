"""JSON as Go writes it, for error messages that are compared with those of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

_ESCAPED = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def go_json(value: Any) -> str:
    """The value without blanks and with Unicode letters as they are; <, > and & are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(_ESCAPED.get(character, character) for character in text)
