"""A copy of a cluster on virtual time, at rest, to which changes are made, and how full it is.

The copy has the API server and the controllers of the lab and the scheduler of `podium run`. Clocks
do not keep it busy: cron jobs create nothing, autoscalers are frozen unless asked for, and pods of
jobs run on. An interrupt waits for the end of a turn: a task that is interrupted midway could not
go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from podium.lab.api.resources import BY_NAME, STORED
from podium.lab.contents.documents import Document
from podium.lab.contents.loader import Progress
from podium.lab.controllers.autoscaling import HorizontalAutoscaler
from podium.lab.controllers.fake_kubelet import KubeletTimings
from podium.lab.controllers.workloads.cron_jobs import CronJobController
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store
from podium.library.absence import absence_notes
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.decoding import decode
from podium.objects.reading.garbage import without_gc
from podium.virtual_cluster.cluster import SETTLE_SECONDS, SimulatedCluster
from podium.virtual_cluster.event_loop import START
from podium.virtual_cluster.in_process_api import InProcessApi
from podium.what_if.plan.changes import Change, Drain, ReplaceNodes
from podium.what_if.plan.execution import LIMIT_SECONDS, TOGETHER, Applier
from podium.what_if.plan.inputs import newest_time
from podium.what_if.plan.pod_follower import PodFollower
from podium.what_if.plan.results import AppliedChange, Balance, Usage
from podium.what_if.plan.stand_ins import AbsentControllers, StandIns, stand_ins

if TYPE_CHECKING:
    from podium.cluster.cache.columns import Columns
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects
    from podium.scheduler.scheduler import Scheduler
    from podium.virtual_cluster.event_loop import VirtualEventLoop

_T = TypeVar("_T")
#: How often a thread is looked at.
_LOOK_SECONDS: Final = 0.1


@contextmanager
def at_any_time() -> Iterator[None]:
    """Let Ctrl-C raise its `KeyboardInterrupt` at once again, while no loop is running."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not is_main or before is signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def between_turns(loop: VirtualEventLoop) -> Iterator[None]:
    """Let Ctrl-C raise its `KeyboardInterrupt` between two turns of the loop, not inside a task.

    Only in the main thread, and only if the program handles the signal in no other way.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: loop.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def in_thread(work: Callable[[], _T]) -> _T:
    """The result of long work in compiled code, which Ctrl-C would have to wait for otherwise.

    After an interrupt the thread is left to itself; it does not keep the program from ending.
    """
    done: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  raised again below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
    if failed:
        raise failed[0]
    return done[0]


ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
NO_ZONE: Final = "<none>"


def balance(columns: Columns) -> Balance:
    """The use of all nodes of a scheduler's cache, and of their zones."""
    nodes, pods = columns.nodes, columns.pods
    resources = [
        (name, column)
        for name, column in nodes.resources.items()
        if name in {"cpu", "memory"} or bool(nodes.allocatable[column].any())
    ]
    found: list[Usage] = []
    zones: dict[str, Usage] = {}
    for name, row in sorted(nodes.row_of.items()):
        node = nodes.objects[row]
        if node is None:
            continue
        usage = Usage(
            name=name,
            nodes=1,
            pods=pods.counts.item(row),
            requested={key: pods.requested[column].item(row) for key, column in resources},
            allocatable={key: nodes.allocatable[column].item(row) for key, column in resources},
        )
        found.append(usage)
        zone = next((node.labels[key] for key in ZONE_LABELS if key in node.labels), NO_ZONE)
        total = zones.setdefault(
            zone, Usage(name=zone, nodes=0, pods=0, requested={}, allocatable={})
        )
        total.nodes += 1
        total.pods += usage.pods
        for into, amounts in (
            (total.requested, usage.requested),
            (total.allocatable, usage.allocatable),
        ):
            for key, amount in amounts.items():
                into[key] = into.get(key, 0) + amount
    return Balance(zones=[zones[name] for name in sorted(zones)], nodes=found)


#: How long pods take to start in a plan; they stop after their grace period.
TIMINGS: Final = KubeletTimings(start=2.0, stop=None, job=None)
#: Autoscalers look every 15 s, and scale down after the largest proposal of five minutes.
_AUTOSCALING_SECONDS: Final = 316.0
#: Kinds that controllers and the API server make anew in every copy.
_MADE_ANEW: Final = frozenset({"Event", "Lease", "ServiceAccount", "Endpoints", "EndpointSlice"})
_LIST: Final = b'{"apiVersion":"v1","kind":"List","items":[%b]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """How a copy of a cluster is made, and for how long it is followed."""

    #: Decides generated names.
    seed: int = 0
    #: A change that has not come to rest after so much virtual time is given up.
    limit_seconds: float = LIMIT_SECONDS
    timings: KubeletTimings = TIMINGS
    #: The time at the beginning in seconds since 1970; None: the newest time in the objects.
    now: float | None = None
    #: Whether autoscalers work.
    autoscale: bool = False
    #: Whether these are all objects of the cluster: what is not among them does not exist.
    is_whole: bool = False
    #: In which order the pods of a drained node are evicted.
    evicting: str = TOGETHER
    #: Iterates over the objects that are loaded.
    progress: Progress = iter
    #: Called with each step.
    on_step: Callable[[str], None] = lambda _: None


