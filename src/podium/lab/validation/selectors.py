"""Validation of label selectors and node selectors.

Upstream: apimachinery/pkg/apis/meta/v1/validation, pkg/apis/core/validation.
"""

from __future__ import annotations

from podium.lab.api.field_errors import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    required,
)
from podium.lab.validation.metadata import dns_subdomain_reasons, validate_labels
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
)

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
            if not is_label_value(value):
                for reason in label_value_reasons(value):
                    yield invalid_value(f"{here}.values[{number}]", value, reason)


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
        for reason in dns_subdomain_reasons(value):
            yield invalid_value(f"{path}.values[{number}]", value, reason)
