"""Reads one object from protobuf: what it is wrapped in, and the fields of its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What an object in protobuf begins with.
MAGIC: Final = b"k8s\x00"
#: How a value is encoded: the last three bits of its tag.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}


class MalformedError(Exception):
    """The bytes are not a protobuf message of the expected type."""


def varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The number that begins at a position, and the position after it."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise MalformedError("a number is cut off")
        byte = data[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result, at
        shift += 7


def signed(number: int) -> int:
    """A number of 64 bits with its sign."""
    return number - (1 << 64) if number >= 1 << 63 else number


def as_bytes(value: int | bytes) -> bytes:
    """The value of a field that has no number."""
    if isinstance(value, int):
        raise MalformedError("a number where bytes belong")
    return value


def unwrapped(data: bytes) -> tuple[str, str, bytes]:
    """API version and kind of an object in protobuf, and the message that it is."""
    found = dict(fields(data[len(MAGIC) :]))
    of_type = dict(fields(as_bytes(found.get(1, b""))))
    version, kind = (as_bytes(of_type.get(number, b"")).decode() for number in (1, 2))
    return version, kind, as_bytes(found.get(2, b""))


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of the fields of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind in {BYTES, FIXED64, FIXED32}:
            size = _SIZES.get(kind)
            if size is None:
                size, at = varint(data, at)
            value = data[at : at + size]
            at += size
            if at > len(data):
                raise MalformedError("a field is cut off")
        else:
            raise MalformedError(f"wire type {kind} is not known")
        yield tag >> 3, value
