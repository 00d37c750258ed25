"""Patches of all types but server-side apply, which is in `server_side_apply`."""

from __future__ import annotations

import copy
from typing import Any

from podium.lab.api.encoding import (
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    STRATEGIC_MERGE_PATCH,
)
from podium.lab.api.status import bad_request, unsupported_media_type
from podium.lab.patch.json_patch import JSON_NAMES, apply_json_patch
from podium.lab.patch.strategic_merge import strategic_merge
from podium.lab.schema import api_types
from podium.objects.kinds.meta import JsonObject


def apply_patch(kind: str, content_type: str, current: JsonObject, patch: object) -> JsonObject:
    """The object of this kind, empty for custom ones, after the patch; no argument is changed."""
    model = api_types.model_of_kind(kind, str(current.get("apiVersion", ""))) if kind else ""
    model = model if api_types.has_model(model) else ""
    if content_type == JSON_PATCH:
        result = apply_json_patch(current, patch)
    elif content_type == MERGE_PATCH:
        if not isinstance(patch, dict):
            raise bad_request("Invalid JSON Patch")
        result = merge_patch(copy.deepcopy(current), copy.deepcopy(patch))
    elif content_type == STRATEGIC_MERGE_PATCH:
        if not isinstance(patch, dict):
            found = JSON_NAMES.get(type(patch), "number")
            wanted = "Go value of type map[string]interface {}"
            raise bad_request(f"json: cannot unmarshal {found} into {wanted}")
        result = strategic_merge(model, copy.deepcopy(current), copy.deepcopy(patch))
    else:
        raise unsupported_media_type(PATCH_TYPES)
    return without_nulls(model, result)


def merge_patch(current: Any, patch: Any) -> Any:
    """The value after a merge patch (RFC 7386): objects merge, null removes, others replace."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def without_nulls(model: str, value: JsonObject) -> JsonObject:
    """The object without fields that are null; null in a map of strings becomes empty."""
    known = api_types.model(model).fields if model else {}
    result: JsonObject = {}
    for key, each in value.items():
        field = known.get(key)
        if each is None:
            continue
        if field is None:
            result[key] = _without_nulls("", each)
        elif field.container == api_types.MAP and isinstance(each, dict):
            kept = {name: item for name, item in each.items() if item is not None}
            empty = dict.fromkeys(each, "") if field.of == api_types.STRING else {}
            result[key] = empty | kept
        else:
            result[key] = _without_nulls(field.of if field.is_model else "", each)
    return result


def _without_nulls(model: str, value: Any) -> Any:
    if isinstance(value, dict):
        return without_nulls(model, value)
    if isinstance(value, list):
        return [_without_nulls(model, each) for each in value]
    return value
