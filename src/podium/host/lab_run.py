"""`podium lab`: an API server, controllers, a scheduler host and pages on one port."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError
from podium.host.event_loop import (
    collect_rarely,
    on_stop_signal,
    raise_descriptors,
    run_program,
)
from podium.host.lab_contents import FilledLab, LabContents, fill
from podium.host.lab_kubeconfig import default_path, read_token, write_kubeconfig
from podium.host.node_leases import keep_node_leases
from podium.host.scheduler_host import HostOptions, SchedulerHost
from podium.host.supervisor import Supervisor
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.credentials import Credentials
from podium.lab.contents.loader import load
from podium.lab.controllers.framework.clock import WallClock
from podium.lab.controllers.manager import ControllerManager
from podium.lab.http.security import Guard, ServiceAccountTokens
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store
from podium.objects.kinds.workloads import PriorityClass
from podium.releases import DEFAULT_RELEASE
from podium.scheduler.state.options import SchedulerOptions
from podium.scheduler.telemetry.logs import LogHandler, recorded_nodes
from podium.serving.endpoints.bounded_server import PortLimits
from podium.serving.endpoints.http_server import serve_on
from podium.serving.page_data.activity import ActivityObserver
from podium.web.app import pages, serves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.host.record_run import RecordOptions
    from podium.lab.contents.documents import Document
    from podium.lab.contents.loader import Progress
    from podium.lab.controllers.device_driver import DeviceSet
    from podium.library.profile_choice import ChosenProfiles
    from podium.releases import Release
    from podium.scheduler.telemetry.logs import Log
    from podium.serving.page_data.page_data import Planner

HOST: Final = "127.0.0.1"
#: Up to how many nodes the pages show each decision with all its scores, as it was made.
RECORDED_NODES: Final = 500
#: The paths that a scheduler serves besides its pages, as `podium run` does.
_SCHEDULER_PATHS: Final = ("/metrics", "/decisions")
#: Many clients watch an API server.
_LIMITS: Final = PortLimits(connections=4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabOptions:
    """How a lab is run."""

    #: The port on the loopback interface; 0 for any free one.
    port: int
    #: Where the kubeconfig is written; None for the default path of the port.
    kubeconfig: str | None = None
    contents: LabContents
    #: A folder that keeps all objects; None to keep them in memory only.
    data: str | None = None
    #: Makes what prepares the plans of the pages; by default there are none.
    planner: Callable[[Registry, ChosenProfiles], Planner | None] = lambda *_: None
    #: The history that the scheduler is recorded in; None for none.
    record: RecordOptions | None = None
    #: The release that the API server reports.
    release: Release = DEFAULT_RELEASE


@dataclass(frozen=True, slots=True)
class LabScheduler:
    """The scheduler of a lab: its profiles, and the text they were made from, if there is one."""

    chosen: ChosenProfiles
    text: str | None

    @property
    def release(self) -> Release:
        """The release of an API server for it; the default one where the API is younger."""
        generation = self.chosen.generation
        return DEFAULT_RELEASE if generation.uses_policies else generation.release


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab that is ready."""

    url: str
    token: str
    kubeconfig: Path
    nodes: int
    pods: int


@dataclass(frozen=True, slots=True)
class Terminal:
    """How a lab reports to the terminal it was started from."""

    #: Iterates over the objects that are created, and may show progress.
    progress: Progress
    #: Called with what was left out at the start.
    note: Callable[[str], None]
    #: Called when the lab is ready.
    on_ready: Callable[[LabStatus], None]


def run_lab(
    options: LabOptions, scheduler: LabScheduler | None, log: Log, terminal: Terminal
) -> int:
    """Run a lab until a signal stops it; the exit code. Without *scheduler*, pods stay pending."""
    logging.basicConfig(handlers=[LogHandler(log)], level=logging.WARNING)
    raise_descriptors()
    with _listening(options.port) as listener:
        return run_program(Lab(options, scheduler, log, terminal, listener).run())


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=1024)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "is another lab running? --listen 127.0.0.1:0 takes any free port"
        raise InputError(f"cannot listen on {HOST}:{port}: {reason}", hint=hint) from None


