"""One run of the simulated world: a plan is carried out, and what must hold is checked.

Faults and changes go on for a time. Then faults cease, the cluster comes to rest, and the state of
the schedulers is compared with that of the API server. At the end a scheduler that has seen none of
it is started: it must find nothing left to do.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from podium.cluster.queue.entities import Pool
from podium.engine.framework.decision import Decision
from podium.engine.framework.group_decision import ERROR
from podium.engine.framework.tuning import Tuning
from podium.errors import InputError
from podium.host.cluster_run import Lease
from podium.host.history_rules import record_options, recorded_rules
from podium.host.record_run import RecordOptions
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.connections import ConnectionPool
from podium.kube.credentials import Credentials
from podium.kube.errors import ApiError
from podium.kube.lease import LeaseTimes
from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import STORED
from podium.lab.controllers.fake_kubelet import KubeletTimings
from podium.lab.http.server import ApiServer
from podium.library.profile_choice import ChosenProfiles
from podium.library.profile_source import ProfileSource
from podium.library.snapshots.profile import kept_profile
from podium.objects.kinds.meta import JsonObject
from podium.past.format.frames import SegmentWriter
from podium.past.format.reading import History, Torn
from podium.past.format.writing import Limits
from podium.past.replay.past_decisions import Derived, DerivedGroup, derive_all
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.observers import AttemptResult, GroupAttemptResult, Observer
from podium.scheduler.state.options import SchedulerOptions
from podium.virtual_cluster.cluster import Replica, ReplicaOptions, SimulatedCluster
from podium.virtual_cluster.event_loop import VirtualClock
from world import changes, invariants, objects, rules
from world.network import Network, Sent
from world.plan import EXTENDED, GROUPS, Change, Plan, make_plan
from world.told import LEASE_LOST, REPLICA, Line, LineHandler, ReplicaLog, told_findings

#: Thresholds with which a small cluster reaches every way of computing.
SMALL = Tuning(
    one_by_one=1,
    steady_decisions=1,
    min_reduction=1,
    min_batch_rows=2,
    journal_limit=40,
    steady_rounds=1,
    few_changes=2,
)
LEASE = Lease("kube-system", "podium", LeaseTimes())
#: How long the cluster may take to come to rest once faults have ceased.
REST_SECONDS = 400.0
#: The longest backoff of a pod, and a little more.
LONGEST_BACKOFF = 75.0
#: How long claims of a pod may take to be bound.
VOLUME_SECONDS = 30.0
OPTIONS = SchedulerOptions(volume_seconds=VOLUME_SECONDS, verified_decisions=1)
#: Seconds that a request takes at most once faults have ceased. Not 0: a pod that a controller
#: evicts and makes anew at once would be bound for ever at one instant, while the watch that tells
#: why it cannot stay waits for the end of its pause.
SETTLED_LATENCY = 0.05
#: Controllers that make more pods than this within a second are in a circle: pods are bound,
#: evicted and made anew at one instant, while the watch that tells why they cannot stay has its
#: pause. From then on requests take as long as after the faults; in a cluster they always do.
MOST_PODS_PER_SECOND = 50
#: How often a pod may evict others for a node that it never gets, once faults have ceased.
MOST_PREEMPTIONS = 3
#: After this time every pod is attempted again, whatever has happened, and a little more.
LONGEST_PARKED = 340.0
#: Within this time a scheduler has released what it does not need any more.
CLEAN_UP = 2.0
#: After how many runs garbage is collected.
_SEEDS_PER_COLLECTION = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """A write that the API server has carried out."""

    time: float
    version: int
    #: The replica that has sent it; "" for controllers and changes of the plan.
    writer: str
    kind: str
    type: str
    before: JsonObject | None
    after: JsonObject | None


@dataclass(frozen=True, slots=True)
class Placement:
    """A decision to place a pod, and what the replica had seen of the cluster by then."""

    time: float
    replica: str
    uid: str
    node: str
    pods_seen: int
    nodes_seen: int
    #: The time of the decision about the pod's group, by the clock of the replica.
    cycle: float


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    plan: Plan
    #: One sentence for everything that does not hold.
    findings: list[str]
    injected: Counter[str]
    history: list[Entry]
    requests: int
    bound: int
    seconds: float = 0.0

    def digest(self) -> bytes:
        """The whole history, to be compared with that of another run."""
        seen = [(each.time, each.writer, each.kind, each.type, each.after) for each in self.history]
        return msgspec.json.encode([seen, self.requests, sorted(self.injected.items())])


class Machine(Observer):
    """A machine that runs one replica, and starts it again when it has ended."""

    def __init__(self, world: World, index: int, rate: float) -> None:
        self._world, self._index = world, index
        self.clock = VirtualClock(world.cluster.loop, rate=rate)
        self.starts = 0
        self.replica: Replica | None = None
        self._seen: tuple[int, int] | None = None
        self.start()

    def start(self) -> None:
        """Start the replica under a new identity."""
        world = self._world
        self.starts += 1
        name = f"replica-{self._index}-{self.starts}"
        self.replica = world.add_replica(name, self.clock, self)
        world.names[name] = self.replica
        self.replica.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[int]) -> None:
        """Start again after a pause, as a kubelet would; note an end that no error explains."""
        world = self._world
        world.ended(self.replica, task)
        if not world.is_closing:
            world.cluster.loop.call_later(2.0, self._restart)

    def _restart(self) -> None:
        if not self._world.is_closing:
            self.start()

    def kill(self) -> None:
        """Lose the machine: nothing is sent any more, and nothing is finished."""
        assert self.replica is not None
        name, network = self.replica.name, self._world.network
        self._world.killed.add(name)
        self._world.ends[name] = self._world.cluster.time
        network.dead.add(name)
        network.drop(name)
        self.replica.task.cancel()

    def asked(self) -> None:
        """Note what was known of the cluster when the first extender was asked about a pod."""
        self._seen = self._seen or self._versions()

    def attempted(self, result: AttemptResult) -> None:
        """Note a placement, and what was known of the cluster then."""
        world, replica = self._world, self.replica
        assert replica is not None
        world.attempts[result.pod.uid] += 1
        world.tries.append((world.cluster.time, replica.name, result.pod.key))
        world.decisions.append((world.cluster.time, replica.name, result.decision))
        if result.pod.group:
            about = f"group {result.pod.group}"
            world.tries.append((world.cluster.time, replica.name, about))
        if result.decision.differences:
            parts = "; ".join(result.decision.differences)
            world.findings.append(f"kept answers decide otherwise about {result.pod.key}: {parts}")
        generation = world.plan.generation
        kept = invariants.keeps_nomination(result.decision, generation, result.group)
        world.kept_nominations[result.pod.uid] = world.cluster.time if kept else None
        pods, nodes = self._seen or self._versions()
        self._seen = None
        if result.decision.node is not None:
            place = (result.pod.uid, result.decision.node)
            cycle = 0.0 if result.group is None else result.group.decided_at
            world.placements.append(
                Placement(world.cluster.time, replica.name, *place, pods, nodes, cycle)
            )
        if world.stall_seconds:
            world.stalls.append((world.cluster.time, world.stall_seconds))
            world.cluster.loop.let_pass(world.stall_seconds)
            world.stall_seconds = 0.0

    def group_attempted(self, result: GroupAttemptResult) -> None:
        """Note the pods of a group that were not tried: they keep their nominations as well."""
        if result.decision.code != ERROR:
            for member in result.decision.members:
                if member.decision is None:
                    self._world.kept_nominations[member.pod.uid] = self._world.cluster.time

    def _versions(self) -> tuple[int, int]:
        """The resource versions up to which the replica has seen pods and nodes."""
        assert self.replica is not None
        assert self.replica.scheduler is not None
        reflectors = self.replica.scheduler._informers._reflectors
        return int(reflectors["Pod"].version or 0), int(reflectors["Node"].version or 0)


class World:
    """A cluster in which a plan is carried out."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cluster = SimulatedCluster(
            seed=plan.seed, kubelet=KubeletTimings(start=0.2, stop=0.5, job=5.0)
        )
        self.network = Network(
            self.cluster.loop,
            lambda: self.cluster.server,
            plan.faults,
            self.cluster.rng("network"),
            plan.latency,
            plan.oddity,
            plan.page,
        )
        self.cluster.loop.connector = self.network.connect
        self.names: dict[str, Replica] = {}
        self.killed: set[str] = set()
        self.stopped: set[str] = set()
        self.history: list[Entry] = []
        self.placements: list[Placement] = []
        self.attempts: Counter[str] = Counter()
        #: Every decision, with its time and replica.
        self.decisions: list[tuple[float, str, Decision]] = []
        #: What the replicas have told of failures, when they attempted which pods, and their ends.
        self.lines: list[Line] = []
        self.tries: list[tuple[float, str, str]] = []
        #: When the last attempt of a pod failed and left its nomination as it was, by uid.
        self.kept_nominations: dict[str, float | None] = {}
        #: A replica that is told to stop ends later: once its writes are answered or given up.
        self.ends: dict[str, float] = {}
        self.last_writes: dict[str, float] = {}
        self.findings: list[str] = []
        #: When controllers and users have made pods.
        self._pods_made: list[float] = []
        self.is_closing = False
        #: How long the next decision takes, and whether nothing can be written to disk.
        self.stall_seconds = 0.0
        self.disk_is_full = False
        #: When decisions began to take long, and for how many seconds.
        self.stalls: list[tuple[float, float]] = []
        #: Where histories are recorded, if they are.
        self.folder = (
            tempfile.TemporaryDirectory(prefix="world-") if "record" in plan.features else None
        )
        self.shadow: Replica | None = None
        rules.now[0] = self.cluster.loop.time
        self.machines: list[Machine] = []
        self.chosen = self._present = chosen_profiles(plan)
        self._others = self._packed = chosen_profiles(plan, packed=True)
        self._changing: list[asyncio.Task[None]] = []
        for row in STORED.values():
            self.cluster.registry.subscribe([row.kind], self._recorder(row.kind))

    def _recorder(self, kind: str) -> Callable[..., None]:
        def record(event: str, old: JsonObject | None, new: JsonObject | None) -> None:
            version = self.cluster.registry.store.version
            writer = self.network.writer
            self.history.append(Entry(self.cluster.time, version, writer, kind, event, old, new))
            if kind == "Pod" and old is None:
                self._pod_made()

        return record

    def _pod_made(self) -> None:
        """Let requests take time once pods are made faster than in any cluster."""
        made = self._pods_made
        made.append(self.cluster.time)
        if len(made) > MOST_PODS_PER_SECOND and made[-MOST_PODS_PER_SECOND] > made[-1] - 1.0:
            self.network.latency = max(self.network.latency, SETTLED_LATENCY)

    # --- the parts ----------------------------------------------------------------------------

    def client(self, name: str, clock: VirtualClock) -> ApiClient:
        """The client of a replica, which is that of `podium run`."""
        access = Access(f"http://{name}", Token(self.network))
        access.tls = ClientTls(self.network, name)  # type: ignore[assignment]
        access.use_certificate_of(lambda: (self.network.certificate, b"key"))
        client = ApiClient(access, sleep=clock.sleep, clock=clock.stopwatch)
        # Without a proxy, whatever the environment says.
        client._proxy, client._pool = None, ConnectionPool(access, clock=clock.stopwatch)
        return client

    def add_replica(self, name: str, clock: VirtualClock, observer: Machine) -> Replica:
        """Start a replica; with others it competes for the lease."""
        lease = LEASE if len(self.plan.rates) > 1 else None
        token = REPLICA.set(name)
        try:
            return self._added(name, clock, observer, lease)
        finally:
            REPLICA.reset(token)

    def _added(
        self, name: str, clock: VirtualClock, observer: Machine, lease: Lease | None
    ) -> Replica:
        return self.cluster.add_scheduler(
            self.chosen,
            log=ReplicaLog(name, self.lines, self.cluster.loop.time),
            name=name,
            options=ReplicaOptions(scheduler=OPTIONS, lease=lease, record=self._record(name)),
            client=self.client(name, clock),
            clock=clock,
            observers=[observer],
            extender_post=Extender(self, observer),
        )

    def _record(self, name: str) -> RecordOptions | None:
        """Where the history of a replica is recorded, if it is."""
        if self.folder is None:
            return None
        source = _source(self.plan, packed=False)
        return record_options(f"{self.folder.name}/{name}", Limits(), source, self.chosen)

    def _add_shadow(self) -> Replica:
        """Start a replica that judges the placements of the others, and writes nothing."""
        token = REPLICA.set("shadow")
        try:
            replica = self.cluster.add_scheduler(
                self.chosen,
                log=ReplicaLog("shadow", self.lines, self.cluster.loop.time),
                name="shadow",
                options=ReplicaOptions(scheduler=OPTIONS, shadow=True),
                client=self.client("shadow", self.cluster.clock),
            )
        finally:
            REPLICA.reset(token)
        self.cluster.replicas.remove(replica)
        return replica

    def _start_shadow(self) -> None:
        if not self.is_closing:
            self.shadow = self._add_shadow()
            self.shadow.task.add_done_callback(self._shadow_ended)

    def _shadow_ended(self, task: asyncio.Task[int]) -> None:
        """Start a shadow again whose first requests were refused, as a kubelet would."""
        assert self.shadow is not None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ApiError) and self.shadow.scheduler is None:
            self.cluster.loop.call_later(2.0, self._start_shadow)
        elif error is not None and not self.is_closing:
            self.findings.append(f"the shadow died of {type(error).__name__}: {error}")

    def ended(self, replica: Replica | None, task: asyncio.Task[int]) -> None:
        """Check the end of a replica."""
        assert replica is not None
        self.cluster.replicas.remove(replica)
        self.ends.setdefault(replica.name, self.cluster.time)
        if replica.name not in self.killed:
            self.last_writes[replica.name] = self.cluster.time
        if task.cancelled():
            return
        error, has_begun = task.exception(), replica.scheduler is not None
        if isinstance(error, InputError) and self.disk_is_full and not has_begun:
            return  # a history that cannot be begun ends the program, with a sentence
        if error is not None and (has_begun or not isinstance(error, ApiError)):
            self.findings.append(f"{replica.name} died of {type(error).__name__}: {error}")
        has_lost = any(
            (line.replica, line.text) == (replica.name, LEASE_LOST) for line in self.lines
        )
        if error is None and replica.name not in self.stopped and not has_lost:
            self.findings.append(f"{replica.name} has ended, and nothing says why")

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Carry out the plan, then check everything."""
        plan, cluster = self.plan, self.cluster
        errors = _Errors()
        lines = LineHandler(self.lines, cluster.loop.time)
        root = logging.getLogger("podium")
        root.addHandler(errors)
        root.addHandler(lines)
        was, root.propagate = root.propagate, False
        disk = ExitStack()
        if self.folder is not None:
            disk.enter_context(disk_that_fills(lambda: self.disk_is_full))
            disk.enter_context(self.folder)
        try:
            self._load()
            self.machines = [Machine(self, *each) for each in enumerate(plan.rates)]
            if "shadow" in plan.features and not plan.extender:
                self._start_shadow()
            for change in plan.changes:
                cluster.loop.call_at(change.at, self._apply, change)
            cluster.run_until(plan.seconds)
            self._heal()
            if not self.network.is_stormed:
                self._come_to_rest()
                self._check_rest()
            if self.network.is_stormed:
                self.findings.append("more requests were sent than any backoff allows")
            self._check_shadow()
            self._check_records()
            self.findings += errors.found
            self.findings += invariants.history_findings(self)
            self.findings += told_findings(self)
            bound = sum(1 for each in self.history if invariants.is_binding(each))
            return Outcome(
                plan,
                self.findings,
                self.network.injected,
                self.history,
                len(self.network.sent),
                bound,
                cluster.time,
            )
        finally:
            self.is_closing = True
            root.removeHandler(errors)
            root.removeHandler(lines)
            root.propagate = was
            cluster.loop.set_exception_handler(lambda *_: None)
            self.network.dead.update(self.names)
            cluster.replicas.clear()
            cluster.close()
            disk.close()

    def _load(self) -> None:
        rng = random.Random(f"nodes/{self.plan.seed}")  # noqa: S311
        nodes = [objects.node(f"n{number}", rng) for number in range(self.plan.nodes)]
        features = self.plan.features
        extended = EXTENDED in features
        more = [objects.device_class(extended=extended)] if "devices" in features else []
        self.cluster.load([*objects.priority_classes(), *more, *nodes])

    def _apply(self, change: Change) -> None:
        act, rng = change.act, random.Random(change.number)  # noqa: S311
        if act in changes.acts():
            if act == "compact":
                self.network.injected["compaction"] += 1
            changes.apply(self.cluster.registry, act, change.number)
            return
        if act == "delete-assumed":
            self._delete_assumed(rng)
            return
        self.network.injected[act] += 1
        match act:
            case "stall":
                self.stall_seconds = rng.choice((0.5, 5.0, 20.0))
            case "fill-disk":
                self.disk_is_full = True
                self.cluster.loop.call_later(rng.choice((1.0, 15.0)), self._free_disk)
            case "reconfigure":
                self._reconfigure()
            case "restart-server":
                self._restart_server(rng)
            case "change-certificate":
                self.network.certificate = f"certificate-{change.number}".encode()
            case "change-token":
                self.network.token = f"token-{change.number}"
            case _:
                self._harm(rng.choice(self.machines), act, rng)

    def _harm(self, machine: Machine, act: str, rng: random.Random) -> None:
        """Let something happen to a machine."""
        if act == "set-clock":
            machine.clock.set_forward(rng.uniform(-3600, 3600))
        elif machine.replica is not None and not machine.replica.task.done():
            if act == "kill-replica":
                machine.kill()
            else:
                self.ends[machine.replica.name] = self.cluster.time
                self.stopped.add(machine.replica.name)
                machine.replica.stop()

    def _free_disk(self) -> None:
        self.disk_is_full = False

    def _reconfigure(self) -> None:
        """Let every replica go on with profiles that score otherwise, or with those before."""
        if self.plan.extender:
            return
        self._others, self._present = self._present, self._others
        for replica in self._alive():
            scheduler = replica.scheduler
            if scheduler is not None and scheduler.synced.is_set():
                changing = self._other_profiles(replica, scheduler, self._present)
                self._changing.append(self.cluster.loop.create_task(changing))

    async def _other_profiles(
        self, replica: Replica, scheduler: Scheduler, chosen: ChosenProfiles
    ) -> None:
        """Change the profiles of a replica, and tell its history, as its pages do."""
        await scheduler.reconfigure(chosen.profiles)
        history = replica.run.host.history
        if history is not None:
            source = _source(self.plan, packed=chosen is self._packed)
            history.reconfigured(kept_profile(source, chosen))

    def _delete_assumed(self, rng: random.Random) -> None:
        """Delete a pod between its decision and the answer to its binding, if there is one."""
        assumed = [
            pod
            for replica in self._alive()
            if replica.scheduler is not None
            for pod in self.cluster.registry.list("Pod")
            if replica.scheduler.cache.is_assumed(pod["metadata"]["uid"])
        ]
        if assumed:
            self.network.injected["deleted while assumed"] += 1
            metadata = rng.choice(assumed)["metadata"]
            options = DeleteOptions(grace=rng.choice((None, 0)), uid=metadata["uid"])
            self.cluster.registry.delete("Pod", metadata["name"], "default", options)

    def _restart_server(self, rng: random.Random) -> None:
        """Stop the API server for some seconds; it may have forgotten its history afterwards."""
        self.network.is_down = True
        self.network.downs.append(self.cluster.loop.time())
        forgets = rng.random() < 0.5
        self.network.drop()

        def start() -> None:
            if forgets:
                self.cluster.registry.store.resume(self.cluster.registry.store.version)
                self.cluster.registry.store.table("pods").history.clear()
            self.cluster.server = ApiServer(self.cluster.registry)
            self.network.is_down = False

        self.cluster.loop.call_later(rng.choice((0.1, 2.0, 10.0)), start)

    def _heal(self) -> None:
        """End all faults: from now on every request is answered."""
        self.network.healed.set()
        self.network.latency = SETTLED_LATENCY
        self.network.oddity = 0.0
        self.stall_seconds = 0.0
        self._free_disk()

    def _rest(self) -> None:
        """Let time pass until nothing happens any more, and every replica has seen everything.

        A pod whose attempts end with an error rests and is attempted again for ever, as
        kube-scheduler has it. It is at rest when that has changed nothing for a while.
        """
        end, last, checked = self.cluster.time + REST_SECONDS, self.cluster.time, len(self.history)
        preemptions: Counter[str] = Counter()
        while self.cluster.time < end and not self.network.is_stormed:
            self.cluster.run_for(2.0)
            for entry in self.history[checked:]:
                if not invariants.is_repetition(entry):
                    last = entry.time
                preemptions += invariants.vain_preemptions(self, entry)
            checked = len(self.history)
            for name in [name for name, count in preemptions.items() if count > MOST_PREEMPTIONS]:
                self.cluster.registry.delete("Pod", name, "default")
                del preemptions[name]
            since = self.cluster.time - last
            if (
                since >= 2.0
                and not self.network.is_down
                and self._has_leader()
                and (self.cluster.is_quiet or (since > LONGEST_BACKOFF and self._only_backs_off()))
                and not any(map(self._behind, self._alive()))
            ):
                return
        self.findings.append(f"no rest within {REST_SECONDS:g} s: {self._restless()}")

    def _come_to_rest(self) -> None:
        """Let time pass until nothing is left to do, also for pods that only time wakes."""
        self._rest()
        if self._let_go():
            self._rest()
        late = self._waiting_for_time()
        if late:
            before = len(self.history)
            self.cluster.run_for(LONGEST_PARKED)
            self._rest()
            self.findings += invariants.late_findings(self, before, late)
        self.cluster.run_for(CLEAN_UP)
        self._rest()

    def _waiting_for_time(self) -> set[str]:
        """The pods that may wait although no event wakes them: they are attempted after a time.

        Nothing tells that a node is gone to which a pod is nominated. Nothing tells of a claim that
        is free again if the pod that wants it needs a preemption as well: what rejects it while
        victims are looked for is not remembered, as in kube-scheduler. v1.13 parks a pod whose
        extender could not be asked, and wakes no other pod when one gives up its nomination or is
        resized.
        """
        if self.plan.generation == "v1.13":
            failed = any(what.startswith("extender ") for what in self.network.injected)
            failed |= any(change.act == "resize-pod" for change in self.plan.changes)
            since = self.cluster.time - LONGEST_BACKOFF
            if failed or invariants.gave_up_nominations(self, since):
                return invariants.waiting_pods(self)
        return invariants.lost_nominations(self) | invariants.waiting_claimants(self)

    def _let_go(self) -> bool:
        """Let pods go that hold a nomination and are not attempted any more; whether there are any.

        They are being deleted, or the others of their group are gone. A nomination that could not
        be written is held until the next attempt or the end of the pod, as in kube-scheduler. A
        fresh scheduler would know nothing of it.
        """
        leaving = {
            pod.metadata.name
            for replica in self._alive()
            if replica.scheduler is not None
            for node in replica.scheduler.queue.nominated_nodes()
            for pod in replica.scheduler.queue.nominated_on(node)
            if pod.metadata.deletion_timestamp is not None
            or (
                replica.scheduler.queue.pool_of(pod) in {Pool.GATED, Pool.INCOMPLETE}
                and not self._is_nominated(pod.name)
            )
        }
        for name in sorted(leaving):
            changes.let_go(self.cluster.registry, name)
        return bool(leaving)

    def _is_nominated(self, name: str) -> bool:
        """Whether the API server knows of a nomination of a pod."""
        pod = self.cluster.registry.find("Pod", name, "default")
        return pod is not None and bool(pod["status"].get("nominatedNodeName"))

    def _only_backs_off(self) -> bool:
        """Whether nothing keeps the cluster from rest but pods that are attempted with pauses."""
        controllers = self.cluster.controllers
        if controllers is not None and not controllers.cluster.queue.is_idle:
            return False
        schedulers = [each.scheduler for each in self._alive()]
        return all(
            each is not None
            and not each.binding
            and not len(each._writes)
            and not each.queue.in_flight
            and not any(actions.failure_handler.retrying for actions in each._all_actions())
            for each in schedulers
        )

    def _alive(self) -> list[Replica]:
        return [
            each
            for each in self.cluster.replicas
            if not each.task.done() and each.name not in self.killed
        ]

    def _has_leader(self) -> bool:
        return any(map(leads, self._alive()))

    def _behind(self, replica: Replica) -> list[str]:
        """The kinds of which a replica does not know the present objects."""
        return [] if replica.scheduler is None else invariants.unknown_objects(self, replica)

    def _restless(self) -> str:
        parts = []
        controllers = self.cluster.controllers
        queue = controllers.cluster.queue if controllers is not None else None
        due = queue.next_due() if queue is not None and not queue.is_idle else None
        if due is not None:
            parts.append(f"a controller has work at {due - self.cluster.clock.now():+.1f} s")
        for replica in self._alive():
            scheduler = replica.scheduler
            if scheduler is None or not scheduler.synced.is_set():
                parts.append(f"{replica.name} has not started")
            elif not replica.is_idle:
                counts = {str(pool): n for pool, n in scheduler.queue.counts().items() if n}
                parts.append(
                    f"{replica.name} has {counts}, {scheduler.binding} being bound, "
                    f"{len(scheduler._writes)} writes, {scheduler.queue.in_flight} in flight"
                )
            behind = self._behind(replica)
            if behind:
                parts.append(f"{replica.name} is behind with {behind}")
        if not self._has_leader():
            parts.append("nobody leads")
        return "; ".join(parts) or "objects are written again and again"

    def _check_shadow(self) -> None:
        """A shadow goes on, whatever fails, and writes nothing."""
        if self.shadow is None:
            return
        task = self.shadow.task
        scheduler = self.shadow.scheduler
        if task.done() and not task.cancelled():
            self.findings.append(f"the shadow has ended: {task.exception() or task.result()}")
        elif scheduler is None or not scheduler.synced.is_set():
            self.findings.append("the shadow has not started")
        elif behind := invariants.unknown_objects(self, self.shadow):
            self.findings.append(f"the shadow is behind with {behind}")
        self.findings += [
            f"the shadow sends {sent.method} {sent.path}"
            for sent in self.network.sent
            if sent.replica == "shadow" and sent.method not in {"GET", "WATCH"}
        ]

    def _check_records(self) -> None:
        """Every history that was recorded can be read, and its decisions are made again.

        A decision that took answers of extenders cannot be made again. For pods with a slot it is
        otherwise: their permit reads the time.
        """
        if self.folder is None:
            return
        slots = invariants.pods_with_slots(self)
        given = _source(self.plan, packed=False)
        source = replace(given, policy=None, provider=None, config=None, ask_extenders=True)
        for folder in sorted(Path(self.folder.name).iterdir()):
            if not any(each.stat().st_size for each in folder.iterdir()):
                continue  # the disk was full when it was begun
            for each in derive_all(History(folder), recorded_rules(source)):
                if isinstance(each, Derived) and each.entry.pod in slots:
                    continue
                if isinstance(each, Derived) and each.difference is not None:
                    what = f"{each.entry.pod} at {each.entry.time:.3f}: {each.difference.what}"
                    self.findings.append(f"the history of {folder.name} decides otherwise: {what}")
                elif isinstance(each, DerivedGroup) and each.difference:
                    what = f"{each.entry.group} at {each.entry.time:.3f}: {each.difference}"
                    self.findings.append(f"the history of {folder.name} decides otherwise: {what}")
                elif isinstance(each, Torn) and (each.damaged or folder.name not in self.killed):
                    self.findings.append(f"the history of {folder.name}: {each}")

    # --- the end ------------------------------------------------------------------------------

    def _check_rest(self) -> None:
        """Compare the replicas with the API server, then with a replica that saw none of it."""
        for replica in self._alive():
            self.findings += invariants.state_findings(self, replica)
            history = replica.run.host.history
            writer = history._writer if history is not None else None
            waits = writer is not None and writer.failure and writer._next_try > writer._clock()
            if history is not None and (writer is None or (writer.failure and not waits)):
                self.findings.append(f"{replica.name} records nothing any more")
        self.findings += invariants.stored_findings(self)
        self.is_closing = True
        before = len(self.history)
        leaders = self._alive()
        for replica in leaders:
            self.ends[replica.name] = self.cluster.time
            self.stopped.add(replica.name)
            replica.stop()
        self.cluster.run_for(40.0)
        for replica in leaders:
            if not replica.task.done():
                self.findings.append(f"{replica.name} does not end when it is stopped")
        fresh = self.cluster.add_scheduler(
            self.chosen,
            name="fresh",
            client=self.client("fresh", self.cluster.clock),
            extender_post=Extender(self),
        )
        self.cluster.run_until_quiet(limit_seconds=60.0)
        self.findings += invariants.fresh_findings(self, before)
        self.findings += invariants.state_findings(self, fresh)


def leads(replica: Replica) -> bool:
    """Whether a replica decides: it leads, and was not told to stop."""
    scheduler, elector = replica.scheduler, replica.run._elector
    return (
        scheduler is not None
        and scheduler.leading.is_set()
        and not scheduler._stopping
        and (elector is None or elector.leading)
    )


@contextmanager
def disk_that_fills(is_full: Callable[[], bool]) -> Iterator[None]:
    """Let histories be written to a disk that may be full."""
    write = SegmentWriter._write

    def written(self: SegmentWriter, data: bytes) -> None:
        if is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, data)

    with patch.object(SegmentWriter, "_write", written):
        yield


class Token(Credentials):
    """The token of a replica, which is written anew when the API server wants another one."""

    def __init__(self, network: Network) -> None:
        super().__init__(f"Bearer {network.token}")
        self._network = network

    async def renew(self, *, rejected: bool = False) -> bool:
        """Read the token again."""
        before, self.authorization = self.authorization, f"Bearer {self._network.token}"
        return before != self.authorization


class ClientTls:
    """The client certificate of a replica, which it presents on every connection from now on."""

    def __init__(self, network: Network, replica: str) -> None:
        self._network, self._replica = network, replica

    def load_cert_chain(self, certificate: str, _: str) -> None:
        """Take the certificate of a file."""
        self._network.presented[self._replica] = Path(certificate).read_bytes()


class Extender:
    """An extender that accepts every node, unless a fault happens to it."""

    def __init__(self, world: World, machine: Machine | None = None) -> None:
        self._world, self._machine = world, machine

    async def __call__(self, extender: Any, url: str, body: bytes) -> tuple[int, bytes]:
        if self._machine is not None and not url.endswith("/bind"):
            self._machine.asked()
        async with asyncio.timeout(extender.timeout_seconds):
            answer = await self._answer(url, msgspec.json.decode(body))
        if self._machine is not None and self._machine.replica is not None:
            world = self._world
            world.network.extended.append((world.cluster.time, self._machine.replica.name))
        return answer

    async def _answer(self, url: str, asked: Any) -> tuple[int, bytes]:
        network = self._world.network
        if network.latency:
            await asyncio.sleep(network.rng.uniform(0, network.latency))
        fault = network.pick("extender")
        kind = fault.kind if fault is not None else ""
        if kind == "refused":
            raise ConnectionRefusedError("connection refused")
        if kind == "500":
            return 500, b"broken"
        if kind == "hang":
            await asyncio.Event().wait()
        if fault is not None and kind == "slow":
            await network.pause(fault.seconds)
        reply = self._reply(url.rpartition("/")[2], asked)
        if kind == "lost":
            raise ConnectionResetError("connection reset by peer")
        if kind == "garbage":
            return 200, b"{"
        return 200, msgspec.json.encode(reply)

    def _reply(self, verb: str, asked: Any) -> Any:
        if verb == "filter":
            return {"NodeNames": asked["NodeNames"]}
        if verb == "prioritize":
            return [{"Host": name, "Score": len(name) % 3} for name in asked["NodeNames"]]
        world, machine = self._world, self._machine
        world.network.writer = "fresh"
        if machine is not None and machine.replica is not None:
            world.network.writer = machine.replica.name
        try:
            world.cluster.registry.bind(
                asked["PodName"], asked["PodNamespace"], asked["Node"], uid=asked["PodUID"]
            )
        except Exception as error:  # noqa: BLE001  the reply says so
            return {"Error": str(error)}
        finally:
            replica, world.network.writer = world.network.writer, ""
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        bound = Sent(world.cluster.time, replica, "bind", "POST", path, asked["PodUID"])
        world.network.extenders_bound.append(bound)
        return {"Error": ""}


class _Errors(logging.Handler):
    """Keeps what was logged as an error: there is none in a sound program."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text}: {type(error).__name__}: {error}"
        self.found.append(f"logged as an error: {text}")


