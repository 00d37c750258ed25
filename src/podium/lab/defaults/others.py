"""Defaults of namespaces, nodes, services, volumes, classes and budgets.

Upstream: pkg/apis/core/v1/defaults.go, pkg/apis/storage/v1/defaults.go and the strategies.
"""

from __future__ import annotations

from base64 import b64encode

from podium.lab.api.status import JsonDict

_NAME_LABEL = "kubernetes.io/metadata.name"


def namespace(item: JsonDict) -> None:
    """Complete a namespace."""
    about = item["metadata"]
    if about.get("name"):
        about.setdefault("labels", {})[_NAME_LABEL] = about["name"]
    item.setdefault("spec", {})


def new_namespace(item: JsonDict) -> None:
    """A new namespace waits for its contents when it is deleted."""
    finalizers = item["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def namespace_status(_item: JsonDict) -> JsonDict:
    """A new namespace is active."""
    return {"phase": "Active"}


def node(item: JsonDict) -> None:
    """Complete a node: all it has can be given away, unless it says otherwise."""
    item.setdefault("spec", {})
    status = item.setdefault("status", {})
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def service(item: JsonDict) -> None:
    """Complete a service."""
    spec = item.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if "targetPort" not in port and "port" in port:
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")


def service_status(_item: JsonDict) -> JsonDict:
    """No load balancer yet."""
    return {"loadBalancer": {}}


def claim(item: JsonDict) -> None:
    """Complete a claim."""
    item.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def pending(_item: JsonDict) -> JsonDict:
    """Nobody has looked at it yet."""
    return {"phase": "Pending"}


def volume(item: JsonDict) -> None:
    """Complete a volume."""
    spec = item.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")


def limit_range(item: JsonDict) -> None:
    """Complete limits: what is at most allowed is the default, and that is asked for."""
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        default = limit.setdefault("default", {})
        for name, amount in (limit.get("max") or {}).items():
            default.setdefault(name, amount)
        asked = limit.setdefault("defaultRequest", {})
        for name, amount in default.items():
            asked.setdefault(name, amount)
        for name, amount in (limit.get("min") or {}).items():
            asked.setdefault(name, amount)


def storage_class(item: JsonDict) -> None:
    """Complete a storage class."""
    item.setdefault("reclaimPolicy", "Delete")
    item.setdefault("volumeBindingMode", "Immediate")


def priority_class(item: JsonDict) -> None:
    """Complete a priority class."""
    item.setdefault("value", 0)
    item.setdefault("preemptionPolicy", "PreemptLowerPriority")


def csi_driver(item: JsonDict) -> None:
    """Complete the description of a driver."""
    spec = item.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def secret(item: JsonDict) -> None:
    """Complete a secret: what was written as text is kept as base64."""
    item.setdefault("type", "Opaque")
    texts = item.pop("stringData", None) or {}
    if texts:
        data = item.setdefault("data", {})
        data.update({key: b64encode(text.encode()).decode() for key, text in texts.items()})


def budget_status(_item: JsonDict) -> JsonDict:
    """Nothing counted yet."""
    return {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
