"""Writes to the cluster: bindings, status, events, evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from podium.daemon.binder import Binder, BindingClient
from podium.daemon.failure_handler import DeletingClient, FailureHandler
from podium.daemon.pod_events import PodEvents
from podium.daemon.pod_status import PodStatusWriter, StatusClient
from podium.daemon.pre_bind import PreBind, PreBindClient
from podium.daemon.volumes import VolumeBinder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.daemon.binder import ExtenderBind
    from podium.daemon.clock import Clocks
    from podium.daemon.cluster_state import ClusterState
    from podium.daemon.observers import Observer
    from podium.daemon.options import SchedulerOptions
    from podium.daemon.pod_events import Recorder
    from podium.daemon.worker_pool import WorkerPool


class ActionsClient(BindingClient, DeletingClient, StatusClient, PreBindClient, Protocol):
    """All requests that the actions send."""


class Actions:
    """The binder, the failure handler and what they write with, made for one set of options."""

    def __init__(
        self,
        client: ActionsClient,
        state: ClusterState,
        recorder: Recorder,
        *,
        options: SchedulerOptions,
        observers: Sequence[Observer],
        bindings: WorkerPool,
        writes: WorkerPool,
        clocks: Clocks,
        bind_by_extender: ExtenderBind | None,
    ) -> None:
        behaviour = options.behaviour
        status = PodStatusWriter(
            client, writes_probe_time=behaviour.writes_probe_time, now=clocks.wall
        )
        state.set_listener(status)
        self.events = PodEvents(recorder, behaviour)
        self.pre_bind = PreBind(state, client, clocks)
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
        self.volumes = VolumeBinder(
            state,
            client,
            status,
            nominates=behaviour.nominates_before_volumes,
            timeout_seconds=options.volume_seconds,
            poll_seconds=options.volume_poll_seconds,
            sleep=clocks.sleep,
        )
        self.binder = Binder(
            state=state,
            client=client,
            pre_bind=self.pre_bind,
            volumes=self.volumes,
            failure_handler=self.failure_handler,
            events=self.events,
            workers=bindings,
            observers=observers,
            clocks=clocks,
            timeout_seconds=options.bind_seconds,
            by_extender=bind_by_extender,
        )

    @property
    def waiting(self) -> int:
        """The number of pods in a stage before their binding."""
        return len(self.volumes) + len(self.pre_bind)

    @property
    def is_idle(self) -> bool:
        """Whether none of its tasks is left."""
        return not self.waiting and not self.failure_handler.retrying

    async def cancel(self) -> None:
        """Cancel all tasks; pods in a stage before their binding are not bound."""
        await self.failure_handler.cancel()
        await self.pre_bind.cancel()
        await self.volumes.cancel()