class Lab:
    """One run of a lab."""

    def __init__(
        self,
        options: LabOptions,
        scheduler: LabScheduler | None,
        log: Log,
        terminal: Terminal,
        listener: socket.socket,
    ) -> None:
        self._options, self._scheduler, self._log = options, scheduler, log
        self._terminal, self._listener = terminal, listener
        port = listener.getsockname()[1]
        self._url = f"http://{HOST}:{port}"
        given = options.kubeconfig
        self._kubeconfig = Path(given) if given else default_path(port)
        self._token = read_token(self._kubeconfig)
        self._supervisor = Supervisor()
        #: Set by a signal, perhaps before the lab is ready.
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Run until stopped; the exit code."""
        async with AsyncExitStack() as stack:
            registry = Registry(self._open_store(stack))
            filled = self._fill(registry)
            self._start_controllers(stack, registry, filled.devices)
            tokens = ServiceAccountTokens(registry, self._token.encode())
            routes = _Routes(ApiServer(registry, tokens, self._options.release))
            guard: Any = Guard(routes, token=self._token, tokens=tokens)
            serving_on = serve_on(guard, self._listener, limits=_LIMITS)
            serving = self._supervisor.start("the API server", serving_on)
            stack.push_async_callback(self._supervisor.stop, serving)
            on_stop_signal(self._stopping.set)
            if self._scheduler is not None:
                await self._start_scheduler(stack, self._scheduler, registry, routes)
            if self._stopping.is_set():
                return 0
            write_kubeconfig(self._kubeconfig, self._url, self._token)
            self._terminal.on_ready(self._status(registry))
            creating = self._supervisor.start(
                "the demo", _create_later(registry, filled.later), may_return=True
            )
            stack.push_async_callback(self._supervisor.stop, creating)
            await self._supervisor.until(self._stopping.wait())
        return 0

    def _open_store(self, stack: AsyncExitStack) -> Store:
        if self._options.data is None:
            return Store()
        from podium.lab.store.sqlite import open_store  # noqa: PLC0415  only with --data

        store, journal = open_store(Path(self._options.data))
        stack.callback(journal.close)
        return store

    def _fill(self, registry: Registry) -> FilledLab:
        """Create the first objects, unless the store has some from an earlier run."""
        if registry.store.table("nodes").records or registry.store.table("pods").records:
            return FilledLab(devices=self._options.contents.devices)
        terminal = self._terminal
        return fill(registry, self._options.contents, terminal.progress, terminal.note)

    def _start_controllers(
        self, stack: AsyncExitStack, registry: Registry, devices: Sequence[DeviceSet]
    ) -> None:
        controllers = ControllerManager(
            registry, WallClock(), devices=devices, warn=self._log.warning
        )
        controllers.sync_ready()
        gc.collect()
        collect_rarely()  # what was created by now stays
        stack.callback(controllers.unsubscribe)
        running = self._supervisor.start("the controllers", controllers.run())
        stack.push_async_callback(self._supervisor.stop, running)
        renewing = self._supervisor.start("the leases of nodes", keep_node_leases(registry))
        stack.push_async_callback(self._supervisor.stop, renewing)

    async def _start_scheduler(
        self, stack: AsyncExitStack, wanted: LabScheduler, registry: Registry, routes: _Routes
    ) -> None:
        """Start the scheduler as a client of this lab's API server, and wait until it is synced."""
        access = Access(self._url, Credentials(f"Bearer {self._token}"))
        client = await stack.enter_async_context(ApiClient(access))
        activity = ActivityObserver()
        options = HostOptions(
            scheduler=SchedulerOptions(recorded_nodes=recorded_nodes(self._log.v, RECORDED_NODES)),
            record=self._options.record,
        )
        host = await stack.enter_async_context(
            SchedulerHost(client, wanted.chosen, self._log, options, observers=[activity])
        )
        host.start(self._supervisor)
        scheduler = host.scheduler
        assert scheduler is not None
        page_data = host.page_data(
            activity,
            wanted.chosen,
            wanted.text,
            self._options.planner(registry, wanted.chosen),
            lambda: [
                msgspec.convert(each, PriorityClass) for each in registry.list("PriorityClass")
            ],
        )
        routes.pages = pages(page_data)
        routes.scheduler = host.application()
        await self._supervisor.until(scheduler.synced.wait(), self._stopping.wait())

    def _status(self, registry: Registry) -> LabStatus:
        nodes, pods = (len(registry.store.table(each).records) for each in ("nodes", "pods"))
        return LabStatus(self._url, self._token, self._kubeconfig, nodes, pods)


class _Routes:
    """Pages and endpoints of the scheduler, once it has started, and the API on all other paths."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.pages: Any = None
        self.scheduler: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if self.pages is not None and serves(path):
            await self.pages(scope, receive, send)
        elif self.scheduler is not None and path.startswith(_SCHEDULER_PATHS):
            await self.scheduler(scope, receive, send)
        else:
            await self._api(scope, receive, send)


async def _create_later(
    registry: Registry, later: Sequence[tuple[float, Sequence[Document]]]
) -> None:
    """Create objects some seconds after the start."""
    started = time.monotonic()
    for seconds, documents in later:
        await asyncio.sleep(started + seconds - time.monotonic())
        load(registry, documents)
