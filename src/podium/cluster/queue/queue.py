"""Pods waiting for a node.

A pod is in one place: *active* (to be tried now), *backoff* (tried not long ago), *unschedulable*
(waits until an event could help, or is gated) or *in flight* (being scheduled or bound). `pop`
takes the best active pod; its turn ends with `requeue` or `done`. Which event wakes which pod is
not decided here but by the rule set (`podium.cluster.wakeups.wakeups`).

Nothing runs by itself: time comes from the clock given, and every call first does what timers
would have done since the last one.

Upstream: internal/queue/scheduling_queue.go, Kubernetes v1.13; backend/queue, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from podium.cluster.queue.entities import (
    Entity,
    GroupTurn,
    Pool,
    QueuedPod,
    Turn,
    Waiting,
    written_time,
)
from podium.cluster.queue.heap import DistinctHeap, KeyedHeap, Rank
from podium.cluster.queue.nominations import Nominations
from podium.cluster.queue.pools import Backoff, BackoffPool, InFlight, WaitingPool
from podium.cluster.wakeups.wakeups import (
    ClusterEvent,
    MoveRequest,
    NominationLost,
    Updated,
    WaitedTooLong,
    Wake,
    WakeRules,
)
from podium.objects.kinds.pod import Pod
from podium.objects.times import NEVER

_NO_REST = Backoff(maximum=0.0)
#: In the order of `SchedulingQueue.lengths`.
_POOLS = (Pool.ACTIVE, Pool.BACKOFF, Pool.UNSCHEDULABLE, Pool.GATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How a queue differs from one generation to the next; the defaults are those of v1.13."""

    #: How long pods rest after a failure; `None`: not at all.
    backoff: Backoff | None = None
    #: Whether pods equal in priority and time go in the order of arrival. Otherwise the mechanics
    #: of the heap decide, exactly as they do in kube-scheduler.
    arrival_order: bool = True
    #: Whether pods of higher priority go first; otherwise the order of arrival alone counts.
    by_priority: bool = True
    #: Whether pods are ordered by the times written in them (to the second), or by the clock.
    pod_times: bool = True
    #: How long a pod may wait for an event, and how often that is looked at.
    longest_wait: float = 60.0
    flush_interval: float = 30.0
    #: Whether a pod in backoff is tried early when no other is active.
    pop_resting: bool = False
    #: Whether a nomination survives an update of the pod that does not know of it.
    keep_unwritten_nominations: bool = False
    #: Whether the nomination of a new pod counts while a gate holds it.
    nominates_gated: bool = False


#: Of schedulers that Policy files configure.
OF_POLICIES = QueueOptions()
#: Of those that a KubeSchedulerConfiguration configures.
OF_CONFIGURATIONS = QueueOptions(
    backoff=Backoff(),
    pod_times=False,
    longest_wait=300.0,
    pop_resting=True,
    keep_unwritten_nominations=True,
)


