"""Following everything that the profiles need to know of a cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from podium.kube.discovery import discover
from podium.kube.reflector import Reflector
from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.daemon.cluster_state import Beliefs
    from podium.kube.client import ApiClient
    from podium.kube.discovery import Served

logger = logging.getLogger(__name__)

#: Pods that ran to their end are of no interest.
_UNFINISHED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


class Watching:
    """A reflector per kind. Pods come last: by then what they refer to is known."""

    def __init__(
        self,
        client: ApiClient,
        beliefs: Beliefs,
        served: Served | None = None,
        tell: Callable[[str], None] = logger.warning,
    ) -> None:
        """Follow what is *served*; the API server is asked unless that is known."""
        self._client = client
        self._beliefs = beliefs
        self._tell = tell
        self._served = served
        self._reflectors: dict[str, Reflector[object]] = {}  # type: ignore[type-var]
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def kinds(self) -> frozenset[str]:
        """What is followed."""
        return frozenset(self._tasks)

    async def start(self, kinds: Iterable[str]) -> None:
        """Follow these kinds, and return when everything there is was seen once."""
        if self._served is None:
            self._served = await discover(self._client)
        wanted = set(kinds)
        for group in (wanted - {"Pod"}, wanted & {"Pod"}):
            for kind in sorted(group - self._tasks.keys()):
                self._follow(kind, self._served)
            await asyncio.gather(
                *(self._reflectors[kind].synced.wait() for kind in group & self._tasks.keys())
            )

    def _follow(self, kind: str, served: Served) -> None:
        path = served.path(kind)
        if path is None:
            logger.info("%s objects are not served here", kind)
            return
        reflector = Reflector(
            self._client,
            path,
            KINDS[kind].decoder,
            self._beliefs.sink(kind),
            params=_UNFINISHED if kind == "Pod" else None,
            tell=self._tell,
        )
        self._reflectors[kind] = reflector
        self._tasks[kind] = asyncio.get_running_loop().create_task(reflector.run())

    async def stop(self) -> None:
        """Follow nothing any more."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        self._reflectors.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
