"""Random histories of the queue against a model with sorted lists and no cleverness."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podium.cluster.queue.entities import Pool, QueuedPod, Turn
from podium.cluster.queue.pools import Backoff
from podium.cluster.queue.queue import QueueOptions, SchedulingQueue
from podium.cluster.wakeups.wakeups import (
    Added,
    ClusterEvent,
    MoveRequest,
    MoveRules,
    Updated,
    WaitedTooLong,
    Wake,
)
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodCondition, PodStatus

START = 1_000_000.0
NAMES = st.sampled_from("abcd")
PRIORITIES = st.integers(0, 1)
TIMES = st.integers(0, 2)


def stamp(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def made(name: str, priority: int, created: float, *, affine: bool = False) -> Pod:
    term = {"labelSelector": {"matchLabels": {"wanted": "yes"}}, "topologyKey": "zone"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "creationTimestamp": stamp(created)},
            "spec": {"priority": priority, "affinity": affinity if affine else None},
        },
        Pod,
    )


def tried(pod: Pod, second: float, reason: str, nominated: str = "") -> Pod:
    written = stamp(math.floor(second))
    conditions = [PodCondition("PodScheduled", "False", reason, written, written)]
    status = PodStatus(conditions=conditions, nominated_node_name=nominated)
    return msgspec.structs.replace(pod, status=status)


def relabelled(pod: Pod, label: str) -> Pod:
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, labels={"l": label})
    )


@dataclass
class Record:
    """Everything the model knows about one pod."""

    pod: Pod
    arrival: int
    time: float
    rejections: int = 0
    errors: int = 0
    failed: float = 0.0
    flushed: float = -math.inf
    rejectors: frozenset[str] = frozenset()

    def rest_ends(self) -> float:
        failures = self.errors or self.rejections
        rest = min(float(1 << (failures - 1)), 10.0)
        return float(math.floor(self.failed + rest))


@dataclass
class Model:
    """The three pools as dictionaries, searched and sorted anew every time."""

    options: QueueOptions
    active: dict[str, Record] = field(default_factory=dict)
    resting: dict[str, Record] = field(default_factory=dict)
    waiting: dict[str, Record] = field(default_factory=dict)
    flight: dict[str, tuple[Record, int]] = field(default_factory=dict)
    nominated: list[tuple[str, str]] = field(default_factory=list)
    arrivals: int = 0
    cycle: int = 0
    moved_in: int = -1
    looks: int = 1

    def pools(self) -> tuple[dict[str, Record], ...]:
        return self.active, self.resting, self.waiting

    def place(self, record: Record, now: float, *, rest: bool) -> None:
        rests = rest and self.options.backoff and (record.errors or record.rejections)
        pool = self.resting if rests and record.rest_ends() >= math.floor(now) else self.active
        pool[record.pod.name] = record

    def pass_time(self, now: float) -> None:
        while START + self.looks * self.options.flush_interval <= now:
            look = START + self.looks * self.options.flush_interval
            self.looks += 1
            late = [
                record
                for record in self.waiting.values()
                if look - max(record.time, record.flushed) > self.options.longest_wait
            ]
            if late:
                self.move([record.pod.name for record in late], look)
        for name, record in list(self.resting.items()):
            if record.rest_ends() < math.floor(now):
                self.active[name] = self.resting.pop(name)

    def move(self, names: Collection[str], now: float) -> None:
        for name in names:
            self.place(self.waiting.pop(name), now, rest=True)
        self.moved_in = self.cycle

    def nominate(self, name: str, node: str) -> None:
        self.nominated = [pair for pair in self.nominated if pair[0] != name]
        if node:
            self.nominated.append((name, node))

    def forget(self, name: str) -> Record | None:
        for pool in self.pools():
            if name in pool:
                return pool.pop(name)
        return None

    def arrive(self, pod: Pod, time: float) -> Record:
        self.arrivals += 1
        return Record(pod, self.arrivals, time)

    def first(self) -> str | None:
        def order(pool: dict[str, Record], *, rest: bool) -> list[str]:
            return sorted(
                pool,
                key=lambda name: (
                    pool[name].rest_ends() if rest else 0,
                    -pool[name].pod.priority,
                    pool[name].time,
                    pool[name].arrival,
                ),
            )

        if self.active:
            return order(self.active, rest=False)[0]
        early = {name: record for name, record in self.resting.items() if not record.errors}
        if early and self.options.pop_resting:
            return order(early, rest=True)[0]
        return None


class QueueMachine(RuleBasedStateMachine):
    """What both generations share: pods come, go, and time passes."""

    options: QueueOptions
    by_clock: ClassVar[bool] = False

    def start(self, options: QueueOptions, rules: MoveRules | TopicRules) -> None:
        self.now = self.seen_until = START
        self.options = options
        self.model = Model(options)
        self.attempts: dict[str, Turn] = {}
        self.queue = SchedulingQueue(lambda: self.now, rules, options)

    def pass_time(self) -> None:
        self.model.pass_time(self.now)
        self.seen_until = self.now

    def pod_time(self, pod: Pod) -> float:
        if self.by_clock:
            return self.now
        conditions = pod.status.conditions
        text = conditions[0].last_probe_time if conditions else pod.metadata.creation_timestamp
        return datetime.fromisoformat(text or "").timestamp()

    @rule(name=NAMES, priority=PRIORITIES, created=TIMES, affine=st.booleans())
    def add(self, name: str, priority: int, created: int, *, affine: bool) -> None:
        pod = made(name, priority, START + created, affine=affine)
        self.queue.add(pod)
        self.pass_time()
        self.model.forget(name)
        self.model.active[name] = self.model.arrive(pod, self.pod_time(pod))
        self.model.nominate(name, "")

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.queue.delete(made(name, 0, START))
        self.pass_time()
        self.model.forget(name)
        self.model.nominate(name, "")

    @rule(seconds=st.sampled_from([0.3, 1.0, 1.7, 5.0, 29.0, 61.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass without a call of the queue; invariants are not checked."""
        self.now += seconds

    @rule(data=st.data())
    @precondition(lambda self: self.attempts)
    def succeed(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.attempts)))
        self.queue.done(self.attempts.pop(name))
        self.model.flight.pop(name, None)

    @rule(name=NAMES, node=st.sampled_from(["n", "m", ""]))
    def nominate(self, name: str, node: str) -> None:
        pod = made(name, 0, START)
        if node:
            self.queue.nominate(pod, node)
        else:
            self.queue.clear_nomination(pod)
        self.model.nominate(name, node)

    @rule()
    def move_all(self) -> None:
        moved = self.queue.move_all()
        self.pass_time()
        assert moved == len(self.model.waiting)
        self.model.move(list(self.model.waiting), self.now)

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        if self.seen_until != self.now:
            return
        counts = self.queue.counts()
        assert counts[Pool.ACTIVE] == len(self.model.active)
        assert counts[Pool.BACKOFF] == len(self.model.resting)
        assert counts[Pool.UNSCHEDULABLE] == len(self.model.waiting)
        places = zip(
            (Pool.ACTIVE, Pool.BACKOFF, Pool.UNSCHEDULABLE), self.model.pools(), strict=True
        )
        for place, pool in places:
            for record in pool.values():
                assert self.queue.pool_of(record.pod) is place
        for node in ("n", "m"):
            pods = [pod.name for pod in self.queue.nominated_on(node)]
            assert pods == [name for name, where in self.model.nominated if where == node]
        assert self.queue.scheduling_cycle == self.model.cycle
        assert self.queue.move_request_cycle == self.model.moved_in

    @invariant()
    def the_shell_knows_when_to_come_back(self) -> None:
        if self.seen_until != self.now:
            return
        ready = self.queue.next_ready_at()
        if self.model.first():
            assert ready == self.now
            return
        ends = [record.rest_ends() + 1 for record in self.model.resting.values()]
        if self.model.waiting:
            ends.append(START + self.model.looks * self.options.flush_interval)
        assert ready == min(ends, default=None)


