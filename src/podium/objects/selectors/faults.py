"""Errors of selectors as v1.36 words them: field path, value, reason.

`podium.objects.selectors.selectors` raises errors in the words of v1.13, one reason at a time. Here
all reasons of a requirement are given, each with the path of its field.

Upstream: apimachinery/pkg/labels and component-helpers/scheduling/corev1/nodeaffinity, Kubernetes
v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.objects.field_errors import (
    child,
    invalid,
    key_faults,
    together,
    unsupported,
    value_faults,
)
from podium.objects.go_types import go_json
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelectorTerm, PreferredSchedulingTerm
from podium.objects.names import quoted
from podium.objects.selectors.requirements import int64

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def label_selector_fault(selector: LabelSelector | None) -> str:
    """All errors of the first wrong requirement of a label selector; empty if none is wrong."""
    if selector is None:
        return ""
    for key, value in sorted((selector.match_labels or {}).items()):
        if faults := _requirement(key, "=", [value], ""):
            return together(faults)
    for each in selector.match_expressions or ():
        if each.operator not in _LABEL_OPERATORS:
            return f"{quoted(each.operator)} is not a valid label selector operator"
        if faults := _requirement(each.key, each.operator, each.values or None, ""):
            return together(faults)
    return ""


def preferences_fault(preferred: Sequence[PreferredSchedulingTerm] | None) -> str:
    """All errors of preferred node terms; terms of weight 0 are not checked."""
    faults: list[str] = []
    for number, each in enumerate(preferred or ()):
        if each.weight:
            faults += node_term_faults(each.preference, f"[{number}]")
    return together(faults)


def node_term_faults(term: NodeSelectorTerm, path: str) -> list[str]:
    """All errors of one node selector term."""
    faults: list[str] = []
    for number, each in enumerate(term.match_expressions or ()):
        here = f"{path}.matchExpressions[{number}]"
        if each.operator not in _NODE_OPERATORS:
            operator = go_json(each.operator)
            faults.append(unsupported(f"{here}.operator", operator, _NODE_OPERATORS))
        else:
            faults += _requirement(each.key, each.operator, each.values, here)
    for number, each in enumerate(term.match_fields or ()):
        faults += _field(each, f"{path}.matchFields[{number}]")
    return faults


def _field(each: LabelSelectorRequirement, path: str) -> list[str]:
    if each.operator not in _FIELD_OPERATORS:
        return [unsupported(f"{path}.operator", go_json(each.operator), _FIELD_OPERATORS)]
    if len(each.values or ()) != 1:
        return [invalid(f"{path}.values", go_json(each.values), "must have one element")]
    return []


def _requirement(key: str, operator: str, values: Sequence[str] | None, path: str) -> list[str]:
    where, faults = child(path, "values"), []
    if reasons := key_faults(key):
        faults.append(invalid(child(path, "key"), quoted(key), "; ".join(reasons)))
    faults += _count(operator, values, where)
    for number, value in enumerate(values or ()):
        if reasons := value_faults(value):
            faults.append(invalid(f"{where}[{number}][{key}]", quoted(value), "; ".join(reasons)))
    return faults


def _count(operator: str, values: Sequence[str] | None, path: str) -> list[str]:
    """Whether the operator takes so many values, and values that look like these."""
    number = len(values or ())
    match operator:
        case "In" | "NotIn" if not number:
            text = "for 'in', 'notin' operators, values set can't be empty"
        case "=" if number != 1:
            text = "exact-match compatibility requires one single value"
        case "Exists" | "DoesNotExist" if number:
            text = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt" if number != 1:
            text = "for 'Gt', 'Lt' operators, exactly one value is required"
        case _:
            text = ""
    faults = [invalid(path, go_json(values), text)] if text else []
    if operator in {"Gt", "Lt"}:
        whole = "for 'Gt', 'Lt' operators, the value must be an integer"
        faults += [
            invalid(f"{path}[{place}]", quoted(value), whole)
            for place, value in enumerate(values or ())
            if int64(value) is None
        ]
    return faults
