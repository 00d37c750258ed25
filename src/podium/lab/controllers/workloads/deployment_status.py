"""The status of a deployment: numbers, and the conditions that `kubectl rollout status` reads.

Upstream: pkg/controller/deployment (sync.go, progress.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.lab.controllers.framework.object_fields import condition, moment, timestamp
from podium.lab.controllers.workloads import deployment_rollout
from podium.objects.kinds.meta import JsonObject

_COUNTED: Final = (
    ("replicas", "replicas"),
    ("readyReplicas", "readyReplicas"),
    ("availableReplicas", "availableReplicas"),
)

_ENOUGH: Final = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
_TOO_FEW: Final = (
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)
_PAUSED: Final = ("Unknown", "DeploymentPaused", "Deployment is paused")


def status(
    owner: JsonObject, new: JsonObject | None, everyone: Sequence[JsonObject], now: float
) -> tuple[JsonObject, float | None]:
    """The status, and after how many seconds it may be another without any event."""
    before = owner.get("status") or {}
    found: JsonObject = {"observedGeneration": owner["metadata"].get("generation", 1)}
    for name, of in _COUNTED:
        found[name] = sum((each.get("status") or {}).get(of, 0) for each in everyone)
    found["updatedReplicas"] = 0 if new is None else (new.get("status") or {}).get("replicas", 0)
    told = sum(each["spec"].get("replicas", 1) for each in everyone)
    found["unavailableReplicas"] = max(told - found["availableReplicas"], 0)
    if before.get("collisionCount"):
        found["collisionCount"] = before["collisionCount"]
    found = {name: number for name, number in found.items() if number}
    available = _availability(owner, found.get("availableReplicas", 0), now)
    progressing, wait = _progress(owner, new, found, now)
    conditions = [available, *([progressing] if progressing else [])]
    old = [each.get("type") for each in before.get("conditions") or ()]
    if old[:1] == ["Progressing"]:
        conditions.reverse()
    found["conditions"] = conditions
    return found, wait


def _availability(owner: JsonObject, available: int, now: float) -> JsonObject:
    spec = owner["spec"]
    replicas = spec.get("replicas", 1)
    strategy = spec.get("strategy") or {}
    missing = 0
    if strategy.get("type") != "Recreate":
        missing = deployment_rollout.limits(replicas, strategy).unavailable
    if available >= replicas - missing:
        return _set(owner, "Available", _ENOUGH, now)
    return _set(owner, "Available", _TOO_FEW, now)


def _progress(
    owner: JsonObject, new: JsonObject | None, found: JsonObject, now: float
) -> tuple[JsonObject | None, float | None]:
    """The condition that says how the rollout goes, and when it may be given up."""
    present = condition(owner, "Progressing")
    if owner["spec"].get("paused"):
        return _set(owner, "Progressing", _PAUSED, now), None
    if new is None:
        return dict(present) or None, None
    called = f'ReplicaSet "{new["metadata"]["name"]}"'
    same = called in present.get("message", "")
    if _is_complete(owner, found):
        why = ("True", "NewReplicaSetAvailable", f"{called} has successfully progressed.")
        return _set(owner, "Progressing", why, now), None
    if same and present.get("reason") == "NewReplicaSetAvailable":
        return present, None  # done once: pods that went since are no rollout
    deadline = _deadline(owner["spec"])
    if not same or _moved(owner.get("status") or {}, found):
        why = ("True", "ReplicaSetUpdated", f"{called} is progressing.")
        moved = _set(owner, "Progressing", why, now)
        return {**moved, "lastUpdateTime": timestamp(now)}, deadline
    return _patience(owner, called, deadline, now)


def _patience(
    owner: JsonObject, called: str, deadline: float | None, now: float
) -> tuple[JsonObject, float | None]:
    """The condition of a rollout that did not move."""
    present = condition(owner, "Progressing")
    if deadline is None:
        return present, None
    left = (moment(present.get("lastUpdateTime")) or now) + deadline - now
    if left > 0 and present.get("status") == "True":
        return present, left
    why = ("False", "ProgressDeadlineExceeded", f"{called} has timed out progressing.")
    return _set(owner, "Progressing", why, now), None


def _is_complete(owner: JsonObject, found: JsonObject) -> bool:
    wish = owner["spec"].get("replicas", 1)
    numbers = ("updatedReplicas", "replicas", "availableReplicas")
    return all(found.get(name, 0) == wish for name in numbers)


def _deadline(spec: JsonObject) -> float | None:
    seconds = spec.get("progressDeadlineSeconds", 600)
    return None if seconds is None or seconds >= 2**31 - 1 else float(seconds)


def _moved(before: JsonObject, found: JsonObject) -> bool:
    """Whether there is more of the new, or less of the old, than before."""

    def old(status: JsonObject) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    more = any(
        found.get(name, 0) > before.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old(found) < old(before)


def _set(owner: JsonObject, kind: str, why: tuple[str, str, str], now: float) -> JsonObject:
    """The condition, with the times of the present one as far as it stays the same."""
    value, reason, message = why
    present, at = condition(owner, kind), timestamp(now)
    same = present.get("status") == value
    untouched = same and present.get("reason") == reason and present.get("message") == message
    return {
        "type": kind,
        "status": value,
        "lastUpdateTime": present["lastUpdateTime"] if untouched else at,
        "lastTransitionTime": present["lastTransitionTime"] if same else at,
        "reason": reason,
        "message": message,
    }