class V113Machine(QueueMachine):
    """The rules of v1.13, with and without backoff."""

    @initialize(backoff=st.booleans())
    def begin(self, *, backoff: bool) -> None:
        self.start(QueueOptions(backoff=Backoff() if backoff else None), MoveRules())

    @rule()
    def pop(self) -> None:
        attempt = self.queue.pop()
        self.pass_time()
        name = self.model.first()
        assert (attempt and attempt.pod.name) == name
        if attempt and name:
            self.model.cycle += 1
            record = self.model.active.pop(name)
            assert attempt.pod == record.pod
            self.model.flight[name] = (record, self.model.cycle)
            self.attempts[name] = attempt

    @rule(
        data=st.data(),
        reason=st.sampled_from(["Unschedulable", "Unschedulable", "SchedulerError"]),
        nominated=st.sampled_from(["", "", "n"]),
    )
    @precondition(lambda self: self.attempts)
    def fail(self, data: st.DataObject, reason: str, nominated: str) -> None:
        self._fail(data.draw(st.sampled_from(sorted(self.attempts))), reason, nominated)

    def _fail(self, name: str, reason: str, nominated: str) -> None:
        attempt = self.attempts.pop(name)
        pod = tried(attempt.pod, self.now, reason, nominated)
        self.queue.requeue(attempt, pod)
        self.pass_time()
        record, cycle = self.model.flight.pop(name)
        if any(name in pool for pool in self.model.pools()):
            return
        record.pod, record.time, record.failed = pod, self.pod_time(pod), self.now
        record.flushed = -math.inf
        if reason == "Unschedulable":
            record.rejections, record.errors = record.rejections + 1, 0
        else:
            record.errors += 1
        self.model.nominate(name, nominated)
        if reason == "Unschedulable" and cycle > self.model.moved_in:
            self.model.waiting[name] = record
        else:
            self.model.place(record, self.now, rest=True)

    @rule(nominated=st.sampled_from(["", "n"]))
    def park(self, nominated: str) -> None:
        """Pop and fail in one step, so that histories get somewhere."""
        before = set(self.attempts)
        self.pop()
        for name in set(self.attempts) - before:
            self._fail(name, "Unschedulable", nominated)

    @rule(name=NAMES, label=st.sampled_from("xyz"), second=TIMES, spec=st.booleans())
    def update(self, name: str, label: str, second: int, *, spec: bool) -> None:
        found = next((pool[name] for pool in self.model.pools() if name in pool), None)
        flying = self.model.flight.get(name)
        record = found or (flying and flying[0])
        old = record.pod if record else made(name, 0, START)
        new = relabelled(old, label) if spec else tried(old, START + second, "Unschedulable")
        self.queue.update(old, new)
        self.pass_time()
        changed = old.metadata != new.metadata
        self.model.nominate(name, new.status.nominated_node_name)
        record = record or self.model.arrive(new, 0)
        record.pod, record.time = new, self.pod_time(new)
        if name in self.model.waiting and changed:
            del self.model.waiting[name]
            self.model.active[name] = record
        elif not any(name in pool for pool in self.model.pools()):
            self.model.active[name] = record

    @rule(wanted=st.booleans())
    def a_pod_is_assigned(self, *, wanted: bool) -> None:
        assigned = made("assigned", 0, START)
        assigned = msgspec.structs.replace(
            assigned,
            metadata=msgspec.structs.replace(
                assigned.metadata, labels={"wanted": "yes" if wanted else "no"}
            ),
        )
        self.queue.on_event(Added(assigned))
        self.pass_time()
        affine = [n for n, record in self.model.waiting.items() if record.pod.spec.affinity]
        self.model.move(affine if wanted else [], self.now)

    @rule(changed=st.booleans())
    def a_node_changes(self, *, changed: bool) -> None:
        old = msgspec.convert({"metadata": {"name": "n"}}, Node)
        new = msgspec.convert({"metadata": {"name": "n", "labels": {"a": "b"}}}, Node)
        self.queue.on_event(Updated(old, new if changed else old))
        self.pass_time()
        if changed or not self.model.waiting:
            self.model.move(list(self.model.waiting), self.now)


