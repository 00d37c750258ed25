"""What the API server does with the metadata of every object: fill in, carry over, refuse.

Upstream: apiserver/pkg/registry/rest.
"""

from __future__ import annotations

import time
from functools import lru_cache
from random import Random

from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request, conflict

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 58
_ANNOTATIONS_SIZE = 256 * 1024
#: What only the server writes.
_CARRIED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
)
_SERVERS = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def stamp(seconds: float) -> str:
    """A time as objects have it: UTC, whole seconds."""
    return _second(int(seconds))


def new_uid(chance: Random) -> str:
    """A random UUID, version 4."""
    raw = bytearray(chance.randbytes(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def generated(prefix: str, chance: Random) -> str:
    """A name that begins with *prefix*."""
    ending = "".join(chance.choices(_LETTERS, k=5))
    return f"{prefix[:_LONGEST_PREFIX]}{ending}"


def of(item: JsonDict, row: Resource, namespace: str) -> JsonDict:
    """The metadata of *item*, with its kind and namespace filled in from where it is sent."""
    item["apiVersion"], item["kind"] = row.group_version, row.kind
    about: JsonDict | None = item.get("metadata")
    if about is None:
        about = item["metadata"] = {}
    if row.namespaced:
        own = about.get("namespace")
        if own and namespace and own != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        about["namespace"] = namespace or own or "default"
    else:
        about.pop("namespace", None)
    return about


def begin(item: JsonDict, now: str, chance: Random, *, counts: bool) -> None:
    """Fill in what the server says of a new object."""
    about = item["metadata"]
    if about.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in _SERVERS:
        about.pop(field, None)
    about["uid"] = new_uid(chance)
    about["creationTimestamp"] = now
    if counts:
        about["generation"] = 1


def carry(item: JsonDict, old: JsonDict, row: Resource) -> None:
    """Keep what only the server writes; refuse an object that is another with the same name."""
    about, before = item["metadata"], old["metadata"]
    uid = about.get("uid")
    if uid and uid != before.get("uid"):
        why = f"UID in precondition: {uid}, UID in object meta: {before.get('uid')}"
        raise conflict(row.qualified, before["name"], f"Precondition failed: {why}")
    for field in _CARRIED:
        if field in before:
            about[field] = before[field]
        else:
            about.pop(field, None)
    about["name"] = before["name"]
    if "generateName" in before:
        about.setdefault("generateName", before["generateName"])


def unmoved(row: Resource, new: JsonDict, old: JsonDict) -> None:
    """Refuse a patch that would make it another object."""
    about, before = new.get("metadata"), old["metadata"]
    if not isinstance(about, dict):
        raise bad_request("metadata: expected a mapping")
    if about.get("name") != before["name"]:
        raise bad_request(
            f"the name of the object ({about.get('name', '')}) does not match the name on the URL "
            f"({before['name']})"
        )
    if row.namespaced and about.get("namespace") != before.get("namespace"):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    version = about.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        raise conflict(row.qualified, before["name"])
