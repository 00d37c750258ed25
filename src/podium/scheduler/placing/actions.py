"""Writes to the cluster: bindings, status, events, evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.scheduler.placing.binder import Binder
from podium.scheduler.placing.failure_handler import FailureHandler
from podium.scheduler.placing.pod_events import PodEvents
from podium.scheduler.placing.pre_bind import PreBind
from podium.scheduler.placing.status_writers import GroupStatusWriter, PodStatusWriter
from podium.scheduler.placing.volumes import VolumeBinder

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from podium.kube.api import KubeApi
    from podium.scheduler.placing.binder import ExtenderBind
    from podium.scheduler.placing.pod_events import Recorder
    from podium.scheduler.placing.tasks import WorkerPool
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.observers import Observer
    from podium.scheduler.state.options import SchedulerOptions


class Actions:
    """The binder, the failure handler and what they write with, made for one set of options."""

    def __init__(
        self,
        client: KubeApi,
        state: ClusterState,
        recorder: Recorder,
        *,
        options: SchedulerOptions,
        observers: Sequence[Observer],
        bindings: WorkerPool,
        writes: WorkerPool,
        clocks: Clocks,
        bind_by_extender: ExtenderBind | None,
        rng: random.Random,
    ) -> None:
        behaviour = options.behaviour
        status = PodStatusWriter(
            client, writes_probe_time=behaviour.writes_probe_time, now=clocks.wall
        )
        state.set_listener(status)
        self.events = PodEvents(recorder, behaviour)
        nominates = behaviour.nominates_before_binding
        volumes = VolumeBinder(
            state,
            client,
            timeout_seconds=options.volume_seconds,
            poll_seconds=options.volume_poll_seconds,
            sleep=clocks.sleep,
        )
        self.pre_bind = PreBind(
            state,
            client,
            clocks,
            volumes,
            rng=rng,
            nominate=status.nominate_quietly if nominates else None,
        )
        self.failure_handler = FailureHandler(
            release=self.pre_bind.release,
            state=state,
            client=client,
            status=status,
            events=self.events,
            workers=writes,
            observers=observers,
            behaviour=behaviour,
            clocks=clocks,
        )
        self.groups = GroupStatusWriter(state, client, writes, clocks.wall)
        self.binder = Binder(
            state=state,
            client=client,
            pre_bind=self.pre_bind,
            failure_handler=self.failure_handler,
            events=self.events,
            workers=bindings,
            observers=observers,
            clocks=clocks,
            timeout_seconds=options.bind_seconds,
            by_extender=bind_by_extender,
            rng=rng,
        )

    @property
    def waiting(self) -> int:
        """The number of pods in a stage before their binding."""
        return len(self.pre_bind)

    @property
    def is_idle(self) -> bool:
        """Whether none of its tasks is left."""
        return not self.waiting and not self.failure_handler.retrying

    async def cancel(self) -> None:
        """Cancel all tasks; pods in a stage before their binding are not bound."""
        await self.failure_handler.cancel()
        await self.pre_bind.cancel()
