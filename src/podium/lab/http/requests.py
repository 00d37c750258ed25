"""One HTTP request as the API server sees it: where it goes, what it asks, what it brings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from podium.lab.api.resources import BY_PATH, Resource
from podium.lab.api.status import bad_request, too_large, unknown_path
from podium.lab.http.unserved import unserved

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_NUMBER = re.compile("[+-]?[0-9]{1,64}")
_LARGEST = 2**63
#: What a body may weigh, as in kube-apiserver.
LARGEST_BODY = 3 * 1024 * 1024


class Disconnected(Exception):  # noqa: N818  it happens, and is nobody's error
    """The client is gone; there is nobody to answer."""


class Request:
    """A request, its body still to be read."""

    __slots__ = ("_receive", "headers", "method", "parameters", "path")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        """Read what is known before the body."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        query: bytes = scope["query_string"]
        self.parameters: dict[str, str] = _parameters(query) if query else {}
        self._receive = receive

    def header(self, name: bytes) -> str:
        """A header in lower case, or nothing."""
        return self.headers.get(name, b"").decode("latin-1")

    def flag(self, name: str) -> bool:
        """A parameter that is true or false, as Go reads them."""
        return self.parameters.get(name, "").lower() in {"1", "t", "true"}

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number, if it is there."""
        text = self.parameters.get(name, "")
        if not text:
            return None
        if not _NUMBER.fullmatch(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        number = int(text)
        if abs(number) >= _LARGEST:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return number

    async def body(self) -> bytes:
        """All of the body, within bounds."""
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > LARGEST_BODY:
                raise too_large(LARGEST_BODY)
            parts.append(part)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _parameters(query: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=64)
    except (ValueError, UnicodeDecodeError) as error:
        raise bad_request(f"the query cannot be read: {error}") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


class Route:
    """What a path names: a resource, and perhaps a namespace, an object, something below it."""

    __slots__ = ("name", "namespace", "row", "subresource", "watch")

    def __init__(
        self, row: Resource, namespace: str, name: str, subresource: str, *, watch: bool
    ) -> None:
        """*watch* is the older way to ask for a watch, by the path."""
        self.row = row
        self.namespace = namespace
        self.name = name
        self.subresource = subresource
        self.watch = watch


def route(path: str) -> Route:
    """Where a path leads; 404 if nowhere."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    return _within(group, version, rest, watch=watch)


def _within(group: str, version: str, rest: list[str], *, watch: bool) -> Route:
    namespace = ""
    # `namespaces/x/pods` is in a namespace; `namespaces/x/status` is about one.
    if len(rest) >= 3 and rest[0] == "namespaces" and not _about_namespace(group, rest):
        namespace, rest = rest[1], rest[2:]
    row = BY_PATH.get((group, version, rest[0])) if rest else None
    if row is None or len(rest) > 3 or not all(rest) or (namespace and not row.namespaced):
        raise unserved(group, namespace, rest)
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in row.subresources:
        raise unserved(group, namespace, rest)
    return Route(row, namespace, name, subresource, watch=watch)


def _about_namespace(group: str, rest: list[str]) -> bool:
    return not group and len(rest) == 3 and rest[2] in {"status", "finalize"}
