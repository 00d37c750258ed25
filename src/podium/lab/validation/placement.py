"""Validation of the fields of a pod that concern its placement.

Upstream: pkg/apis/core/validation (affinity, tolerations, topology spread, gates).
"""

from __future__ import annotations

from podium.lab.api.field_errors import (
    FieldErrors,
    duplicate,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.validation.metadata import validate_labels
from podium.lab.validation.names import dns_label_reasons
from podium.lab.validation.selectors import (
    validate_label_selector,
    validate_node_selector,
    validate_node_selector_term,
    validate_qualified_name,
)
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_label_value, label_value_reasons

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def validate_placement(spec: JsonObject, path: str) -> FieldErrors:
    """Validate node selector, affinity, tolerations, topology spread and scheduling gates."""
    if spec.get("nodeSelector"):
        yield from validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("affinity"):
        yield from validate_affinity(spec["affinity"], f"{path}.affinity")
    for index, each in enumerate(spec.get("tolerations") or ()):
        yield from validate_toleration(each, f"{path}.tolerations[{index}]")
    if spec.get("topologySpreadConstraints"):
        yield from _validate_spread_constraints(
            spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints"
        )
    if spec.get("schedulingGates"):
        yield from _validate_gates(spec["schedulingGates"], f"{path}.schedulingGates")


def validate_affinity(found: JsonObject, path: str) -> FieldErrors:
    """Validate node affinity, pod affinity and pod anti-affinity."""
    nodes = found.get("nodeAffinity")
    if nodes:
        here = f"{path}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            yield from validate_node_selector(nodes[_REQUIRED], f"{here}.{_REQUIRED}")
        for index, each in enumerate(nodes.get(_PREFERRED) or ()):
            there = f"{here}.{_PREFERRED}[{index}]"
            yield from _validate_weight(each, there)
            yield from validate_node_selector_term(
                each.get("preference") or {}, f"{there}.preference"
            )
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = found.get(kind)
        if not pods:
            continue
        for index, each in enumerate(pods.get(_REQUIRED) or ()):
            yield from _validate_pod_affinity_term(each, f"{path}.{kind}.{_REQUIRED}[{index}]")
        for index, each in enumerate(pods.get(_PREFERRED) or ()):
            there = f"{path}.{kind}.{_PREFERRED}[{index}]"
            yield from _validate_weight(each, there)
            yield from _validate_pod_affinity_term(
                each.get("podAffinityTerm") or {}, f"{there}.podAffinityTerm"
            )


def _validate_weight(each: JsonObject, path: str) -> FieldErrors:
    weight = each.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid_value(f"{path}.weight", weight, _WEIGHT)


def _validate_pod_affinity_term(term: JsonObject, path: str) -> FieldErrors:
    yield from validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        for reason in dns_label_reasons(name):
            yield invalid_value(f"{path}.namespace", name, reason)
    topology = term.get("topologyKey") or ""
    if not topology:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from validate_qualified_name(topology, f"{path}.topologyKey")


def validate_toleration(found: JsonObject, path: str) -> FieldErrors:
    """Validate the key, operator, value, effect and seconds of a toleration."""
    name, operator = found.get("key") or "", found.get("operator") or ""
    value, effect = found.get("value") or "", found.get("effect") or ""
    if name:
        yield from validate_qualified_name(name, f"{path}.key")
    elif operator != "Exists":
        yield invalid_value(
            f"{path}.operator",
            operator,
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"',
        )
    if found.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(
            f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    if operator in {"", "Equal"}:
        if not is_label_value(value):
            for reason in label_value_reasons(value):
                yield invalid_value(f"{path}.operator", value, reason)
    elif operator == "Exists":
        if value:
            yield invalid_value(
                f"{path}.operator", found, "value must be empty when `operator` is 'Exists'"
            )
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in EFFECTS:
        yield not_supported(f"{path}.effect", effect, EFFECTS)


def _validate_spread_constraints(constraints: list[JsonObject], path: str) -> FieldErrors:
    pairs = [_pair(each) for each in constraints]
    for index, each in enumerate(constraints):
        here = f"{path}[{index}]"
        skew = each.get("maxSkew") or 0
        if skew <= 0:
            yield invalid_value(f"{here}.maxSkew", skew, "must be greater than zero")
        topology = each.get("topologyKey") or ""
        if not topology:
            yield required(f"{here}.topologyKey", "can not be empty")
        else:
            yield from validate_qualified_name(topology, f"{here}.topologyKey")
        action = each.get("whenUnsatisfiable") or ""
        if action not in {"DoNotSchedule", "ScheduleAnyway"}:
            yield not_supported(
                f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")
            )
        if pairs[index] in pairs[index + 1 :]:
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", pairs[index])
        yield from _validate_domains(each, here, action)
        yield from validate_label_selector(each.get("labelSelector"), f"{here}.labelSelector")


def _pair(each: JsonObject) -> str:
    return f"{{{each.get('topologyKey') or ''}, {each.get('whenUnsatisfiable') or ''}}}"


def _validate_domains(each: JsonObject, path: str, action: str) -> FieldErrors:
    domains = each.get("minDomains")
    if domains is not None:
        if domains <= 0:
            yield invalid_value(f"{path}.minDomains", domains, "must be greater than zero")
        if action != "DoNotSchedule":
            yield invalid_value(
                f"{path}.minDomains",
                domains,
                f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}",
            )
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = each.get(field)
        if policy is not None and policy not in {"Ignore", "Honor"}:
            yield not_supported(f"{path}.{field}", policy, ("Honor", "Ignore"))


def _validate_gates(gates: list[JsonObject], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, each in enumerate(gates):
        name = each.get("name") or ""
        yield from validate_qualified_name(name, f"{path}[{index}].name")
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)
