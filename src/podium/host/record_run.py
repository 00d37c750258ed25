"""`podium history record`: what scheduling reads of a cluster, written to a history as it changes.

Nothing is decided and nothing is written to the cluster: list and watch are all it needs.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.host.event_loop import on_stop_signal, run_program
from podium.kube.client import ApiClient
from podium.objects.kinds.registry import KINDS
from podium.past.format.records import Checkpoint
from podium.past.format.writing import HistoryWriter, Limits
from podium.scheduler.state.clock import real_clocks
from podium.scheduler.state.informers import Informers
from podium.scheduler.state.object_index import KindIndexes
from podium.scheduler.telemetry.logs import LogHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from podium.kube.access import Access
    from podium.kube.api import KubeApi
    from podium.objects.kinds.meta import Object
    from podium.past.format.records import Record
    from podium.past.replay.replay import RulesOf
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.telemetry.logs import Log

#: How often records are written, at least.
FLUSH_SECONDS: Final = 0.5
_NO_PAST: Final = msgspec.Raw(msgspec.msgpack.encode(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """Where a history is written to, and how much of it is kept."""

    folder: str
    limits: Limits
    #: Added to the header of each segment: the profile, above all.
    about: Mapping[str, Any]
    #: Annotations that rules of users read.
    annotations: frozenset[str] = frozenset()
    #: Makes the profiles again from a header.
    rules_of: RulesOf

    def open(self, clock: Callable[[], float]) -> HistoryWriter:
        """Begin a segment in the folder."""
        return HistoryWriter(
            self.folder,
            self.about,
            limits=self.limits,
            annotations=self.annotations,
            clock=clock,
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: how many changes, and how many objects there were at the end."""

    changes: int
    objects: Mapping[str, int]


class ClusterRecorder:
    """Writes every change that informers report to a history."""

    def __init__(self, writer: HistoryWriter, clock: Callable[[], float]) -> None:
        self._writer, self._clock = writer, clock
        #: What the informers write to.
        self.indexes = KindIndexes(self._changed)
        #: How many changes were written.
        self.changes = 0

    def _changed(self, kind: str, old: Object | None, new: Object | None) -> None:
        self.changes += 1
        self._writer.change(self._clock(), kind, old, new)

    def counts(self) -> dict[str, int]:
        """How many objects of each kind there are."""
        return {kind: len(index.known) for kind, index in self.indexes.by_kind.items()}

    def flush(self) -> None:
        """Write what was collected, and start a new segment if the last one has become long."""
        self._writer.flush()
        if self._writer.wants_checkpoint:
            self._writer.start_segment(self._checkpoint())

    def _checkpoint(self) -> Iterator[Record]:
        now = self._clock()
        for kind, index in self.indexes.by_kind.items():
            for item in index.known.values():
                yield self._writer.put_record(now, kind, item)
        yield Checkpoint(now, _NO_PAST, [], {}, {}, [], [])


def run_record(
    access: Access,
    options: RecordOptions,
    log: Log,
    *,
    seconds: float | None,
    on_ready: Callable[[Mapping[str, int]], None],
) -> Recorded:
    """Record until a signal stops the program, or for some seconds."""
    logging.basicConfig(handlers=[LogHandler(log)], level=logging.WARNING)

    async def main() -> Recorded:
        stopping = asyncio.Event()
        on_stop_signal(stopping.set)
        async with ApiClient(access) as client:
            return await record_cluster(
                client, options, log, stopping, seconds=seconds, ready=on_ready
            )

    return run_program(main())


async def record_cluster(
    client: KubeApi,
    options: RecordOptions,
    log: Log,
    stopping: asyncio.Event,
    *,
    seconds: float | None = None,
    ready: Callable[[Mapping[str, int]], None] = lambda _: None,
    clocks: Clocks | None = None,
) -> Recorded:
    """Record what *client* reads until *stopping* is set, or for some seconds after the start."""
    clocks = clocks or real_clocks()
    async with AsyncExitStack() as stack:
        writer = stack.enter_context(options.open(clocks.steady))
        recorder = ClusterRecorder(writer, clocks.steady)
        informers = Informers(client, recorder.indexes, warn=log.warning, clocks=clocks)
        stack.push_async_callback(informers.stop)
        starting = asyncio.ensure_future(
            informers.start(kind.name for kind in KINDS.values() if kind.in_histories)
        )
        ended = asyncio.ensure_future(stopping.wait())
        stack.callback(starting.cancel)
        stack.callback(ended.cancel)
        await asyncio.wait({starting, ended}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            recorder.flush()
            ready(recorder.counts())
        end = None if seconds is None else clocks.steady() + seconds
        while not stopping.is_set() and (end is None or clocks.steady() < end):
            await asyncio.wait({ended}, timeout=FLUSH_SECONDS)
            recorder.flush()
        return Recorded(recorder.changes, recorder.counts())
