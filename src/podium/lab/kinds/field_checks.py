"""Validation of fields that objects of many kinds have: names, metadata, selectors, quantities.

The rules for names of any object are those of `objects.field_errors`.

Upstream: apimachinery/pkg/api/validation/objectmeta.go, apimachinery/pkg/apis/meta/v1/validation,
pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from podium.objects.field_errors import (
    NameRule,
    dns_label_reasons,
    dns_subdomain_reasons,
)
from podium.objects.kinds.meta import JsonObject, RawQuantity
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
    name_rule,
)
from podium.objects.quantity import QuantityError, nano

_ENVIRONMENT_VARIABLE = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

IMMUTABLE = "field is immutable"
_MAX_ANNOTATION_BYTES = 256 * 1024


environment_variable_reasons = name_rule(
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit",
    _ENVIRONMENT_VARIABLE,
    1 << 20,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
config_key_reasons = name_rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    253,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def path_segment_reasons(name: str) -> tuple[str, ...]:
    """The reasons why a name cannot be part of a URL path; roles have no other rule."""
    found = [f"may not be '{name}'"] if name in {".", ".."} else []
    found += [f"may not contain '{each}'" for each in "/%" if each in name]
    return tuple(found)


def port_name_reasons(name: str) -> list[str]:
    """The reasons why a name cannot be that of a port."""
    reasons = []
    if len(name) > 15:
        reasons.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        reasons.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z0-9]", name):
        reasons.append("must contain at least one letter or number (a-z, 0-9)")
    if "--" in name:
        reasons.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        reasons.append("must not begin or end with a hyphen")
    return reasons


def validate_name(name: str, path: str, rule: Callable[[str], Iterable[str]]) -> FieldErrors:
    """Validate a name by one of the rules above."""
    for reason in rule(name):
        yield invalid_value(path, name, reason)


def validate_label_value(value: str, path: str) -> FieldErrors:
    """Validate the value of a label, or a value of which the same is demanded."""
    if not is_label_value(value):
        yield from validate_name(value, path, label_value_reasons)


def validate_choice(value: Any, path: str, supported: Collection[str]) -> FieldErrors:
    """Validate a field that has one of the *supported* values."""
    if value not in supported:
        yield not_supported(path, value, supported)


def validate_unchanged(item: JsonObject, old: JsonObject, *fields: str) -> FieldErrors:
    """Validate that an update leaves these fields of the spec as they are."""
    for field in fields:
        new, before = (_spec_field(each, field) for each in (item, old))
        if new != before:
            yield invalid_value(f"spec.{field}", new, IMMUTABLE)


def _spec_field(item: JsonObject, path: str) -> Any:
    found: Any = item.get("spec")
    for name in path.split("."):
        found = (found or {}).get(name)
    return found


def validate_metadata(about: JsonObject, name_reasons: NameRule) -> FieldErrors:
    """Validate the metadata of a new object; its name has to satisfy *name_reasons*."""
    prefix, name = about.get("generateName"), about.get("name")
    if prefix:
        for reason in name_reasons(prefix.rstrip("-") or prefix):
            yield invalid_value("metadata.generateName", prefix, reason)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from validate_name(name, "metadata.name", name_reasons)
    yield from _validate_mutable_metadata(about)


def _validate_mutable_metadata(about: JsonObject) -> FieldErrors:
    """Validate the metadata that an update may change."""
    namespace = about.get("namespace")
    if namespace:
        yield from validate_name(namespace, "metadata.namespace", dns_label_reasons)
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
            yield from validate_qualified_name(key, path)
        if not is_label_value(value):
            yield from validate_label_value(value, path)


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
    yield from validate_qualified_name(finalizer, "metadata.finalizers")


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


_VALUES_REQUIRED = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_INVALID_OPERATOR = "not a valid selector operator"


def validate_label_selector(selector: JsonObject | None, path: str) -> FieldErrors:
    """Validate the labels and expressions of a label selector."""
    if not selector:
        return
    yield from validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        yield from _validate_operator(each, here)
        yield from validate_qualified_name(each.get("key") or "", f"{here}.key")
        for number, value in enumerate(each.get("values") or ()):
            yield from validate_label_value(value, f"{here}.values[{number}]")


def _validate_operator(each: JsonObject, path: str) -> FieldErrors:
    operator, values = each.get("operator") or "", each.get("values")
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{path}.values", _VALUES_REQUIRED)
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden_field(f"{path}.values", _VALUES_FORBIDDEN)
    else:
        yield invalid_value(f"{path}.operator", operator, _INVALID_OPERATOR)


def validate_qualified_name(text: str, path: str) -> FieldErrors:
    """Validate a qualified name: a label key, a taint key, a gate, a provisioner."""
    if not is_qualified_name(text):
        for reason in label_key_reasons(text):
            yield invalid_value(path, text, reason)


def validate_node_selector(selector: JsonObject, path: str) -> FieldErrors:
    """Validate a node selector, which needs at least one term."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        yield from validate_node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]")


