"""Pods, and the templates of workloads: defaults, validation, table.

Upstream: pkg/apis/core (validation: validateContainers, affinity, tolerations, spread, gates),
pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.lab.api.encoding import parse_time
from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid_value,
    missing_target,
    not_supported,
    required,
)
from podium.lab.kinds.device_class import validate_label
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
    validate_quantity,
    validate_resources,
)
from podium.lab.kinds.kind import (
    NONE,
    KindStrategy,
    Printer,
    age,
    condition_status,
    list_at,
    metadata_of,
    name_of,
    number_at,
    object_at,
    text_at,
    time_since,
)
from podium.objects.field_errors import NameRule, dns_label_reasons, dns_subdomain_reasons
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
_DEFAULT_MODE = 0o644
#: Volume sources with a `defaultMode`.
_FILE_SOURCES = ("secret", "configMap", "projected", "downwardAPI")
_QOS_RESOURCES = ("cpu", "memory")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_SECONDS = 2**31 - 1
_NAME_FIELDS: tuple[tuple[str, NameRule], ...] = (
    ("serviceAccountName", dns_subdomain_reasons),
    ("nodeName", dns_subdomain_reasons),
    ("hostname", dns_label_reasons),
    ("subdomain", dns_label_reasons),
    ("priorityClassName", dns_subdomain_reasons),
    ("runtimeClassName", dns_subdomain_reasons),
)
_IMMUTABLE_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_ENDED_PHASES = frozenset({"Succeeded", "Failed"})


# Fields
def _validate_containers(
    found: list[JsonObject], path: str, volumes: Collection[str], seen: set[str]
) -> FieldErrors:
    """Validate a list of containers; *seen* are the names that other containers have."""
    ports: set[str] = set()
    for index, each in enumerate(found):
        here = f"{path}[{index}]"
        yield from _validate_unique_name(each, here, seen)
        yield from _validate_container(each, here, volumes)
        yield from _validate_host_ports(each, here, ports)


def _validate_unique_name(each: JsonObject, path: str, seen: set[str]) -> FieldErrors:
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


def _validate_placement(spec: JsonObject, path: str) -> FieldErrors:
    """Validate node selector, affinity, tolerations, topology spread and scheduling gates."""
    if spec.get("nodeSelector"):
        yield from validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("affinity"):
        yield from _validate_affinity(spec["affinity"], f"{path}.affinity")
    for index, each in enumerate(spec.get("tolerations") or ()):
        yield from _validate_toleration(each, f"{path}.tolerations[{index}]")
    if spec.get("topologySpreadConstraints"):
        yield from _validate_spread_constraints(
            spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints"
        )
    if spec.get("schedulingGates"):
        yield from _validate_gates(spec["schedulingGates"], f"{path}.schedulingGates")


def _validate_affinity(found: JsonObject, path: str) -> FieldErrors:
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


def _validate_toleration(found: JsonObject, path: str) -> FieldErrors:
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


# Pods
def set_pod_defaults(item: JsonObject) -> None:
    """Set the defaults of a pod: those of a template, service links, and requests from limits."""
    spec = item.setdefault("spec", {})
    _set_pod_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = container["resources"].get("limits")
        if limits:
            requests = container["resources"].setdefault("requests", {})
            for name, amount in limits.items():
                requests.setdefault(name, amount)


def set_template_defaults(item: JsonObject) -> None:
    """Set the defaults of a pod template."""
    item.setdefault("metadata", {})
    _set_pod_spec_defaults(item.setdefault("spec", {}))


def _set_pod_spec_defaults(spec: JsonObject) -> None:
    """Set the defaults that pods and templates have in common."""
    setdefault = spec.setdefault
    setdefault("restartPolicy", "Always")
    setdefault("terminationGracePeriodSeconds", 30)
    setdefault("dnsPolicy", "ClusterFirst")
    setdefault("securityContext", {})
    setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    host = bool(spec.get("hostNetwork"))
    for container in spec.get("containers") or ():
        _set_container_defaults(container, host=host)
    for container in spec.get("initContainers") or ():
        _set_container_defaults(container, host=host)
    for volume in spec.get("volumes") or ():
        _set_volume_defaults(volume)


def _set_container_defaults(container: JsonObject, *, host: bool) -> None:
    setdefault = container.setdefault
    setdefault("resources", {})
    setdefault("terminationMessagePath", "/dev/termination-log")
    setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _image_pull_policy(container.get("image") or "")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host and port.get("containerPort"):
            port.setdefault("hostPort", port["containerPort"])
    for name in _PROBES:
        if container.get(name):
            _set_probe_defaults(container[name])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _image_pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    tagged = "@" in name or (":" in name and not name.endswith(":latest"))
    return "IfNotPresent" if tagged else "Always"


def _set_probe_defaults(probe: JsonObject) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(field, value)
    if probe.get("httpGet"):
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def _set_volume_defaults(volume: JsonObject) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in _FILE_SOURCES:
        if volume.get(name) is not None:
            volume[name].setdefault("defaultMode", _DEFAULT_MODE)
    for entry in (volume.get("downwardAPI") or {}).get("items") or ():
        if entry.get("fieldRef") is not None:
            entry["fieldRef"].setdefault("apiVersion", "v1")
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def new_pod_status(item: JsonObject) -> JsonObject:
    """The status of a new pod: Pending, with its QoS class."""
    spec = item["spec"]
    found: JsonObject = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        found["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": item["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return found


def qos_class(spec: JsonObject) -> str:
    """The quality of service class that follows from requests and limits."""
    guaranteed, burstable = True, False
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _QOS_RESOURCES:
            asked, most = requests.get(name), limits.get(name)
            if asked or most:
                burstable = True
            if not most or (asked is not None and str(asked) != str(most)):
                guaranteed = False
    if not burstable:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _validate_pod_claims(spec: JsonObject, path: str) -> FieldErrors:
    """Validate the claims of a pod, and the names by which its containers use them."""
    names: set[str] = set()
    for index, each in enumerate(spec.get("resourceClaims") or ()):
        yield from _validate_pod_claim(each, f"{path}.resourceClaims[{index}]", names)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            used = (container.get("resources") or {}).get("claims") or ()
            here = f"{path}.{field}[{index}].resources.claims"
            yield from _validate_used_claims(used, here, names)


def _validate_pod_claim(claim: JsonObject, path: str, names: set[str]) -> FieldErrors:
    name = claim.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif name in names:
        yield duplicate(f"{path}.name", name)
    else:
        yield from validate_label(name, f"{path}.name")
        names.add(name)
    given = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if f in claim]
    if len(given) > 1:
        what = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        yield invalid_value(path, claim, what)
    elif not given:
        what = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        yield invalid_value(path, claim, what)
    for field in given:
        yield from validate_name(claim[field], f"{path}.{field}", dns_subdomain_reasons)


def _validate_used_claims(used: Iterable[JsonObject], path: str, names: set[str]) -> FieldErrors:
    seen: set[str] = set()
    for index, each in enumerate(used):
        here, name, request = f"{path}[{index}]", each.get("name") or "", each.get("request") or ""
        if not name:
            yield required(here)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            yield duplicate(here, name)
        else:
            if request:
                yield from validate_label(request, f"{here}.request")
            if key in seen:
                yield duplicate(here, key)
            elif not request and any(known.partition("/")[0] == name for known in seen):
                yield duplicate(here, name)
            seen.add(key)
        if name not in names:
            listed = f": {', '.join(sorted(names))}" if names else " which is empty"
            what = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield FieldError("FieldValueNotFound", here, name, what)


def validate_pod(item: JsonObject) -> FieldErrors:
    """Validate the spec of a pod; a pod with scheduling gates cannot have a node."""
    spec = item["spec"]
    yield from validate_pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden_field(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


def validate_pod_spec(spec: JsonObject, path: str, claimed: Iterable[str] = ()) -> FieldErrors:
    """Validate the spec of a pod or a template.

    *claimed* are the names of volumes that a stateful set adds.
    """
    volumes = set(claimed)
    if spec.get("volumes"):
        yield from _validate_volumes(spec["volumes"], f"{path}.volumes", volumes)
    found, seen = spec.get("containers"), set[str]()
    if not found:
        yield required(f"{path}.containers")
    else:
        yield from _validate_containers(found, f"{path}.containers", volumes, seen)
    if spec.get("initContainers"):
        yield from _validate_containers(
            spec["initContainers"], f"{path}.initContainers", volumes, seen
        )
    yield from validate_choice(spec.get("restartPolicy"), f"{path}.restartPolicy", RESTART_POLICIES)
    yield from validate_choice(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    yield from _validate_names(spec, path)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MAX_SECONDS:
        yield invalid_value(
            f"{path}.activeDeadlineSeconds",
            seconds,
            f"must be between 1 and {_MAX_SECONDS}, inclusive",
        )
    for name, quantity in (spec.get("overhead") or {}).items():
        yield from validate_quantity(quantity, f"{path}.overhead[{name}]")
    yield from _validate_pod_claims(spec, path)
    yield from _validate_placement(spec, path)


def _validate_names(spec: JsonObject, path: str) -> FieldErrors:
    for field, check in _NAME_FIELDS:
        name = spec.get(field)
        if name:
            yield from validate_name(name, f"{path}.{field}", check)


def _validate_volumes(volumes: list[JsonObject], path: str, names: set[str]) -> FieldErrors:
    for index, each in enumerate(volumes):
        here = f"{path}[{index}]"
        sources = [field for field, value in each.items() if field != "name" and value is not None]
        if not sources:
            yield required(here, "must specify a volume type")
        for extra in sources[1:]:
            yield forbidden_field(f"{here}.{extra}", "may not specify more than 1 volume type")
        if "hostPath" in sources and not each["hostPath"].get("path"):
            yield required(f"{here}.hostPath.path")
        claim = each.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            yield required(f"{here}.persistentVolumeClaim.claimName")
        yield from _validate_unique_name(each, here, names)


def validate_pod_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a pod: most fields of its spec are immutable."""
    new, before = item["spec"], old["spec"]
    if new == before:
        return
    yield from _validate_toleration_update(new, before)
    yield from _validate_gate_update(new, before)
    yield from _validate_deadline_update(new, before)
    if _immutable_fields(new, before) != _immutable_fields(before, before):
        yield forbidden_field("spec", _IMMUTABLE_MESSAGE)


