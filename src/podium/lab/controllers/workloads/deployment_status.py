"""The status of a deployment: counts, and the conditions that `kubectl rollout status` reads.

Upstream: pkg/controller/deployment (sync.go, progress.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from podium.lab.api.timestamps import format_time, parse_time
from podium.lab.controllers.framework.object_fields import condition
from podium.lab.controllers.workloads.deployment_rollout import rollout_limits
from podium.objects.kinds.meta import JsonObject

_SUMMED: Final = ("replicas", "readyReplicas", "availableReplicas")
_DEFAULT_DEADLINE: Final = 600


class _State(NamedTuple):
    """Status, reason and message of a condition."""

    status: str
    reason: str
    message: str


_AVAILABLE: Final = _State(
    "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
)
_UNAVAILABLE: Final = _State(
    "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
)
_PAUSED: Final = _State("Unknown", "DeploymentPaused", "Deployment is paused")


def deployment_status(
    deployment: JsonObject, new: JsonObject | None, sets: Sequence[JsonObject], now: float
) -> tuple[JsonObject, float | None]:
    """The status, and the seconds after which it changes without any event, if it does.

    *new* is the replica set of the present template, *sets* are all replica sets.
    """
    before = deployment.get("status") or {}
    found: JsonObject = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    for name in _SUMMED:
        found[name] = sum((each.get("status") or {}).get(name, 0) for each in sets)
    found["updatedReplicas"] = 0 if new is None else (new.get("status") or {}).get("replicas", 0)
    desired = sum(each["spec"].get("replicas", 1) for each in sets)
    found["unavailableReplicas"] = max(desired - found["availableReplicas"], 0)
    if before.get("collisionCount"):
        found["collisionCount"] = before["collisionCount"]
    found = {name: number for name, number in found.items() if number}
    available = _available(deployment, found.get("availableReplicas", 0), now)
    progressing, wait = _progressing(deployment, new, found, now)
    conditions = [available, *([progressing] if progressing else [])]
    order = [each.get("type") for each in before.get("conditions") or ()]
    if order[:1] == ["Progressing"]:
        conditions.reverse()
    found["conditions"] = conditions
    return found, wait


def _available(deployment: JsonObject, available: int, now: float) -> JsonObject:
    spec = deployment["spec"]
    replicas = spec.get("replicas", 1)
    strategy = spec.get("strategy") or {}
    unavailable = 0
    if strategy.get("type") != "Recreate":
        unavailable = rollout_limits(replicas, strategy).unavailable
    state = _AVAILABLE if available >= replicas - unavailable else _UNAVAILABLE
    return _condition(deployment, "Available", state, now)


def _progressing(
    deployment: JsonObject, new: JsonObject | None, found: JsonObject, now: float
) -> tuple[JsonObject | None, float | None]:
    """The condition Progressing, and the seconds until its deadline."""
    present = condition(deployment, "Progressing")
    if deployment["spec"].get("paused"):
        return _condition(deployment, "Progressing", _PAUSED, now), None
    if new is None:
        return dict(present) or None, None
    subject = f'ReplicaSet "{new["metadata"]["name"]}"'
    same = subject in present.get("message", "")
    if _is_complete(deployment, found):
        state = _State("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
        return _condition(deployment, "Progressing", state, now), None
    if same and present.get("reason") == "NewReplicaSetAvailable":
        return present, None  # a completed rollout stays complete when pods are lost later
    deadline = _deadline(deployment["spec"])
    if not same or _has_progressed(deployment.get("status") or {}, found):
        state = _State("True", "ReplicaSetUpdated", f"{subject} is progressing.")
        updated = _condition(deployment, "Progressing", state, now)
        return {**updated, "lastUpdateTime": format_time(now)}, deadline
    return _stalled(deployment, subject, deadline, now)


def _stalled(
    deployment: JsonObject, subject: str, deadline: float | None, now: float
) -> tuple[JsonObject, float | None]:
    """The condition of a rollout without progress: it fails when the deadline has passed."""
    present = condition(deployment, "Progressing")
    if deadline is None:
        return present, None
    left = (parse_time(present.get("lastUpdateTime")) or now) + deadline - now
    if left > 0 and present.get("status") == "True":
        return present, left
    state = _State("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
    return _condition(deployment, "Progressing", state, now), None


def _is_complete(deployment: JsonObject, found: JsonObject) -> bool:
    replicas = deployment["spec"].get("replicas", 1)
    numbers = ("updatedReplicas", "replicas", "availableReplicas")
    return all(found.get(name, 0) == replicas for name in numbers)


def _deadline(spec: JsonObject) -> float | None:
    seconds = spec.get("progressDeadlineSeconds", _DEFAULT_DEADLINE)
    return None if seconds is None or seconds >= 2**31 - 1 else float(seconds)


def _has_progressed(before: JsonObject, found: JsonObject) -> bool:
    """Whether there are more new pods or fewer old ones than before."""

    def old_pods(status: JsonObject) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    more = any(
        found.get(name, 0) > before.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old_pods(found) < old_pods(before)


def _condition(deployment: JsonObject, kind: str, state: _State, now: float) -> JsonObject:
    """The condition in a state; as far as it is unchanged it keeps its times."""
    present, at = condition(deployment, kind), format_time(now)
    same = present.get("status") == state.status
    unchanged = (
        same and present.get("reason") == state.reason and present.get("message") == state.message
    )
    return {
        "type": kind,
        "status": state.status,
        "lastUpdateTime": present["lastUpdateTime"] if unchanged else at,
        "lastTransitionTime": present["lastTransitionTime"] if same else at,
        "reason": state.reason,
        "message": state.message,
    }
