"""`podium run`: a scheduler host for a cluster, with leader election and probes."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from podium.daemon.clock import Clocks, real_clocks
from podium.daemon.page_data.activity import Activity
from podium.daemon.tracing import Tracing
from podium.host.scheduler_host import HostOptions, SchedulerHost
from podium.host.supervisor import Supervisor
from podium.kube.lease import LeaderElector, LeaseTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from podium.daemon.logs import Log
    from podium.daemon.observers import Observer
    from podium.daemon.page_data.page_data import PageData, Planner
    from podium.daemon.scheduler import Scheduler
    from podium.extender.client import Post
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


@dataclass(frozen=True, slots=True)
class SecurePort:
    """A port with TLS, on which the API server is asked who may read the endpoints."""

    address: str
    port: int
    #: The files of the certificate and its key; "" for a self-signed one.
    certificate: str = ""
    key: str = ""
    #: A file with the authorities of users' certificates; "" for those of the cluster.
    client_ca: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a scheduler of a cluster is run."""

    host: HostOptions
    #: None when this is the only replica.
    lease: Lease | None
    bind_address: str
    #: The port of the HTTP endpoints; 0 for none.
    port: int
    #: The port of the same endpoints over TLS, for those whom the cluster allows; None for none.
    secure: SecurePort | None = None
    #: Whether the pages are served, and whether they may change rules.
    pages: bool = False
    pages_change_rules: bool = False
    #: Makes the plans of the pages; None for none.
    planner: Planner | None = None
    #: Where spans are sent to, and of how many attempts per million; "" for nowhere.
    tracing_endpoint: str = ""
    tracing_per_million: int = 1_000_000