class SchedulingQueue:
    """Pods by priority, then time; synchronous and in memory."""

    def __init__(
        self, clock: Callable[[], float], rules: WakeRules, options: QueueOptions = OF_POLICIES
    ) -> None:
        """An empty queue. The *clock* returns seconds since 1970."""
        self._clock = clock
        self._rules = rules
        self._options = options
        # With the order of arrival in them, no two ranks are equal.
        has_arrival = options.arrival_order or not options.by_priority
        self._active: KeyedHeap[Entity] | DistinctHeap[Entity] = (
            DistinctHeap() if has_arrival else KeyedHeap()
        )
        self._resting = BackoffPool(options.backoff or _NO_REST)
        self._waiting = WaitingPool()
        self._in_flight = InFlight(keep_requests=rules.keeps_requests)
        self._nominations = Nominations(keep_unwritten=options.keep_unwritten_nominations)
        self._arrivals = 0
        self._cycle = 0
        self._move_request_cycle = -1
        self._next_flush = clock() + options.flush_interval

    # --- pods come, change and go ---------------------------------------------------------

    def add(self, pod: Pod) -> Pool:
        """Queue a new pod; one under the same name is replaced."""
        now = self._catch_up()
        self._resting.remove(pod.key)
        self._waiting.remove(pod.key)
        pool = self._add(self._new(pod, now), now)
        if pool is Pool.GATED:
            self._active.remove(pod.key)
        return pool

    def update(self, old: Pod, new: Pod) -> None:
        """Take note of a newer version of an unassigned pod.

        It may wake the pod. In v1.13 a pod that is in no pool is queued, even while it is in
        flight; later versions keep the change until its turn ends.
        """
        now = self._catch_up()
        queued = self._find(new.key)
        if queued is None and new in self._in_flight and self._rules.keeps_requests:
            for request in self._rules.requests(Updated(old, new), len(self._waiting)):
                self._in_flight.record(request)
        elif queued is None:
            queued = self._in_flight.queued(new) or self._new(new, now)
            self._renew(queued, new)
            self._add(queued, now)
        else:
            self._nominations.update(old, new)
            self._renew(queued, new)
            self._replace(old, queued, now)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self.on_event(NominationLost(old))

    def delete(self, pod: Pod, *, bound: bool = False) -> None:
        """Forget a pod that was deleted, or (*bound*) has got its node.

        Pods that made room for a nomination are woken when it ends, also if its write had failed:
        nothing else tells them.
        """
        self._catch_up()
        nominated = self._nominations.node_of(pod) or pod.status.nominated_node_name
        self._nominations.remove(pod)
        if not self._active.remove(pod.key) and not self._resting.remove(pod.key):
            self._waiting.remove(pod.key)
        if nominated and not bound:
            status = replace(pod.status, nominated_node_name=nominated)
            self.on_event(NominationLost(replace(pod, status=status)))

    # --- turns ----------------------------------------------------------------------------

    def pop(self) -> Turn | None:
        """Take the pod to be tried next, or `None` if none is ready (see `next_ready_at`)."""
        self._catch_up()
        while queued := self._pop():
            assert isinstance(queued, QueuedPod)
            # The same pod may not be tried twice at a time, where that is kept track of.
            if not self._rules.keeps_requests or queued.pod not in self._in_flight:
                self._cycle += 1
                queued.attempts += 1
                return self._in_flight.begin(queued, self._cycle)
        return None

    def pop_entity(self) -> Turn | GroupTurn | None:
        """The same, where pods of a group are scheduled together: it may be a group."""
        return self.pop()

    def requeue(
        self,
        turn: Turn,
        pod: Pod | None = None,
        *,
        rejected_by: Iterable[str] = (),
        pending_on: Iterable[str] = (),
        cycle: int | None = None,
    ) -> Pool:
        """Put a pod back whose attempt failed; returns its pool.

        *pod* is its newest version, with the condition that reports the failure; a pod that is
        gone or has a node is `done` instead. *cycle* is the scheduling cycle at the time of the
        failure, if it came late (a failed binding). A pod that is queued already stays as it is.
        """
        now = self._catch_up()
        requests = self._in_flight.since(turn)
        self._in_flight.end(turn)
        pod = pod or turn.pod
        if pool := self._pool_of(pod.key):
            return pool
        queued = turn.queued
        queued.pod = pod
        queued.rejected_by, queued.pending_on = frozenset(rejected_by), frozenset(pending_on)
        self._count_failure(queued, now)
        moved = (turn.cycle if cycle is None else cycle) <= self._move_request_cycle
        self._nominations.refresh(pod)
        return self._enter(queued, self._rules.after_failure(queued, requests, moved=moved), now)

    def done(self, turn: Turn) -> None:
        """End the turn of a pod that was bound or is gone."""
        self._in_flight.end(turn)

    # --- events ---------------------------------------------------------------------------

    def on_event(self, event: ClusterEvent) -> Mapping[str, int]:
        """Wake the pods that an event could help; return how many, by the label of the aspect."""
        now = self._catch_up()
        moved: dict[str, int] = {}
        for request in self._rules.requests(event, len(self._waiting)):
            count = self._move(request, self._waiting.about(request.topics), now)
            if count:
                moved[request.label] = moved.get(request.label, 0) + count
        return moved

    def move_all(self) -> int:
        """Wake every waiting pod, whatever it waits for."""
        now = self._catch_up()
        return self._move_without_event(self._waiting.about(None), now)

    def activate(self, pod: Pod) -> bool:
        """Make one waiting pod ready for its next attempt; whether it waited and is not gated."""
        now = self._catch_up()
        queued = self._waiting.get(pod.key)
        if not isinstance(queued, QueuedPod) or queued.pod.uid != pod.uid:
            return False
        self._waiting.remove(pod.key)
        return self._enter(queued, Wake.NOW, now) is Pool.ACTIVE

    def next_ready_at(self) -> float | None:
        """When `pop` is worth calling again without an event; `None`: only after one."""
        now = self._catch_up()
        if self._active or (self._options.pop_resting and self._resting.has_early()):
            return now
        flush = self._next_flush if self._waiting else None
        times = (self._resting.next_ready_at(), flush)
        return min((time for time in times if time is not None), default=None)

    # --- nominations ----------------------------------------------------------------------

    @property
    def nominations(self) -> Nominations:
        """The pods that are nominated to nodes."""
        return self._nominations

    def nominated_on(self, node: str) -> tuple[Pod, ...]:
        """The pods nominated to a node, in the order of nomination."""
        return self._nominations.on(node)

    def nominated_nodes(self) -> tuple[str, ...]:
        """The nodes to which any pod is nominated."""
        return self._nominations.nodes()

    @property
    def nominations_version(self) -> int:
        """Changes with every nomination that is made or ends."""
        return self._nominations.version

    def nominated_node(self, pod: Pod) -> str:
        """The node to which a pod is nominated, or nothing."""
        return self._nominations.node_of(pod)

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a pod to a node, before its status says so."""
        self._nominations.set(pod, node)

    def clear_nomination(self, pod: Pod) -> None:
        """End a pod's nomination: it was assumed on a node, or the write of it failed."""
        self._nominations.remove(pod)

    # --- looking in -----------------------------------------------------------------------

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self._cycle

    @property
    def move_request_cycle(self) -> int:
        """The scheduling cycle of the last move request; -1 before the first."""
        return self._move_request_cycle

    def pool_of(self, pod: Pod) -> Pool | None:
        """Where the pod waits, if it does."""
        self._catch_up()
        return self._pool_of(pod.key)

    def waiting(self, key: str) -> Waiting | None:
        """Where the pod under this key waits, and what could end that; `None` if it does not."""
        now = self._catch_up()
        queued, pool = self._find(key), self._pool_of(key)
        if queued is None or pool is None:
            return None
        expiry = self._resting.expiry(queued)
        rests = Backoff.rests(expiry, now)
        waits = pool in {Pool.UNSCHEDULABLE, Pool.GATED}
        flush = None
        if pool is Pool.UNSCHEDULABLE:
            since = _waits_since(queued, now)
            flush = since + self._options.longest_wait if since > 0 else self._next_flush
        return Waiting(
            pool,
            since=queued.timestamp,
            attempts=queued.attempts,
            backoff_until=Backoff.ready_at(expiry) if rests else None,
            retried_at=flush,
            gated_by=queued.gated_by,
            awaited=self._rules.awaited(queued) if waits else {},
        )

    @property
    def in_flight(self) -> int:
        """How many pods were popped and neither requeued nor done."""
        return len(self._in_flight)

    def counts(self) -> dict[Pool, int]:
        """How many pods each pool holds."""
        self._catch_up()
        return dict(zip(_POOLS, self.lengths(), strict=True))

    def groups_in_pools(self) -> dict[Pool, tuple[int, int]]:
        """How many groups each pool holds, and how many pods these have."""
        return {}

    def resting(self, changes: int) -> int:  # noqa: ARG002  of groups only
        """How many pods or groups are in backoff and may come out otherwise the next time.

        *changes* counts the changes of the cluster so far.
        """
        return len(self._resting)

    def lengths(self) -> tuple[int, int, int, int]:
        """How many pods were active, in backoff, unschedulable and gated after the last call."""
        gated = self._waiting.gated
        return len(self._active), len(self._resting), len(self._waiting) - gated, gated

    # --- how it works ---------------------------------------------------------------------

    def _catch_up(self) -> float:
        """Do what the timers would have done by now, as of the time they would have fired."""
        now = self._clock()
        if now >= self._next_flush:
            interval = self._options.flush_interval
            fired = self._next_flush + (now - self._next_flush) // interval * interval
            self._next_flush = fired + interval
            self._flush(fired)
        if self._resting.any:
            for queued in self._resting.pop_rested(now):
                self._activate(queued)
        return now

    def _flush(self, now: float) -> None:
        """Wake the pods that have waited too long. With none to wake it is no move request."""
        late = [queued for queued in self._waiting.about(None) if self._late(queued, now)]
        for queued in late:
            queued.flushed_at = now
        if late:
            self._move_without_event(late, now)

    def _late(self, queued: Entity, now: float) -> bool:
        since = _waits_since(queued, now)
        return since != NEVER and now - since > self._options.longest_wait

    def _move_without_event(self, pods: Sequence[Entity], now: float) -> int:
        requests = self._rules.requests(WaitedTooLong(), len(self._waiting))
        return sum(self._move(request, pods, now) for request in requests)

    def _new(self, pod: Pod, now: float) -> QueuedPod:
        self._arrivals += 1
        timestamp = written_time(pod) if self._options.pod_times else now
        return QueuedPod(pod, timestamp, self._arrivals)

    def _pool_of(self, key: str) -> Pool | None:
        if key in self._active:
            return Pool.ACTIVE
        if self._resting.get(key):
            return Pool.BACKOFF
        if queued := self._waiting.get(key):
            return Pool.GATED if queued.gated_by else Pool.UNSCHEDULABLE
        return None

    def pending_pod(self, key: str) -> Pod | None:
        """The pod under this key, if it waits in any of the queues."""
        queued = self._find(key)
        return None if queued is None else queued.pod

    def _find(self, key: str) -> QueuedPod | None:
        """The pod under this key, in whichever pool."""
        found = self._entity(key)
        return found if isinstance(found, QueuedPod) else None

    def _entity(self, key: str) -> Entity | None:
        return self._active.get(key) or self._resting.get(key) or self._waiting.get(key)

    def _add(self, queued: QueuedPod, now: float) -> Pool:
        pool = self._enter(queued, Wake.NOW, now)
        if pool is Pool.ACTIVE or self._options.nominates_gated:
            self._nominations.refresh(queued.pod)
        return pool

    def _pop(self) -> Entity | None:
        queued = self._active.pop()
        if queued is None and self._options.pop_resting:
            queued = self._resting.pop_early()
        return queued

    def _renew(self, queued: QueuedPod, pod: Pod) -> None:
        queued.pod = pod
        if self._options.pod_times:
            queued.timestamp = written_time(pod)

    def _replace(self, old: Pod, queued: QueuedPod, now: float) -> None:
        """Restore the order after a queued pod changed; a waiting one may wake."""
        key = queued.key
        if key in self._active:
            self._activate(queued)
        elif self._resting.get(key):
            self._resting.put(queued, self._rank(queued))
        elif (wake := self._rules.own_update(old, queued.pod, queued)) is Wake.NO:
            self._waiting.put(queued, self._interests(queued))
        else:
            self._waiting.remove(key)
            self._enter(queued, wake, now)

    def _count_failure(self, queued: QueuedPod, now: float) -> None:
        if self._rules.is_error(queued):
            queued.errors += 1
        else:
            queued.rejections += 1
            queued.errors = 0
        queued.failed_at, queued.flushed_at = now, NEVER
        queued.timestamp = written_time(queued.pod) if self._options.pod_times else now

    def _move(self, request: MoveRequest, pods: Iterable[Entity], now: float) -> int:
        moved = 0
        for queued in pods:
            if queued.gated_by and request.topics and queued.gated_by not in request.topics:
                continue
            wake = self._wakes(request, queued)
            if wake is not Wake.NO:
                self._waiting.remove(queued.key)
                self._enter(queued, wake, now)
                moved += 1
        self._move_request_cycle = self._cycle
        self._in_flight.record(request)
        return moved

    def _interests(self, queued: Entity) -> Collection[str]:
        """The topics under which a waiting entity is to be found."""
        assert isinstance(queued, QueuedPod)
        return self._rules.interests(queued)

    def _wakes(self, request: MoveRequest, queued: Entity) -> Wake:
        """What an event does to a waiting entity."""
        assert isinstance(queued, QueuedPod)
        return self._rules.wakes(request, queued)

    def _enter(self, queued: Entity, wake: Wake, now: float) -> Pool:
        """Put an entity, which is in no pool, where it belongs. Gates are looked at here only."""
        if wake is not Wake.NO:
            queued.gated_by = self._gate(queued)
        if queued.gated_by or wake is Wake.NO:
            self._waiting.put(queued, self._interests(queued))
            return Pool.GATED if queued.gated_by else Pool.UNSCHEDULABLE
        if wake is Wake.AFTER_BACKOFF and self._resting.must_rest(queued, now):
            self._resting.put(queued, self._rank(queued))
            return Pool.BACKOFF
        self._activate(queued)
        return Pool.ACTIVE

    def _gate(self, queued: Entity) -> str:
        """What keeps an entity from being tried: a plugin that holds one of its pods."""
        found = ""
        for each in queued.members():
            each.gated_by = self._rules.gate(each.pod)
            if each.gated_by:
                each.rejected_by |= {each.gated_by}
                found = each.gated_by
        return found

    def _activate(self, queued: Entity) -> None:
        self._active.put(queued.key, queued, self._rank(queued))

    def _rank(self, queued: Entity) -> Rank:
        if not self._options.by_priority:
            return (0, 0.0, queued.arrival)
        rank: Rank = (-queued.priority, queued.timestamp)
        return (*rank, queued.arrival) if self._options.arrival_order else rank


def _waits_since(queued: Entity, now: float) -> float:
    """Since when an entity waits, as far as this clock can tell.

    A time in a pod may be ahead: the clock of the machine that wrote it was. It does not count.
    """
    written = queued.timestamp if queued.timestamp <= now else 0.0
    return max(written, queued.flushed_at)