class TopicRules:
    """Rules that show the machinery of v1.36 bare: an event wakes those rejected by its name."""

    keeps_requests: ClassVar[bool] = True

    def requests(self, event: ClusterEvent, waiting: int) -> Sequence[MoveRequest]:
        if isinstance(event, WaitedTooLong):
            return (MoveRequest(event),)
        if isinstance(event, Added):
            return (MoveRequest(event, "Add", frozenset({event.new.name})),)
        return ()

    def interests(self, queued: QueuedPod) -> Collection[str]:
        return queued.rejectors

    def wakes(self, request: MoveRequest, queued: QueuedPod) -> Wake:
        woken = request.topics is None or bool(request.topics & queued.rejectors)
        return Wake.AFTER_BACKOFF if woken else Wake.NO

    def own_update(self, old: Pod, new: Pod, queued: QueuedPod) -> Wake:
        return Wake.NO

    def after_failure(
        self,
        queued: QueuedPod,
        requests: Sequence[MoveRequest],
        *,
        moved: bool,
    ) -> Wake:
        woken = any(self.wakes(request, queued) is not Wake.NO for request in requests)
        return Wake.AFTER_BACKOFF if woken or not queued.rejectors else Wake.NO

    def is_error(self, queued: QueuedPod) -> bool:
        return not queued.rejectors

    def gate(self, pod: Pod) -> str:
        return ""

    def awaited(self, queued: QueuedPod) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(queued.rejectors, ())


