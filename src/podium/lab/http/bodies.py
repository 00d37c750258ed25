"""Bodies of requests: bytes become an object of the kind that the path names, or are refused."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.errors import InputError
from podium.lab.api.conversion import kept
from podium.lab.api.encoding import encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request
from podium.lab.http import protobuf
from podium.lab.http.negotiation import JSON, readable
from podium.lab.schema import typed_bodies as shapes
from podium.objects.names import quoted
from podium.objects.reading.yaml_text import documents


def object_of(row: Resource, data: bytes, content_type: str, *, strict: bool = False) -> JsonDict:
    """The object in a body, as it is kept; unknown fields are refused if that is *strict*."""
    item = of_kind(row.kind, row.group_version, data, content_type)
    if strict:
        shapes.refuse_unknown(row, item)
    return kept(row, item)


def of_kind(
    kind: str, group_version: str, data: bytes, content_type: str, *, also: tuple[str, ...] = ()
) -> JsonDict:
    """The object in a body, which must be of this kind if it says what it is.

    *also* are older versions of the kind that have the same fields.
    """
    data = as_json(data, content_type)
    item = shapes.read(kind, group_version, data)
    own_kind, own_version = item.get("kind") or kind, item.get("apiVersion") or group_version
    if own_kind != kind or own_version not in {group_version, *also}:
        raise _other(kind, group_version, str(own_kind), str(own_version))
    return item


def as_json(data: bytes, content_type: str) -> bytes:
    """A body in any form that is read, as JSON."""
    media = readable(content_type)
    if media == protobuf.MEDIA_TYPE:
        return encode(protobuf.read(data))
    return data if media == JSON else encode(parsed_yaml(data))


def _other(kind: str, group_version: str, own_kind: str, own_version: str) -> Exception:
    said = f"{own_kind} in version {quoted(own_version)} cannot be handled as a {kind}"
    why = f"no kind {quoted(own_kind)} is registered for version {quoted(own_version)}"
    if own_kind != kind and own_version == group_version:
        why = f"converting ({own_version}.{own_kind}) to ({kind}): unknown conversion"
    return bad_request(f"{said}: {why}")


def parsed_yaml(data: bytes) -> Any:
    """The only document in a body of YAML, of which JSON is a part."""
    try:
        found = list(documents(data.decode()))
    except (InputError, UnicodeDecodeError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    if len(found) != 1:
        raise bad_request(f"the body must be one document, and has {len(found)}")
    return found[0].value


def plain(data: bytes) -> Any:
    """Any JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"json parse error: {error}") from None


def eviction(data: bytes, content_type: str) -> JsonDict:
    """An `Eviction`, in either of its versions."""
    return of_kind("Eviction", "policy/v1", data, content_type, also=("policy/v1beta1",))


def delete_options(data: bytes, content_type: str) -> JsonDict:
    """`DeleteOptions`, which every group has in every version; nothing for an empty body."""
    if not data.strip():
        return {}
    item = shapes.read("DeleteOptions", "meta.k8s.io/v1", as_json(data, content_type))
    own_kind = str(item.get("kind") or "DeleteOptions")
    if own_kind != "DeleteOptions":
        own_version = str(item.get("apiVersion") or "")
        raise _other("DeleteOptions", "meta.k8s.io/v1", own_kind, own_version)
    return item
