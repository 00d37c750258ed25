"""The pod status that a kubelet writes: creating, running, finished. Pure functions of a pod.

Upstream: pkg/kubelet/status and pkg/kubelet/kubelet_pods.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from podium.lab.controllers.framework.object_fields import condition
from podium.objects.kinds.meta import JsonObject

#: The prefix of container IDs of the fake kubelet; other containers come from real clusters.
RUNTIME: Final = "lab://"
_CONDITION_ORDER: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def creating(pod: JsonObject, host: str, at: str) -> JsonObject:
    """The status of a pod whose containers are being created."""
    names = [each["name"] for each in pod["spec"].get("containers") or ()]
    unready = {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(names)}]",
    }
    conditions = {
        "PodReadyToStartContainers": ("False", {}),
        "Initialized": ("True", {}),
        "Ready": ("False", unready),
        "ContainersReady": ("False", unready),
    }
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return {
        **(pod.get("status") or {}),
        "phase": "Pending",
        "conditions": _conditions(pod, conditions, at),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": at,
        "containerStatuses": [
            {**_container(each), "ready": False, "started": False, "state": waiting}
            for each in pod["spec"].get("containers") or ()
        ],
    }


def running(pod: JsonObject, host: str, address: str, at: str) -> JsonObject:
    """The status of a pod with all containers running and ready."""
    before = pod.get("status") or {}
    uid = pod["metadata"].get("uid", "")
    every = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    found: JsonObject = {
        **{name: value for name, value in before.items() if name not in {"reason", "message"}},
        "phase": "Running",
        "conditions": _conditions(pod, dict.fromkeys(every, ("True", {})), at),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": before.get("startTime") or at,
        "containerStatuses": [
            _running(each, uid, at) for each in pod["spec"].get("containers") or ()
        ],
    }
    first = pod["spec"].get("initContainers")
    if first:
        found["initContainerStatuses"] = [
            _running(each, uid, at)
            if each.get("restartPolicy") == "Always"
            else _terminated(each, uid, at, at, initial=True)
            for each in first
        ]
    return found


def with_readiness(pod: JsonObject, *, ready: bool, at: str) -> JsonObject:
    """The status of a running pod with another Ready condition."""
    changes: dict[str, tuple[str, JsonObject]] = {"Ready": ("True" if ready else "False", {})}
    return {**pod["status"], "conditions": _conditions(pod, changes, at)}


def finished(pod: JsonObject, at: str, *, exit_code: int = 0, reason: str = "") -> JsonObject:
    """The status of a pod whose containers terminated: Succeeded, or Failed with an exit code."""
    before = pod.get("status") or {}
    uid, since = pod["metadata"].get("uid", ""), before.get("startTime") or at
    why = {"reason": "PodCompleted"} if not exit_code else {"reason": "PodFailed"}
    conditions = {
        "PodReadyToStartContainers": ("False", {}),
        "Initialized": ("True", {"reason": "PodCompleted"} if not exit_code else {}),
        "Ready": ("False", why),
        "ContainersReady": ("False", why),
    }
    found = {
        **before,
        "phase": "Failed" if exit_code else "Succeeded",
        "conditions": _conditions(pod, conditions, at),
        "containerStatuses": [
            _terminated(each, uid, since, at, exit_code=exit_code)
            for each in pod["spec"].get("containers") or ()
        ],
    }
    return found | {"reason": reason} if reason else found


def started_here(pod: JsonObject) -> bool:
    """Whether the fake kubelet started the containers."""
    statuses: Iterable[Any] = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(str(each.get("containerID", "")).startswith(RUNTIME) for each in statuses)


def _conditions(
    pod: JsonObject, changes: dict[str, tuple[str, JsonObject]], at: str
) -> list[JsonObject]:
    """The conditions of a pod with *changes*; an unchanged status keeps its transition time."""
    present = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    for kind, (value, more) in changes.items():
        before = condition(pod, kind)
        same = before.get("status") == value
        since = before.get("lastTransitionTime") if same else None
        present[kind] = {
            "type": kind,
            "status": value,
            "lastProbeTime": None,
            "lastTransitionTime": since or at,
            **more,
        }
    known = [present.pop(kind) for kind in _CONDITION_ORDER if kind in present]
    return [*present.values(), *known]


def _container(container: JsonObject) -> JsonObject:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "lastState": {},
        "restartCount": 0,
    }


def _identity(container: JsonObject, uid: str) -> JsonObject:
    digest = hashlib.sha256(f"{uid}/{container['name']}".encode()).hexdigest()
    return {"imageID": container.get("image", ""), "containerID": f"{RUNTIME}{digest}"}


def _running(container: JsonObject, uid: str, at: str) -> JsonObject:
    return {
        **_container(container),
        **_identity(container, uid),
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": at}},
    }


def _terminated(
    container: JsonObject,
    uid: str,
    since: str,
    at: str,
    *,
    exit_code: int = 0,
    initial: bool = False,
) -> JsonObject:
    identity = _identity(container, uid)
    state = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": since,
        "finishedAt": at,
        "containerID": identity["containerID"],
    }
    return {
        **_container(container),
        **identity,
        "ready": initial,
        "started": False,
        "state": {"terminated": state},
    }
