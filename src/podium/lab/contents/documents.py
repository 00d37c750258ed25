"""The objects in JSON and YAML text, with every field they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from podium.errors import InputError
from podium.objects.kinds.meta import JsonObject
from podium.objects.reading import json_text, yaml_text
from podium.objects.reading.encoding import has_byte_order_mark, text_of
from podium.objects.reading.json_text import looks_like_json
from podium.objects.reading.null_values import without_nulls

#: Lists may hold lists; deeper nesting is refused.
_MAX_DEPTH = 20


class Document(NamedTuple):
    """An object, and the file it comes from; empty for generated objects."""

    where: str
    item: JsonObject


def documents(data: bytes, where: str = "") -> Iterator[Document]:
    """The objects in the text of a file; the items of lists are objects of their own."""
    # Looking for nulls takes longer than decoding; most dumps have none.
    may_have_nulls = not looks_like_json(data) or b"null" in data
    try:
        for value in _values(data):
            for document in _objects_in(value, where, {}, 0):
                if may_have_nulls:
                    yield Document(where, without_nulls(document.item))
                else:
                    yield document
    except InputError as error:
        raise error.located(where=where) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=where) from None


def _values(data: bytes) -> Iterator[Any]:
    if has_byte_order_mark(data):
        data = text_of(data).encode(errors="surrogatepass")
    if looks_like_json(data):
        for value in json_text.values(data):
            yield msgspec.json.decode(value)
    else:
        for document in yaml_text.documents(text_of(data)):
            yield document.value


def _objects_in(value: Any, where: str, outer: JsonObject, depth: int) -> Iterator[Document]:
    """The object, or the objects of a list; *outer* has the kind and version of its items."""
    if depth > _MAX_DEPTH:
        raise InputError(f"has lists in lists, more than {_MAX_DEPTH} deep")
    if isinstance(value, list):
        for each in value:
            yield from _objects_in(each, where, outer, depth + 1)
        return
    if not isinstance(value, dict):
        raise InputError(f"holds {type(value).__name__}, not a Kubernetes object")
    kind = value.get("kind") or outer.get("kind") or ""
    version = value.get("apiVersion") or outer.get("apiVersion") or ""
    if not isinstance(kind, str) or not kind:
        hint = "every object begins with apiVersion and kind"
        raise InputError("is missing", path="kind", hint=hint)
    if kind.endswith("List") and isinstance(value.get("items"), list | None):
        inner = {"kind": kind.removesuffix("List"), "apiVersion": version} if kind != "List" else {}
        yield from _objects_in(value.get("items") or [], where, inner, depth + 1)
        return
    yield Document(where, {**value, "kind": kind, "apiVersion": version})
