"""Defaults of pods and pod templates.

Upstream: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from podium.objects.kinds.meta import JsonObject

_DEFAULT_MODE = 0o644
#: Volume sources with a `defaultMode`.
_FILE_SOURCES = ("secret", "configMap", "projected", "downwardAPI")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_QOS_RESOURCES = ("cpu", "memory")


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
