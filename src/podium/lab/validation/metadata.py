"""Validation of the metadata of objects of all kinds.

Upstream: apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import (
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid_value,
    required,
    too_long,
)
from podium.lab.validation.names import NameRule, dns_label_reasons
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
)

_MAX_ANNOTATION_BYTES = 256 * 1024


def validate_metadata(about: JsonObject, name_reasons: NameRule) -> FieldErrors:
    """Validate the metadata of a new object; its name has to satisfy *name_reasons*."""
    prefix, name = about.get("generateName"), about.get("name")
    if prefix:
        for reason in name_reasons(prefix.rstrip("-") or prefix):
            yield invalid_value("metadata.generateName", prefix, reason)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for reason in name_reasons(name):
            yield invalid_value("metadata.name", name, reason)
    yield from _validate_mutable_metadata(about)


def _validate_mutable_metadata(about: JsonObject) -> FieldErrors:
    """Validate the metadata that an update may change."""
    namespace = about.get("namespace")
    if namespace:
        for reason in dns_label_reasons(namespace):
            yield invalid_value("metadata.namespace", namespace, reason)
    if about.get("labels"):
        yield from validate_labels(about["labels"], "metadata.labels")
    if about.get("annotations"):
        yield from validate_annotations(about["annotations"])
    if about.get("ownerReferences"):
        yield from _validate_owners(about["ownerReferences"])
    for finalizer in about.get("finalizers") or ():
        yield from _validate_finalizer(finalizer)


def validate_labels(labels: Mapping[str, str], path: str) -> FieldErrors:
    """Validate the keys and values of labels."""
    for key in labels if len(labels) == 1 else sorted(labels):
        value = labels[key]
        if not is_qualified_name(key):
            for reason in label_key_reasons(key):
                yield invalid_value(path, key, reason)
        if not is_label_value(value):
            for reason in label_value_reasons(value):
                yield invalid_value(path, value, reason)


def validate_annotations(annotations: Mapping[str, str]) -> FieldErrors:
    """Validate the keys of annotations, and their size together."""
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if not is_qualified_name(key.lower()):
            for reason in label_key_reasons(key.lower()):
                yield invalid_value("metadata.annotations", key, reason)
    if size > _MAX_ANNOTATION_BYTES:
        yield too_long("metadata.annotations", "", _MAX_ANNOTATION_BYTES)


def _validate_owners(owners: list[JsonObject]) -> FieldErrors:
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


def _validate_finalizer(finalizer: Any) -> FieldErrors:
    if not is_qualified_name(finalizer):
        for reason in label_key_reasons(finalizer):
            yield invalid_value("metadata.finalizers", finalizer, reason)


def validate_metadata_update(item: JsonObject, old: JsonObject) -> list[FieldError]:
    """Validate the metadata of an object that replaces *old*."""
    found = list(_validate_mutable_metadata(item["metadata"]))
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
