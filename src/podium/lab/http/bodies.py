"""Bodies of requests: bytes become an object of the kind that the path names, or are rejected."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.errors import InputError
from podium.lab.api.conversion import to_stored
from podium.lab.api.encoding import JSON, PROTOBUF, encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError, bad_request
from podium.lab.http import protobuf
from podium.lab.http.requests import object_media_type
from podium.lab.registry.custom_resources import admit_custom
from podium.lab.schema import typed_bodies
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted
from podium.objects.reading.yaml_text import documents


def read_object(
    resource: Resource, data: bytes, content_type: str, *, strict: bool = False
) -> JsonObject:
    """The object in a body, in the version in which it is stored.

    Unknown fields are rejected if the body is read *strict*.
    """
    if resource.custom is not None:
        item, _ = read_custom(resource, data, content_type, strict=strict)
        return to_stored(resource, item)
    item = read_kind(resource.kind, resource.group_version, data, content_type)
    if strict:
        typed_bodies.reject_unknown_fields(resource, item)
    return to_stored(resource, item)


def read_custom(
    resource: Resource, data: bytes, content_type: str, *, strict: bool = False
) -> tuple[JsonObject, list[str]]:
    """The custom object in a body, pruned and completed, and the fields that were pruned."""
    kind, group_version = resource.kind, resource.group_version
    item = typed_bodies.read_custom_object(kind, group_version, to_json(data, content_type))
    own_kind, own_version = item.get("kind") or kind, item.get("apiVersion") or group_version
    if (own_kind, own_version) != (kind, group_version):
        raise _wrong_kind(kind, group_version, str(own_kind), str(own_version))
    return item, admit_custom(resource, item, strict=strict)


def read_kind(
    kind: str,
    group_version: str,
    data: bytes,
    content_type: str,
    *,
    other_versions: tuple[str, ...] = (),
) -> JsonObject:
    """The object in a body, whose `kind` and `apiVersion` must be these if it has them.

    *other_versions* are versions of the kind that have the same fields.
    """
    item = typed_bodies.read_object(kind, group_version, to_json(data, content_type))
    own_kind, own_version = item.get("kind") or kind, item.get("apiVersion") or group_version
    if own_kind != kind or own_version not in {group_version, *other_versions}:
        raise _wrong_kind(kind, group_version, str(own_kind), str(own_version))
    return item


def read_eviction(data: bytes, content_type: str) -> JsonObject:
    """The `Eviction` in a body, in any of its versions."""
    versions = ("policy/v1beta1",)
    return read_kind("Eviction", "policy/v1", data, content_type, other_versions=versions)


def read_delete_options(data: bytes, content_type: str) -> JsonObject:
    """The `DeleteOptions` in a body, which every group has in every version; {} if it is empty."""
    if not data.strip():
        return {}
    json = to_json(data, content_type)
    item = typed_bodies.read_object("DeleteOptions", "meta.k8s.io/v1", json)
    own_kind = str(item.get("kind") or "DeleteOptions")
    if own_kind != "DeleteOptions":
        own_version = str(item.get("apiVersion") or "")
        raise _wrong_kind("DeleteOptions", "meta.k8s.io/v1", own_kind, own_version)
    return item


def _wrong_kind(kind: str, group_version: str, own_kind: str, own_version: str) -> StatusError:
    error = f"{own_kind} in version {quoted(own_version)} cannot be handled as a {kind}"
    reason = f"no kind {quoted(own_kind)} is registered for version {quoted(own_version)}"
    if own_kind != kind and own_version == group_version:
        reason = f"converting ({own_version}.{own_kind}) to ({kind}): unknown conversion"
    return bad_request(f"{error}: {reason}")


def to_json(data: bytes, content_type: str) -> bytes:
    """A body of any media type that holds an object, as JSON; 415 for other types."""
    media_type = object_media_type(content_type)
    if media_type == JSON:
        return data
    return encode(protobuf.read(data) if media_type == PROTOBUF else parse_yaml(data))


def parse_yaml(data: bytes) -> Any:
    """The only document in a body of YAML, of which JSON is a subset."""
    try:
        found = list(documents(data.decode()))
    except (InputError, UnicodeDecodeError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None
    if len(found) != 1:
        raise bad_request(f"the body must be one document, and has {len(found)}")
    return found[0].value


def parse_json(data: bytes) -> Any:
    """The value in a body of JSON, of any type."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"json parse error: {error}") from None
