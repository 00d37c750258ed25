"""Definitions of custom resources: defaults, validation, table.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from podium.cel.regular_expressions import PatternError, compile_pattern
from podium.lab.api.status import FieldError, invalid_value, not_supported, required
from podium.lab.kinds.field_checks import validate_choice, validate_unchanged
from podium.lab.kinds.kind import KindStrategy
from podium.lab.schema.structural import (
    count_rules,
    default_errors,
    inner_schemas,
    refuse_wrong_schema_types,
)
from podium.objects.kinds.meta import JsonObject

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_SCOPES: Final = ("Cluster", "Namespaced")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")


def set_definition_defaults(item: JsonObject) -> None:
    """Set the defaults of a definition: names that follow from the kind, and no conversion."""
    spec = item.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def add_cleanup_finalizer(item: JsonObject) -> None:
    """Keep a deleted definition until its objects are deleted."""
    finalizers = item["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)


def new_definition_status(item: JsonObject) -> JsonObject:
    """The status of a new definition: its names are accepted, and it is served at once."""
    now = item["metadata"]["creationTimestamp"]
    spec = item.get("spec") or {}
    versions = [each for each in spec.get("versions") or () if each.get("storage")]
    return {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition(
                "Established", "InitialNamesAccepted", "the initial names have been accepted", now
            ),
        ],
        "acceptedNames": dict(spec.get("names") or {}),
        "storedVersions": [each.get("name") for each in versions],
    }


def _condition(kind: str, reason: str, message: str, now: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def validate_definition(item: JsonObject) -> Iterator[FieldError]:
    """The errors in a new or changed definition; 400 if a schema has a field of the wrong type."""
    refuse_wrong_schema_types(item)
    spec = item.get("spec") or {}
    names = spec.get("names") or {}
    group, plural = spec.get("group") or "", names.get("plural") or ""
    for field, value in (
        ("spec.group", group),
        ("spec.names.plural", plural),
        ("spec.names.kind", names.get("kind")),
        ("spec.scope", spec.get("scope")),
        ("spec.versions", spec.get("versions")),
    ):
        if not value:
            yield required(field)
    name = item["metadata"].get("name", "")
    if group and plural and name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") and spec["scope"] not in _SCOPES:
        yield not_supported("spec.scope", spec["scope"], _SCOPES)
    conversion = (spec.get("conversion") or {}).get("strategy") or "None"
    yield from validate_choice(conversion, "spec.conversion.strategy", ["None", "Webhook"])
    yield from _version_errors(spec.get("versions") or [])


def rules_not_evaluated(item: JsonObject) -> list[str]:
    """A sentence about each version of a definition whose schema has rules in CEL."""
    refuse_wrong_schema_types(item)
    found = []
    for each in (item.get("spec") or {}).get("versions") or ():
        number = count_rules((each.get("schema") or {}).get("openAPIV3Schema"))
        if number:
            rules = "1 rule" if number == 1 else f"{number} rules"
            name = each.get("name") or ""
            found.append(f"the lab does not evaluate the {rules} in CEL of version {name}")
    return found


def _version_errors(versions: list[JsonObject]) -> Iterator[FieldError]:
    stored = [each for each in versions if each.get("storage")]
    if versions and len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", [each.get("name") for each in versions], why)
    seen: set[str] = set()
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions]
    # The API server keeps a schema that all versions have once, and names it there.
    is_shared = all(each == schemas[0] for each in schemas)
    for index, each in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = str(each.get("name") or "")
        if not name:
            yield required(f"{path}.name")
        if name in seen:
            why = "must contain unique version names"
            yield invalid_value("spec.versions", name, why)
        seen.add(name)
        schema, where = schemas[index], f"{path}.schema.openAPIV3Schema"
        if not isinstance(schema, dict):
            yield required(where, "schemas are required")
        elif not (is_shared and index):
            yield from _whole_schema_errors(
                schema, "spec.validation.openAPIV3Schema" if is_shared else where
            )
        for number, column in enumerate(each.get("additionalPrinterColumns") or ()):
            where = f"{path}.additionalPrinterColumns[{number}]"
            if not column.get("jsonPath"):
                yield required(f"{where}.jsonPath")
            yield from validate_choice(column.get("type"), f"{where}.type", _COLUMN_TYPES)


def _whole_schema_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """The errors of the schema of a version; those of its default values if it has no others."""
    found = list(_schema_errors(schema, path, is_root=True))
    return found or list(default_errors(schema, path))


def _schema_errors(schema: Any, path: str, *, is_root: bool = False) -> Iterator[FieldError]:
    """The errors of a schema that is not structural: every field has a type."""
    if not isinstance(schema, dict):
        yield invalid_value(path, schema, "must be an object")
        return
    kind = schema.get("type")
    if kind is not None and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if is_root and kind != "object":
        yield invalid_value(f"{path}.type", kind or "", "must be object at the root")
    untyped = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if not kind and not untyped and not is_root:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    yield from _pattern_errors(schema.get("pattern"), f"{path}.pattern")
    for inner, each in inner_schemas(schema, path):
        yield from _schema_errors(each, inner)
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(schema.get("additionalProperties"), dict) and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield FieldError("FieldValueForbidden", f"{path}.additionalProperties", "", why)


def _pattern_errors(pattern: Any, path: str) -> Iterator[FieldError]:
    try:
        compile_pattern(str(pattern or ""))
    except PatternError as error:
        yield invalid_value(
            path, pattern, f"must be a valid regular expression, but isn't: {error}"
        )


def validate_definition_update(item: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """The errors in a change of a definition: group, scope, kind and plural cannot change."""
    yield from validate_unchanged(item, old, "group", "scope", "names.kind", "names.plural")


KINDS: Mapping[str, KindStrategy] = {
    "CustomResourceDefinition": KindStrategy(
        set_defaults=set_definition_defaults,
        complete_new=add_cleanup_finalizer,
        new_status=new_definition_status,
        has_generation=True,
        validate=validate_definition,
        validate_update=validate_definition_update,
    ),
}
