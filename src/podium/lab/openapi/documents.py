"""The OpenAPI documents of the API, each made when it is first requested.

Version 2 is one document, as JSON and as protocol buffer. Version 3 has a document for each group
and version, and an index of them.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import msgspec

from podium import __version__
from podium.lab.api.resources import TABLE, Resource
from podium.lab.api.status import unknown_path
from podium.lab.openapi.definitions import SpecVersion, custom_definitions, definitions
from podium.lab.openapi.paths import paths
from podium.lab.openapi.protobuf import encode_document
from podium.objects.kinds.meta import JsonObject

#: The media type of the protocol buffer; the one in requests has an `@` and is invalid.
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#: The resources whose objects have a type of their own.
_TYPED = tuple(each for each in TABLE if not each.computed)
_INFO = {"title": "Kubernetes", "version": f"podium-{__version__}"}


#: The documents with custom resources that were asked for last, by these resources.
_LAST_CUSTOM = 4


def _v2(custom: tuple[Resource, ...]) -> JsonObject:
    spec = SpecVersion.V2
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": paths((*_TYPED, *custom), spec),
        "definitions": {**definitions(_TYPED, spec), **custom_definitions(custom, spec)},
    }


@lru_cache(maxsize=_LAST_CUSTOM)
def v2_json(custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of version 2 as JSON."""
    return msgspec.json.encode(_v2(custom))


@lru_cache(maxsize=_LAST_CUSTOM)
def v2_protobuf(custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of version 2 as a protocol buffer."""
    return encode_document(_v2(custom))


@lru_cache(maxsize=_LAST_CUSTOM)
def v3_index(custom: tuple[Resource, ...] = ()) -> bytes:
    """The paths of the documents of version 3, with a hash that changes with the resources."""
    schemas = [each.custom.schema for each in custom if each.custom is not None]
    described = repr((__version__, TABLE, custom)).encode() + msgspec.json.encode(schemas)
    content_hash = hashlib.sha256(described).hexdigest()[:32].upper()
    names = sorted({each.prefix.removeprefix("/") for each in (*_TYPED, *custom)})
    found = {
        name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={content_hash}"} for name in names
    }
    return msgspec.json.encode({"paths": found})


@lru_cache(maxsize=64)
def v3_document(group_version: str, custom: tuple[Resource, ...] = ()) -> bytes:
    """The document of one group and version: `v1` or `api/v1`, `apps/v1` or `apis/apps/v1`."""
    wanted = group_version.removeprefix("apis/").removeprefix("api/")
    resources = [each for each in (*_TYPED, *custom) if each.group_version == wanted]
    if not resources:
        raise unknown_path()
    spec = SpecVersion.V3
    own = [each for each in resources if each.custom is None]
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths(resources, spec),
        "components": {
            "schemas": {
                **definitions(own or TABLE[:1], spec),
                **custom_definitions(resources, spec),
            }
        },
    }
    return msgspec.json.encode(document)
