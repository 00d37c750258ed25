"""Defaults of namespaces, nodes, services, limits, priority classes, secrets and budgets.

Upstream: pkg/apis/core/v1/defaults.go and the strategies in pkg/registry.
"""

from __future__ import annotations

from base64 import b64encode

from podium.objects.kinds.meta import JsonObject

_NAME_LABEL = "kubernetes.io/metadata.name"


def set_namespace_defaults(item: JsonObject) -> None:
    """Set the defaults of a namespace: the label with its name."""
    about = item["metadata"]
    if about.get("name"):
        about.setdefault("labels", {})[_NAME_LABEL] = about["name"]
    item.setdefault("spec", {})


def add_namespace_finalizer(item: JsonObject) -> None:
    """Add the finalizer that keeps a terminating namespace until it is empty."""
    finalizers = item["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def new_namespace_status(_item: JsonObject) -> JsonObject:
    """The status of a new namespace."""
    return {"phase": "Active"}


def set_node_defaults(item: JsonObject) -> None:
    """Set the defaults of a node: all of its capacity is allocatable."""
    item.setdefault("spec", {})
    status = item.setdefault("status", {})
    if status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def set_service_defaults(item: JsonObject) -> None:
    """Set the defaults of a service."""
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


def new_service_status(_item: JsonObject) -> JsonObject:
    """The status of a new service."""
    return {"loadBalancer": {}}


def set_limit_range_defaults(item: JsonObject) -> None:
    """Set the defaults of container limits: `max` for the limit, and that for the request."""
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


def set_priority_class_defaults(item: JsonObject) -> None:
    """Set the defaults of a priority class."""
    item.setdefault("value", 0)
    item.setdefault("preemptionPolicy", "PreemptLowerPriority")


def set_secret_defaults(item: JsonObject) -> None:
    """Set the defaults of a secret: `stringData` moves to `data` as base64."""
    item.setdefault("type", "Opaque")
    texts = item.pop("stringData", None) or {}
    if texts:
        data = item.setdefault("data", {})
        data.update({key: b64encode(text.encode()).decode() for key, text in texts.items()})


def new_budget_status(_item: JsonObject) -> JsonObject:
    """The status of a new disruption budget."""
    return {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
