"""The OpenAPI document of version 2 as a protocol buffer, the only form that older kubectl reads.

The messages are those of gnostic's `openapi.v2.Document`; the tables below hold the numbers of the
fields that occur in the documents of the lab. Values of any type and extensions are text in YAML,
of which JSON is a subset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podium.objects.kinds.meta import JsonObject

#: The wire type of everything but booleans.
_BYTES = 2
_Write = Callable[[Any], bytes]


def encode_document(document: JsonObject) -> bytes:
    """The document as the bytes of a message."""
    return _message(_DOCUMENT)(document)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _chunk(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _text(number: int) -> _Write:
    return lambda value: _chunk(number, str(value).encode())


def _texts(number: int) -> _Write:
    return lambda values: b"".join(_chunk(number, str(value).encode()) for value in values)


def _flag(number: int) -> _Write:
    return lambda value: _varint(number << 3) + b"\x01" if value else b""


def _part(number: int, write: _Write) -> _Write:
    return lambda value: _chunk(number, write(value))


def _parts(number: int, write: _Write) -> _Write:
    return lambda values: b"".join(_chunk(number, write(value)) for value in values)


def _named(number: int, write: _Write) -> _Write:
    """A writer of maps, which are lists of pairs of a name and a value."""

    def pairs(values: Mapping[str, Any]) -> Iterator[bytes]:
        for name, value in values.items():
            yield _chunk(number, _chunk(1, name.encode()) + _chunk(2, write(value)))

    return lambda values: b"".join(pairs(values))


def _any(value: Any) -> bytes:
    return _chunk(2, (json.dumps(value, ensure_ascii=False) + "\n").encode())


def _message(fields: Mapping[str, _Write], extensions: int = 0) -> _Write:
    """A writer of messages; fields that begin with `x-` go to the *extensions*, if it has any."""

    def write(value: Mapping[str, Any]) -> bytes:
        out = [fields[name](each) for name, each in value.items() if name in fields]
        if extensions:
            extra = {name: each for name, each in value.items() if name.startswith("x-")}
            out.append(_named(extensions, _any)(extra))
        return b"".join(out)

    return write


def _schema(value: Mapping[str, Any]) -> bytes:
    return _SCHEMA(value)


_SCHEMA = _message(
    {
        "$ref": _text(1),
        "format": _text(2),
        "description": _text(4),
        "default": _part(5, _any),
        "required": _texts(19),
        "additionalProperties": _part(21, _part(1, _schema)),
        "type": _part(22, _text(1)),
        "items": _part(23, _part(1, _schema)),
        "properties": _part(25, _named(1, _schema)),
    },
    extensions=31,
)

_BODY = _message(
    {
        "description": _text(1),
        "name": _text(2),
        "in": _text(3),
        "required": _flag(4),
        "schema": _part(5, _schema),
    }
)
_PATH_PARAMETER = _message(
    {"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4)}
    | {"type": _text(5), "uniqueItems": _flag(19)}
)
_QUERY_PARAMETER = _message(
    {"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4)}
    | {"type": _text(6), "uniqueItems": _flag(20)}
)


def _parameter(value: Mapping[str, Any]) -> bytes:
    """A parameter inside the messages that say whether it is a body, query or path parameter."""
    if value["in"] == "body":
        return _chunk(1, _chunk(1, _BODY(value)))
    number, write = (3, _QUERY_PARAMETER) if value["in"] == "query" else (4, _PATH_PARAMETER)
    return _chunk(1, _chunk(2, _chunk(number, write(value))))


_RESPONSE = _message({"description": _text(1), "schema": _part(2, _part(1, _schema))})
_OPERATION = _message(
    {
        "tags": _texts(1),
        "description": _text(3),
        "operationId": _text(5),
        "produces": _texts(6),
        "consumes": _texts(7),
        "parameters": _parts(8, _parameter),
        "responses": _part(9, _named(1, _part(1, _RESPONSE))),
    },
    extensions=13,
)
_PATH_ITEM = _message(
    {
        "get": _part(2, _OPERATION),
        "put": _part(3, _OPERATION),
        "post": _part(4, _OPERATION),
        "delete": _part(5, _OPERATION),
        "patch": _part(8, _OPERATION),
        "parameters": _parts(9, _parameter),
    }
)
_DOCUMENT: Mapping[str, _Write] = {
    "swagger": _text(1),
    "info": _part(2, _message({"title": _text(1), "version": _text(2)})),
    "paths": _part(8, _named(2, _PATH_ITEM)),
    "definitions": _part(9, _named(1, _schema)),
}
