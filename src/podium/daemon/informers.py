"""Informers: a reflector per kind of object that the profiles read."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from podium.daemon.begun_lists import UNFINISHED
from podium.daemon.clock import real_clocks
from podium.kube.discovery import discover
from podium.kube.reflector import Reflector
from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from podium.daemon.clock import Clocks
    from podium.daemon.object_index import ObjectIndex
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served

logger = logging.getLogger(__name__)


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
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def list_again(self, kind: str) -> None:
        """List the objects of a kind anew, because one of them could not be reported."""
        reflector = self._reflectors.get(kind)
        if reflector is not None:
            reflector.list_again()

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that have an informer."""
        return frozenset(self._tasks)

    async def start(self, kinds: Iterable[str]) -> None:
        """Start informers for these kinds, and return when each has listed its objects."""
        if self._served is None:
            self._served = await discover(self._client, sleep=self._clocks.sleep)
        wanted = set(kinds)
        for kind in sorted(wanted - self._tasks.keys(), key=lambda each: (each == "Pod", each)):
            self._start(kind, self._served)
        await asyncio.gather(
            *(self._reflectors[kind].synced.wait() for kind in wanted & self._tasks.keys())
        )

    def _start(self, kind: str, served: Served) -> None:
        path = served.path(kind)
        if path is None:
            logger.info("%s objects are not served here", kind)
            return
        read = KINDS[kind]
        reflector = Reflector(
            self._client,
            path,
            read.decoder,
            self._state.index(kind),
            reports=None if read.reports is None else read.reports(),
            may_be_binary=read.has_long_lists,
            params=UNFINISHED if kind == "Pod" else None,
            after=tuple(self._reflectors.values()) if kind == "Pod" else (),
            warn=self._warn,
            rng=self._rng,
            sleep=self._clocks.sleep,
            clock=self._clocks.timer,
        )
        self._reflectors[kind] = reflector
        self._tasks[kind] = asyncio.get_running_loop().create_task(reflector.run())

    async def stop(self) -> None:
        """Stop all informers."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._reflectors.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
