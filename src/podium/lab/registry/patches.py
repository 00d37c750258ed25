"""Where patches meet the registry: the four forms, and who owns which field.

The forms themselves are pure functions in `patching` and `apply`; here they are given the stored
object, and what they make of it is checked like a body that came in.
"""

from __future__ import annotations

from typing import Any

from podium.lab.api.conversion import kept, shown
from podium.lab.api.field_errors import required
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, bad_request, invalid, unsupported_media_type
from podium.lab.patch.apply import applied as _applied
from podium.lab.patch.apply import tracked
from podium.lab.patch.patching import ACCEPTED, APPLY_PATCH
from podium.lab.patch.patching import patched as _patched
from podium.lab.registry import metadata
from podium.lab.schema.typed_bodies import checked, json_of, read, refuse_unknown

APPLY = APPLY_PATCH
FORMS = ACCEPTED


def patched(
    row: Resource, content_type: str, current: JsonDict, patch: Any, options: WriteOptions
) -> JsonDict:
    """The object after a patch, with fields of the right types; in the version of *row*."""
    before = shown(row, current)
    new = _patched(row.kind, content_type, before, patch)
    if not isinstance(new.get("metadata"), dict):
        raise bad_request("metadata: expected a mapping")
    new = checked(row, new)
    if options.strict:
        refuse_unknown(row, new, before)
    return kept(row, new)


def patched_scale(content_type: str, current: JsonDict, patch: Any) -> JsonDict:
    """A `Scale` after a patch."""
    if content_type == APPLY:
        raise unsupported_media_type(FORMS[:3])
    new = _patched("Scale", content_type, current, patch)
    return read("Scale", "autoscaling/v1", json_of(new))


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
    config = checked(row, patch)
    if options.strict:
        refuse_unknown(row, config)
    about = metadata.of(config, row, place[0])
    if about.setdefault("name", place[1]) != place[1]:
        raise bad_request(
            f"the name of the object ({about['name']}) does not match the name on the URL "
            f"({place[1]})"
        )
    made = _applied(
        row.kind,
        None if live is None else shown(row, live),
        config,
        manager=options.manager,
        force=options.force,
        now=now,
        subresource=subresource,
    )
    return kept(row, made)


def owned(
    row: Resource,
    old: JsonDict | None,
    new: JsonDict,
    *,
    options: WriteOptions,
    now: str,
    subresource: str = "",
) -> JsonDict:
    """The object with the fields noted that this write sets, if it is in somebody's name."""
    if not options.manager:
        return new
    return tracked(row.kind, old, new, manager=options.manager, now=now, subresource=subresource)
