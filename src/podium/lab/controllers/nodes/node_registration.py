"""What a kubelet says of a node when it registers, for nodes that nobody described.

Only what is missing is filled in: a node from a real cluster stays as it is.
"""

from __future__ import annotations

import zlib
from typing import Final

from podium.lab.controllers.framework.object_fields import condition
from podium.objects.kinds.meta import JsonObject

VERSION: Final = "v1.36.0-lab"
ROOM: Final = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_HEALTHY: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def complete(node: JsonObject) -> bool:
    """Whether somebody described the node: its room and whether it is ready."""
    status = node.get("status") or {}
    return bool(status.get("allocatable")) and bool(condition(node, "Ready"))


def status(node: JsonObject, at: str) -> JsonObject:
    """The status with everything that was missing."""
    written = node.get("status") or {}
    name = node["metadata"]["name"]
    room = written.get("allocatable") or written.get("capacity") or ROOM
    if "pods" not in room:
        room = {**room, "pods": ROOM["pods"]}
    found: JsonObject = {
        **written,
        "capacity": written.get("capacity") or dict(room),
        "allocatable": written.get("allocatable") or dict(room),
    }
    if not condition(node, "Ready"):
        found["conditions"] = [*(written.get("conditions") or ()), *_conditions(node, at)]
    found.setdefault("addresses", [
        {"type": "InternalIP", "address": address(name)},
        {"type": "Hostname", "address": name},
    ])  # fmt: skip
    found.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    found.setdefault("nodeInfo", _machine(name))
    return found


def labels(node: JsonObject) -> dict[str, str]:
    """The labels that a kubelet gives its node, where the node has none of that name."""
    given = node["metadata"].get("labels") or {}
    usual = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node["metadata"]["name"],
        "kubernetes.io/os": "linux",
    }
    return {name: text for name, text in usual.items() if name not in given}


def address(name: str) -> str:
    """An address for a node, always the same for the same name."""
    number = zlib.crc32(name.encode()) & 0x3FFFFF
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


def _conditions(node: JsonObject, at: str) -> list[JsonObject]:
    found = [
        _condition(kind, "False", reason, message, at)
        for kind, reason, message in _HEALTHY
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


def _machine(name: str) -> JsonObject:
    number = f"{zlib.crc32(name.encode()):032x}"
    return {
        "machineID": number,
        "systemUUID": number,
        "bootID": number,
        "kernelVersion": "6.12.0",
        "osImage": "Podium lab",
        "containerRuntimeVersion": "lab://1",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": VERSION,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
