"""Informers: a reflector per kind of object that the profiles read."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from podium.kube.discovery import discover
from podium.kube.errors import ApiError
from podium.kube.failure_log import FailureLog
from podium.kube.own_tasks import OwnTasks
from podium.kube.reflector import Reflector
from podium.objects.kinds.registry import KINDS
from podium.scheduler.state.begun_lists import selected
from podium.scheduler.state.clock import real_clocks

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.object_index import ObjectIndex

logger = logging.getLogger(__name__)

#: How often an API server is asked for kinds that it did not serve.
LOOK_AGAIN_SECONDS: Final = 60.0


class Indexes(Protocol):
    """What informers write to."""

    def index(self, kind: str) -> ObjectIndex[Any]:
        """The index of a kind."""


class Informers:
    """Keeps the indexes of a cluster state, or of a recording, up to date.

    All kinds are listed at the same time. Pods are reported last: what they refer to is known by
    then.
    """

    def __init__(
        self,
        client: KubeApi,
        state: Indexes,
        served: Served | None = None,
        *,
        warn: Callable[[str], None] = logger.warning,
        clocks: Clocks | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Read what is *served*; the API server is asked for that at the start unless given."""
        self._client = client
        self._state = state
        self._warn = warn
        self._clocks, self._rng = clocks or real_clocks(), rng
        self._served = served
        self._reflectors: dict[str, Reflector[object]] = {}  # type: ignore[type-var]
        self._tasks = OwnTasks()
        #: The kinds that are wanted and not served, and whether they are asked for again.
        self._unserved: set[str] = set()
        self._looks_again = False
        self._failures = FailureLog(warn)

    def list_again(self, kind: str) -> None:
        """List the objects of a kind anew, because one of them could not be reported."""
        reflector = self._reflectors.get(kind)
        if reflector is not None:
            reflector.list_again()

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that have an informer."""
        return frozenset(self._reflectors)

    async def start(self, kinds: Iterable[str]) -> None:
        """Start informers for these kinds, and return when each has listed its objects."""
        if self._served is None:
            self._served = await discover(self._client, sleep=self._clocks.sleep)
        wanted = set(kinds)
        for kind in sorted(
            wanted - self._reflectors.keys(), key=lambda each: (each == "Pod", each)
        ):
            self._start(kind, self._served)
        if self._unserved and not self._looks_again:
            self._looks_again = True
            kinds = ", ".join(sorted(self._unserved))
            self._warn(
                f"not served by this API server, and not considered until they are: {kinds}; "
                f"it is asked again every {LOOK_AGAIN_SECONDS:.0f} s"
            )
            self._tasks.start("discovery", self._look_again())
        await asyncio.gather(
            *(self._reflectors[kind].synced.wait() for kind in wanted & self._reflectors.keys())
        )

    def _start(self, kind: str, served: Served) -> None:
        path = served.path(kind)
        if path is None:
            self._unserved.add(kind)
            return
        self._unserved.discard(kind)
        read = KINDS[kind]
        reflector = Reflector(
            self._client,
            path,
            read.decoder,
            self._state.index(kind),
            reports=None if read.reports is None else read.reports(),
            may_be_binary=read.has_long_lists,
            params=selected(kind),
            begun=kind,
            after=tuple(self._reflectors.values()) if kind == "Pod" else (),
            warn=self._warn,
            rng=self._rng,
            sleep=self._clocks.sleep,
            clock=self._clocks.timer,
        )
        self._reflectors[kind] = reflector
        self._tasks.start(f"the informer of {kind} objects", reflector.run())

    async def _look_again(self) -> None:
        """Ask at intervals for the kinds that are not served, and watch those that are by then."""
        while True:
            await self._clocks.sleep(LOOK_AGAIN_SECONDS)
            if not self._unserved:
                continue
            try:
                served = await discover(self._client, sleep=self._clocks.sleep)
            except ApiError as error:
                self._failures.failed("discovery", f"discovery: {error}")
                continue
            self._failures.succeeded("discovery")
            found = sorted(self._unserved & served.kinds.keys())
            for kind in found:
                self._start(kind, served)
            if found:
                self._warn(f"served by now, and considered from now on: {', '.join(found)}")

    async def until_dead(self) -> None:
        """Wait until an informer has ended by itself, and raise its exception."""
        await self._tasks.until_one_dies()

    async def stop(self) -> None:
        """Stop all informers."""
        self._reflectors.clear()
        self._looks_again = False
        await self._tasks.end()
