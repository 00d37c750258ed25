"""One run of a lab: registry, controllers, API server, scheduler and pages on one port."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shlex
import signal
import socket
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import uvloop

from podium.cli.composition import composed, options_of
from podium.cli.console import note, notes, write
from podium.cli.lab_access import default_place, token_in, write_kubeconfig
from podium.cli.lab_contents import make_world
from podium.daemon.decisions.decision_log import DecisionLog
from podium.daemon.http_server import Health, application, serve_on
from podium.daemon.metrics import Metrics
from podium.daemon.options import SchedulerOptions
from podium.daemon.page_data.activity import Activity
from podium.daemon.page_data.page_data import PageData
from podium.daemon.rule_timings import RuleTimings
from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.credentials import Credentials
from podium.kube.events import CORE, EVENTS
from podium.kube.recorder import EventRecorder
from podium.lab.contents.loader import load
from podium.lab.controllers.framework.clock import WallClock
from podium.lab.controllers.manager import ControllerManager
from podium.lab.http.security import Guard
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store
from podium.library.files import text_from
from podium.objects.kinds.workloads import PriorityClass
from podium.render.documents import to_json_text
from podium.web.app import pages, serves

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from podium.cli.lab import LabFlags
    from podium.lab.contents.documents import Document
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource

HOST: Final = "127.0.0.1"
#: Up to so many nodes the pages show each decision with all its scores, as it was made.
RECORDED_NODES: Final = 500
#: What a scheduler answers besides its pages, as `podium run` does.
_OBSERVED: Final = ("/metrics", "/decisions")


def run_lab(own: LabFlags, flags: ProfileSource) -> int:
    """Run until a signal says stop; the exit code."""
    chosen = None if own.no_scheduler else flags.choose()
    if chosen is not None:
        notes(chosen.profile.notes)
    with (
        _listening(own.port) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_Lab(own, flags, chosen, listener).run())


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=1024)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "is another lab running? --port 0 takes any free port"
        raise InputError(f"cannot listen on {HOST}:{port}: {reason}", hint=hint) from None


class _Lab:
    """What is put together, and in which order it ends."""

    def __init__(
        self,
        own: LabFlags,
        flags: ProfileSource,
        chosen: ChosenProfiles | None,
        listener: socket.socket,
    ) -> None:
        self._own, self._flags, self._chosen, self._listener = own, flags, chosen, listener
        port = listener.getsockname()[1]
        self._url = f"http://{HOST}:{port}"
        self._kubeconfig = Path(own.kubeconfig) if own.kubeconfig else default_place(port)
        self._token = token_in(self._kubeconfig)
        #: Somebody wants it to end, maybe before it has begun.
        self._stopping = asyncio.Event()
        logging.basicConfig(level=logging.ERROR, format="podium: %(message)s")

    async def run(self) -> int:
        async with AsyncExitStack() as stack:
            registry = Registry(self._store(stack))
            later = self._world(registry)
            controllers = ControllerManager(registry, WallClock(), tell=note)
            controllers.sync_ready()
            gc.collect()
            gc.freeze()
            controllers.start()
            stack.push_async_callback(controllers.stop)
            routes = _Routes(ApiServer(registry))
            guard: Any = Guard(routes, token=self._token)
            serving = asyncio.create_task(serve_on(guard, self._listener))
            stack.push_async_callback(_ended, serving)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
            if self._chosen is not None:
                await self._schedule(stack, self._chosen, registry, routes)
            if self._stopping.is_set():
                return 0
            write_kubeconfig(self._kubeconfig, self._url, self._token)
            self._introduce(registry)
            acts = asyncio.create_task(_play(registry, later))
            stack.push_async_callback(_ended, acts)
            await self._stopping.wait()
        return 0

    # What it is made of ----------------------------------------------------------------------

    def _store(self, stack: AsyncExitStack) -> Store:
        if self._own.data is None:
            return Store()
        from podium.lab.store.sqlite import open_store  # noqa: PLC0415  only where something is kept

        store, journal = open_store(Path(self._own.data))
        stack.callback(journal.close)
        return store

    def _world(self, registry: Registry) -> list[tuple[float, Sequence[Document]]]:
        """Make a world where there is none."""
        if registry.store.table("nodes").records or registry.store.table("pods").records:
            return []
        return make_world(registry, self._own)

    async def _schedule(
        self, stack: AsyncExitStack, chosen: ChosenProfiles, registry: Registry, routes: _Routes
    ) -> None:
        """Start the scheduler, as a client of our own API server."""
        access = Access(self._url, Credentials(f"Bearer {self._token}"))
        client = await stack.enter_async_context(ApiClient(access))
        api = CORE if chosen.is_v1_13 else EVENTS
        recorder = EventRecorder(client, chosen.profile.scheduler_name, api=api, warn=note)
        await stack.enter_async_context(recorder)
        timings = RuleTimings()
        metrics, log, pulse = Metrics(timings), DecisionLog(), Activity()
        scheduler = await composed(
            stack,
            client,
            [timings.instrument(each) for each in (chosen.profile, *chosen.others)],
            options=options_of(chosen, SchedulerOptions(recorded_nodes=RECORDED_NODES)),
            recorder=recorder,
            observers=[metrics, log, pulse],
            tell=note,
        )
        working = asyncio.create_task(scheduler.run())

        async def stop() -> None:
            scheduler.stop()
            await working

        stack.push_async_callback(stop)
        page_data = PageData(
            scheduler,
            pulse,
            log=log,
            options=chosen.options,
            text=self._rules_text(),
            priority_classes=lambda: [
                msgspec.convert(each, PriorityClass) for each in registry.list("PriorityClass")
            ],
        )
        routes.pages = pages(page_data)
        routes.observed = application(Health(), metrics, log)
        await _any_of(working, scheduler.synced.wait(), self._stopping.wait())

    def _rules_text(self) -> str | None:
        given = self._flags.policy or self._flags.config
        return None if given is None else text_from(given)

    # What it says -----------------------------------------------------------------------------

    def _introduce(self, registry: Registry) -> None:
        profile = "no scheduler" if self._chosen is None else self._chosen.profile.name
        nodes, pods = (len(registry.store.table(each).records) for each in ("nodes", "pods"))
        page = f"{self._url}/?token={self._token}"
        if self._own.output == "json":
            found: dict[str, Any] = {
                "profile": None if self._chosen is None else profile,
                "server": self._url,
                "token": self._token,
                "kubeconfig": str(self._kubeconfig),
                "page": None if self._chosen is None else page,
                "pid": os.getpid(),
            }
            write(to_json_text(found))
        else:
            file = shlex.quote(str(self._kubeconfig))
            write(f"podium lab: {profile}, {nodes} nodes, {pods} pods\n")
            write(f"  kubectl --kubeconfig {file} get pods -A -o wide\n")
            write(f"  export KUBECONFIG={file}\n")
            if self._chosen is not None:
                write(f"  {page}\n")
            kept = "is kept" if self._own.data else "is gone then; --data DIR keeps it"
            write(f"Ctrl-C ends it; everything {kept}.\n")
        sys.stdout.flush()


class _Routes:
    """The pages, what a scheduler tells about itself, and the API for all the rest."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.pages: Any = None
        self.observed: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if self.pages is not None and serves(path):
            await self.pages(scope, receive, send)
        elif self.observed is not None and path.startswith(_OBSERVED):
            await self.observed(scope, receive, send)
        else:
            await self._api(scope, receive, send)


async def _play(registry: Registry, later: list[tuple[float, Sequence[Document]]]) -> None:
    """What comes after the start."""
    begun = time.monotonic()
    for seconds, documents in later:
        await asyncio.sleep(begun + seconds - time.monotonic())
        load(registry, documents)


async def _any_of(working: asyncio.Task[None], *awaited: Coroutine[Any, Any, Any]) -> None:
    """Wait for one of several things, or for the error that ends *working* before."""
    waiting = {asyncio.ensure_future(each) for each in awaited}
    await asyncio.wait({*waiting, working}, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    if working.done():
        working.result()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