def chosen_profiles(plan: Plan, *, packed: bool = False) -> ChosenProfiles:
    """The profiles of the plan's generation, with its extender; *packed* prefers full nodes."""
    chosen = _source(plan, packed=packed).choose()
    if "small thresholds" not in plan.features:
        return chosen
    profile, *others = (replace(each, tuning=SMALL) for each in chosen.profiles)
    return replace(chosen, profile=profile, others=tuple(others))


def _source(plan: Plan, *, packed: bool) -> ProfileSource:
    given: dict[str, Any] = {"environment": {}}
    if "reserve and permit" in plan.features:
        given["rules"] = ("world.rules",)
    if GROUPS in plan.features:
        given["feature_gates"] = ({"GenericWorkload": True},)
    if plan.generation == "v1.36":
        text = msgspec.json.encode(_configuration(plan, packed=packed)).decode()
        return ProfileSource(config="config.json", texts={"config.json": text}, **given)
    if not plan.extender:
        provider = "ClusterAutoscalerProvider" if packed else "DefaultProvider"
        return ProfileSource(provider=provider, **given)
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "extenders": [_extender(plan) | {"httpTimeout": 2_000_000_000}],
    }
    text = msgspec.json.encode(policy).decode()
    return ProfileSource(policy="policy.json", texts={"policy.json": text}, **given)


