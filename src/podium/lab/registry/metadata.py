"""The metadata that the API server sets: names, uids, times, and fields that clients cannot change.

Upstream: apiserver/pkg/registry/rest and apiserver/pkg/storage/names.
"""

from __future__ import annotations

from random import Random

from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError, bad_request, conflict, wrong_name
from podium.objects.kinds.meta import JsonObject

#: The letters of generated names: without vowels they form no words.
NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_PREFIX = 58
_SUFFIX_LENGTH = 5
#: Fields that only the server writes; an update keeps them.
_SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
)
#: Those of them that a client may send with a new object; they are ignored.
_IGNORED_ON_CREATE = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


def new_uid(rng: Random) -> str:
    """A random UUID, version 4."""
    raw = bytearray(rng.randbytes(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def generate_name(prefix: str, rng: Random) -> str:
    """A random name that begins with *prefix*."""
    suffix = "".join(rng.choices(NAME_LETTERS, k=_SUFFIX_LENGTH))
    return f"{prefix[:_MAX_PREFIX]}{suffix}"


def set_type_and_namespace(item: JsonObject, resource: Resource, namespace: str) -> JsonObject:
    """Set the kind and namespace of an object from the request; returns its metadata."""
    item["apiVersion"], item["kind"] = resource.group_version, resource.kind
    metadata: JsonObject | None = item.get("metadata")
    if metadata is None:
        metadata = item["metadata"] = {}
    if resource.namespaced:
        own = metadata.get("namespace")
        if own and namespace and own != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        metadata["namespace"] = namespace or own or "default"
    else:
        metadata.pop("namespace", None)
    return metadata


def version_precondition(metadata: JsonObject) -> str:
    """The version that an update expects; empty if it expects none, which "0" says as well."""
    version = str(metadata.get("resourceVersion") or "")
    return "" if version == "0" else version


def initialize(item: JsonObject, now: str, rng: Random, *, has_generation: bool) -> None:
    """Set the uid, creation time and generation of a new object."""
    metadata = item["metadata"]
    if version_precondition(metadata):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in _IGNORED_ON_CREATE:
        metadata.pop(field, None)
    metadata["uid"] = new_uid(rng)
    metadata["creationTimestamp"] = now
    if has_generation:
        metadata["generation"] = 1


def keep_server_fields(item: JsonObject, old: JsonObject, resource: Resource) -> None:
    """Copy the fields that only the server writes from *old*; another uid is a conflict."""
    metadata, before = item["metadata"], old["metadata"]
    uid = metadata.get("uid")
    if uid and uid != before.get("uid"):
        why = f"UID in precondition: {uid}, UID in object meta: {before.get('uid')}"
        raise conflict(resource.qualified, before["name"], f"Precondition failed: {why}")
    for field in _SERVER_FIELDS:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    metadata["name"] = before["name"]
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])


def undeterminable(name: str) -> StatusError:
    """400: an object without a name was sent for the one with this name."""
    return bad_request(
        f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    )


def check_same_object(resource: Resource, new: JsonObject, old: JsonObject) -> None:
    """Refuse a patch that changes the name, the namespace or the version of an object."""
    metadata, before = new.get("metadata"), old["metadata"]
    if not isinstance(metadata, dict):
        raise bad_request("metadata: expected a mapping")
    if not metadata.get("name"):
        raise undeterminable(before["name"])
    if metadata["name"] != before["name"]:
        raise wrong_name(metadata["name"], before["name"])
    if resource.namespaced and metadata.get("namespace") != before.get("namespace"):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    version = version_precondition(metadata)
    if version and version != before["resourceVersion"]:
        raise conflict(resource.qualified, before["name"])
