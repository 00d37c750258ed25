"""One HTTP request: its parts, the resource that its path names, and the form of the response.

`kubectl exec`, `logs` and `port-forward` lead to paths that are not served. Their errors say what
the lab leaves out, instead of a bare 404.

Upstream: apiserver/pkg/endpoints/handlers/negotiation.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from podium.lab.api.encoding import JSON, OBJECT_TYPES
from podium.lab.api.resources import BY_PATH, Resource
from podium.lab.api.status import (
    StatusError,
    bad_request,
    invalid_value,
    not_acceptable,
    too_large,
    unknown_path,
    unsupported_media_type,
)
from podium.lab.registry.custom_resources import CustomResources
from podium.objects.names import quoted

#: Subresources of a pod that need running containers, and the end of their error.
_NEEDS_CONTAINERS = {
    "exec": "no commands can be run in it",
    "attach": "there is nothing to attach to",
    "portforward": "it has no ports",
    "proxy": "it answers no requests",
}
_GROUPS = {
    "custom.metrics.k8s.io": "no custom metrics: nothing runs in its pods",
    "external.metrics.k8s.io": "no external metrics: it has no adapter for them",
    "admissionregistration.k8s.io": "no admission policies; webhooks are kept and not called",
    "certificates.k8s.io": "no certificates: it speaks plain HTTP on loopback",
}
WHOLE, TABLE, PARTIAL_METADATA = "", "Table", "PartialObjectMetadata"
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_INTEGER = re.compile("[+-]?[0-9]{1,64}")
_INT64_END = 2**63
#: The most digits of a number of 64 bits.
_LONGEST_VERSION = 20
#: The most bytes of a body, as in kube-apiserver.
LARGEST_BODY = 3 * 1024 * 1024


def unserved(group: str, namespace: str, rest: list[str]) -> StatusError:
    """The error for a path that is not served; *rest* is what follows the namespace."""
    match rest:
        case ["pods", name, subresource, *_] if not group and subresource in _NEEDS_CONTAINERS:
            return bad_request(_not_running(namespace, name, _NEEDS_CONTAINERS[subresource]))
        case ["nodes", name, "proxy", *_] if not group:
            return bad_request(f"node {quoted(name)} has no kubelet: the lab only plays its part")
    error = unknown_path()
    if group in _GROUPS:
        error.message = f"{error.message}: the lab has {_GROUPS[group]}"
    return error


def missing_log(namespace: str, name: str) -> str:
    """The text that is served as the log of a pod."""
    return _not_running(namespace, name, "there are no logs") + "\n"


def _not_running(namespace: str, name: str, consequence: str) -> str:
    pod = quoted(f"{namespace}/{name}")
    return f"pod {pod} runs nowhere: pods of the lab are only scheduled, so {consequence}"


@dataclass(frozen=True, slots=True)
class Representation:
    """How objects are sent: whole, as rows of a `Table`, or only their metadata."""

    kind: str = WHOLE
    #: The version of meta.k8s.io for tables and metadata.
    version: str = "v1"
    #: The version of apidiscovery.k8s.io if the client accepts aggregated discovery.
    discovery: str = ""
    #: What each row of a table holds of its object: `Metadata`, `Object` or `None`.
    include_object: str = "Metadata"


@lru_cache(maxsize=512)
def negotiate(accept: str, include_object: str = "") -> Representation:
    """The first representation in an `Accept` header that is served; 406 if none is."""
    include_object = include_object or "Metadata"
    if not accept:
        return Representation(include_object=include_object)
    for clause in accept.split(","):
        media_type, *parts = (part.strip() for part in clause.split(";"))
        if media_type not in {JSON, "*/*", "application/*"}:
            continue
        parameters = dict(part.partition("=")[::2] for part in parts)
        kind = parameters.get("as", "").removesuffix("List")
        version = parameters.get("v", "v1")
        if parameters.get("g") == "apidiscovery.k8s.io":
            if parameters.get("v") in {"v2", "v2beta1"}:
                return Representation(discovery=version, include_object=include_object)
            continue
        if kind in {TABLE, PARTIAL_METADATA} and version in {"v1", "v1beta1"}:
            return Representation(kind, version, include_object=include_object)
        if not kind:
            return Representation(include_object=include_object)
    raise not_acceptable([JSON, f"{JSON};as=Table;v=v1;g=meta.k8s.io"])


@lru_cache(maxsize=128)
def media_type_of(header: str) -> str:
    """A `Content-Type` without its parameters, in lower case."""
    return header.partition(";")[0].strip().lower()


def object_media_type(header: str) -> str:
    """The media type of a body that holds an object; 415 if that is not read."""
    media_type = media_type_of(header)
    if media_type in {"", "*/*"}:
        return JSON
    if media_type not in OBJECT_TYPES:
        raise unsupported_media_type(OBJECT_TYPES)
    return media_type


class ClientDisconnected(Exception):  # noqa: N818  ends a request, and is no failure
    """The client closed the connection before its request was answered."""


class Request:
    """A request whose body is still to be read."""

    __slots__ = ("_receive", "headers", "method", "parameters", "path")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        """Read everything but the body; 400 if the query is malformed."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        query: bytes = scope["query_string"]
        self.parameters: dict[str, str] = _parameters(query) if query else {}
        self._receive = receive

    def header(self, name: bytes) -> str:
        """The value of a header by its name in lower case, empty if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def content_type(self) -> str:
        """The `Content-Type` header."""
        return self.header(b"content-type")

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, empty if it is absent."""
        return self.parameters.get(name, "")

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false, as Go reads it."""
        return self.parameter(name).lower() in {"1", "t", "true"}

    def number(self, name: str) -> int | None:
        """A query parameter that is an integer, `None` if it is absent."""
        text = self.parameter(name)
        if not text:
            return None
        if not _INTEGER.fullmatch(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        number = int(text)
        if abs(number) >= _INT64_END:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return number

    async def body(self) -> bytes:
        """The whole body; 413 if it is too large."""
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
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


def parse_resource_version(text: str) -> int:
    """A `resourceVersion` as a number, 0 if it is absent."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        problem = invalid_value(
            "resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
        raise bad_request(str(problem))
    number = int(text[:_LONGEST_VERSION])
    if len(text) > _LONGEST_VERSION or number >= 2 * _INT64_END:
        why = f'strconv.ParseUint: parsing "{text}": value out of range'
        raise bad_request(str(invalid_value("resourceVersion", text, why)))
    return number


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names: a resource, and perhaps a namespace, an object and its subresource."""

    resource: Resource
    namespace: str
    name: str
    subresource: str
    #: Whether the path asks for a watch, as it does in `/api/v1/watch/pods`.
    watch: bool


def route(path: str, custom: CustomResources) -> Route:
    """What *path* names, perhaps one of *custom*; 404 if nothing is served there."""
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
    return _route_in_version(custom, (group, version), rest, watch=watch)


def _route_in_version(
    custom: CustomResources, group_version: tuple[str, str], rest: list[str], *, watch: bool
) -> Route:
    group, version = group_version
    namespace = ""
    # `namespaces/x/pods` is in a namespace; `namespaces/x/status` is a subresource of one.
    if len(rest) >= 3 and rest[0] == "namespaces" and not _names_namespace(group, rest):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0])) if rest else None
    if resource is None and rest:
        resource = custom.at(group, version, rest[0])
    if (
        resource is None
        or len(rest) > 3
        or not all(rest)
        or (namespace and not resource.namespaced)
    ):
        raise unserved(group, namespace, rest)
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise unserved(group, namespace, rest)
    return Route(resource, namespace, name, subresource, watch=watch)


def _names_namespace(group: str, rest: list[str]) -> bool:
    return not group and len(rest) == 3 and rest[2] in {"status", "finalize"}
