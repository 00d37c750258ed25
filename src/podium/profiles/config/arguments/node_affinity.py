"""Arguments of NodeAffinity."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podium.objects.field_errors import (
    child,
    invalid,
    key_faults,
    unsupported,
    value_faults,
)
from podium.objects.go_json import go_json
from podium.objects.go_types import INT32, STRING, Slice, named, record
from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.pod import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.objects.names import quoted
from podium.profiles.config.arguments.shared import Arguments, Errors, arguments_record

if TYPE_CHECKING:
    from podium.profiles.config.feature_gates import FeatureGates

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?0*([0-9]+)")


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Node affinity that every pod gets on top of its own."""

    added_affinity: NodeAffinity | None = None


def _check(found: NodeAffinityArgs, path: str, _: FeatureGates) -> Errors:
    affinity, where = found.added_affinity, child(path, "addedAffinity")
    if affinity is None:
        return
    if affinity.required is not None:
        here = f"{where}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms or ()):
            yield from _term_errors(term, f"{here}[{index}]")
    here = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred or ()):
        # Terms of weight 0 are not checked.
        if preferred.weight:
            yield from _term_errors(preferred.preference, f"{here}[{index}]")


def _term_errors(term: NodeSelectorTerm, path: str) -> Errors:
    for index, found in enumerate(term.match_expressions or ()):
        yield from _requirement_errors(found, f"{path}.matchExpressions[{index}]")
    for index, found in enumerate(term.match_fields or ()):
        here = f"{path}.matchFields[{index}]"
        if found.operator not in _FIELD_OPERATORS:
            yield unsupported(f"{here}.operator", go_json(found.operator), _FIELD_OPERATORS)
        elif len(found.values or ()) != 1:
            yield invalid(f"{here}.values", go_json(found.values), "must have one element")


def _requirement_errors(found: LabelSelectorRequirement, path: str) -> Errors:
    operator, values, where = found.operator, found.values or [], f"{path}.values"
    if operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", go_json(operator), _OPERATORS)
        return
    faults = key_faults(found.key)
    if faults:
        yield invalid(f"{path}.key", quoted(found.key), "; ".join(faults))
    yield from _value_errors(found, where)
    for index, value in enumerate(values):
        faults = value_faults(value)
        if faults:
            yield invalid(f"{where}[{index}][{found.key}]", quoted(value), "; ".join(faults))


def _value_errors(found: LabelSelectorRequirement, path: str) -> Errors:
    """Whether the operator takes so many values, and values of this form."""
    operator, values, shown = found.operator, found.values or [], go_json(found.values)
    if operator in ("In", "NotIn") and not values:
        yield invalid(path, shown, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield invalid(path, shown, "values set must be empty for exists and does not exist")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "for 'Gt', 'Lt' operators, exactly one value is required"
            yield invalid(path, shown, detail)
        for index, value in enumerate(values):
            if not _is_int64(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield invalid(f"{path}[{index}]", quoted(value), detail)


def _is_int64(text: str) -> bool:
    found = _INTEGER.fullmatch(text)
    return found is not None and len(found[1]) < 20 and -(1 << 63) <= int(text) < 1 << 63


_REQUIREMENT = record(
    "v1.NodeSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.NodeSelectorOperator"),
    values=Slice(STRING, list),
)
_TERM = record(
    "v1.NodeSelectorTerm",
    NodeSelectorTerm,
    match_expressions=Slice(_REQUIREMENT, list),
    match_fields=Slice(_REQUIREMENT, list),
)
_SELECTOR = record("v1.NodeSelector", NodeSelector, node_selector_terms=Slice(_TERM, list))
_PREFERRED = record(
    "v1.PreferredSchedulingTerm", PreferredSchedulingTerm, weight=INT32, preference=_TERM
)
_AFFINITY = record(
    "v1.NodeAffinity",
    NodeAffinity,
    required=("requiredDuringSchedulingIgnoredDuringExecution", _SELECTOR),
    preferred=("preferredDuringSchedulingIgnoredDuringExecution", Slice(_PREFERRED, list)),
)
NODE_AFFINITY: Final = Arguments(
    arguments_record(NodeAffinityArgs, added_affinity=_AFFINITY), _check
)
