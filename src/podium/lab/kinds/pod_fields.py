"""Validation of the fields of a pod: its containers, and what concerns its placement.

Upstream: pkg/apis/core/validation: validateContainers, affinity, tolerations, spread, gates.
"""

from __future__ import annotations

from collections.abc import Collection

from podium.lab.api.status import (
    FieldErrors,
    duplicate,
    invalid_value,
    missing_target,
    not_supported,
    required,
)
from podium.lab.kinds.field_checks import (
    environment_variable_reasons,
    port_name_reasons,
    validate_choice,
    validate_label_selector,
    validate_label_value,
    validate_labels,
    validate_name,
    validate_node_selector,
    validate_node_selector_term,
    validate_qualified_name,
    validate_resources,
)
from podium.objects.field_errors import dns_label_reasons
from podium.objects.kinds.meta import JsonObject

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PORT_RANGE = "must be between 1 and 65535, inclusive"
_NOT_NEGATIVE = "must be greater than or equal to 0"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def validate_containers(
    found: list[JsonObject], path: str, volumes: Collection[str], seen: set[str]
) -> FieldErrors:
    """Validate a list of containers; *seen* are the names that other containers have."""
    ports: set[str] = set()
    for index, each in enumerate(found):
        here = f"{path}[{index}]"
        yield from validate_unique_name(each, here, seen)
        yield from _validate_container(each, here, volumes)
        yield from _validate_host_ports(each, here, ports)


def validate_unique_name(each: JsonObject, path: str, seen: set[str]) -> FieldErrors:
    """Validate the name of a list item, which must not be in *seen*, and add it there."""
    name = each.get("name") or ""
    if not name:
        yield required(f"{path}.name")
        return
    yield from validate_name(name, f"{path}.name", dns_label_reasons)
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)


def _validate_container(each: JsonObject, path: str, volumes: Collection[str]) -> FieldErrors:
    image = each.get("image") or ""
    if not image:
        yield required(f"{path}.image")
    elif image.strip() != image:
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    policy = each.get("terminationMessagePolicy")
    if policy not in {"File", "FallbackToLogsOnError"}:
        what = "must be 'File' or 'FallbackToLogsOnError'"
        yield invalid_value(f"{path}.terminationMessagePolicy", policy, what)
    if each.get("ports"):
        yield from _validate_ports(each["ports"], f"{path}.ports")
    if each.get("env"):
        yield from _validate_environment(each["env"], f"{path}.env")
    if each.get("volumeMounts"):
        yield from _validate_mounts(each["volumeMounts"], f"{path}.volumeMounts", volumes)
    pull = each.get("imagePullPolicy")
    yield from validate_choice(pull, f"{path}.imagePullPolicy", _PULL_POLICIES)
    if each.get("resources"):
        yield from validate_resources(each["resources"], f"{path}.resources")
    yield from _validate_probes(each, path)


def _validate_probes(each: JsonObject, path: str) -> FieldErrors:
    for name in _PROBES:
        if each.get(name) is not None:
            yield from _validate_probe(each[name], f"{path}.{name}")


def validate_port_number(number: int, path: str) -> FieldErrors:
    """Validate the number of a port."""
    if not 1 <= number <= 65535:
        yield invalid_value(path, number, _PORT_RANGE)


def _validate_ports(ports: list[JsonObject], path: str) -> FieldErrors:
    names: set[str] = set()
    for index, each in enumerate(ports):
        here = f"{path}[{index}]"
        name = each.get("name") or ""
        if name:
            reasons = port_name_reasons(name)
            for reason in reasons:
                yield invalid_value(f"{here}.name", name, reason)
            if not reasons and name in names:
                yield duplicate(f"{here}.name", name)
            names.add(name)
        number = each.get("containerPort") or 0
        if number == 0:
            yield required(f"{here}.containerPort")
        else:
            yield from validate_port_number(number, f"{here}.containerPort")
        if each.get("hostPort"):
            yield from validate_port_number(each["hostPort"], f"{here}.hostPort")
        protocol = each.get("protocol") or ""
        if not protocol:
            yield required(f"{here}.protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, PROTOCOLS)


def _validate_host_ports(container: JsonObject, path: str, taken: set[str]) -> FieldErrors:
    for index, each in enumerate(container.get("ports") or ()):
        number = each.get("hostPort") or 0
        if number == 0:
            continue
        place = f"{each.get('protocol', '')}/{each.get('hostIP') or ''}/{number}"
        if place in taken:
            yield duplicate(f"{path}.ports[{index}].hostPort", place)
        taken.add(place)


def _validate_environment(variables: list[JsonObject], path: str) -> FieldErrors:
    for index, each in enumerate(variables):
        here = f"{path}[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        else:
            yield from validate_name(name, f"{here}.name", environment_variable_reasons)
        if each.get("valueFrom") is not None and each.get("value"):
            yield invalid_value(
                f"{here}.valueFrom", "", "may not be specified when `value` is not empty"
            )


def _validate_mounts(mounts: list[JsonObject], path: str, volumes: Collection[str]) -> FieldErrors:
    places: set[str] = set()
    for index, each in enumerate(mounts):
        here = f"{path}[{index}]"
        name = each.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        if name not in volumes:
            yield missing_target(f"{here}.name", name)
        place = each.get("mountPath") or ""
        if not place:
            yield required(f"{here}.mountPath")
        elif place in places:
            yield invalid_value(f"{here}.mountPath", place, "must be unique")
        places.add(place)


def _validate_probe(probe: JsonObject, path: str) -> FieldErrors:
    handlers = [name for name in _HANDLERS if probe.get(name) is not None]
    if not handlers:
        yield required(path, "must specify a handler type")
    for name in ("httpGet", "tcpSocket"):
        target = probe.get(name)
        if target is not None:
            port = target.get("port", 0)
            if isinstance(port, int):
                yield from validate_port_number(port, f"{path}.{name}.port")
            else:
                yield from validate_name(port, f"{path}.{name}.port", port_name_reasons)
    for name in _PROBE_NUMBERS:
        if probe.get(name, 0) < 0:
            yield invalid_value(f"{path}.{name}", probe[name], _NOT_NEGATIVE)


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
        yield from validate_name(name, f"{path}.namespace", dns_label_reasons)
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
        yield from validate_label_value(value, f"{path}.operator")
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