def validate_node_selector_term(term: JsonObject, path: str) -> FieldErrors:
    """Validate the expressions and fields of a node selector term."""
    for index, each in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        if each.get("operator") in {"Gt", "Lt"}:
            if len(each.get("values") or ()) != 1:
                yield required(
                    f"{here}.values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
        else:
            yield from _validate_operator(each, here)
        yield from validate_qualified_name(each.get("key") or "", f"{here}.key")
    for index, each in enumerate(term.get("matchFields") or ()):
        yield from _validate_match_field(each, f"{path}.matchFields[{index}]")


def _validate_match_field(each: JsonObject, path: str) -> FieldErrors:
    operator, values = each.get("operator") or "", each.get("values") or ()
    if operator not in {"In", "NotIn"}:
        yield invalid_value(f"{path}.operator", operator, _INVALID_OPERATOR)
    elif len(values) != 1:
        yield required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if each.get("key") != "metadata.name":
        yield invalid_value(f"{path}.key", each.get("key") or "", "not a valid field selector key")
        return
    for number, value in enumerate(values):
        yield from validate_name(value, f"{path}.values[{number}]", dns_subdomain_reasons)


_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | {"storage", "pods"}
_NATIVE_DOMAIN = "kubernetes.io/"


def validate_quantity(quantity: RawQuantity, path: str) -> FieldErrors:
    """Validate a quantity, which must not be negative."""
    value = _nano(quantity)
    if value is None:
        yield invalid_value(path, str(quantity), "must be a quantity")
    elif value < 0:
        yield invalid_value(path, str(quantity), "must be greater than or equal to 0")


@lru_cache(maxsize=1 << 14)
def _nano(quantity: RawQuantity) -> int | None:
    try:
        return nano(quantity)
    except QuantityError:
        return None


def is_positive(quantity: RawQuantity) -> bool:
    """Whether a quantity can be read and is greater than zero."""
    return (_nano(quantity) or 0) > 0


def validate_resources(found: JsonObject, path: str) -> FieldErrors:
    """Validate the requests and limits of a container."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, quantity in limits.items():
        yield from _validate_resource(name, quantity, f"{path}.limits[{name}]")
    for name, quantity in requests.items():
        yield from _validate_resource(name, quantity, f"{path}.requests[{name}]")
        if name in limits:
            asked, most = _nano(quantity), _nano(limits[name])
            if asked is None or most is None:
                continue
            if asked != most and not _can_be_overcommitted(name):
                yield invalid_value(
                    f"{path}.requests",
                    str(quantity),
                    f"must be equal to {name} limit of {limits[name]}",
                )
            elif asked > most:
                yield invalid_value(
                    f"{path}.requests",
                    str(quantity),
                    f"must be less than or equal to {name} limit",
                )
        elif not _can_be_overcommitted(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _validate_resource(name: str, quantity: RawQuantity, path: str) -> FieldErrors:
    if name not in _CONTAINER_RESOURCES:
        yield from validate_qualified_name(name, path)
        if "/" not in name and not name.startswith("hugepages-"):
            if name not in _STANDARD_RESOURCES:
                yield invalid_value(
                    path, name, "must be a standard resource type or fully qualified"
                )
            yield invalid_value(path, name, "must be a standard resource for containers")
    yield from validate_quantity(quantity, path)
    value = _nano(quantity)
    if value is not None and value % 10**9 and not _is_divisible(name):
        yield invalid_value(path, str(quantity), "must be an integer")


def _can_be_overcommitted(name: str) -> bool:
    """Whether the limit may exceed the request: native resources except huge pages."""
    native = "/" not in name or _NATIVE_DOMAIN in name
    return native and not name.startswith("hugepages-")


def _is_divisible(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-") or _NATIVE_DOMAIN in name
