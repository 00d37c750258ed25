"""What the API server does with the metadata of every object: fill in, carry over, refuse.

Upstream: apiserver/pkg/registry/rest, apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from os import urandom
from random import Random
from typing import Any

from podium.lab.http.status import JsonDict, bad_request, conflict
from podium.lab.registry.naming import Check, label_reasons
from podium.lab.registry.resources import Resource
from podium.lab.validation.field_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
)

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


def new_uid() -> str:
    """A random UUID, version 4."""
    raw = bytearray(urandom(16))
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


def begin(item: JsonDict, now: str, *, counts: bool) -> None:
    """Fill in what the server says of a new object."""
    about = item["metadata"]
    if about.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in _SERVERS:
        about.pop(field, None)
    about["uid"] = new_uid()
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


def problems(about: JsonDict, name_reasons: Check) -> Iterator[FieldError]:
    """What is wrong with the metadata of any object."""
    prefix, name = about.get("generateName"), about.get("name")
    if prefix:
        for reason in name_reasons(prefix.rstrip("-") or prefix):
            yield invalid_value("metadata.generateName", prefix, reason)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for reason in name_reasons(name):
            yield invalid_value("metadata.name", name, reason)
    yield from _common_problems(about)


def _common_problems(about: JsonDict) -> Iterator[FieldError]:
    """What is wrong, of that which may change."""
    namespace = about.get("namespace")
    if namespace:
        for reason in label_reasons(namespace):
            yield invalid_value("metadata.namespace", namespace, reason)
    if about.get("labels"):
        yield from label_problems(about["labels"], "metadata.labels")
    if about.get("annotations"):
        yield from _annotation_problems(about["annotations"])
    if about.get("ownerReferences"):
        yield from _owner_problems(about["ownerReferences"])
    for finalizer in about.get("finalizers") or ():
        yield from _finalizer_problems(finalizer)


def label_problems(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """What is wrong with labels."""
    for key in labels if len(labels) == 1 else sorted(labels):
        value = labels[key]
        if not is_qualified_name(key):
            for reason in label_key_reasons(key):
                yield invalid_value(path, key, reason)
        if not is_label_value(value):
            for reason in label_value_reasons(value):
                yield invalid_value(path, value, reason)


def _annotation_problems(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if not is_qualified_name(key.lower()):
            for reason in label_key_reasons(key.lower()):
                yield invalid_value("metadata.annotations", key, reason)
    if size > _ANNOTATIONS_SIZE:
        yield too_long("metadata.annotations", "", _ANNOTATIONS_SIZE)


def _owner_problems(owners: list[JsonDict]) -> Iterator[FieldError]:
    controllers = []
    for owner in owners:
        path = "metadata.ownerReferences"
        if not owner.get("apiVersion"):
            yield invalid_value(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield invalid_value(f"{path}.{field}", "", f"{field} must not be empty")
        if owner.get("controller"):
            controllers.append(owner)
            if len(controllers) == 2:
                yield invalid_value(
                    path,
                    owners,
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {controllers[0].get("name")} and '
                    f"{owner.get('name')}",
                )


def _finalizer_problems(finalizer: Any) -> Iterator[FieldError]:
    if not is_qualified_name(finalizer):
        for reason in label_key_reasons(finalizer):
            yield invalid_value("metadata.finalizers", finalizer, reason)


def update_problems(item: JsonDict, old: JsonDict) -> list[FieldError]:
    """What is wrong with the metadata of an object that replaces *old*."""
    found = list(_common_problems(item["metadata"]))
    before = old["metadata"]
    if before.get("deletionTimestamp"):
        known = before.get("finalizers") or ()
        extra = [each for each in item["metadata"].get("finalizers") or () if each not in known]
        if extra:
            shown = ", ".join(f'"{each}"' for each in sorted(extra))
            found.append(
                forbidden_field(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{shown}}}",
                )
            )
    return found
