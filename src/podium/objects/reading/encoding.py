"""Bytes to text: UTF-8, or UTF-16 and UTF-32 with a byte order mark."""

from __future__ import annotations

import codecs

from podium.errors import InputError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HINT = "save it as UTF-8"


def has_byte_order_mark(data: bytes) -> bool:
    """Whether *data* begins with a byte order mark."""
    return data.startswith(tuple(mark for mark, _ in _MARKS))


def text_of(data: bytes) -> str:
    """The text that *data* holds; an `InputError` if it is not text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding).removeprefix("\ufeff")
    if b"\0" in data:
        raise InputError("is binary, not JSON or YAML text")
    return _decoded(data, "utf-8")


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"is not {encoding.upper()} text: byte 0x{data[error.start]:02x} in line {line}"
        raise InputError(what, hint=_HINT) from None
