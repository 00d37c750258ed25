"""The OpenAPI documents of the lab, made when they are first asked for.

Version 2 is one document, as JSON and as protocol buffer; version 3 has one for each group and
version, and an index of them.
"""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec

from podium import __version__
from podium.lab.api.resources import TABLE
from podium.lab.api.status import JsonDict, unknown_path
from podium.lab.openapi.definitions import V3, definitions
from podium.lab.openapi.paths import paths
from podium.lab.openapi.protobuf import encoded

#: What the protocol buffer is called in answers; requests have an `@` that is no media type.
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "Kubernetes", "version": f"podium-{__version__}"}


def _v2() -> JsonDict:
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": paths(TABLE),
        "definitions": definitions(),
    }


@cache
def v2_json() -> bytes:
    """The whole API, version 2, as JSON."""
    return msgspec.json.encode(_v2())


@cache
def v2_protobuf() -> bytes:
    """The whole API, version 2, as a protocol buffer."""
    return encoded(_v2())


def _names() -> list[str]:
    """`api/v1`, `apis/apps/v1` and so on."""
    return sorted({each.prefix.removeprefix("/") for each in TABLE})


@cache
def v3_index() -> bytes:
    """Where the documents of version 3 are; the hash changes with what is in them."""
    mark = hashlib.sha256(repr((__version__, TABLE)).encode()).hexdigest()[:32].upper()
    found = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={mark}"} for name in _names()}
    return msgspec.json.encode({"paths": found})


@cache
def v3_document(group_version: str) -> bytes:
    """The document of one group and version: `v1` or `api/v1`, `apps/v1` or `apis/apps/v1`."""
    wanted = group_version.removeprefix("apis/").removeprefix("api/")
    resources = [each for each in TABLE if each.group_version == wanted]
    if not resources:
        raise unknown_path()
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths(resources, V3),
        "components": {"schemas": definitions(resources, V3)},
    }
    return msgspec.json.encode(document)
