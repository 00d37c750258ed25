"""A whole cluster in one process on virtual time.

`SimulatedCluster` owns an API server with its store, the controllers of the lab with a kubelet for
every node, and any number of schedulers. The schedulers are those of `podium run`, unchanged: they
list, watch, decide, bind, write status and events, and wait for their backoff. Nothing is faked but
time and the network.

    with SimulatedCluster(seed=1) as cluster:
        cluster.load(documents)                    # nodes, pods, workloads; before anything runs
        pods = cluster.record("Pod")               # every write to pods from now on
        scheduler = cluster.add_scheduler(chosen)  # `ChosenProfiles`; the default profile if None
        cluster.run_until_quiet()                  # all pods are bound, or nothing helps them
        cluster.registry.delete("Node", "n1")      # any change that a client could make
        cluster.run_for(60)                        # one virtual minute
        bound = [write for write in pods if write.after and write.after["spec"].get("nodeName")]

The same seed and the same calls give the same history, write for write.
"""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from podium.errors import PodiumError
from podium.extender.client import Post
from podium.host.cluster_run import ClusterRun, Lease, RunOptions
from podium.host.record_run import RecordOptions
from podium.host.scheduler_host import HostOptions
from podium.kube.api import KubeApi
from podium.lab.api.resources import RECORDS_ONLY, STORED
from podium.lab.contents.documents import Document
from podium.lab.contents.loader import LoadResult, Progress, load
from podium.lab.controllers.fake_kubelet import KubeletTimings
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.manager import ControllerManager
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store
from podium.library.profile_choice import ChosenProfiles
from podium.library.profile_source import ProfileSource
from podium.objects.kinds.meta import JsonObject
from podium.objects.reading.garbage import without_gc
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.observers import Observer
from podium.scheduler.state.options import SchedulerOptions
from podium.scheduler.telemetry.logs import WARNINGS_ONLY, Log
from podium.virtual_cluster.event_loop import START, VirtualClock, VirtualEventLoop
from podium.virtual_cluster.history import WriteLog
from podium.virtual_cluster.in_process_api import InProcessApi

#: The longest delay between a write and the watches that report it, with a margin.
SETTLE_SECONDS: Final = 1.0
#: How long schedulers may take to end, in virtual seconds.
_STOP_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOptions:
    """How one replica of a scheduler is run in a simulation."""

    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    #: The lease that this replica competes for; None when it leads from the start.
    lease: Lease | None = None
    #: From how many seconds on a decision is logged as slow; virtual decisions take no time.
    slow_seconds: float = float("inf")
    #: The history that everything is recorded in; None for none.
    record: RecordOptions | None = None
    #: Whether it only judges the placements of another scheduler, and writes nothing.
    shadow: bool = False


class Replica:
    """One scheduler of a simulated cluster, from its start to its end."""

    def __init__(
        self, name: str, run: ClusterRun, task: asyncio.Task[int], log: io.StringIO
    ) -> None:
        self.name = name
        self.run = run
        #: Ends with the exit code that `podium run` would have.
        self.task = task
        self._log = log

    @property
    def scheduler(self) -> Scheduler | None:
        """The scheduler with its cache and queue; None before discovery has ended."""
        return self.run.host.scheduler

    @property
    def is_idle(self) -> bool:
        """Whether it has ended, stands by, or has nothing to do before the next change."""
        if self.task.done():
            return True
        scheduler = self.scheduler
        if scheduler is None or not scheduler.synced.is_set():
            return False
        return not scheduler.leading.is_set() or scheduler.is_idle

    @property
    def log(self) -> str:
        """What it has written to its log, if the log was not passed in."""
        return self._log.getvalue()

    def stop(self) -> None:
        """End it as SIGTERM would; it finishes its writes while the cluster runs on."""
        self.run.stop()


