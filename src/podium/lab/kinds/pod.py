"""Pods, and the templates of workloads: defaults, validation, table.

Upstream: pkg/apis/core, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.lab.api.encoding import parse_time
from podium.lab.api.status import (
    FieldError,
    FieldErrors,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from podium.lab.kinds.device_class import validate_label
from podium.lab.kinds.field_checks import validate_choice, validate_name, validate_quantity
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
from podium.lab.kinds.pod_fields import (
    validate_containers,
    validate_placement,
    validate_unique_name,
)
from podium.objects.field_errors import NameRule, dns_label_reasons, dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject

_DEFAULT_MODE = 0o644
#: Volume sources with a `defaultMode`.
_FILE_SOURCES = ("secret", "configMap", "projected", "downwardAPI")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
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


def set_pod_defaults(item: JsonObject) -> None:
    """Set the defaults of a pod: those of a template, service links, and requests from limits."""
    spec = item.setdefault("spec", {})
    set_pod_spec_defaults(spec)
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
    set_pod_spec_defaults(item.setdefault("spec", {}))


def set_pod_spec_defaults(spec: JsonObject) -> None:
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


# Pods
def validate_pod_claims(spec: JsonObject, path: str) -> FieldErrors:
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
        yield from validate_containers(found, f"{path}.containers", volumes, seen)
    if spec.get("initContainers"):
        yield from validate_containers(
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
    yield from validate_pod_claims(spec, path)
    yield from validate_placement(spec, path)


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
        yield from validate_unique_name(each, here, names)


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