def _immutable_fields(spec: JsonObject, before: JsonObject) -> JsonObject:
    """The fields of *spec* that an update of a pod with the spec *before* cannot change."""
    gated = bool(before.get("schedulingGates"))
    loose = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if gated:
        # A gated pod is not scheduled yet: its node selector and affinity may be narrowed.
        loose |= {"nodeSelector", "affinity"}
    if before.get("terminationGracePeriodSeconds", 0) < 0:
        loose.add("terminationGracePeriodSeconds")
    made = {key: value for key, value in spec.items() if key not in loose}
    for field in ("containers", "initContainers"):
        if made.get(field):
            made[field] = [{**each, "image": ""} for each in made[field]]
    return made


def _validate_toleration_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    wanted = new.get("tolerations") or []
    for each in before.get("tolerations") or ():
        if not any(_same_toleration(each, other) for other in wanted):
            yield forbidden_field(
                "spec.tolerations",
                "existing toleration can not be modified except its tolerationSeconds",
            )
            return


def _same_toleration(one: JsonObject, other: JsonObject) -> bool:
    fields = ("key", "operator", "value", "effect")
    return all((one.get(name) or "") == (other.get(name) or "") for name in fields)


def _validate_gate_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    known = [each.get("name") for each in before.get("schedulingGates") or ()]
    for index, each in enumerate(new.get("schedulingGates") or ()):
        if each.get("name") not in known:
            yield forbidden_field(
                f"spec.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{each.get('name')}'",
            )


