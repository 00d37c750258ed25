"""Schemas of custom resources in the OpenAPI documents.

Upstream: apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from podium.lab.api.resources import Resource
from podium.lab.openapi.definitions import definition_name
from podium.lab.openapi.spec_version import SpecVersion
from podium.objects.kinds.meta import JsonObject

#: What version 2 of the specification knows of a structural schema.
_V2_KEYS: Final = ("description", "type", "format", "required", "x-kubernetes-list-type",
                   "x-kubernetes-list-map-keys", "x-kubernetes-map-type")  # fmt: skip
_TYPE_FIELDS: Final[JsonObject] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def custom_definition_name(group: str, version: str, kind: str) -> str:
    """The name of the schema of a custom kind: `com.example.v1.Widget`."""
    return ".".join([*reversed(group.split(".")), version, kind])


def custom_definitions(resources: Iterable[Resource], spec: SpecVersion) -> dict[str, JsonObject]:
    """The schemas of custom resources and of their lists."""
    found: dict[str, JsonObject] = {}
    for each in resources:
        if each.custom is None:
            continue
        what = {"group": each.group, "version": each.version}
        name = custom_definition_name(each.group, each.version, each.kind)
        schema = _converted(each.custom.schema, spec) or {"type": "object"}
        metadata: JsonObject = dict(spec.reference(definition_name("V1ObjectMeta")))
        if spec is SpecVersion.V3:
            metadata = {"allOf": [metadata]}
        keeps_all = each.custom.schema.get("x-kubernetes-preserve-unknown-fields")
        if spec is SpecVersion.V3 or not keeps_all:
            schema["properties"] = {
                **(schema.get("properties") or {}),
                **_TYPE_FIELDS,
                "metadata": metadata,
            }
        else:  # with any property, kubectl would refuse all others
            schema = {"type": "object"}
        found[name] = schema | {"x-kubernetes-group-version-kind": [what | {"kind": each.kind}]}
        items = {"type": "array", "items": spec.reference(name)}
        found[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                **_TYPE_FIELDS,
                "metadata": spec.reference(definition_name("V1ListMeta")),
                "items": items,
            },
            "x-kubernetes-group-version-kind": [what | {"kind": each.list_kind}],
        }
    return found


def _converted(schema: Any, spec: SpecVersion) -> JsonObject:
    """A structural schema in a version of the specification."""
    if spec is SpecVersion.V3:
        return dict(schema)
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable"):
        # Version 2 has no way to say so: clients must not check such values.
        return {"description": schema["description"]} if schema.get("description") else {}
    made = {key: schema[key] for key in _V2_KEYS if key in schema}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {
            name: _converted(each, spec) for name, each in schema["properties"].items()
        }
    if isinstance(schema.get("items"), dict):
        made["items"] = _converted(schema["items"], spec)
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _converted(schema["additionalProperties"], spec)
    return made
