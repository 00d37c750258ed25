"""Copies of the cluster, and computing on them in another thread while the scheduler decides.

A copy is the cluster of one moment. It can be used in another thread while the scheduler decides.
What was copied of a node and its pods is kept, and is copied again only after it has changed. Where
much has changed, decisions are made in between.

What a pod that is being bound has reserved is not in a copy before the API server knows it.
"""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import time
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from podium.engine.state.journal import Follower, rows_in
from podium.objects.kinds.pod import PodCondition
from podium.objects.reading.collection import Objects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping

    from podium.cluster.cache.cache import Cache
    from podium.engine.cycle.ties import Ties
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: How many rows are read at once at first; it grows, so that reading ends however fast rows change.
ROWS_AT_ONCE: Final = 16
#: The owners whose pods have a fixed node.
_FIXED_OWNERS: Final = frozenset({"DaemonSet", "Node"})
_LONG_AGO: Final = "1970-01-01T00:00:00Z"
_EVICTED: Final = PodCondition(
    type="DisruptionTarget", status="True", reason="PreemptionByScheduler"
)


class CopiedPod(msgspec.Struct, frozen=True, gc=False):
    """A placed pod: a sample of its class, its own names, and its node."""

    sample: Pod
    key: str
    uid: str
    node: str
    #: Seconds since 1970; infinity when it has not started.
    started: float
    #: Whether it is not placed again: it has a fixed node, is leaving, or its node is not known.
    stays: bool
    leaving: bool
    evicted: bool

    def pod(self, node: str = "") -> Pod:
        """The pod, pending or on a node."""
        namespace, _, name = self.key.partition("/")
        leaves = self.leaving and node
        metadata = replace(
            self.sample.metadata,
            name=name,
            namespace=namespace,
            uid=self.uid,
            deletion_timestamp=_LONG_AGO if leaves else None,
        )
        spec = replace(self.sample.spec, node_name=node)
        status = replace(
            self.sample.status,
            nominated_node_name="",
            phase="",
            start_time=written_time(self.started),
            conditions=[_EVICTED] if leaves and self.evicted else None,
        )
        return replace(self.sample, metadata=metadata, spec=spec, status=status)


@dataclass(slots=True)
class LiveCopy:
    """All objects of one moment; the placed pods are those that stay and those to place again."""

    #: Everything but pods.
    others: Objects
    fixed: list[CopiedPod]
    replayed: list[CopiedPod]
    waiting: list[Pod]
    #: The names of the nodes in the order in which the next pod looks at them.
    order: list[str]
    #: The nominated pods of each node.
    nominated: dict[str, list[Pod]]
    #: The uids of the pods of each pod group that have no node.
    members: dict[str, set[str]]
    #: The rule that breaks ties, at the same position.
    ties: Ties
    #: How many pods stay on their node only because there are too many to place again.
    left_out: int = 0
    #: The time of the last decision before it was copied, in seconds since 1970.
    decided_at: float = 0.0

    def objects(self) -> Objects:
        """The cluster before the first of the pods was placed."""
        objects = self.others.copied()
        objects.pods = [each.pod(each.node) for each in self.fixed]
        return objects

    def take(self, key: str) -> CopiedPod | None:
        """Remove a placed pod that stays on its node; the pod, None if there is none."""
        found = next((each for each in self.fixed if each.key == key), None)
        if found is not None:
            self.fixed.remove(found)
        return found

    def pods(self) -> list[Pod]:
        """The pods to place, in order."""
        return [*(each.pod() for each in self.replayed), *self.waiting]

    def place_again(
        self, most: int, bound: Mapping[str, int], waiting: list[Pod], foreign: Collection[str]
    ) -> None:
        """Let the last *most* pods be placed again, in the order of *bound*, before *waiting*.

        Pods that are not in *bound* come first, by their start. Those of other schedulers, by the
        uids in *foreign*, stay where they are.
        """
        moving: list[CopiedPod] = []
        fixed: list[CopiedPod] = []
        for each in self.fixed:
            (fixed if each.stays or each.uid in foreign else moving).append(each)
        moving.sort(key=lambda each: (bound.get(each.uid, -1), each.started, each.key))
        self.left_out = cut = max(0, len(moving) - most)
        self.fixed, self.replayed = fixed + moving[:cut], moving[cut:]
        self.waiting = waiting


