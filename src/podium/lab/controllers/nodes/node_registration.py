"""The labels and status that a kubelet sets when it registers its node.

Only missing fields are filled in, so a node that comes from a real cluster stays as it is.
"""

from __future__ import annotations

import zlib
from typing import Final

from podium.lab.controllers.framework.object_fields import condition
from podium.objects.kinds.meta import JsonObject
from podium.releases import DEFAULT_RELEASE

KUBELET_VERSION: Final = f"{DEFAULT_RELEASE.name}.0-lab"
DEFAULT_CAPACITY: Final = {
    "cpu": "4",
    "memory": "16Gi",
    "pods": "110",
    "ephemeral-storage": "100Gi",
}
_HEALTHY_CONDITIONS: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def is_registered(node: JsonObject) -> bool:
    """Whether the node has allocatable resources and a Ready condition."""
    status = node.get("status") or {}
    return bool(status.get("allocatable")) and bool(condition(node, "Ready"))


def registered_status(node: JsonObject, at: str) -> JsonObject:
    """The status of the node with all missing fields set; new conditions begin at *at*."""
    written = node.get("status") or {}
    name = node["metadata"]["name"]
    resources = written.get("allocatable") or written.get("capacity") or DEFAULT_CAPACITY
    if "pods" not in resources:
        resources = {**resources, "pods": DEFAULT_CAPACITY["pods"]}
    found: JsonObject = {
        **written,
        "capacity": written.get("capacity") or dict(resources),
        "allocatable": written.get("allocatable") or dict(resources),
    }
    if not condition(node, "Ready"):
        found["conditions"] = [*(written.get("conditions") or ()), *_conditions(node, at)]
    found.setdefault("addresses", [
        {"type": "InternalIP", "address": node_address(name)},
        {"type": "Hostname", "address": name},
    ])  # fmt: skip
    found.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    found.setdefault("nodeInfo", _node_info(name))
    return found


def followed_capacity(node: JsonObject, before: JsonObject | None = None) -> JsonObject | None:
    """The allocatable resources after a change of the capacity; None if they stay.

    Extended resources of the capacity become allocatable, and those that *before* had in its
    capacity and that are gone are allocatable no longer. A kubelet does the same.
    """
    status = node.get("status") or {}
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    had = ((before or {}).get("status") or {}).get("capacity") or {}
    added = {name: capacity[name] for name in capacity if "/" in name and name not in allocatable}
    gone = {name for name in had if "/" in name and name not in capacity and name in allocatable}
    if not added and not gone:
        return None
    kept = {name: amount for name, amount in allocatable.items() if name not in gone}
    return {**kept, **added}


def default_labels(node: JsonObject) -> dict[str, str]:
    """The labels that a kubelet sets, without those that the node has."""
    present = node["metadata"].get("labels") or {}
    defaults = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node["metadata"]["name"],
        "kubernetes.io/os": "linux",
    }
    return {name: text for name, text in defaults.items() if name not in present}


def node_address(name: str) -> str:
    """The internal IP of a node, computed from its name."""
    number = zlib.crc32(name.encode()) & 0x3FFFFF
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


def _conditions(node: JsonObject, at: str) -> list[JsonObject]:
    found = [
        _condition(kind, "False", reason, message, at)
        for kind, reason, message in _HEALTHY_CONDITIONS
        if not condition(node, kind)
    ]
    return [
        *found,
        _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", at),
    ]


def _condition(kind: str, value: str, reason: str, message: str, at: str) -> JsonObject:
    return {
        "type": kind,
        "status": value,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def _node_info(name: str) -> JsonObject:
    number = f"{zlib.crc32(name.encode()):032x}"
    return {
        "machineID": number,
        "systemUUID": number,
        "bootID": number,
        "kernelVersion": "6.12.0",
        "osImage": "Podium lab",
        "containerRuntimeVersion": "lab://1",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": KUBELET_VERSION,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
