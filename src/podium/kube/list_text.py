"""Decodes the JSON text of a long list as it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from podium.kube.errors import ApiError
from podium.objects.kinds.meta import Object
from podium.objects.reading.garbage import without_gc

Kind = TypeVar("Kind", bound=Object)
Listed = TypeVar("Listed")


class ListMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The version of a list, and the token of the page after it."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """A list, or a page of it."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class ComingList(Protocol[Listed]):
    """A list that is decoded as it comes."""

    def feed(self, piece: bytes, /) -> None:
        """Take the next piece."""

    def result(self) -> tuple[list[Listed], ListMeta]:
        """The items of the list, once all of it has come."""


#: The end of the head of a list, and the end of an item before another, as API servers write them.
#: Text cannot hold either, since its quotation marks are escaped; an item can hold the second.
_ITEMS, _BETWEEN = b'"items":[', b'},{"metadata":{'
#: So much of a list is decoded at once.
SPAN_BYTES = 1 << 18
page_decoder = msgspec.json.Decoder(ListPage)
_raw_items = msgspec.json.Decoder(list[msgspec.Raw])


class ListText(Generic[Kind]):
    """The text of a list of one kind, of which the items that have come are decoded already."""

    def __init__(
        self,
        decoder: msgspec.json.Decoder[Kind],
        decoded: Callable[[msgspec.Raw], Kind | None],
        span_bytes: int = SPAN_BYTES,
    ) -> None:
        """Decode about *span_bytes* at once.

        Where an item cannot be decoded, *decoded* is called with each of them; those for which it
        returns None are left out.
        """
        self._items_decoder: msgspec.json.Decoder[list[Kind]] = msgspec.json.Decoder(
            list[decoder.type]  # type: ignore[name-defined]
        )
        self._decoded = decoded
        self._span_bytes = self._wanted = span_bytes
        self._items: list[Kind] = []
        # What is left of the list; "[" stands before its items once the head is cut off.
        self._head, self._rest = b"", bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the text."""
        rest = self._rest
        rest += piece
        if len(rest) < self._wanted:
            return
        if not self._head and (start := rest.find(_ITEMS)) >= 0:
            self._head = bytes(rest[: start + len(_ITEMS)])
            del rest[: len(self._head) - 1]
        end = rest.rfind(_BETWEEN) + 1
        found = self._decoded_span(rest, end) if self._head and end else None
        if found is None:
            self._wanted = 2 * len(rest)
            return
        self._items += found
        del rest[:end]
        rest[:1] = b"["
        self._wanted = self._span_bytes

    def result(self) -> tuple[list[Kind], ListMeta]:
        """The items of the list, once its text has come to its end."""
        if not self._head:
            page = page_decoder.decode(self._rest)
            return [*filter(None, map(self._decoded, page.items or ()))], page.metadata
        found = self._decoded_items(self._rest.rstrip().removesuffix(b"}"))
        if found is None:
            raise ApiError("the list is not as API servers write it")
        return self._items + found, page_decoder.decode(self._head + b"]}").metadata

    def _decoded_span(self, text: bytearray, end: int) -> list[Kind] | None:
        """The items before *end*, where a comma stands before another item."""
        text[end] = ord("]")
        with memoryview(text) as whole, whole[: end + 1] as span:
            found = self._decoded_items(span)
        text[end] = ord(",")
        return found

    def _decoded_items(self, text: bytearray | memoryview) -> list[Kind] | None:
        """The items of an array, without those that cannot be decoded; None if it is no array."""
        with without_gc():
            try:
                return self._items_decoder.decode(text)
            except msgspec.DecodeError:
                pass
            try:
                raw = _raw_items.decode(bytes(text))
            except msgspec.DecodeError:
                return None
            return [*filter(None, map(self._decoded, raw))]
