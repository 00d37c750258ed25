"""What follows from the cycle of a pod group: pods are bound or return, victims go, a condition.

Upstream: submitPodGroupAlgorithmResult in schedule_one_podgroup.go, Kubernetes v1.37.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from podium.cluster.pod_groups.cycle import condition_after, with_condition
from podium.kube.errors import ApiError
from podium.objects.kinds.pod_group import API_VERSION
from podium.scheduler.state.clock import written

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.group_decision import GroupDecision
    from podium.objects.kinds.pod_group import GroupCondition, PodGroup
    from podium.scheduler.placing.worker_pool import WorkerPool
    from podium.scheduler.state.cluster_state import ClusterState

logger = logging.getLogger(__name__)


class GroupStatusClient(Protocol):
    """The request that writes the status of a group."""

    async def patch(self, path: str, patch: Any) -> Any:
        """Send a merge patch; the changed object."""


class GroupStatusWriter:
    """Writes the condition PodGroupInitiallyScheduled; a write that fails is logged."""

    def __init__(
        self,
        state: ClusterState,
        client: GroupStatusClient,
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
            await self._client.patch(path, {"status": {"conditions": conditions}})
        except ApiError as error:
            logger.warning("pod group %s: %s", group.key, error)


def _full(condition: GroupCondition) -> dict[str, Any]:
    """A condition with its message, also an empty one: the API requires the field."""
    shown: dict[str, Any] = msgspec.to_builtins(condition)
    return {"message": "", **shown}
