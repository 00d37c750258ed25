"""Writes events about objects in the background.

`record` queues what happened and returns. A few tasks write the events; one that finds the queue
full, or cannot be written, is dropped and counted.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Self
from zlib import crc32

import msgspec

from podium.kube.api import MERGE_PATCH, KubeApi
from podium.kube.errors import ApiError, is_passing
from podium.kube.events import (
    CORE,
    EVENTS,
    CountingLedger,
    EventWrite,
    Ledger,
    Occurrence,
    Reference,
    SeriesLedger,
)
from podium.kube.own_tasks import OwnTasks
from podium.objects.kinds.meta import Object

_TRIES, _PAUSE_SECONDS = 12, 10.0
_SWEEP_SECONDS = 360.0
_DRAIN_POLL_SECONDS = 0.01
_NOT_FOUND = 404
_NOT_WRITTEN = "an event could not be written"
_encode = msgspec.json.Encoder().encode


class EventRecorder:
    """Writes events through a client. To be used in an `async with`."""

    def __init__(
        self,
        client: KubeApi,
        component: str,
        *,
        api: str = CORE,
        host: str | None = None,
        most: int = 4096,
        writers: int = 4,
        warn: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Write events of *component* to the API "v1" or "events.k8s.io/v1".

        At most *most* events wait to be written. *host* is the machine it runs on; core/v1 events
        of kube-scheduler leave it out, so it is only written when given.
        """
        if api not in {CORE, EVENTS}:
            raise ValueError(f"no API for events: {api!r}")
        self._client = client
        self._component = component
        self._root = f"/apis/{EVENTS}" if api == EVENTS else "/api/v1"
        self._host = host if host is not None else (socket.gethostname() if api == EVENTS else "")
        self._ledger: Ledger = SeriesLedger() if api == EVENTS else CountingLedger()
        self._most = most
        # Events about one object are written by one writer, in their order.
        self._queues: list[deque[EventWrite]] = [deque() for _ in range(writers)]
        self._wakers = [asyncio.Event() for _ in range(writers)]
        self._waiting = 0
        self._warn, self._clock, self._sleep = warn, clock, sleep
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        self._tasks = OwnTasks()
        self._warned: set[str] = set()
        #: The number of events: written, dropped (queue full), spared (only counted), failed.
        self.counts: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        for index in range(len(self._queues)):
            self._tasks.start(f"event writer {index}", self._write_all(index))
        self._tasks.start("the sweep of events", self._sweep())
        return self

    async def until_dead(self) -> None:
        """Wait until a writer has ended by itself, and raise its exception."""
        await self._tasks.until_one_dies()

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.end()

    def record(
        self,
        about: Object | Reference,
        kind: str,
        reason: str,
        message: str,
        *,
        action: str = "Scheduling",
        related: Object | Reference | None = None,
        component: str | None = None,
    ) -> None:
        """Queue an event about an object; *kind* is Normal or Warning."""
        what = Occurrence(
            reference(about),
            kind,
            reason,
            message,
            component or self._component,
            self._host,
            action,
            None if related is None else reference(related),
        )
        if self._waiting >= self._most:
            self.counts["dropped"] += 1
            if self._most:
                self._warn_once("dropped", f"events are dropped: {self._most} wait to be written")
            return
        write = self._ledger.take(what, self._clock())
        if write is None:
            self.counts["spared"] += 1
        else:
            self._enqueue(write, what.about.uid or what.about.name)

    def _enqueue(self, write: EventWrite, key: str) -> None:
        index = crc32(key.encode()) % len(self._queues)  # the same in every process
        self._queues[index].append(write)
        self._wakers[index].set()
        self._waiting += 1

    def abandon(self) -> None:
        """Write no event any more, not even one that waits: another replica leads now."""
        self._tasks.cancel()
        for queue in self._queues:
            self.counts["dropped"] += len(queue)
            queue.clear()
        self._waiting = 0
        self._most = 0

    async def drain(self, seconds: float = 5.0) -> bool:
        """Wait until all queued events are written; False if some are not after *seconds*."""
        try:
            async with asyncio.timeout(seconds):
                while self._waiting:
                    await self._sleep(_DRAIN_POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _write_all(self, index: int) -> None:
        queue, waker = self._queues[index], self._wakers[index]
        while True:
            while queue:
                try:
                    self.counts[await self._written(queue.popleft())] += 1
                except Exception as error:  # noqa: BLE001  one event must not end the writer
                    self.counts["failed"] += 1
                    self._warn_once(f"{type(error).__name__}: {error}", f"{_NOT_WRITTEN}: {error}")
                finally:
                    self._waiting -= 1
            waker.clear()
            await waker.wait()

    async def _sweep(self) -> None:
        while True:
            await self._sleep(_SWEEP_SECONDS)
            self._warned.clear()
            for write in self._ledger.sweep(self._clock()):
                self._enqueue(write, write.name)

    async def _written(self, write: EventWrite) -> str:
        """Send one event, again while the failure may pass; the name of the count for it."""
        last: ApiError | None = None
        for attempt in range(_TRIES):
            try:
                await self._send(write)
            except ApiError as error:
                if not is_passing(error):
                    key = f"{error.status} {error.reason}"
                    self._warn_once(key, f"{_NOT_WRITTEN}: {error}")
                    return "failed"
                last = error
                # The first pause differs, so that replicas do not come back all at once.
                share = self._rng.random() if attempt == 0 else 1.0
                await self._sleep(error.retry_after or _PAUSE_SECONDS * share)
            else:
                return "written"
        self._warn_once(f"tries {last}", f"{_NOT_WRITTEN}: {last}; it was tried {_TRIES} times")
        return "failed"

    async def _send(self, write: EventWrite) -> None:
        path = f"{self._root}/namespaces/{write.namespace}/events"
        if write.patch is not None:
            body = _encode(write.patch)
            try:
                await self._client.request(
                    "PATCH", f"{path}/{write.name}", body=body, content_type=MERGE_PATCH
                )
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
            else:
                return
        await self._client.request("POST", path, body=_encode(write.event))

    def _warn_once(self, key: str, text: str) -> None:
        """Warn of the first failure of a kind in a while: there may be thousands of the same."""
        if key not in self._warned:
            self._warned.add(key)
            self._warn(text)


def reference(thing: Object | Reference) -> Reference:
    """The reference of an event to an object."""
    if isinstance(thing, Reference):
        return thing
    about = thing.metadata
    kind = thing.kind or type(thing).__name__
    return Reference(
        kind,
        about.namespace or "",
        about.name,
        about.uid,
        thing.api_version or "v1",
        about.resource_version,
    )
