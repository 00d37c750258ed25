"""The queue where pods of a group wait together: an entity is a pod, or a group with its pods.

Pods of a group are never queued alone. A group whose cycle failed backs off, and is tried again
when that is over: no event wakes it before, because no plugin rejects a group.

Upstream: backend/queue/scheduling_queue.go, Kubernetes v1.37, without composite groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from typing_extensions import override

from podium.cluster.queue.entities import (
    Entity,
    GroupTurn,
    Pool,
    QueuedGroup,
    QueuedPod,
    Turn,
    Waiting,
    entity_key,
)
from podium.cluster.queue.pools import Backoff
from podium.cluster.queue.queue import QueueOptions, SchedulingQueue
from podium.cluster.wakeups.wakeups import MoveRequest, NominationLost, Updated, Wake, WakeRules
from podium.engine.framework.group_decision import ERROR, SUCCESS, Code
from podium.engine.rules.pod_groups import NAME as GANG_SCHEDULING
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import PodGroup
from podium.objects.times import NEVER

_STRENGTH = {Wake.NO: 0, Wake.AFTER_BACKOFF: 1, Wake.NOW: 2}


class GroupQueue(SchedulingQueue):
    """Pods and groups by priority, then time."""

    def __init__(self, clock: Callable[[], float], rules: WakeRules, options: QueueOptions) -> None:
        """An empty queue."""
        super().__init__(clock, rules, options)
        #: The groups that exist.
        self._groups: dict[str, PodGroup] = {}
        #: The group of each pod that waits in any way.
        self._group_of: dict[str, str] = {}
        #: The groups that are in a pool.
        self._entities: dict[str, QueuedGroup] = {}
        #: Pods of groups that do not exist, and those that joined while their group was tried.
        self._incomplete: dict[str, dict[str, QueuedPod]] = {}
        self._pending: dict[str, dict[str, QueuedPod]] = {}
        #: The groups that are being tried.
        self._tried: set[str] = set()

    # --- groups ---------------------------------------------------------------------------------

    def put_group(self, group: PodGroup) -> None:
        """A group was added or changed; pods that waited for it are queued."""
        now = self._catch_up()
        self._groups[group.key] = group
        entity = self._entities.get(group.key)
        if entity is not None:
            entity.group = group
        for queued in self._incomplete.pop(group.key, {}).values():
            self._join(queued, now)

    def drop_group(self, group: PodGroup) -> None:
        """A group was deleted; its pods wait until it exists again."""
        self._catch_up()
        self._groups.pop(group.key, None)
        entity, _ = self._take(group.key)
        left = dict(entity.pods) if entity is not None else {}
        left |= self._pending.pop(group.key, {})
        if left:
            self._incomplete.setdefault(group.key, {}).update(left)

    def group_of(self, pod: Pod) -> QueuedGroup | None:
        """The group that a pod waits with, if it is in a pool."""
        entity = self._entities.get(pod.group)
        return entity if entity is not None and pod.key in entity.pods else None

    # --- pods -----------------------------------------------------------------------------------

    @override
    def add(self, pod: Pod) -> Pool:
        if not pod.group:
            return super().add(pod)
        now = self._catch_up()
        self._leave(pod)
        self._nominations.refresh(pod)
        return self._join(self._new(pod, now), now)

    @override
    def update(self, old: Pod, new: Pod) -> None:
        if not new.group:
            super().update(old, new)
            return
        now = self._catch_up()
        queued = self._find(new.key)
        if queued is None and new in self._in_flight:
            for request in self._rules.requests(Updated(old, new), len(self._waiting)):
                self._in_flight.record(request)
        elif queued is None:
            self.add(new)
        else:
            self._nominations.update(old, new)
            queued.pod = new
            entity = self._entities.get(new.group)
            if entity is not None and self._waiting.get(entity.key) is not None:
                self._own_update(old, new, entity, now)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self.on_event(NominationLost(old))

    def _own_update(self, old: Pod, new: Pod, entity: QueuedGroup, now: float) -> None:
        """The hints of all pods of the group are asked about a change of one of them."""
        for request in self._rules.requests(Updated(old, new), 0):
            wake = self._wakes(request, entity)
            if wake is not Wake.NO:
                self._waiting.remove(entity.key)
                self._enter(entity, wake, now)
                return

    @override
    def delete(self, pod: Pod, *, bound: bool = False) -> None:
        if pod.group:
            self._catch_up()
            self._leave(pod)
        super().delete(pod, bound=bound)

    @override
    def activate(self, pod: Pod) -> bool:
        if not pod.group:
            return super().activate(pod)
        now = self._catch_up()
        entity, wake = self._take(pod.group)
        if entity is None:
            return False
        return self._enter(entity, Wake.NOW, now) is Pool.ACTIVE and wake is not Wake.NOW

    # --- turns ----------------------------------------------------------------------------------

    @override
    def pop(self) -> Turn | None:
        raise RuntimeError("a queue with groups gives entities: call pop_entity")

    @override
    def pop_entity(self) -> Turn | GroupTurn | None:
        self._catch_up()
        while queued := self._pop():
            if isinstance(queued, QueuedGroup):
                return self._begin_group(queued)
            if queued.pod not in self._in_flight:
                self._cycle += 1
                queued.attempts += 1
                return self._in_flight.begin(queued, self._cycle)
        return None

    def _begin_group(self, queued: QueuedGroup) -> GroupTurn:
        self._cycle += 1
        members = tuple(queued.members())
        queued.attempts += 1
        del self._entities[queued.group.key]
        self._tried.add(queued.group.key)
        turns = []
        for each in members:
            del self._group_of[each.key]
            each.attempts += 1
            turns.append(self._in_flight.begin(each, self._cycle))
        return GroupTurn(queued, queued.group, tuple(turns), self._cycle, queued.attempts)

    @override
    def requeue(
        self,
        turn: Turn,
        pod: Pod | None = None,
        *,
        rejected_by: Iterable[str] = (),
        pending_on: Iterable[str] = (),
        cycle: int | None = None,
    ) -> Pool:
        given = pod or turn.pod
        if not given.group:
            return super().requeue(
                turn, pod, rejected_by=rejected_by, pending_on=pending_on, cycle=cycle
            )
        now = self._catch_up()
        self._in_flight.end(turn)
        if pool := self._pool_of(given.key):
            return pool
        queued = turn.queued
        queued.pod = given
        queued.rejected_by, queued.pending_on = frozenset(rejected_by), frozenset(pending_on)
        self._count_failure(queued, now)
        self._nominations.refresh(given)
        return self._join(queued, now, failed=True)

    def requeue_group(self, turn: GroupTurn, code: Code, seen_changes: int = -1) -> Pool | None:
        """End the turn of a group; its pods that came back, and new ones, are the group again.

        *code* is the status of the cycle, *seen_changes* the number of changes of the cluster that
        it had seen. None if no pod is left.
        """
        now = self._catch_up()
        key = turn.group.key
        self._tried.discard(key)
        pods = self._pending.pop(key, {})
        if not pods:
            return None
        group = self._groups.get(key)
        if group is None:
            self._incomplete.setdefault(key, {}).update(pods)
            return Pool.INCOMPLETE
        entity, before = QueuedGroup(group, turn.queued.timestamp, turn.queued.arrival), turn.queued
        entity.attempts, entity.pods, entity.size = before.attempts, pods, len(pods)
        entity.rejections, entity.errors = before.rejections, before.errors
        tried = {each.pod.uid for each in turn.members}
        if code == SUCCESS:
            # What is left of a group that was scheduled is tried at once, so that it may preempt.
            entity.rejections = entity.errors = 0
        elif code == ERROR:
            entity.errors += 1
        else:
            entity.rejections, entity.errors = entity.rejections + 1, 0
            entity.seen_changes = seen_changes
        if code != SUCCESS or not any(each.pod.uid in tried for each in pods.values()):
            entity.timestamp = now
        entity.failed_at, entity.flushed_at = entity.timestamp, NEVER
        wake = Wake.NOW if code == SUCCESS else Wake.AFTER_BACKOFF
        return self._enter(entity, wake, now)

    # --- looking in -----------------------------------------------------------------------------

    @override
    def counts(self) -> dict[Pool, int]:
        found = super().counts()
        found[Pool.INCOMPLETE] = sum(map(len, self._incomplete.values()))
        found[Pool.PENDING] = sum(map(len, self._pending.values()))
        return found

    def group_pool(self, group: str) -> Pool | None:
        """Where a group waits; None if it does not."""
        return super()._pool_of(entity_key(group))

    @override
    def groups_in_pools(self) -> dict[Pool, tuple[int, int]]:
        found: dict[Pool, tuple[int, int]] = {}
        for entity in self._entities.values():
            pool = super()._pool_of(entity.key)
            assert pool is not None  # a group that is an entity is in a pool
            groups, pods = found.get(pool, (0, 0))
            found[pool] = groups + 1, pods + len(entity.pods)
        return found

    @override
    def resting(self, changes: int) -> int:
        in_vain = sum(
            entity.seen_changes == changes and self._resting.get(entity.key) is not None
            for entity in self._entities.values()
        )
        return super().resting(changes) - in_vain

    @override
    def lengths(self) -> tuple[int, int, int, int]:
        active, resting, waiting, gated = super().lengths()
        for entity in self._entities.values():
            others = len(entity.pods) - 1
            if entity.key in self._active:
                active += others
            elif self._resting.get(entity.key) is not None:
                resting += others
            elif entity.gated_by:
                gated += others
            else:
                waiting += others
        return active, resting, waiting, gated

    @override
    def waiting(self, key: str) -> Waiting | None:
        now = self._catch_up()
        queued, pool = self._find(key), self._pool_of(key)
        entity = None if queued is None else self.group_of(queued.pod)
        if queued is None or pool is None or not queued.pod.group:
            return super().waiting(key)
        expiry = NEVER if entity is None else self._resting.expiry(entity)
        rests = Backoff.rests(expiry, now)
        return Waiting(
            pool,
            since=queued.timestamp,
            attempts=queued.attempts,
            backoff_until=Backoff.ready_at(expiry) if rests else None,
            retried_at=None,
            gated_by="" if entity is None else entity.gated_by,
            awaited=self._rules.awaited(queued) if pool is Pool.GATED else {},
        )

    # --- how it works ---------------------------------------------------------------------------

    def _join(self, queued: QueuedPod, now: float, *, failed: bool = False) -> Pool:
        """Let a pod, which is in no pool, wait with its group.

        A group of one pod that has *failed*, because it was not bound, backs off as that pod does.
        """
        key = self._group_of[queued.key] = queued.pod.group
        group = self._groups.get(key)
        if group is None:
            self._incomplete.setdefault(key, {})[queued.key] = queued
            return Pool.INCOMPLETE
        entity, wake = self._take(key)
        if entity is not None:
            entity.add(queued)
            if wake is Wake.NO and entity.gated_by == GANG_SCHEDULING:
                wake = Wake.AFTER_BACKOFF  # the pod itself is the event that this plugin awaits
            return self._enter(entity, wake, now)
        if key in self._tried:
            self._pending.setdefault(key, {})[queued.key] = queued
            return Pool.PENDING
        entity = QueuedGroup(group, queued.timestamp, queued.arrival)
        entity.add(queued)
        if failed:
            entity.rejections, entity.errors = queued.rejections, queued.errors
            entity.failed_at = queued.failed_at
        return self._enter(entity, Wake.AFTER_BACKOFF if failed else Wake.NOW, now)

    def _leave(self, pod: Pod) -> None:
        """Take a pod out of its group; the others stay where they are."""
        self._group_of.pop(pod.key, None)
        for apart in (self._incomplete, self._pending):
            pods = apart.get(pod.group)
            if pods is not None and pods.pop(pod.key, None) is not None and not pods:
                del apart[pod.group]
        entity = self._entities.get(pod.group)
        if entity is None or pod.key not in entity.pods:
            return
        _, wake = self._take(pod.group)
        del entity.pods[pod.key]
        if entity.pods:
            self._enter(entity, wake, self._clock())

    def _take(self, key: str) -> tuple[QueuedGroup | None, Wake]:
        """Take a group out of its pool, and what puts it there again."""
        entity = self._entities.pop(key, None)
        if entity is None:
            return None, Wake.NO
        if self._active.remove(entity.key) is not None:
            return entity, Wake.NOW
        if self._resting.remove(entity.key) is not None:
            return entity, Wake.AFTER_BACKOFF
        self._waiting.remove(entity.key)
        return entity, Wake.NO

    @override
    def _enter(self, queued: Entity, wake: Wake, now: float) -> Pool:
        if isinstance(queued, QueuedGroup):
            self._entities[queued.group.key] = queued
        return super()._enter(queued, wake, now)

    @override
    def _interests(self, queued: Entity) -> Collection[str]:
        found: set[str] = set()
        for each in queued.members():
            found.update(self._rules.interests(each))
        return found

    @override
    def _wakes(self, request: MoveRequest, queued: Entity) -> Wake:
        """The best answer over the pods of a group; a pod that nothing rejected says yes."""
        if isinstance(queued, QueuedPod):
            return super()._wakes(request, queued)
        found = Wake.NO
        for each in queued.members():
            wake = Wake.AFTER_BACKOFF
            if each.rejectors:
                wake = self._rules.wakes(request, each)
            found = max(found, wake, key=_STRENGTH.__getitem__)
        return found

    @override
    def _find(self, key: str) -> QueuedPod | None:
        found = super()._find(key)
        if found is not None:
            return found
        group = self._group_of.get(key, "")
        entity = self._entities.get(group)
        for pods in (
            self._incomplete.get(group, {}),
            self._pending.get(group, {}),
            entity.pods if entity is not None else {},
        ):
            if key in pods:
                return pods[key]
        return None

    @override
    def _pool_of(self, key: str) -> Pool | None:
        found = super()._pool_of(key)
        group = self._group_of.get(key)
        if found is not None or group is None:
            return found
        if key in self._incomplete.get(group, {}):
            return Pool.INCOMPLETE
        if key in self._pending.get(group, {}):
            return Pool.PENDING
        return super()._pool_of(entity_key(group))
