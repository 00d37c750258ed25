"""What is refused in selectors: of labels, and of nodes.

Upstream: apimachinery/pkg/apis/meta/v1/validation, pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.lab.api.field_errors import FieldError, forbidden_field, invalid_value, required
from podium.lab.api.status import JsonDict
from podium.lab.validation.metadata import label_problems
from podium.lab.validation.names import subdomain_reasons
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
)

_IN = "must be specified when `operator` is 'In' or 'NotIn'"
_EXISTS = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD = "not a valid selector operator"

Problems = Iterator[FieldError]


def label_selector(selector: JsonDict | None, path: str) -> Problems:
    """matchLabels and matchExpressions."""
    if not selector:
        return
    yield from label_problems(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        yield from _operator(each, here)
        yield from key(each.get("key") or "", f"{here}.key")
        for number, value in enumerate(each.get("values") or ()):
            if not is_label_value(value):
                for reason in label_value_reasons(value):
                    yield invalid_value(f"{here}.values[{number}]", value, reason)


def _operator(each: JsonDict, path: str) -> Problems:
    operator, values = each.get("operator") or "", each.get("values")
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{path}.values", _IN)
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden_field(f"{path}.values", _EXISTS)
    else:
        yield invalid_value(f"{path}.operator", operator, _BAD)


def key(text: str, path: str) -> Problems:
    """A label key, or anything else with an optional prefix."""
    if not is_qualified_name(text):
        for reason in label_key_reasons(text):
            yield invalid_value(path, text, reason)


def node_selector(selector: JsonDict, path: str) -> Problems:
    """Terms, of which there must be one."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        yield from node_term(term, f"{path}.nodeSelectorTerms[{index}]")


def node_term(term: JsonDict, path: str) -> Problems:
    """One term of a node selector."""
    for index, each in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        if each.get("operator") in {"Gt", "Lt"}:
            if len(each.get("values") or ()) != 1:
                yield required(
                    f"{here}.values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
        else:
            yield from _operator(each, here)
        yield from key(each.get("key") or "", f"{here}.key")
    for index, each in enumerate(term.get("matchFields") or ()):
        yield from _node_field(each, f"{path}.matchFields[{index}]")


def _node_field(each: JsonDict, path: str) -> Problems:
    operator, values = each.get("operator") or "", each.get("values") or ()
    if operator not in {"In", "NotIn"}:
        yield invalid_value(f"{path}.operator", operator, _BAD)
    elif len(values) != 1:
        yield required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if each.get("key") != "metadata.name":
        yield invalid_value(f"{path}.key", each.get("key") or "", "not a valid field selector key")
        return
    for number, value in enumerate(values):
        for reason in subdomain_reasons(value):
            yield invalid_value(f"{path}.values[{number}]", value, reason)
