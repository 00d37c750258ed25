"""The objects in JSON and YAML text, with every field they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from podium.errors import InputError
from podium.objects.kinds.meta import JsonObject
from podium.objects.reading import json_text, yaml_text
from podium.objects.reading.encoding import has_byte_order_mark, text_of
from podium.objects.reading.json_text import looks_like_json, without_nulls
from podium.objects.reading.yaml_text import ParseYaml

#: Lists may hold lists; deeper nesting is refused.
_MAX_DEPTH = 20


class Document:
    """An object, and the file it comes from; empty for generated objects.

    An object that was read from JSON is decoded when it is first used (`item`).
    """

    __slots__ = ("_item", "api_version", "kind", "text", "where")

    def __init__(
        self,
        where: str,
        item: JsonObject | None,
        text: msgspec.Raw | None = None,
        kind: str = "",
        api_version: str = "",
    ) -> None:
        """An object as a dictionary, or as JSON *text* of this kind and version."""
        self.where = where
        self._item = item
        #: The JSON text, if the object was read from JSON and has not been decoded.
        self.text = text
        if item is not None:
            kind, api_version = str(item.get("kind", "")), str(item.get("apiVersion", ""))
        self.kind = kind
        self.api_version = api_version

    @property
    def item(self) -> JsonObject:
        """The object; it may be changed."""
        if self._item is None:
            assert self.text is not None
            try:
                value = _decoded(self.text)
            except (ValueError, RecursionError) as error:
                raise InputError(f"cannot be read: {error}", where=self.where) from None
            self._item = {**value, "kind": self.kind, "apiVersion": self.api_version}
            self.text = None
        return self._item


class _Head(msgspec.Struct, rename="camel"):
    """The fields that identify the kind of an object, or a list of objects."""

    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


_head = msgspec.json.Decoder(_Head)


def documents(
    data: bytes, where: str = "", parse_yaml: ParseYaml = yaml_text.documents
) -> Iterator[Document]:
    """The objects in the text of a file, those in lists included.

    *parse_yaml* gives the documents of YAML text; they may have been parsed before.
    """
    try:
        if has_byte_order_mark(data):
            data = text_of(data).encode(errors="surrogatepass")
        if looks_like_json(data):
            for text in json_text.values(data):
                yield from _in_text(msgspec.Raw(text), where, {}, 0)
        else:
            for document in parse_yaml(text_of(data)):
                for found in _in_value(document.value, where, {}, 0):
                    yield Document(where, without_nulls(found.item))
    except InputError as error:
        raise error.located(where=where) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=where) from None


def _in_text(text: msgspec.Raw, where: str, outer: JsonObject, depth: int) -> Iterable[Document]:
    """The same as `_in_value` for JSON text; items of lists are not decoded."""
    try:
        head = _head.decode(text)
    except msgspec.ValidationError:
        return _in_value(_decoded(text), where, outer, depth)
    kind = head.kind or outer.get("kind", "")
    version = head.api_version or outer.get("apiVersion", "")
    if kind and not kind.endswith("List"):
        return (Document(where, None, text, kind, version),)
    if head.items is not None and kind:
        return _in_items(head.items, where, _inner(kind, version), depth)
    return _in_value(_decoded(text), where, outer, depth)


def _in_items(
    items: Iterable[msgspec.Raw], where: str, outer: JsonObject, depth: int
) -> Iterator[Document]:
    """The objects of the items of a list."""
    _check_depth(depth)
    for each in items:
        yield from _in_text(each, where, outer, depth + 1)


def _in_value(value: Any, where: str, outer: JsonObject, depth: int) -> Iterator[Document]:
    """The object, or the objects of a list; *outer* has the kind and version of its items."""
    _check_depth(depth)
    if isinstance(value, list):
        for each in value:
            yield from _in_value(each, where, outer, depth + 1)
        return
    if not isinstance(value, dict):
        raise InputError(f"holds {type(value).__name__}, not a Kubernetes object")
    kind = value.get("kind") or outer.get("kind") or ""
    version = value.get("apiVersion") or outer.get("apiVersion") or ""
    if not isinstance(kind, str) or not kind:
        hint = "every object begins with apiVersion and kind"
        raise InputError("is missing", path="kind", hint=hint)
    if kind.endswith("List") and isinstance(value.get("items"), list | None):
        yield from _in_value(value.get("items") or [], where, _inner(kind, version), depth + 1)
        return
    yield Document(where, {**value, "kind": kind, "apiVersion": version})


def _inner(kind: str, version: str) -> JsonObject:
    """The kind and version that the items of a list need not repeat."""
    if kind == "List":
        return {}
    return {"kind": kind.removesuffix("List"), "apiVersion": version}


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise InputError(f"has lists in lists, more than {_MAX_DEPTH} deep")


def _decoded(text: msgspec.Raw) -> Any:
    value = msgspec.json.decode(text)
    # Looking for nulls takes longer than decoding; most objects have none.
    return without_nulls(value) if b"null" in bytes(text) else value