def _validate_deadline_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    after, now = new.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if now is None or after == now:
        return
    if after is None:
        yield invalid_value(
            "spec.activeDeadlineSeconds",
            after,
            "must not update from a positive integer to nil value",
        )
    elif after > now:
        yield invalid_value(
            "spec.activeDeadlineSeconds", after, "must be less than or equal to previous value"
        )


def _pod_cells(pod: JsonObject, now: float) -> list[Any]:
    state = _State(pod)
    state.read()
    ips = list_at(pod, "status", "podIPs")
    return [
        name_of(pod),
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarts_text(now),
        age(pod, now),
        (str(ips[0].get("ip") or "") if ips else text_at(pod, "status", "podIP")) or NONE,
        text_at(pod, "spec", "nodeName", default=NONE),
        text_at(pod, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(pod),
    ]


def _pod_conditions(pod: JsonObject) -> list[JsonObject]:
    """The condition of the row of a pod that has ended."""
    phase = text_at(pod, "status", "phase")
    if phase not in _ENDED_PHASES:
        return []
    succeeded = phase == "Succeeded"
    message = "The pod has completed successfully." if succeeded else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _readiness_gates(pod: JsonObject) -> str:
    gates = list_at(pod, "spec", "readinessGates")
    true = sum(condition_status(pod, str(gate.get("conditionType"))) == "True" for gate in gates)
    return f"{true}/{len(gates)}" if gates else NONE


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, status: JsonObject) -> None:
        self.count += number_at(status, "restartCount")
        ended = text_at(status, "lastState", "terminated", "finishedAt")
        if ended and (parse_time(ended) or 0) > (parse_time(self.last) or 0):
            self.last = ended