@contextmanager
def open_copy(
    items: Iterable[Document], chosen: ChosenProfiles, options: CopyOptions
) -> Iterator[ClusterCopy]:
    """The copy of a cluster, once it has come to rest; *items* belong to it from then on."""
    chosen = without_extenders(chosen)
    items = list(items)
    absent = stand_ins(items)
    failures: dict[str, str] = {}

    def warn(text: str) -> None:
        failures[": ".join(text.split(": ")[:2])] = text

    autoscale = options.autoscale
    frozen = (CronJobController,) if autoscale else (CronJobController, HorizontalAutoscaler)
    with (
        without_gc(lasting=True),
        SimulatedCluster(
            seed=options.seed,
            start=options.now or newest_time(items) or START,
            kubelet=options.timings,
            without=frozen,
            also=[partial(AbsentControllers, uids=absent.controllers)],
            settle_seconds=_AUTOSCALING_SECONDS if autoscale else SETTLE_SECONDS,
            warn=warn,
        ) as cluster,
        ExitStack() as interrupts,
    ):
        cluster.load([*items, *absent.documents], options.progress)
        interrupts.enter_context(between_turns(cluster.loop))
        controllers = cluster.start_controllers()
        follower = PodFollower(cluster.registry, controllers.cluster.pods, lambda: cluster.time)
        client = InProcessApi(cluster.server, decodes_lists=True)
        replica = cluster.add_scheduler(chosen, observers=[follower], client=client)
        options.on_step("the cluster comes to rest")
        cluster.run_until_quiet(options.limit_seconds)
        controllers.cluster.queue.leave_to_clocks()
        assert replica.scheduler is not None
        yield ClusterCopy(
            cluster, replica.scheduler, follower, chosen, absent, failures, interrupts, options
        )


def without_extenders(chosen: ChosenProfiles) -> ChosenProfiles:
    """The same profiles without extenders: a program on virtual time has no connections."""
    profile, *others = (replace(each, extenders=()) for each in chosen.profiles)
    return replace(chosen, profile=profile, others=tuple(others))


@dataclass(slots=True)
class ClusterCopy:
    """A copy at rest, what was done to it, and what it was made from."""

    cluster: SimulatedCluster
    _scheduler: Scheduler
    follower: PodFollower
    chosen: ChosenProfiles
    absent: StandIns
    _failures: dict[str, str]
    #: Open while interrupts wait for the end of a turn of the event loop.
    interrupts: ExitStack
    _options: CopyOptions
    changes: list[AppliedChange] = field(default_factory=list)
    before: Balance = field(init=False)
    #: Virtual seconds at the first change.
    start: float = field(init=False)
    _applier: Applier = field(init=False)
    _evicts: bool = False

    def __post_init__(self) -> None:
        """Begin: what differs from now on is the result of changes."""
        self.before = self.balance()
        self.follower.begin()
        self.start = self.cluster.time
        self._applier = Applier(
            self.cluster,
            limit_seconds=self._options.limit_seconds,
            evicting=self._options.evicting,
            announce=self._announce,
        )

    def _announce(self, text: str) -> None:
        self.follower.announce(text)
        self._options.on_step(text)

    def make(self, change: Change) -> AppliedChange:
        """Make one change and let the copy come to rest."""
        self._evicts |= isinstance(change, Drain | ReplaceNodes)
        made = self._applier.apply(change)
        made.began, made.ended = (round(at - self.start, 3) for at in (made.began, made.ended))
        self.changes.append(made)
        return made

    @property
    def deleted(self) -> set[str]:
        """The pods that changes name, which are meant to go."""
        return self._applier.deleted

    def balance(self) -> Balance:
        """How full zones and nodes are."""
        return balance(self._scheduler.state.cache.columns)

    def objects(self) -> Objects:
        """All objects of the copy that scheduling reads."""
        store = self.cluster.registry.store
        records = [
            record.data
            for kind in KINDS.values()
            if kind.name in BY_NAME
            for record in store.table(BY_NAME[kind.name].storage).records.values()
        ]
        return decode(_LIST % b",".join(records))

    def documents(self) -> list[Document]:
        """All objects of the copy with all their fields, but those that every cluster has."""
        store, fresh = self.cluster.registry.store, Registry(Store()).store
        return [
            Document("", record.object())
            for resource in STORED.values()
            if resource.kind not in _MADE_ANEW
            for key, record in store.table(resource.storage).records.items()
            if key not in fresh.table(resource.storage).records
        ]

    def notes(self) -> Iterator[str]:
        """What the answer depends on and the input does not have; controllers that fail."""
        if self.absent.is_dump and not self._options.is_whole:
            missing = dict(self.absent.absent)
            if self._evicts and "PodDisruptionBudget" not in self.absent.kinds:
                missing["PodDisruptionBudget"] = 0
            yield from absence_notes(missing)
        for text in self._failures.values():
            controller, _, problem = text.partition(": ")
            yield f"the {controller} of the copy fails: {problem}"
