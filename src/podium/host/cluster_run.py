"""`podium run`: a scheduler host for a cluster, with leader election and probes."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from podium.daemon.http_server import listening, serve_on
from podium.daemon.logs import Log, LogHandler
from podium.host.event_loop import on_stop_signal, run_program
from podium.host.scheduler_host import HostOptions, SchedulerHost
from podium.host.supervisor import Supervisor
from podium.kube.client import ApiClient
from podium.kube.lease import LeaderElector, LeaseTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.daemon.scheduler import Scheduler
    from podium.kube.access import Access
    from podium.kube.api import KubeApi
    from podium.library.profile_choice import ChosenProfiles

LEADERSHIP_LOST: Final = 1
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease that the replicas of a scheduler compete for."""

    namespace: str
    name: str
    times: LeaseTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a scheduler of a cluster is run."""

    host: HostOptions
    #: None when this is the only replica.
    lease: Lease | None
    bind_address: str
    #: The port of the HTTP endpoints; 0 for none.
    port: int


def run_cluster(
    access: Access,
    chosen: ChosenProfiles,
    log: Log,
    options: RunOptions,
    show: Callable[[str], None],
) -> int:
    """Schedule until a signal stops the program or the lease is lost; the exit code.

    In shadow mode *show* is called with the comparison at the end and on SIGUSR1.
    """
    logging.basicConfig(handlers=[LogHandler(log)], level=logging.WARNING)
    return run_program(ClusterRun(access, chosen, log, options, show).run())


class ClusterRun:
    """One run of the program."""

    def __init__(
        self,
        access: Access,
        chosen: ChosenProfiles,
        log: Log,
        options: RunOptions,
        show: Callable[[str], None],
    ) -> None:
        self._access, self._chosen, self._log, self._options = access, chosen, log, options
        self._show = show
        self._supervisor = Supervisor()
        self._elector: LeaderElector | None = None
        self._election: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Run until stopped; the exit code."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(ApiClient(self._access))
            # Before the host is entered: if it fails, the lease is released after its last write.
            stack.push_async_callback(self._stop_election)
            host = await stack.enter_async_context(
                SchedulerHost(client, self._chosen, self._log, self._options.host)
            )
            self._serve(stack, host)
            on_stop_signal(host.scheduler.stop)
            self._report_on_signal(stack, host)
            return await self._until_stopped(client, host)

    async def _until_stopped(self, client: KubeApi, host: SchedulerHost) -> int:
        """Wait for the end of the scheduler, which loses the lease or is stopped by a signal."""
        working = host.start(self._supervisor)
        if self._options.lease is None:
            await self._supervisor.until(working)
            return 0
        self._elector = self._new_elector(client, self._options.lease, host.scheduler)
        self._election = self._supervisor.start(
            "leader election", self._elector.run(), may_return=True
        )
        await self._supervisor.until(working, self._election)
        lost = self._election.done()
        if lost:
            self._log.error("leader election lost")
            host.scheduler.abandon()
            await self._supervisor.until(working)
        await self._stop_election()
        return LEADERSHIP_LOST if lost else 0

    def _new_elector(self, client: KubeApi, lease: Lease, scheduler: Scheduler) -> LeaderElector:
        identity = f"{socket.gethostname()}_{uuid4()}"

        def started() -> None:
            self._log.info("leading", v=0, identity=identity)
            scheduler.leading.set()

        def new_leader(leader: str) -> None:
            if leader != identity:
                self._log.info("standing by", v=0, leader=leader)

        return LeaderElector(
            client,
            lease.namespace,
            lease.name,
            identity,
            times=lease.times,
            on_started=started,
            on_new_leader=new_leader,
            warn=self._log.warning,
        )

    async def _stop_election(self) -> None:
        if self._election is not None:
            await self._supervisor.stop(self._election)

    def _serve(self, stack: AsyncExitStack, host: SchedulerHost) -> None:
        host.health.alive["leaderElection"] = self._check_lease
        options = self._options
        if not options.port:
            return
        app = host.application(loopback=options.bind_address in _LOOPBACK)
        listener = listening(options.bind_address, options.port)
        serving = self._supervisor.start("the HTTP server", serve_on(app, listener))
        stack.push_async_callback(self._supervisor.stop, serving)

    def _check_lease(self) -> str:
        """A leader that has not renewed its lease in time is not healthy."""
        elector = self._elector
        if elector is None or elector.holder != elector.identity or elector.leading:
            return ""
        return "failed election to renew leadership on the lease"

    def _report_on_signal(self, stack: AsyncExitStack, host: SchedulerHost) -> None:
        shadow = host.shadow
        if shadow is None:
            return

        def report() -> None:
            self._show(shadow.table())

        stack.callback(report)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, report)