def _configuration(plan: Plan, *, packed: bool) -> dict[str, Any]:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    strategy = {"type": "MostAllocated" if packed else "LeastAllocated"}
    arguments = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    config["profiles"] = [{"schedulerName": "default-scheduler", "pluginConfig": arguments}]
    if "second profile" in plan.features:
        # Without preemption, and indifferent to images.
        disabled = {
            "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
            "score": {"disabled": [{"name": "ImageLocality"}]},
        }
        config["profiles"].append({"schedulerName": "second", "plugins": disabled})
    if plan.extender:
        config["extenders"] = [_extender(plan) | {"httpTimeout": "2s"}]
    return config


def _extender(plan: Plan) -> dict[str, Any]:
    verbs = {f"{verb}Verb": verb for verb in plan.extender}
    return {
        "urlPrefix": "http://extender.test",
        **verbs,
        "weight": 1,
        "nodeCacheCapable": True,
        "ignorable": plan.extender_ignorable,
    }


def run_plan(plan: Plan) -> Outcome:
    """Carry out one plan."""
    return World(plan).run()


def run_seeds(seeds: Iterable[int]) -> Iterator[Outcome]:
    """Carry out the plans of seeds; garbage is collected between some of them, which is faster."""
    was_on = gc.isenabled()
    gc.disable()
    gc.collect()
    gc.freeze()
    try:
        for number, seed in enumerate(seeds, 1):
            yield run_plan(make_plan(seed))
            if not number % _SEEDS_PER_COLLECTION:
                gc.collect()
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
