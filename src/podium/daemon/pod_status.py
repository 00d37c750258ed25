"""What is written into pods: the PodScheduled condition, the nomination, the mark of victims.

Patches of a pod's status, in the form the API server merges condition by condition. They name the
uid, so that another pod of the same name is left alone. What was written last is remembered: an
attempt that ends as the one before writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from podium.cluster.queue.queued_pod import scheduled_condition
from podium.daemon.clock import written
from podium.daemon.observers import Observer
from podium.objects.kinds.pod import PodCondition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.objects.kinds.pod import Pod

EVICTED_BY = "PreemptionByScheduler"


class StatusClient(Protocol):
    """What is needed of a client here."""

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change a pod's status."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a failed attempt leaves in the pod."""

    reason: str
    message: str
    #: The node promised to the pod; "" takes a promise back, None leaves it as it is.
    nomination: str | None = None


class StatusWriter(Observer):
    """Writes outcomes into pods."""

    def __init__(self, client: StatusClient, *, probes: bool, now: Callable[[], float]) -> None:
        """*probes*: the time of each attempt is written, too."""
        self._client = client
        self._probes = probes
        self._now = now
        #: What the condition of a pod said last, by uid.
        self._last: dict[str, tuple[str, str]] = {}

    def noted(self, pod: Pod, outcome: Outcome) -> Pod:
        """The pod with the condition that tells of the outcome, as the API server will have it."""
        others = [c for c in pod.status.conditions or () if c.type != "PodScheduled"]
        condition = self._condition(pod, outcome)
        status = replace(pod.status, conditions=[*others, condition])
        return replace(pod, status=status)

    def _condition(self, pod: Pod, outcome: Outcome) -> PodCondition:
        now = written(self._now())
        before = scheduled_condition(pod)
        same = before is not None and before.status == "False"
        changed = before.last_transition_time if before is not None and same else now
        return PodCondition(
            type="PodScheduled",
            status="False",
            reason=outcome.reason,
            last_probe_time=now if self._probes else None,
            last_transition_time=changed,
        )

    async def write(self, pod: Pod, outcome: Outcome) -> None:
        """Write what changed; *pod* is the version before."""
        status: dict[str, Any] = {}
        told = (outcome.reason, outcome.message)
        before = scheduled_condition(pod)
        if self._probes or self._last.get(pod.uid) != told or before is None:
            condition = self._condition(pod, outcome)
            status["conditions"] = [
                {
                    "type": condition.type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": outcome.message,
                    "lastProbeTime": condition.last_probe_time,
                    "lastTransitionTime": condition.last_transition_time,
                }
            ]
        if outcome.nomination is not None:
            status.update(_nomination(pod, outcome.nomination))
        if status:
            await self._patch(pod, status)
            self._last[pod.uid] = told

    async def nominate(self, pod: Pod, node: str) -> None:
        """Promise a node to a pod, or take the promise back."""
        status = _nomination(pod, node)
        if status:
            await self._patch(pod, status)

    async def mark_victim(self, pod: Pod, message: str) -> None:
        """Say that the pod will have to go."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": EVICTED_BY,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": written(self._now()),
        }
        await self._patch(pod, {"conditions": [condition]})

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Nothing more will be written into a pod that is gone or has got its node."""
        if old is not None and (new is None or new.spec.node_name):
            self._last.pop(old.uid, None)

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> None:
        about = {"uid": pod.metadata.uid} if pod.metadata.uid else {}
        patch = {"metadata": about, "status": status}
        await self._client.patch_pod_status(pod.namespace, pod.name, patch)


def _nomination(pod: Pod, node: str) -> dict[str, Any]:
    same = pod.status.nominated_node_name == node
    return {} if same else {"nominatedNodeName": node or None}
