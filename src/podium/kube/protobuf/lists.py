"""Decodes long lists in the binary form as they come."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import numpy as np

from podium.kube.list_text import ListMeta
from podium.kube.protobuf.columns import Span, object_reader
from podium.objects.kinds.meta import Object
from podium.objects.protobuf.wire import BYTES, MAGIC, MalformedError, fields, varint
from podium.objects.reading.garbage import without_gc

Kind = TypeVar("Kind", bound=Object)

#: So much of a list is decoded at once.
SPAN_BYTES: Final = 1 << 23
#: The tag and the length of a field take no more bytes, and the type of a list with the beginning
#: of its bytes no more than these.
_MOST_PREFIX_BYTES: Final = 11
_MOST_HEAD_BYTES: Final = 256
_FIRST, _SECOND = 1 << 3 | BYTES, 2 << 3 | BYTES


class BinaryList(Generic[Kind]):
    """A list of one kind, of which the items that have come are decoded already.

    It is a message with the type of the list and its bytes; these are a message with the metadata
    of the list and its items.
    """

    def __init__(self, kind: type[Kind], span_bytes: int = SPAN_BYTES) -> None:
        """Decode about *span_bytes* at once."""
        self._kind = f"{kind.__name__}List"
        self._reader = object_reader(kind)
        self._span_bytes = self._wanted = span_bytes
        self._items: list[Kind] = []
        self._about = ListMeta()
        #: What has come and is not decoded.
        self._pieces: list[bytes] = []
        self._size = 0
        #: How many bytes of the list are not decoded; None until its beginning is known.
        self._left: int | None = None

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= self._wanted:
            self._decode(is_all=False)
            self._wanted = max(self._span_bytes, 2 * self._size)  # an item may be longer

    def result(self) -> tuple[list[Kind], ListMeta]:
        """The items of the list, once all of it has come."""
        self._decode(is_all=True)
        if self._left:
            raise MalformedError("the list is cut off")
        return self._items, self._about

    def _decode(self, *, is_all: bool) -> None:
        """Decode the items that have come as a whole."""
        data, at = b"".join(self._pieces), 0
        if self._left is None:
            if len(data) < _MOST_HEAD_BYTES and not is_all:
                self._pieces = [data]
                return
            at, self._left = self._begin(data)
        begins, ends = list[int](), list[int]()
        start, end = at, at + self._left
        # What begins later may be cut off within its length.
        last = end if is_all else min(end, len(data) - _MOST_PREFIX_BYTES)
        while at < last:
            size, begin = varint(data, at + 1)
            if begin + size > len(data):
                break
            if data[at] == _SECOND:
                begins.append(begin)
                ends.append(begin + size)
            elif data[at] == _FIRST:
                self._about = _list_meta(data[begin : begin + size])
            elif data[at] & 7 != BYTES:
                raise MalformedError("a field is not one of a list")
            at = begin + size
        self._left -= at - start
        self._pieces, self._size = [data[at:]], len(data) - at
        if begins:
            with without_gc():
                self._items += self._reader.read(
                    Span(data), np.array(begins, np.int64), np.array(ends, np.int64)
                )

    def _begin(self, data: bytes) -> tuple[int, int]:
        """Where the metadata and the items begin, and how many bytes they take."""
        if not data.startswith(MAGIC):
            raise MalformedError("it is not the binary form of an object")
        at, kind = len(MAGIC), ""
        while True:
            tag, at = varint(data, at)
            size, at = varint(data, at)
            if tag == _SECOND:
                break
            if tag == _FIRST:
                kind = _texts(data[at : at + size]).get(2, "")
            at += size
        if kind != self._kind:
            raise MalformedError(f"a {self._kind} was asked for, and {kind or 'nothing'} came")
        return at, size


def _list_meta(data: bytes) -> ListMeta:
    found = _texts(data)
    return ListMeta(found.get(2, ""), found.get(3, ""))


def _texts(data: bytes) -> dict[int, str]:
    """The strings of a message by the numbers of their fields."""
    return {number: value.decode() for number, value in fields(data) if isinstance(value, bytes)}