class ClusterRun:
    """One replica of a scheduler, from its start to its end.

    The client, the clocks, the source of jitter and the identity are arguments, and `stop` ends the
    run; the program around it adds the connection and the signals.
    """

    def __init__(
        self,
        client: KubeApi,
        chosen: ChosenProfiles,
        log: Log,
        options: RunOptions,
        *,
        clocks: Clocks | None = None,
        rng: random.Random | None = None,
        identity: str = "",
        observers: Sequence[Observer] = (),
        extender_post: Post | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> None:
        """Run a scheduler of the *chosen* profiles.

        *on_synced* is called once the scheduler has seen the whole cluster.
        """
        self._on_synced = on_synced
        self._client, self._log, self._options = client, log, options
        self._clocks = clocks or real_clocks()
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        self._identity = identity or f"{socket.gethostname()}_{uuid4()}"
        #: What the pages show of the scheduler's work.
        self._activity = Activity(self._clocks.wall)
        if options.pages:
            observers = [*observers, self._activity]
        self._tracing: Tracing | None = None
        if options.tracing_endpoint:
            name = chosen.profile.scheduler_name
            per_million = options.tracing_per_million
            self._tracing = Tracing(options.tracing_endpoint, per_million, name)
            observers = [*observers, self._tracing.observer]
        self.host = SchedulerHost(
            client,
            chosen,
            log,
            options.host,
            observers=observers,
            clocks=self._clocks,
            rng=self._rng,
            extender_post=extender_post,
        )
        self._chosen = chosen
        #: The application of the pages, once it is asked for.
        self._pages: Any = None
        self._supervisor = Supervisor()
        self._stopping = False
        self._elector: LeaderElector | None = None
        self._election: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """End the run: what is under way is finished, then the lease is released."""
        self._stopping = True
        if self.host.scheduler is not None:
            self.host.scheduler.stop()

    async def run(self) -> int:
        """Run until stopped; the exit code."""
        async with AsyncExitStack() as stack:
            if self._tracing is not None:
                stack.callback(self._tracing.close)
            # Before the host is entered: if it fails, the lease is released after its last write.
            stack.push_async_callback(self._stop_election)
            await stack.enter_async_context(self.host)
            scheduler = self.host.scheduler
            assert scheduler is not None
            self._serve(stack)
            return 0 if self._stopping else await self._until_stopped(scheduler)

    async def _until_stopped(self, scheduler: Scheduler) -> int:
        """Wait for the end of the scheduler, which is stopped or loses the lease."""
        working = self.host.start(self._supervisor)
        if self._on_synced is None:
            return await self._until_ended(scheduler, working)
        told = self._supervisor.start(
            "the start", self._tell(scheduler, self._on_synced), may_return=True
        )
        try:
            return await self._until_ended(scheduler, working)
        finally:
            await self._supervisor.stop(told)

    async def _tell(self, scheduler: Scheduler, on_synced: Callable[[], None]) -> None:
        """Call *on_synced* once the scheduler has seen the whole cluster."""
        await scheduler.synced.wait()
        on_synced()

    async def _until_ended(self, scheduler: Scheduler, working: asyncio.Task[None]) -> int:
        if self._options.lease is None:
            await self._supervisor.until(working)
            return 0
        self._elector = self._new_elector(self._options.lease, scheduler)
        self._election = self._supervisor.start(
            "leader election", self._elector.run(), may_return=True
        )
        await self._supervisor.until(working, self._election)
        lost = self._election.done()
        if lost:
            self._log.error("leader election lost")
            await self._supervisor.until(working)
        return LEADERSHIP_LOST if lost else 0

    def _new_elector(self, lease: Lease, scheduler: Scheduler) -> LeaderElector:
        def started() -> None:
            self._log.info("leading", v=0, identity=self._identity)
            scheduler.leading.set()

        def new_leader(leader: str) -> None:
            if leader != self._identity:
                self._log.info("standing by", v=0, leader=leader)

        return LeaderElector(
            self._client,
            lease.namespace,
            lease.name,
            self._identity,
            times=lease.times,
            on_started=started,
            on_stopped=self.host.abandon,
            on_new_leader=new_leader,
            warn=self._log.warning,
            clock=self._clocks.timer,
            wall=self._clocks.wall,
            rng=self._rng,
            sleep=self._clocks.sleep,
        )

    async def _stop_election(self) -> None:
        """Release the lease, after the last write of the host."""
        if self._election is None or self._elector is None:
            return
        lost = self._election.done()
        await self._supervisor.stop(self._election)
        if lost:
            await self._elector.hand_back()

    def _serve(self, stack: AsyncExitStack) -> None:
        self.host.health.alive["leaderElection"] = self._check_lease
        options = self._options
        if options.port:
            # What is served is imported only where it is, here and below: it takes long.
            from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: PLC0415

            from podium.daemon.http_server import LOOPBACK, listening, serve_on  # noqa: PLC0415

            is_local = options.bind_address in _LOOPBACK
            app: Any = self.host.application(loopback=is_local)
            if options.pages and is_local:
                app = TrustedHostMiddleware(self._with_pages(app), allowed_hosts=LOOPBACK)
            listener = listening(options.bind_address, options.port)
            self._start_server(stack, "the HTTP server", serve_on(app, listener))
        if options.secure is not None:
            self._serve_securely(stack, options.secure)

    def _serve_securely(self, stack: AsyncExitStack, secure: SecurePort) -> None:
        from podium.daemon.authority_lookup import AuthorityLookup  # noqa: PLC0415
        from podium.daemon.client_certificates import ServerTls  # noqa: PLC0415
        from podium.daemon.delegated_access import DelegatedAccess  # noqa: PLC0415
        from podium.daemon.http_server import listening, serve_on  # noqa: PLC0415
        from podium.host.page_access import TokenCookie  # noqa: PLC0415
        from podium.host.serving_certificate import serving_certificate  # noqa: PLC0415

        made = stack.enter_context(serving_certificate(secure.certificate, secure.key))
        served: Any = self.host.application()
        if self._options.pages:
            served = self._with_pages(served)
        tls = ServerTls(made.certificate, made.key)
        lookup = AuthorityLookup(
            self._client,
            tls,
            warn=self._log.warning,
            client_ca_file=secure.client_ca,
            sleep=self._clocks.sleep,
        )
        app = TokenCookie(DelegatedAccess(served, self._client, self._clocks.timer, tls.user))
        listener = listening(secure.address, secure.port)

        async def serving() -> None:
            await lookup.first()
            await serve_on(app, listener, tls=tls.context)

        self._start_server(stack, "the HTTPS server", serving())
        self._start_server(stack, "client certificates", lookup.run())

    def _with_pages(self, app: Any) -> Any:
        """The endpoints, and the pages on the paths that are theirs."""
        from podium.host.page_access import PagesBeside  # noqa: PLC0415
        from podium.web.app import pages  # noqa: PLC0415

        if self._pages is None:
            read_only = not self._options.pages_change_rules
            self._pages = pages(self.page_data(), read_only=read_only)
        return PagesBeside(app, self._pages)

    def page_data(self) -> PageData:
        """What the pages read of the scheduler, once the host is entered."""
        from podium.daemon.page_data.page_data import PageData  # noqa: PLC0415
        from podium.daemon.page_data.profile_text import dumped  # noqa: PLC0415

        scheduler = self.host.scheduler
        assert scheduler is not None
        written = self._chosen.policy or self._chosen.config
        data = PageData(
            scheduler,
            self._activity,
            log=self.host.decisions,
            options=self._chosen.options,
            text=None if written is None else dumped(written),
            planner=self._options.planner,
        )
        data.past, data.past_cluster = self.host.past, self.host.past_cluster
        data.on_other_profiles = self.host.record_profiles
        return data

    def _start_server(
        self, stack: AsyncExitStack, name: str, serving: Coroutine[Any, Any, None]
    ) -> None:
        task = self._supervisor.start(name, serving)
        stack.push_async_callback(self._supervisor.stop, task)

    def _check_lease(self) -> str:
        """A leader that has not renewed its lease in time is not healthy."""
        elector = self._elector
        if elector is None or elector.holder != elector.identity or elector.leading:
            return ""
        return "failed election to renew leadership on the lease"
