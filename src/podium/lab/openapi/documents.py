"""The OpenAPI documents of the API, each made when it is first requested.

Version 2 is one document, as JSON and as protocol buffer. Version 3 has a document for each group
and version, and an index of them.
"""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec

from podium import __version__
from podium.lab.api.resources import TABLE
from podium.lab.api.status import unknown_path
from podium.lab.openapi.definitions import definitions
from podium.lab.openapi.paths import paths
from podium.lab.openapi.protobuf import encode_document
from podium.lab.openapi.spec_version import SpecVersion
from podium.objects.kinds.meta import JsonObject

#: The media type of the protocol buffer; the one in requests has an `@` and is invalid.
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "Kubernetes", "version": f"podium-{__version__}"}


def _v2() -> JsonObject:
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": paths(TABLE, SpecVersion.V2),
        "definitions": definitions(TABLE, SpecVersion.V2),
    }


@cache
def v2_json() -> bytes:
    """The document of version 2 as JSON."""
    return msgspec.json.encode(_v2())


@cache
def v2_protobuf() -> bytes:
    """The document of version 2 as a protocol buffer."""
    return encode_document(_v2())


@cache
def v3_index() -> bytes:
    """The paths of the documents of version 3, with a hash that changes with the resources."""
    content_hash = hashlib.sha256(repr((__version__, TABLE)).encode()).hexdigest()[:32].upper()
    names = sorted({each.prefix.removeprefix("/") for each in TABLE})
    found = {
        name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={content_hash}"} for name in names
    }
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
        "paths": paths(resources, SpecVersion.V3),
        "components": {"schemas": definitions(resources, SpecVersion.V3)},
    }
    return msgspec.json.encode(document)