class _State:
    """The state of a pod, found from its containers, init containers first."""

    def __init__(self, pod: JsonObject) -> None:
        self.pod = pod
        self.ready = 0
        self.restarts = _Restarts()
        inits = list_at(pod, "spec", "initContainers")
        self.inits = len(inits)
        # Sidecars, which are init containers that are always restarted, count as containers.
        self.sidecars = {
            each.get("name") for each in inits if each.get("restartPolicy") == "Always"
        }
        self.total = len(list_at(pod, "spec", "containers")) + len(self.sidecars)
        status = object_at(pod, "status")
        self.reason = text_at(status, "reason") or text_at(status, "phase")

    def read(self) -> None:
        """Count the containers and find the reason that is printed as the status."""
        for each in list_at(self.pod, "status", "conditions"):
            if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
                self.reason = "SchedulingGated"
        of_sidecars = _Restarts()
        initializing = self._read_init_containers(of_sidecars)
        if not initializing or condition_status(self.pod, "Initialized") == "True":
            self.restarts = of_sidecars
            self._read_containers()
        if metadata_of(self.pod).get("deletionTimestamp"):
            if text_at(self.pod, "status", "reason") == "NodeLost":
                self.reason = "Unknown"
            elif text_at(self.pod, "status", "phase") not in _ENDED_PHASES:
                self.reason = "Terminating"

    def restarts_text(self, now: float) -> str:
        """The number of restarts and the time since the last one."""
        count, last = self.restarts.count, self.restarts.last
        return f"{count} ({time_since(last, now)} ago)" if count and last else str(count)

    def _read_init_containers(self, of_sidecars: _Restarts) -> bool:
        for at, status in enumerate(list_at(self.pod, "status", "initContainerStatuses")):
            is_sidecar = status.get("name") in self.sidecars
            self.restarts.add(status)
            if is_sidecar:
                of_sidecars.add(status)
            ended = object_at(status, "state").get("terminated")
            if ended is not None and not number_at(ended, "exitCode"):
                continue
            if is_sidecar and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            waiting = text_at(status, "state", "waiting", "reason")
            if ended is not None:
                self.reason = f"Init:{_ended_reason(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{at}/{self.inits}"
            return True
        return False

    def _read_containers(self) -> None:
        running, failure = False, ""
        for status in reversed(list_at(self.pod, "status", "containerStatuses")):
            self.restarts.add(status)
            state = object_at(status, "state")
            waiting, ended = text_at(state, "waiting", "reason"), state.get("terminated")
            if waiting:
                self.reason = waiting
            elif ended is not None:
                self.reason = _ended_reason(ended)
                if number_at(ended, "exitCode"):
                    failure = self.reason
            elif status.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and condition_status(self.pod, "Ready") == "True":
                self.reason = "Running"
            elif failure:
                self.reason = failure
            elif running:
                self.reason = "NotReady"


def _ended_reason(ended: JsonObject) -> str:
    """Why a container ended, in a word."""
    reason, signal = text_at(ended, "reason"), number_at(ended, "signal")
    if reason:
        return reason
    return f"Signal:{signal}" if signal else f"ExitCode:{number_at(ended, 'exitCode')}"


KINDS: Mapping[str, KindStrategy] = {
    "Pod": KindStrategy(
        set_defaults=set_pod_defaults,
        new_status=new_pod_status,
        validate=validate_pod,
        validate_update=validate_pod_update,
        table=Printer(
            "Name, Ready, Status, Restarts, Age, *IP, *Node, *Nominated Node, *Readiness Gates",
            _pod_cells,
            _pod_conditions,
        ),
    ),
}
