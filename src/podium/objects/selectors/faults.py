"""What is wrong with a selector, in the words of the plugins generation: field path, value, reason.

`podium.objects.selectors.selectors` refuses with the words of the older generation, one reason
at a time. Here all reasons of a requirement are told, each with the path of its field.

Upstream: apimachinery/pkg/labels and pkg/util/validation/field, Kubernetes v1.36.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelectorTerm, PreferredSchedulingTerm
from podium.objects.names import label_key_reasons, label_value_reasons, quoted
from podium.objects.selectors.requirements import int64

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_RENAMED = (
    (r"\ba qualified name must", "a valid label key must"),
    (r"\ba DNS-1123 subdomain must", "a lowercase RFC 1123 subdomain must"),
    (r"(no more than \d+) characters", r"\1 bytes"),
)


def together(faults: Iterable[str]) -> str:
    """One fault as it is, several as a list, repeated ones once."""
    different = list(dict.fromkeys(faults))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""


def label_selector_fault(selector: LabelSelector | None) -> str:
    """The first requirement of a label selector that is wrong, with all its faults; or nothing."""
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
    """Everything that is wrong with preferred node terms; those that do not count are skipped."""
    faults: list[str] = []
    for number, each in enumerate(preferred or ()):
        if each.weight:
            faults += node_term_faults(each.preference, f"[{number}]")
    return together(faults)


def node_term_faults(term: NodeSelectorTerm, path: str) -> list[str]:
    """What is wrong with one node selector term."""
    faults: list[str] = []
    for number, each in enumerate(term.match_expressions or ()):
        here = f"{path}.matchExpressions[{number}]"
        if each.operator not in _NODE_OPERATORS:
            faults.append(_unsupported(here, each.operator, _NODE_OPERATORS))
        else:
            faults += _requirement(each.key, each.operator, each.values, here)
    for number, each in enumerate(term.match_fields or ()):
        faults += _field(each, f"{path}.matchFields[{number}]")
    return faults


def _field(each: LabelSelectorRequirement, path: str) -> list[str]:
    if each.operator not in _FIELD_OPERATORS:
        return [_unsupported(path, each.operator, _FIELD_OPERATORS)]
    if len(each.values or ()) != 1:
        return [_invalid(f"{path}.values", each.values, "must have one element")]
    return []


def _requirement(key: str, operator: str, values: Sequence[str] | None, path: str) -> list[str]:
    dot = f"{path}." if path else ""
    faults = []
    if reasons := label_key_reasons(key):
        faults.append(_invalid(f"{dot}key", key, _as_of_today(reasons)))
    faults += _count(operator, values, f"{dot}values")
    for number, value in enumerate(values or ()):
        if reasons := label_value_reasons(value):
            path_of_value = f"{dot}values[{number}][{key}]"
            faults.append(_invalid(path_of_value, value, _as_of_today(reasons)))
    return faults


def _as_of_today(reasons: Iterable[str]) -> str:
    """The reasons, where their words have changed since the older generation."""
    text = "; ".join(reasons)
    for before, after in _RENAMED:
        text = re.sub(before, after, text)
    return text


def _count(operator: str, values: Sequence[str] | None, path: str) -> list[str]:
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
    faults = [_invalid(path, values, text)] if text else []
    if operator in {"Gt", "Lt"}:
        whole = "for 'Gt', 'Lt' operators, the value must be an integer"
        faults += [
            _invalid(f"{path}[{place}]", value, whole)
            for place, value in enumerate(values or ())
            if int64(value) is None
        ]
    return faults


def _invalid(path: str, value: str | Sequence[str] | None, reason: str) -> str:
    shown = quoted(value) if isinstance(value, str) else _json(value)
    return f"{path}: Invalid value: {shown}: {reason}"


def _unsupported(path: str, operator: str, known: tuple[str, ...]) -> str:
    supported = ", ".join(map(quoted, known))
    return f"{path}.operator: Unsupported value: {quoted(operator)}: supported values: {supported}"


def _json(values: Sequence[str] | None) -> str:
    """As Go writes it, which escapes what could end a script in a page."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
