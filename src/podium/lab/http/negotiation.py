"""In which form a client wants its answer, and in which form it sent its body.

Upstream: apiserver/pkg/endpoints/handlers/negotiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from podium.lab.api.status import StatusError, unsupported_media_type
from podium.lab.http.protobuf import MEDIA_TYPE

JSON = "application/json"
READABLE = (JSON, "application/yaml", MEDIA_TYPE)
OBJECT, TABLE, PARTIAL = "", "Table", "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Form:
    """How to show objects: whole, as rows of a table, or their metadata only."""

    what: str = OBJECT
    version: str = "v1"
    #: For discovery in one document.
    aggregated: str = ""


@lru_cache(maxsize=512)
def accepted(accept: str) -> Form:
    """The first form in an `Accept` header that is served; 406 if none is."""
    if not accept:
        return Form()
    for clause in accept.split(","):
        media, *parts = (part.strip() for part in clause.split(";"))
        if media not in {JSON, "*/*", "application/*"}:
            continue
        said = dict(part.partition("=")[::2] for part in parts)
        what = said.get("as", "").removesuffix("List")
        if said.get("g") == "apidiscovery.k8s.io":
            if said.get("v") in {"v2", "v2beta1"}:
                return Form(aggregated=said["v"])
            continue
        if what in {TABLE, PARTIAL} and said.get("v", "v1") in {"v1", "v1beta1"}:
            return Form(what, said.get("v", "v1"))
        if not what:
            return Form()
    raise StatusError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, "
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    )


@lru_cache(maxsize=128)
def media_type(header: str) -> str:
    """A `Content-Type` without its parameters, in lower case."""
    return header.partition(";")[0].strip().lower()


def readable(header: str) -> str:
    """The form of a body that is read as an object; 415 for others."""
    media = media_type(header)
    if media in {"", "*/*"}:
        return JSON
    if media not in READABLE:
        raise unsupported_media_type(READABLE)
    return media
