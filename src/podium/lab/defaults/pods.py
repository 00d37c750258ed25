"""Defaults of pods, and of the pods that workloads describe.

Upstream: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from podium.lab.api.status import JsonDict

_MODE = 0o644
#: Volumes whose files have a mode.
_FILES = ("secret", "configMap", "projected", "downwardAPI")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_BURSTABLE = ("cpu", "memory")


def pod(item: JsonDict) -> None:
    """Complete a pod; two things are left to it that a template does not say for its pods."""
    spec = item.setdefault("spec", {})
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = container["resources"].get("limits")
        if limits:
            requests = container["resources"].setdefault("requests", {})
            for name, amount in limits.items():
                requests.setdefault(name, amount)


def template(item: JsonDict) -> None:
    """Complete what a workload makes pods from."""
    item.setdefault("metadata", {})
    pod_spec(item.setdefault("spec", {}))


def pod_spec(spec: JsonDict) -> None:
    """Complete the specification of a pod."""
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
        _container(container, host=host)
    for container in spec.get("initContainers") or ():
        _container(container, host=host)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: JsonDict, *, host: bool) -> None:
    setdefault = container.setdefault
    setdefault("resources", {})
    setdefault("terminationMessagePath", "/dev/termination-log")
    setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host and port.get("containerPort"):
            port.setdefault("hostPort", port["containerPort"])
    for name in _PROBES:
        if container.get(name):
            _probe(container[name])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    tagged = "@" in name or (":" in name and not name.endswith(":latest"))
    return "IfNotPresent" if tagged else "Always"


def _probe(probe: JsonDict) -> None:
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


def _volume(volume: JsonDict) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in _FILES:
        if volume.get(name) is not None:
            volume[name].setdefault("defaultMode", _MODE)
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


def status(item: JsonDict) -> JsonDict:
    """The status of a new pod."""
    spec = item["spec"]
    found: JsonDict = {"phase": "Pending", "qosClass": quality(spec)}
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


def quality(spec: JsonDict) -> str:
    """How well a pod is served when memory is short: the class of its requests and limits."""
    guaranteed, burstable = True, False
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _BURSTABLE:
            asked, most = requests.get(name), limits.get(name)
            if asked or most:
                burstable = True
            if not most or (asked is not None and str(asked) != str(most)):
                guaranteed = False
    if not burstable:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