class StaleRows:
    """The rows of a view that changed since they were read; at first all of them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._follower = Follower(view.journal.rows, view.journal)
        self._rows: set[int] = set()

    def note(self) -> bool:
        """Note the rows that changed since the last call; whether all are read anew."""
        view, news = self.view, self._follower.news()
        if news is None:
            self._rows = {*view.nodes.order.tolist(), *view.pods.unknown_nodes}
        else:
            self._rows |= rows_in(news)
        return news is None

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, most: int | None = None) -> list[int]:
        """The next rows to read, at most so many; they count as read."""
        rows, view = self._rows, self.view
        number = len(rows) if most is None else min(most, len(rows))
        found = [rows.pop() for _ in range(number)]
        return [row for row in found if view.nodes.known[row] or row in view.pods.unknown_nodes]


async def until_few_are_left(read: Callable[[int], int]) -> None:
    """Call *read* with a number of rows until few are left, and let other tasks run in between."""
    most = ROWS_AT_ONCE
    while read(most) > ROWS_AT_ONCE:
        most += 1
        await asyncio.sleep(0)


class CopiedScheduler(Protocol):
    """The part of a scheduler that is copied."""

    @property
    def cache(self) -> Cache:
        """Nodes and placed pods."""

    @property
    def ties(self) -> Ties:
        """The rule that breaks ties."""


class ClusterCopies:
    """Makes copies of the cluster of a scheduler, on the event loop of the scheduler."""

    def __init__(self, scheduler: CopiedScheduler) -> None:
        self._scheduler = scheduler
        self._stale = StaleRows(scheduler.cache.columns)
        self._pods: dict[int, tuple[CopiedPod, ...]] = {}
        #: Held while a question is answered: one copy is used up after the other.
        self._answering = asyncio.Lock()

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[Callable[[], LiveCopy]]:
        """Copy what changed since the last copy, with decisions in between.

        What is given makes a copy of the moment at which it is called. Others wait until the block
        ends.
        """
        async with self._answering:
            await until_few_are_left(self._read)
            yield self._now

    def _now(self) -> LiveCopy:
        """The cluster of this moment; every pod stays on its node."""
        self._read()
        cache = self._scheduler.cache
        view = cache.columns
        names = view.nodes.names
        rows = [*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()]
        pods = self._pods
        return LiveCopy(
            _others(view),
            [each for row in rows for each in pods[row]],
            [],
            [],
            [names[row] for row in cache.order().tolist()],
            {node: list(nominated) for node, nominated in view.pods.nominated_pods.items()},
            view.pods.groups.waiting(),
            deepcopy(self._scheduler.ties),
            decided_at=view.decided_at,
        )

    def _read(self, most: int | None = None) -> int:
        """Copy the pods of rows that changed, at most so many rows; how many are left."""
        view = self._scheduler.cache.columns
        if self._stale.view is not view:
            self._stale = StaleRows(view)
        if self._stale.note():
            self._pods.clear()
        for row in self._stale.take(most):
            name, known = view.nodes.names[row], bool(view.nodes.known[row])
            residents = view.pods.residents[row]
            self._pods[row] = tuple([_copied(each, name, known=known) for each in residents])
        return len(self._stale)


def all_objects(
    view: View, pods: Iterable[Pod], assumed: Mapping[str, str]
) -> Callable[[], Objects]:
    """A function for another thread: the cluster of now, whose *pods* are to be placed anew.

    Pods that have finished or are being deleted are left out. A pod that is being bound has its
    *assumed* node already.
    """
    others, all_pods, nodes = _others(view), list(pods), dict(assumed)

    def made() -> Objects:
        others.pods = [
            _on_node(pod, nodes[pod.uid]) if pod.uid in nodes else pod
            for pod in all_pods
            if not pod.finished and not pod.terminating
        ]
        return others

    return made


def _on_node(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def written_time(seconds: float) -> str | None:
    """A time in the form of Kubernetes objects; None for an infinite one."""
    if not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _copied(resident: Resident, node: str, *, known: bool) -> CopiedPod:
    cls = resident.cls
    has_fixed_node = cls.owner is not None and cls.owner.kind in _FIXED_OWNERS
    return CopiedPod(
        cls.sample,
        resident.key,
        resident.uid,
        node,
        resident.started,
        has_fixed_node or resident.terminating or not known,
        resident.terminating,
        resident.evicted,
    )


def _others(view: View) -> Objects:
    nodes = (view.nodes.objects[row] for row in view.nodes.order.tolist())
    found = Objects({kind: list(shelf) for kind, shelf in view.catalog.shelves()})
    found.nodes = [node for node in nodes if node is not None]
    return found


T = TypeVar("T")
P = ParamSpec("P")

#: Garbage is collected after this time even if one thread begins before the other has ended.
LONGEST_SECONDS: Final = 30.0


async def beside_decisions(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Compute something in another thread.

    Garbage is not collected meanwhile: that would hold up decisions, and look at all that is being
    computed again and again.
    """

    def computed() -> T:
        with no_collection():
            return work(*given, **named)

    return await asyncio.to_thread(computed)


def let_go(items: list[T] | dict[str, T]) -> None:
    """Free many items one after the other: freeing all at once would hold up decisions."""
    take = items.popitem if isinstance(items, dict) else items.pop
    while items:
        take()


class _Pauses:
    """How many threads want no collection now, since when, and whether there was one before."""

    lock = threading.Lock()
    number = 0
    since = 0.0
    was_enabled = False


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage until the last of the threads that ask for it has ended."""
    with _Pauses.lock:
        now = time.monotonic()
        if not _Pauses.number:
            _Pauses.was_enabled, _Pauses.since = gc.isenabled(), now
            gc.disable()
        elif _Pauses.was_enabled and now - _Pauses.since > LONGEST_SECONDS:
            gc.collect(0)
            _Pauses.since = now
        _Pauses.number += 1
    try:
        yield
    finally:
        with _Pauses.lock:
            _Pauses.number -= 1
            if not _Pauses.number and _Pauses.was_enabled:
                gc.enable()
