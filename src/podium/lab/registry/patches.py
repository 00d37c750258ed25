"""Patches of stored objects, and the ownership of the fields that a write sets.

The functions of the package `patch` are pure; here they are given the stored object, and their
result is checked as the body of a request is.
"""

from __future__ import annotations

from typing import Any

from podium.lab.api.encoding import PATCH_TYPES, STRATEGIC_MERGE_PATCH, encode
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import Resource, to_served, to_stored
from podium.lab.api.status import (
    bad_request,
    invalid,
    invalid_value,
    required,
    unsupported_media_type,
    wrong_name,
)
from podium.lab.patch.patches import apply_patch
from podium.lab.patch.server_side_apply import apply, track_update
from podium.lab.patch.structured_merge import FieldSchema, custom_schema
from podium.lab.registry import metadata
from podium.lab.registry.custom_resources import admit_custom
from podium.lab.schema.typed_bodies import (
    check_custom_metadata,
    check_types,
    reject_unknown_fields,
)
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject


def apply_patch_to(
    resource: Resource, content_type: str, current: JsonObject, patch: Any, options: WriteOptions
) -> JsonObject:
    """The object after a patch of the version of *resource*; 400 if a field gets the wrong type."""
    before = to_served(resource, current)
    if resource.custom is not None:
        return _patched_custom(resource, content_type, before, patch, options)
    new = apply_patch(resource.kind, content_type, before, patch)
    if content_type == STRATEGIC_MERGE_PATCH:
        # The patch cannot change the type of the object.
        new["kind"], new["apiVersion"] = before["kind"], before["apiVersion"]
    _check_identity(new, before)
    new = check_types(resource, new)
    if options.strict:
        reject_unknown_fields(resource, new, before)
    return to_stored(resource, new)


def _check_identity(new: JsonObject, before: JsonObject) -> None:
    """Refuse a patched object that is of another type, or that has lost its type.

    One without a kind is of the kind that it was. One without a version cannot be read.
    """
    metadata_of_new = new.get("metadata")
    if metadata_of_new is None or not new.get("apiVersion"):
        raise metadata.undeterminable(before["metadata"]["name"])
    if not isinstance(metadata_of_new, dict):
        raise bad_request("metadata: expected a mapping")
    if new.get("kind") is None or new["kind"] == "":
        new["kind"] = before["kind"]
    kind, version = new["kind"], new["apiVersion"]
    if (kind, version) == (before["kind"], before["apiVersion"]):
        return
    if not isinstance(kind, str) or not isinstance(version, str):
        why = "couldn't get version/kind"
    else:
        why = f'no kind "{kind}" is registered for version "{version}" at this address'
    raise invalid("", "", "", [invalid_value("patch", encode(new).decode(), why)])


def _patched_custom(
    resource: Resource, content_type: str, before: JsonObject, patch: Any, options: WriteOptions
) -> JsonObject:
    """A custom object after a patch; strategic merge patches need types that it does not have."""
    if content_type == STRATEGIC_MERGE_PATCH:
        raise unsupported_media_type([each for each in PATCH_TYPES if each != content_type])
    new = apply_patch("", content_type, before, patch)
    _check_identity(new, before)
    check_custom_metadata(new)
    admit_custom(resource, new, strict=options.strict)
    return to_stored(resource, new)


def apply_configuration(
    resource: Resource,
    live: JsonObject | None,
    patch: Any,
    key: Key,
    *,
    subresource: str,
    options: WriteOptions,
    now: str,
) -> JsonObject:
    """The object after server-side apply; *key* is that of the path."""
    if not options.manager:
        error = required("fieldManager", "is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [error])
    if not isinstance(patch, dict):
        raise bad_request("error decoding YAML: the body must be a mapping")
    if resource.custom is not None:
        config = patch
        check_custom_metadata(config)
    else:
        config = check_types(resource, patch)
        if options.strict:
            reject_unknown_fields(resource, config)
    about = metadata.set_type_and_namespace(config, resource, key.namespace)
    if about.setdefault("name", key.name) != key.name:
        raise wrong_name(about["name"], key.name)
    made = apply(
        resource.kind,
        None if live is None else to_served(resource, live),
        config,
        manager=options.manager,
        force=options.force,
        now=now,
        subresource=subresource,
        custom=_custom_schema(resource),
    )
    if resource.custom is not None:
        admit_custom(resource, made)
    return to_stored(resource, made)


def _custom_schema(resource: Resource) -> FieldSchema | None:
    """How ownership divides custom objects; `None` for all others."""
    return None if resource.custom is None else custom_schema(resource.custom.schema)


def track_fields(
    resource: Resource,
    old: JsonObject | None,
    new: JsonObject,
    *,
    options: WriteOptions,
    now: str,
    subresource: str = "",
) -> JsonObject:
    """The object with the field manager of *options*, if any, as owner of what it changed."""
    if not options.manager:
        return new
    manager = options.manager
    return track_update(
        resource.kind,
        old,
        new,
        manager=manager,
        now=now,
        subresource=subresource,
        custom=_custom_schema(resource),
        custom_status=resource.custom is not None and "status" in resource.subresources,
    )
