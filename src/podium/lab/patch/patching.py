"""Patches: how a request changes part of an object.

`patched` knows the three forms that are sent to it; server-side apply, the fourth, is in `apply`.
"""

from __future__ import annotations

import copy
from typing import Any

from podium.lab.api.status import JsonDict, bad_request, unsupported_media_type
from podium.lab.patch.json_patch import JSON_NAMES, json_patched
from podium.lab.patch.strategic import strategic_merge
from podium.lab.schema import api_types as schema

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
ACCEPTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


def patched(kind: str, content_type: str, current: JsonDict, patch: object) -> JsonDict:
    """The object of this kind after the patch; the arguments stay as they are."""
    model = schema.model_of_kind(kind, str(current.get("apiVersion", "")))
    model = model if schema.has_model(model) else ""
    if content_type == JSON_PATCH:
        result = json_patched(current, patch)
    elif content_type == MERGE_PATCH:
        if not isinstance(patch, dict):
            raise bad_request("Invalid JSON Patch")
        result = merged(copy.deepcopy(current), copy.deepcopy(patch))
    elif content_type == STRATEGIC_MERGE_PATCH:
        if not isinstance(patch, dict):
            kind = JSON_NAMES.get(type(patch), "number")
            wanted = "Go value of type map[string]interface {}"
            raise bad_request(f"json: cannot unmarshal {kind} into {wanted}")
        result = strategic_merge(model, copy.deepcopy(current), copy.deepcopy(patch))
    else:
        raise unsupported_media_type(ACCEPTED)
    return without_nulls(model, result)


def merged(current: Any, patch: Any) -> Any:
    """A merge patch (RFC 7386): objects merge, null removes, the rest replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def without_nulls(model: str, value: JsonDict) -> JsonDict:
    """No field is null: types read null as absent, and a map of texts reads it as empty."""
    known = schema.model(model).fields if model else {}
    result: JsonDict = {}
    for key, each in value.items():
        field = known.get(key)
        if each is None:
            continue
        if field is None:
            result[key] = _known("", each)
        elif field.container == schema.MAP and isinstance(each, dict):
            kept = {name: item for name, item in each.items() if item is not None}
            empty = dict.fromkeys(each, "") if field.of == schema.STRING else {}
            result[key] = empty | kept
        else:
            result[key] = _known(field.of if field.is_model else "", each)
    return result


def _known(model: str, value: Any) -> Any:
    if isinstance(value, dict):
        return without_nulls(model, value)
    if isinstance(value, list):
        return [_known(model, each) for each in value]
    return value
