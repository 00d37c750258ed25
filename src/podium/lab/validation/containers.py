"""Validation of containers: names, images, ports, variables, mounts, probes, resources.

Upstream: pkg/apis/core/validation (validateContainers).
"""

from __future__ import annotations

from collections.abc import Collection

from podium.lab.api.field_errors import (
    FieldErrors,
    duplicate,
    invalid_value,
    missing_target,
    not_supported,
    required,
)
from podium.lab.validation.names import (
    dns_label_reasons,
    environment_variable_reasons,
    port_name_reasons,
)
from podium.lab.validation.quantities import validate_resources
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
    for reason in dns_label_reasons(name):
        yield invalid_value(f"{path}.name", name, reason)
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
    if pull not in _PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", pull, _PULL_POLICIES)
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
            for reason in environment_variable_reasons(name):
                yield invalid_value(f"{here}.name", name, reason)
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
                for reason in port_name_reasons(port):
                    yield invalid_value(f"{path}.{name}.port", port, reason)
    for name in _PROBE_NUMBERS:
        if probe.get(name, 0) < 0:
            yield invalid_value(f"{path}.{name}", probe[name], _NOT_NEGATIVE)
