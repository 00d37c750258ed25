"""Content negotiation: the representation of a response, and the media type of a body.

Upstream: apiserver/pkg/endpoints/handlers/negotiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from podium.lab.api.encoding import JSON, OBJECT_TYPES
from podium.lab.api.status import not_acceptable, unsupported_media_type

WHOLE, TABLE, PARTIAL_METADATA = "", "Table", "PartialObjectMetadata"


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