class SimulatedCluster:
    """A cluster on virtual time; use it in a `with`.

    Its methods are called from outside the event loop: `run_for`, `run_until` and `run_until_quiet`
    let virtual time pass. Between two of these calls nothing moves.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        start: float = START,
        kubelet: KubeletTimings | None = None,
        controllers: bool = True,
        without: Collection[type[Controller[Any]]] = (),
        also: Sequence[Callable[[Cluster], Controller[Any]]] = (),
        settle_seconds: float = SETTLE_SECONDS,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """An empty cluster; *seed* decides uids, generated names and jitter.

        *start* is the wall clock at the beginning in seconds since 1970. *kubelet* says how long
        pods take to start and stop, and how long pods of jobs run. The annotation
        `lab.podium/run-seconds` says that for one pod. Without *controllers* nothing happens
        to pods after they are bound; the controllers of *without* do not run, those of *also* run
        beside the others. Nothing may be written for *settle_seconds* before the cluster counts as
        quiet. *warn* is called with failed syncs of controllers.
        """
        self.seed = seed
        self.loop = VirtualEventLoop()
        self.clock = VirtualClock(self.loop, start=start)
        self.registry = Registry(Store(), clock=self.clock.now, rng=self.rng("registry"))
        self.server = ApiServer(self.registry)
        self.replicas: list[Replica] = []
        self._kubelet, self._warn = kubelet, warn
        self._wants_controllers = controllers
        self._without, self._also = without, also
        self._settle_seconds = settle_seconds
        self.controllers: ControllerManager | None = None
        self._controlling: asyncio.Task[None] | None = None
        self._histories: list[WriteLog] = []
        self._changes = 0
        #: When an object other than an event or a lease was last written, in virtual seconds.
        self.last_change = 0.0
        kinds = [row.kind for row in STORED.values() if row.kind not in RECORDS_ONLY]
        self._uncount = self.registry.subscribe(kinds, self._count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))

    @property
    def time(self) -> float:
        """Virtual seconds since the simulation began."""
        return self.loop.time()

    def rng(self, name: str) -> random.Random:
        """A source of randomness for the part called *name*."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311  a simulation, not a secret

    # --- contents ---------------------------------------------------------------------------

    def load(self, items: Iterable[Document | JsonObject], progress: Progress = iter) -> LoadResult:
        """Create objects, in the order in which they depend on each other.

        An object with a `metadata.uid` is taken as it was in its cluster, with status and node, and
        faster; one without is created as by a client. Objects belong to the cluster from then on.
        """
        given = (each if isinstance(each, Document) else Document("", each) for each in items)
        with without_gc(lasting=True):
            return load(self.registry, given, progress, keep_text=True)

    def record(self, *kinds: str) -> WriteLog:
        """Every write to these kinds from now on, with its virtual time."""
        history = WriteLog(self.registry, self.loop.time, kinds)
        self._histories.append(history)
        return history

    # --- schedulers and controllers ---------------------------------------------------------

    def add_scheduler(
        self,
        chosen: ChosenProfiles | None = None,
        *,
        name: str = "scheduler",
        options: ReplicaOptions | None = None,
        client: KubeApi | None = None,
        clock: VirtualClock | None = None,
        log: Log | None = None,
        observers: Sequence[Observer] = (),
        extender_post: Post | None = None,
    ) -> Replica:
        """Start a scheduler, which begins with discovery and lists as soon as time passes.

        *name* is its identity in the election of a leader. *client* sends its requests, *clock* is
        the time of its machine. *observers* are called for every attempt and binding.
        *extender_post* takes the place of HTTP to extenders, which virtual time refuses.
        """
        options = options or ReplicaOptions()
        clock = clock or self.clock
        stream = io.StringIO()
        run = ClusterRun(
            client or InProcessApi(self.server),
            chosen or ProfileSource(environment={}).choose(),
            log or Log(v=WARNINGS_ONLY, stream=stream, clock=clock.now),
            RunOptions(
                host=HostOptions(
                    # Other tasks run after each decision: virtual time has no slices.
                    scheduler=replace(
                        options.scheduler,
                        slice_seconds=0.0,
                        waits_to_lead=options.lease is not None,
                    ),
                    slow_seconds=options.slow_seconds,
                    record=options.record,
                    shadow=options.shadow,
                ),
                lease=options.lease,
                bind_address="127.0.0.1",
                port=0,
            ),
            clocks=clock.clocks(),
            rng=self.rng(name),
            identity=name,
            observers=observers,
            extender_post=extender_post,
        )
        task = self.loop.create_task(run.run(), name=name)
        replica = Replica(name, run, task, stream)
        self.replicas.append(replica)
        return replica

    def start_controllers(self) -> ControllerManager:
        """Start the controllers, which otherwise start when time first passes."""
        if self.controllers is None:
            with without_gc(lasting=True):
                self.controllers = ControllerManager(
                    self.registry,
                    self.clock,
                    timings=self._kubelet,
                    warn=self._warn,
                    without=self._without,
                    also=self._also,
                )
            self._controlling = self.loop.create_task(self.controllers.run(), name="controllers")
        return self.controllers

    # --- time -------------------------------------------------------------------------------

    def run_for(self, seconds: float) -> None:
        """Let so many virtual seconds pass."""
        self.run_until(self.time + seconds)

    def run_until(self, time: float) -> None:
        """Let time pass until *time*, in virtual seconds since the simulation began.

        An exception that ends a scheduler or the controllers is raised here.
        """
        if self._wants_controllers:
            self.start_controllers()
        self.loop.run_until(time)
        self._raise_failures()

    def run_until_quiet(self, limit_seconds: float = 86_400.0) -> bool:
        """Let time pass until nothing more happens by itself; False if *limit_seconds* are over.

        A cluster is quiet when no controller has a key that is due, now or later; a running pod
        with an end has one. No scheduler has a pod that it attempts, that waits in backoff, or that
        it binds. No object was written for `settle_seconds`. Keys that wait for a clock do not
        count: the next tick of a cron job, a deadline of a job, retries after minutes.
        `last_change` is the time of the last write before.
        """
        end = self.time + limit_seconds
        while self.time < end:
            before = self._changes
            self.run_until(min(self.time + self._settle_seconds, end))
            if self._changes == before and self.is_quiet:
                return True
        return False

    @property
    def is_quiet(self) -> bool:
        """Whether controllers and schedulers have nothing to do before the next change."""
        if self.controllers is not None and not self.controllers.cluster.queue.is_idle:
            return False
        return all(replica.is_idle for replica in self.replicas)

    # --- the end ----------------------------------------------------------------------------

    def close(self, *, at_once: bool = False) -> None:
        """Stop the schedulers and the controllers, and close the loop; objects stay readable.

        With *at_once* schedulers do not finish their writes.
        """
        if self.loop.is_closed():
            return
        for replica in () if at_once else self.replicas:
            replica.stop()
        end = self.time + _STOP_SECONDS
        while not (at_once or self.time >= end or all(e.task.done() for e in self.replicas)):
            self.loop.run_for(SETTLE_SECONDS)
        self._uncount()
        for history in self._histories:
            history.close()
        if self.controllers is not None:
            self.controllers.unsubscribe()
        _cancel_all(self.loop)
        self.loop.close()

    def _count(self, _: str, __: JsonObject | None, ___: JsonObject | None) -> None:
        self._changes += 1
        self.last_change = self.loop.time()

    def _raise_failures(self) -> None:
        for task in [each.task for each in self.replicas] + [self._controlling]:
            if task is not None and task.done() and not task.cancelled():
                error = task.exception()
                if error is not None:
                    raise error


def _cancel_all(loop: VirtualEventLoop) -> None:
    """End all tasks of a loop; one that does not end when it is cancelled is a bug."""
    for _ in range(100):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        loop.run_for(SETTLE_SECONDS)
    raise PodiumError(f"tasks that cannot be cancelled: {asyncio.all_tasks(loop)}")
