"""`podium run`: a scheduler host for a cluster, with leader election and probes."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from podium.host.loop_thread import LeaseThread, LoopThread, called_here
from podium.host.scheduler_host import HostOptions, SchedulerHost
from podium.host.supervisor import Supervisor
from podium.kube.errors import UnreachableError
from podium.kube.http_rules import LOOPBACK
from podium.kube.lease import FencedApi, LeaderElector, LeaseTimes
from podium.scheduler.state.clock import Clocks, real_clocks
from podium.scheduler.telemetry.tracing import Tracing
from podium.serving.page_data.activity import ActivityObserver

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from podium.extender.client import Post
    from podium.kube.access import Access
    from podium.kube.api import KubeApi
    from podium.library.profile_choice import ChosenProfiles
    from podium.scheduler.scheduler import Scheduler
    from podium.scheduler.state.observers import Observer
    from podium.scheduler.telemetry.logs import Log
    from podium.serving.page_data.page_data import PageData, Planner

LEADERSHIP_LOST: Final = 1
#: How often the event loop notes that it runs, and after how long without that it is not healthy.
_BEAT_SECONDS: Final = 1.0
_STUCK_SECONDS: Final = 120.0


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
    #: Whether they may on the port without TLS as well, where no token is asked for.
    plain_pages_change_rules: bool = False
    #: Makes the plans of the pages; None for none.
    planner: Planner | None = None
    #: Where spans are sent to, and of how many attempts per million; "" for nowhere.
    tracing_endpoint: str = ""
    tracing_per_million: int = 1_000_000


class ClusterRun:
    """One replica of a scheduler, from its start to its end.

    The client, the clocks, the source of jitter and the identity are arguments, and `stop` ends the
    run. The program around it adds the connection and the signals.
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
        load_access: Callable[[], Access] | None = None,
    ) -> None:
        """Run a scheduler of the *chosen* profiles.

        *on_synced* is called once the scheduler has seen the whole cluster. With *load_access* the
        lease is renewed in a thread of its own, on a connection of its own.
        """
        self._load_access = load_access
        self._on_synced = on_synced
        self._client, self._log, self._options = client, log, options
        self._clocks = clocks or real_clocks()
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        self._identity = identity or f"{socket.gethostname()}_{uuid4()}"
        #: What the pages show of the scheduler's work.
        self._activity = ActivityObserver(self._clocks.wall)
        if options.pages:
            observers = [*observers, self._activity]
        self._tracing: Tracing | None = None
        if options.tracing_endpoint:
            name = chosen.profile.scheduler_name
            per_million = options.tracing_per_million
            self._tracing = Tracing(options.tracing_endpoint, per_million, name)
            observers = [*observers, self._tracing.observer]
        self.host = SchedulerHost(
            client if options.lease is None else FencedApi(client, self._leads),
            chosen,
            log,
            options.host,
            observers=observers,
            clocks=self._clocks,
            rng=self._rng,
            extender_post=extender_post,
            leads=self._leads,
        )
        self._chosen = chosen
        #: What the pages read, once they are served.
        self._page_data: PageData | None = None
        self._supervisor = Supervisor()
        self._stopping = False
        #: When the event loop last ran, by the timer.
        self._beaten_at = 0.0
        self._elector: LeaderElector | None = None
        self._lease_thread: LeaseThread | None = None
        self._election: asyncio.Task[None] | None = None
        #: Whether the lease was lost. The thread of the election may end after the scheduler does.
        self._lost = False

    def stop(self) -> None:
        """End the run: what is under way is finished, then the lease is released."""
        self._stopping = True
        self.host.give_up()
        if self.host.scheduler is not None:
            self.host.scheduler.stop()

    def _leads(self) -> bool:
        """Whether this replica may decide and write now."""
        if self._options.lease is None:
            return True
        return self._elector is not None and self._elector.may_write

    async def run(self) -> int:
        """Run until stopped; the exit code."""
        async with AsyncExitStack() as stack:
            if self._tracing is not None:
                stack.callback(self._tracing.close)
            stack.push_async_callback(self._end_lease_thread)
            # Before the host is entered: if it fails, the lease is released after its last write.
            stack.push_async_callback(self._stop_election)
            try:
                await stack.enter_async_context(self.host)
            except UnreachableError:
                if self._stopping:
                    return 0
                raise
            scheduler = self.host.scheduler
            assert scheduler is not None
            await self._serve(stack)
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
        electing = await self._begin_election(self._options.lease, scheduler)
        self._election = self._supervisor.start("leader election", electing.run(), may_return=True)
        await self._supervisor.until(working, self._election)
        self._lost |= self._election.done()
        if self._lost:
            self._log.error("leader election lost")
            await self._supervisor.until(working)
        return LEADERSHIP_LOST if self._lost else 0

    async def _begin_election(
        self, lease: Lease, scheduler: Scheduler
    ) -> LeaderElector | LeaseThread:
        """Make the elector; it runs in a thread of its own if it has its own connection."""
        if self._load_access is None:
            self._elector = self._new_elector(lease, scheduler, self._client)
            return self._elector
        new_elector = partial(self._new_elector, lease, scheduler)
        self._lease_thread = thread = LeaseThread(self._load_access, new_elector)
        await thread.__aenter__()
        self._elector = thread.elector
        return thread

    def _new_elector(self, lease: Lease, scheduler: Scheduler, client: KubeApi) -> LeaderElector:
        def started() -> None:
            self._log.info("leading", v=0, identity=self._identity)
            scheduler.leading.set()

        def stopped() -> None:
            self._lost = True
            self.host.abandon()

        def new_leader(leader: str) -> None:
            if leader != self._identity:
                self._log.info("standing by", v=0, leader=leader)

        here = _plainly if self._load_access is None else called_here
        return LeaderElector(
            client,
            lease.namespace,
            lease.name,
            self._identity,
            times=lease.times,
            on_started=here(started),
            on_stopped=here(stopped),
            on_new_leader=here(new_leader),
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
        lost = self._lost
        await self._supervisor.stop(self._election)
        if lost:
            await (self._lease_thread or self._elector).hand_back()

    async def _end_lease_thread(self) -> None:
        if self._lease_thread is not None:
            await self._lease_thread.__aexit__()

    async def _serve(self, stack: AsyncExitStack) -> None:
        self.host.health.alive["leaderElection"] = self._check_lease
        options = self._options
        if not options.port and options.secure is None:
            return
        # Probes do not wait for a decision: they are answered in a thread.
        thread = await stack.enter_async_context(LoopThread("HTTP servers"))
        self._beaten_at = self._clocks.timer()
        self.host.health.alive["scheduling-loop"] = self._check_loop
        self._start_server(stack, "the heartbeat", self._beat())
        if options.port:
            # What is served is imported only where it is, here and below: it takes long.
            from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: PLC0415

            from podium.serving.endpoints.http_server import LOCAL_HOSTS, listening, serve_on  # noqa: PLC0415

            is_local = options.bind_address in LOOPBACK
            app: Any = self.host.application(loopback=is_local)
            if options.pages and is_local:
                with_pages = self._with_pages(app, changes=options.plain_pages_change_rules)
                app = TrustedHostMiddleware(with_pages, allowed_hosts=LOCAL_HOSTS)
            listener = stack.enter_context(listening(options.bind_address, options.port))
            across = self._across(app)

            async def serving() -> None:
                await thread.run(serve_on(across, listener))

            self._start_server(stack, "the HTTP server", serving())
        if options.secure is not None:
            self._serve_securely(stack, options.secure, thread)

    def _across(self, app: Any) -> Any:
        """The application, for a server in a thread."""
        from podium.host.serving_thread import AcrossLoops  # noqa: PLC0415

        return AcrossLoops(app, asyncio.get_running_loop())

    async def _beat(self) -> None:
        """Note at intervals that the event loop runs."""
        while True:
            self._beaten_at = self._clocks.timer()
            await self._clocks.sleep(_BEAT_SECONDS)

    def _check_loop(self) -> str:
        """A scheduler whose event loop stands still is not healthy."""
        silent = self._clocks.timer() - self._beaten_at
        return "" if silent < _STUCK_SECONDS else f"nothing was done for {silent:.0f} s"

    def _serve_securely(
        self, stack: AsyncExitStack, secure: SecurePort, thread: LoopThread
    ) -> None:
        from podium.serving.access.client_certificates import (  # noqa: PLC0415
            AuthorityLookup,
            ServerTls,
        )
        from podium.serving.access.delegated_access import DelegatedAccess  # noqa: PLC0415
        from podium.serving.access.serving_certificate import serving_certificate  # noqa: PLC0415
        from podium.serving.endpoints.http_server import listening, serve_on  # noqa: PLC0415
        from podium.web.page_access import TokenCookie  # noqa: PLC0415

        made = stack.enter_context(serving_certificate(secure.certificate, secure.key))
        served: Any = self.host.application()
        if self._options.pages:
            served = self._with_pages(served, changes=self._options.pages_change_rules)
        tls = ServerTls(made.certificate, made.key, warn=self._log.warning)
        lookup = AuthorityLookup(
            self._client,
            tls,
            warn=self._log.warning,
            client_ca_file=secure.client_ca,
            sleep=self._clocks.sleep,
        )
        app = TokenCookie(DelegatedAccess(served, self._client, self._clocks.timer, tls.user))
        listener, across = listening(secure.address, secure.port), self._across(app)

        async def serving() -> None:
            await lookup.first()
            await thread.run(serve_on(across, listener, tls=tls.context))

        self._start_server(stack, "the HTTPS server", serving())
        self._start_server(stack, "client certificates", lookup.run())

    def _with_pages(self, app: Any, *, changes: bool) -> Any:
        """The endpoints, and the pages on the paths that are theirs."""
        from podium.web.app import pages  # noqa: PLC0415
        from podium.web.page_access import PagesBeside  # noqa: PLC0415

        if self._page_data is None:
            self._page_data = self.page_data()
        return PagesBeside(app, pages(self._page_data, read_only=not changes))

    def page_data(self) -> PageData:
        """What the pages read of the scheduler, once the host is entered."""
        from podium.serving.page_data.profile_data import dumped  # noqa: PLC0415

        written = self._chosen.policy or self._chosen.config
        text = None if written is None else dumped(written)
        return self.host.page_data(self._activity, self._chosen, text, self._options.planner)

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


def _plainly(act: Callable[..., None]) -> Callable[..., None]:
    """The function itself, for what is called on this event loop."""
    return act
