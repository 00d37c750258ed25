"""Patches of stored objects, and the ownership of the fields that a write sets.

The functions of the package `patch` are pure; here they are given the stored object, and their
result is checked as the body of a request is.
"""

from __future__ import annotations

from typing import Any

from podium.lab.api.conversion import to_served, to_stored
from podium.lab.api.field_errors import required
from podium.lab.api.media_types import APPLY_PATCH
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request, invalid
from podium.lab.patch.patches import apply_patch
from podium.lab.patch.server_side_apply import apply, track_update
from podium.lab.registry import metadata
from podium.lab.schema.typed_bodies import check_types, reject_unknown_fields

APPLY = APPLY_PATCH


def patched(
    row: Resource, content_type: str, current: JsonDict, patch: Any, options: WriteOptions
) -> JsonDict:
    """The object after a patch of the version of *row*; 400 if a field gets the wrong type."""
    before = to_served(row, current)
    new = apply_patch(row.kind, content_type, before, patch)
    if not isinstance(new.get("metadata"), dict):
        raise bad_request("metadata: expected a mapping")
    new = check_types(row, new)
    if options.strict:
        reject_unknown_fields(row, new, before)
    return to_stored(row, new)


def applied(
    row: Resource,
    live: JsonDict | None,
    patch: Any,
    place: tuple[str, str],
    *,
    subresource: str,
    options: WriteOptions,
    now: str,
) -> JsonDict:
    """The object after server-side apply; *place* is the namespace and name in the path."""
    if not options.manager:
        problem = required("fieldManager", "is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [problem])
    if not isinstance(patch, dict):
        raise bad_request("error decoding YAML: the body must be a mapping")
    config = check_types(row, patch)
    if options.strict:
        reject_unknown_fields(row, config)
    about = metadata.of(config, row, place[0])
    if about.setdefault("name", place[1]) != place[1]:
        raise bad_request(
            f"the name of the object ({about['name']}) does not match the name on the URL "
            f"({place[1]})"
        )
    made = apply(
        row.kind,
        None if live is None else to_served(row, live),
        config,
        manager=options.manager,
        force=options.force,
        now=now,
        subresource=subresource,
    )
    return to_stored(row, made)


def owned(
    row: Resource,
    old: JsonDict | None,
    new: JsonDict,
    *,
    options: WriteOptions,
    now: str,
    subresource: str = "",
) -> JsonDict:
    """The object with the field manager of *options*, if any, as owner of what it changed."""
    if not options.manager:
        return new
    manager = options.manager
    return track_update(row.kind, old, new, manager=manager, now=now, subresource=subresource)
