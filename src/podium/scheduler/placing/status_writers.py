"""Patches of statuses: of pods (PodScheduled, nomination, DisruptionTarget) and of pod groups.

Strategic merge patches, in which conditions are merged by type. Each names the uid, so that another
pod with the same name is left alone. The last condition per pod is kept: an attempt that ends like
the one before it writes nothing.

Upstream: submitPodGroupAlgorithmResult in schedule_one_podgroup.go, Kubernetes v1.37.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from podium.cluster.pod_groups.cycle import condition_after, with_condition
from podium.cluster.queue.entities import scheduled_condition
from podium.kube.api import of_uid
from podium.kube.errors import ApiError
from podium.objects.kinds.pod import PodCondition
from podium.objects.kinds.pod_group import API_VERSION
from podium.scheduler.state.clock import written
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.group_decision import GroupDecision
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import GroupCondition, PodGroup
    from podium.scheduler.placing.tasks import WorkerPool
    from podium.scheduler.state.cluster_state import ClusterState

logger = logging.getLogger(__name__)

PREEMPTED = "PreemptionByScheduler"
_NOT_FOUND, _CONFLICT = 404, 409


class FailedAttempt(msgspec.Struct, frozen=True):
    """What a failed attempt writes into the pod."""

    reason: str
    message: str
    #: The node that the pod is nominated to; "" removes a nomination, None leaves it as it is.
    nomination: str | None = None


class PodStatusWriter(Observer):
    """Writes the outcomes of failed attempts into pods."""

    def __init__(
        self, client: KubeApi, *, writes_probe_time: bool, now: Callable[[], float]
    ) -> None:
        """With *writes_probe_time* each attempt writes its time, and so is always written."""
        self._client = client
        self._writes_probe_time = writes_probe_time
        self._now = now
        #: Reason and message that were last written into a pod, by uid.
        self._last: dict[str, tuple[str, str]] = {}
        #: Nominations that were written and not seen yet, by uid.
        self._nominated: dict[str, str] = {}

    def with_condition(self, pod: Pod, outcome: FailedAttempt) -> Pod:
        """The pod as it will be once the outcome is written."""
        others = [c for c in pod.status.conditions or () if c.type != "PodScheduled"]
        condition = self._condition(pod, outcome)
        status = replace(pod.status, conditions=[*others, condition])
        return replace(pod, status=status)

    def _condition(self, pod: Pod, outcome: FailedAttempt) -> PodCondition:
        now = written(self._now())
        before = scheduled_condition(pod)
        same = before is not None and before.status == "False"
        changed = before.last_transition_time if before is not None and same else now
        return PodCondition(
            type="PodScheduled",
            status="False",
            reason=outcome.reason,
            last_probe_time=now if self._writes_probe_time else None,
            last_transition_time=changed,
            message=outcome.message,
        )

    async def write(self, pod: Pod, outcome: FailedAttempt) -> None:
        """Patch what the outcome changes; *pod* is the version before the attempt."""
        status: dict[str, Any] = {}
        condition_now = (outcome.reason, outcome.message)
        before = scheduled_condition(pod)
        if self._writes_probe_time or self._last.get(pod.uid) != condition_now or before is None:
            condition = self._condition(pod, outcome)
            status["conditions"] = [
                {
                    "type": condition.type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                    "lastProbeTime": condition.last_probe_time,
                    "lastTransitionTime": condition.last_transition_time,
                }
            ]
        if outcome.nomination is not None:
            status.update(self._nomination(pod, outcome.nomination))
        if not status:
            return
        # Before the request: a pod that is deleted meanwhile is forgotten for good.
        self._last[pod.uid] = condition_now
        try:
            await self._patch(pod, status)
        except BaseException:
            self._last.pop(pod.uid, None)
            raise

    async def nominate(self, pod: Pod, node: str) -> None:
        """Write the nominated node of a pod; "" removes it."""
        status = self._nomination(pod, node)
        if status:
            await self._patch(pod, status)

    async def nominate_quietly(self, pod: Pod, node: str) -> None:
        """Write the nominated node of a pod that is on its way to it, which only informs others."""
        try:
            await self.nominate(pod, node)
        except ApiError as error:
            logger.warning("pod %s: the nomination to %s was not written: %s", pod.key, node, error)

    async def mark_victim(self, pod: Pod, message: str) -> None:
        """Write the condition DisruptionTarget into a pod that will be deleted."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": PREEMPTED,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": written(self._now()),
        }
        await self._patch(pod, {"conditions": [condition]})

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Forget what was written into a pod that was deleted or bound.

        A nomination that was written stays known when the watch shows it: an outcome that is yet
        to be written may be of an attempt before that.
        """
        if old is not None and (new is None or new.spec.node_name):
            self._last.pop(old.uid, None)
            self._nominated.pop(old.uid, None)

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> None:
        patch = {"metadata": of_uid(pod.metadata.uid), "status": status}
        if "nominatedNodeName" in status:
            self._nominated[pod.uid] = status["nominatedNodeName"] or ""
        try:
            await self._client.patch_pod_status(pod.namespace, pod.name, patch)
        except ApiError as error:
            if error.status in {_NOT_FOUND, _CONFLICT}:
                # Its end was seen before this write: nothing else would forget it.
                self._nominated.pop(pod.uid, None)
            raise

    def _nomination(self, pod: Pod, node: str) -> dict[str, Any]:
        """What changes the nomination; a watch that is late may not know what was written."""
        known = {pod.status.nominated_node_name or "", self._nominated.get(pod.uid, node)}
        return {} if known == {node} else {"nominatedNodeName": node or None}


class GroupStatusWriter:
    """Writes the condition PodGroupInitiallyScheduled.

    A write that fails is logged, and made again after the next cycle of the group.
    """

    def __init__(
        self,
        state: ClusterState,
        client: KubeApi,
        workers: WorkerPool,
        now: Callable[[], float],
    ) -> None:
        self._state = state
        self._client = client
        self._workers = workers
        self._now = now

    def write(self, group: PodGroup, decision: GroupDecision) -> None:
        """Write what became of a cycle, unless the group says so already."""
        condition = condition_after(group, decision)
        if condition is None:
            return
        known = group.condition()
        since = written(self._now())
        if known is not None and known.status == condition.status and known.last_transition_time:
            since = known.last_transition_time
        condition = msgspec.structs.replace(condition, last_transition_time=since)
        # The next cycle may come before the write is seen, and must not take it back.
        self._state.cache.columns.catalog.pod_groups.put(with_condition(group, condition))
        self._workers.submit(partial(self._patch, group, condition))

    async def _patch(self, group: PodGroup, condition: GroupCondition) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{group.namespace}/podgroups/{group.name}/status"
        written_group = with_condition(group, condition)
        conditions = [_full(each) for each in written_group.status.conditions or ()]
        try:
            metadata = of_uid(group.metadata.uid)
            await self._client.patch(
                path, {"metadata": metadata, "status": {"conditions": conditions}}
            )
        except ApiError as error:
            logger.warning("pod group %s: %s", group.key, error)
            self._state.apply(self._take_back, group, condition)

    def _take_back(self, group: PodGroup, condition: GroupCondition) -> None:
        """Know the group as it was reported last, so that the next cycle writes the condition."""
        reported = self._state.index("PodGroup").known.get(group.key)
        groups = self._state.cache.columns.catalog.pod_groups
        known = groups.get(group.name, group.namespace)
        if reported is not None and known is not None and known.condition() == condition:
            groups.put(reported)


def _full(condition: GroupCondition) -> dict[str, Any]:
    """A condition with its message, also an empty one: the API requires the field."""
    shown: dict[str, Any] = msgspec.to_builtins(condition)
    return {"message": "", **shown}