PLUGINS = st.sampled_from(["A", "B"])


class V136Machine(QueueMachine):
    """The machinery of v1.36: replayed events, early pops, two kinds of failure."""

    by_clock: ClassVar[bool] = True

    @initialize(early=st.booleans())
    def begin(self, *, early: bool) -> None:
        options = QueueOptions(
            backoff=Backoff(), pod_times=False, pop_resting=early, longest_wait=60.0
        )
        self.start(options, TopicRules())
        #: Every request with the number of the cycle in which it came; the model forgets none.
        self.happened: list[tuple[str, int]] = []
        self.seen: dict[str, int] = {}

    @rule()
    def pop(self) -> None:
        attempt = self.queue.pop()
        self.pass_time()
        while (name := self.model.first()) in self.model.flight:
            self.model.forget(str(name))
        assert (attempt and attempt.pod.name) == name
        if attempt and name:
            self.model.cycle += 1
            record = self.model.forget(name)
            assert record
            self.model.flight[name] = (record, self.model.cycle)
            self.attempts[name] = attempt
            self.seen[name] = len(self.happened)

    def pass_time(self) -> None:
        before = len(self.model.waiting)
        super().pass_time()
        if len(self.model.waiting) < before:
            self.happened.append(("", self.model.cycle))

    @rule(data=st.data(), rejectors=st.frozensets(PLUGINS, max_size=2))
    @precondition(lambda self: self.attempts)
    def fail(self, data: st.DataObject, rejectors: frozenset[str]) -> None:
        self._fail(data.draw(st.sampled_from(sorted(self.attempts))), rejectors)

    @rule(rejectors=st.frozensets(PLUGINS, max_size=2))
    def park(self, rejectors: frozenset[str]) -> None:
        """Pop and fail in one step, so that histories get somewhere."""
        before = set(self.attempts)
        self.pop()
        for name in set(self.attempts) - before:
            self._fail(name, rejectors)

    def _fail(self, name: str, rejectors: frozenset[str]) -> None:
        attempt = self.attempts.pop(name)
        self.queue.requeue(attempt, rejected_by=rejectors)
        self.pass_time()
        record, _ = self.model.flight.pop(name)
        if any(name in pool for pool in self.model.pools()):
            return
        record.rejectors, record.time, record.failed = rejectors, self.now, self.now
        record.flushed = -math.inf
        if rejectors:
            record.rejections, record.errors = record.rejections + 1, 0
        else:
            record.errors += 1
        self.model.nominate(name, "")
        since = {topic for topic, _ in self.happened[self.seen[name] :]}
        if rejectors and not since & {*rejectors, ""}:
            self.model.waiting[name] = record
        else:
            self.model.place(record, self.now, rest=True)

    @rule(topic=PLUGINS)
    def event(self, topic: str) -> None:
        self.queue.on_event(Added(msgspec.convert({"metadata": {"name": topic}}, Node)))
        self.pass_time()
        self.happened.append((topic, self.model.cycle))
        woken = [n for n, record in self.model.waiting.items() if topic in record.rejectors]
        self.model.move(woken, self.now)

    @rule()
    def move_all(self) -> None:
        super().move_all()
        self.happened.append(("", self.model.cycle))


TestV113Queue = V113Machine.TestCase
TestV113Queue.settings = settings(max_examples=500, stateful_step_count=40, deadline=None)
TestV136Queue = V136Machine.TestCase
TestV136Queue.settings = settings(max_examples=500, stateful_step_count=30, deadline=None)
