"""The scheduler's copy of the cluster: the cache of nodes and placed pods, and the queue.

Informers report every change of the cluster here; besides them only the scheduling loop and its
actions write the cache or the queue. While an extender answers a question about a pod the view
must not change, so changes that arrive meanwhile are queued (`freeze`, `thaw`).

Upstream: eventhandlers.go, Kubernetes v1.36; factory/factory.go, v1.13.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podium.cluster.cache.cache import Cache, CacheError, restoring
from podium.cluster.queue.group_queue import GroupQueue
from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.wakeups.wakeups import Added, Deleted, Updated
from podium.engine.rules.devices.extended_resources import special_uid
from podium.engine.rules.volumes.binding import SELECTED_NODE
from podium.objects.kinds.devices import DeviceTaintRule
from podium.objects.kinds.pod_group import PodGroup
from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim
from podium.scheduler.state.object_index import LivePods, ObjectIndex
from podium.scheduler.state.observers import POD_ADDED, Observer, acting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from podium.cluster.queue.entities import Pool, Turn
    from podium.cluster.wakeups.wakeups import ClusterEvent
    from podium.engine.framework.profile import Profile
    from podium.engine.state.shelf import Shelf
    from podium.objects.kinds.devices import ResourceClaim
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.behaviour import Behaviour

logger = logging.getLogger(__name__)


class ClusterState:
    """Cache and queue, kept up to date with the API server."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        behaviour: Behaviour,
        clock: Callable[[], float],
        observers: Sequence[Observer] = (),
        *,
        on_pod_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """An empty cluster.

        *on_pod_ready* is called whenever a pod may have entered the active queue.
        """
        self.profiles = profiles
        first = next(iter(profiles.values()))
        self.cache = Cache(
            first.accounting,
            node_order=first.node_order,
            journal_limit=first.tuning.journal_limit,
        )
        self.cache.restored = restoring(profiles.values())
        self.queue = self._new_queue(behaviour, clock)
        self._clock = clock
        self._observers = observers
        self._object_observers = acting(observers, "object_seen")
        self._pod_observers = acting(observers, "pod_seen")
        self._listener = Observer()
        self._on_pod_ready = on_pod_ready
        #: Changes that wait for `thaw`; None while nothing is frozen.
        self._waiting: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        #: Called with a kind of which an object is not known any more as it was reported.
        self.on_unreported: Callable[[str], None] = lambda _: None
        self._pods = LivePods(self._report_pod, self._first_pods)
        self._nodes: ObjectIndex[Node] = ObjectIndex(self._report_node)
        self._others: dict[str, ObjectIndex[Any]] = {}
        #: How many objects were added, changed or deleted.
        self.changes = 0

    def _new_queue(self, behaviour: Behaviour, clock: Callable[[], float]) -> SchedulingQueue:
        rules = behaviour.wake_rules(tuple(self.profiles.values()), self._held_by)
        if not any(profile.schedules_groups for profile in self.profiles.values()):
            return SchedulingQueue(clock, rules, behaviour.queue)
        queue = GroupQueue(clock, rules, behaviour.queue)
        for group in self.cache.columns.catalog.pod_groups:
            queue.put_group(group)
        return queue

    def _held_by(self, pod: Pod) -> str:
        """The plugin that keeps a pod out of the active queue: claims or pods of its group miss."""
        if not pod.spec.resource_claims and pod.spec.scheduling_group is None:
            return ""
        columns = self.cache.columns
        profile = self.profiles.get(pod.spec.scheduler_name)
        incoming = columns.pods.incoming(pod)
        for gate in profile.gates if profile is not None else ():
            refused = gate.hold(incoming, columns)
            if refused is not None:
                return refused.plugin
        return ""

    def change_profiles(self, profiles: Mapping[str, Profile], behaviour: Behaviour) -> None:
        """Rebuild cache and queue for other profiles, which may count resources differently."""
        self.profiles = profiles
        first = next(iter(profiles.values()))
        self.cache = self.cache.rebuilt(
            first.accounting, node_order=first.node_order, pod_named=self._pods.known.get
        )
        self.cache.restored = restoring(profiles.values())
        self.queue = self._new_queue(behaviour, self._clock)
        for pod in self._pods.known.values():
            placed = pod.spec.node_name or self.cache.is_assumed(pod.uid)
            if not placed and self.is_responsible_for(pod):
                self.cache.columns.pods.groups.expect(pod)
                self.queue.add(pod)
        self._on_pod_ready()

    @property
    def now(self) -> float:
        """The time, in seconds since 1970."""
        return self._clock()

    # --- objects ----------------------------------------------------------------------------

    def index(self, kind: str) -> ObjectIndex[Any]:
        """The index of a kind, which its informer writes to."""
        if kind == "Pod":
            return self._pods
        if kind == "Node":
            return self._nodes
        found = self._others.get(kind)
        if found is None:
            shelf = self.cache.columns.catalog.shelf(kind)
            found = self._others[kind] = ObjectIndex(
                lambda old, new: self.apply(self._object_changed, kind, shelf, old, new)
            )
        return found

    def set_listener(self, listener: Observer) -> None:
        """Report pods to *listener* as well, in place of the listener before."""
        self._listener = listener

    def pod(self, pod: Pod) -> Pod | None:
        """The newest version of a pod; None if it was deleted, even if its name is taken again."""
        known = self._pods.known.get(pod.key)
        return known if known is not None and known.uid == pod.uid else None

    def pods(self) -> Iterable[Pod]:
        """The newest version of every pod, in order of arrival."""
        return self._pods.known.values()

    def pod_named(self, key: str) -> Pod | None:
        """The pod with this `namespace/name`."""
        return self._pods.known.get(key)

    def node(self, name: str) -> Node | None:
        """The node with this name; None if it was deleted, even if pods are left on it."""
        row = self.cache.columns.nodes.row_of.get(name)
        return None if row is None else self.cache.columns.nodes.objects[row]

    def sizes(self) -> dict[str, int]:
        """The values of the metric `scheduler_cache_size` by type."""
        columns = self.cache.columns
        return {
            "nodes": len(columns.nodes.order),
            "pods": columns.pods.total,
            "assumed_pods": self.cache.assumed_total,
        }

    def is_responsible_for(self, pod: Pod) -> bool:
        """Whether one of the profiles decides about the pod."""
        return pod.spec.scheduler_name in self.profiles

    # --- freezing ---------------------------------------------------------------------------

    def apply(self, change: Callable[..., None], *arguments: Any) -> None:
        """Make a change now, or on `thaw` if the state is frozen."""
        if self._waiting is None:
            change(*arguments)
        else:
            self._waiting.append((change, arguments))

    def _report_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Follow a change of a pod, now or on `thaw`."""
        if self._waiting is None:
            self._pod_changed(old, new)
        else:
            self._waiting.append((self._pod_changed, (old, new)))

    def _report_node(self, old: Node | None, new: Node | None) -> None:
        """Follow a change of a node, now or on `thaw`."""
        if self._waiting is None:
            self._node_changed(old, new)
        else:
            self._waiting.append((self._node_changed, (old, new)))

    @property
    def is_frozen(self) -> bool:
        """Whether changes wait for `thaw`."""
        return self._waiting is not None

    def freeze(self) -> None:
        """Queue all changes from now on."""
        self._waiting = []

    def thaw(self) -> None:
        """Make the queued changes in their order, and change at once from now on.

        A change that raises is logged and hides none of the others. An object that was reported
        with it counts as unknown again, and `on_unreported` is called with its kind.
        """
        waiting, self._waiting = self._waiting or [], None
        for change, arguments in waiting:
            try:
                change(*arguments)
            except Exception:
                logger.exception("a change that waited for an extender")
                self._note_unreported(change, arguments)

    def _note_unreported(self, change: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if change in {self._pod_changed, self._node_changed, self._object_changed}:
            old, new = arguments[-2:]
            kind = type(new if new is not None else old).__name__
            self.index(kind).unreported(old, new)
            self.on_unreported(kind)

    # --- pods -------------------------------------------------------------------------------

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self.changes += 1
        for observer in self._pod_observers:
            observer.pod_seen(old, new)
        self._listener.pod_seen(old, new)
        if new is None:
            assert old is not None
            self._pod_deleted(old)
        elif old is not None and old.spec.node_name:
            self._placed_pod_changed(old, new)
        elif new.spec.node_name:
            self._pod_bound(old, new)
        elif self.is_responsible_for(new):
            self._pending_pod_changed(old, new)

    def _first_pods(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Count the placed pods of the first list together; those that must come one by one.

        The result is the same: no pod waits yet that one of them could wake.
        """
        if not pods or self.is_frozen or any(self.queue.counts().values()):
            return pods
        for observer in acting((*self._observers, self._listener), "pod_seen"):
            for pod in pods:
                observer.pod_seen(None, pod)
        left = self.cache.add_pods(pods)
        self.wake_pods(Added(pods[-1]))
        return left

    def _pending_pod_changed(self, old: Pod | None, new: Pod) -> None:
        if old is None:
            self.cache.columns.pods.groups.expect(new)
            queue = self.queue
            groups = queue if new.group and isinstance(queue, GroupQueue) else None
            before = groups.group_pool(new.group) if groups is not None else None
            pool = queue.add(new)
            for observer in self._observers:
                if groups is not None:
                    observer.group_queued(pool, POD_ADDED, 1, enters=pool is not before)
                else:
                    observer.queued(pool, POD_ADDED)
        elif not self.cache.is_assumed(new.uid):
            self.queue.update(old, new)
        elif new.terminating:
            # Its binding will be refused; until then other pods may have its resources.
            self.forget(new)
        # Any other change of a pod that is being bound has no effect on the queue.
        self._on_pod_ready()

    def _pod_bound(self, old: Pod | None, new: Pod) -> None:
        """Count a pod on its node, whichever scheduler bound it.

        An assumed pod may have changed further by the time its binding is seen, when a watch was
        interrupted. No other event tells of that.
        """
        self._update_cache(self.cache.add_pod, new)
        self.cache.columns.pods.groups.forget(new)
        resident = self.cache.columns.pods.by_uid.get(new.uid)
        if resident is not None and not resident.is_current(new):
            self._update_cache(self.cache.update_pod, new, new)
        if old is not None and self.is_responsible_for(old):
            self.queue.delete(old, bound=True)
        self.wake_pods(Added(new))

    def _placed_pod_changed(self, old: Pod, new: Pod) -> None:
        self._update_cache(self.cache.update_pod, old, new)
        self.wake_pods(Updated(old, new))

    def _pod_deleted(self, old: Pod) -> None:
        known = self.cache.columns.pods.by_uid.get(old.uid) is not None
        self.cache.columns.pods.groups.forget(old)
        if not old.spec.node_name and self.is_responsible_for(old):
            self.queue.delete(old)
        if known and not old.spec.node_name:
            self.forget(old)
        elif old.spec.node_name:
            self._update_cache(self.cache.remove_pod, old)
            self.wake_pods(Deleted(old))

    def forget(self, pod: Pod) -> None:
        """Undo `Cache.assume`, and wake the pods that the freed resources could help."""
        if not self.cache.is_assumed(pod.uid):
            return
        resident = self.cache.columns.pods.by_uid.get(pod.uid)
        assert resident is not None
        for observer in self._observers:
            observer.forgotten(pod)
        node = self.cache.columns.nodes.names[resident.row]
        self.cache.forget(pod)
        spec = replace(pod.spec, node_name=node)
        self.wake_pods(Deleted(replace(pod, spec=spec)))

    def requeue(
        self, turn: Turn, pod: Pod, *, rejected_by: Iterable[str], cycle: int | None
    ) -> Pool:
        """Return a pod to the queue after a failure, and let the loop see when it is next due."""
        pool = self.queue.requeue(turn, pod, rejected_by=rejected_by, cycle=cycle)
        self._on_pod_ready()
        return pool

    def activate(self, pod: Pod) -> None:
        """Let one parked pod be attempted again, without an event that wakes it."""
        if self.queue.activate(pod):
            self._on_pod_ready()

    def mark_victim(self, victim: Pod, terminating: Pod) -> None:
        """Let a victim count as terminating, so that no other attempt chooses it."""
        placed = self.cache.columns.pods.by_uid.get(victim.uid) is not None
        if placed and not self.cache.is_assumed(victim.uid):
            self.cache.update_pod(victim, terminating)

    def keep_victims(self, victims: Sequence[Pod]) -> None:
        """Undo `mark_victim` for victims that were not evicted."""
        for observer in self._observers:
            observer.victims_kept(victims)
        for victim in victims:
            known = self.pod(victim)
            placed = self.cache.columns.pods.by_uid.get(victim.uid) is not None
            if known is not None and placed and not self.cache.is_assumed(victim.uid):
                self.cache.update_pod(known, known)

    def _update_cache(self, change: Callable[..., None], *pods: Pod) -> None:
        try:
            change(*pods)
        except CacheError as error:
            # The events of a pod came in an order that the cache does not know; the next list
            # corrects what is wrong.
            logger.warning("%s", error)

    # --- everything else --------------------------------------------------------------------

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        self.changes += 1
        for observer in self._object_observers:
            observer.object_seen("Node", old, new)
        if new is not None:
            self.cache.put_node(new)
            # Also if nothing changed: in v1.13 that counts for pods whose attempt is under way.
            self.wake_pods(Added(new) if old is None else Updated(old, new))
        elif old is not None:
            # Pods are woken before the node is removed, as upstream does it.
            self.wake_pods(Deleted(old))
            self.cache.drop_node(old)

    def _object_changed(
        self, kind: str, shelf: Shelf[Any], old: Object | None, new: Object | None
    ) -> None:
        self.changes += 1
        for observer in self._object_observers:
            observer.object_seen(kind, old, new)
        if new is not None:
            shelf.put(new)
            self._end_volume_promise(new)
        elif old is not None:
            shelf.drop(old)
        if isinstance(old or new, PodGroup):
            self._group_changed(old, new)
        if isinstance(old or new, DeviceTaintRule):
            self._taint_rule_changed(old, new)
        elif new is not None:
            self.wake_pods(Added(new) if old is None else Updated(old, new))
        elif old is not None:
            self.wake_pods(Deleted(old))

    def claim_made(self, pod: Pod, claim: ResourceClaim) -> None:
        """Count the devices that were reserved for extended resources for the claim made for them.

        It is called when the API server has answered, which no watch may have reported yet.
        """
        self.apply(self._claim_made, pod.key, pod.uid, claim.uid)

    def _claim_made(self, pod: str, pod_uid: str, uid: str) -> None:
        for observer in self._observers:
            observer.claim_made(pod, pod_uid, uid)
        self.cache.columns.catalog.resource_claims.rename_in_flight(special_uid(pod_uid), uid)

    def claim_written(self, claim: ResourceClaim) -> None:
        """Count the devices of a claim until it is reported as the API server has answered it."""
        self.apply(self._claim_written, claim.key, claim.uid, claim.metadata.resource_version)

    def claim_deleted(self, claim: ResourceClaim) -> None:
        """Count no devices for a deleted claim, which may never have been reported."""
        self.apply(self._claim_written, claim.key, claim.uid, "")

    def _claim_written(self, claim: str, uid: str, version: str) -> None:
        for observer in self._observers:
            observer.claim_written(claim, uid, version)
        self.cache.columns.catalog.resource_claims.note_written(claim, uid, version)

    def _group_changed(self, old: Any, new: Any) -> None:
        """Pods that waited for a group are queued; those of a deleted one wait for it again."""
        if isinstance(self.queue, GroupQueue):
            if new is not None:
                self.queue.put_group(new)
            else:
                self.queue.drop_group(old)
            self._on_pod_ready()

    def _taint_rule_changed(self, old: Any, new: Any) -> None:
        """Wake pods as a changed slice does, if the taints of a device changed."""
        for found in self.cache.columns.catalog.resource_slices:
            for device in found.spec.devices or ():
                before = old.taint_of(found, device) if old is not None else None
                after = new.taint_of(found, device) if new is not None else None
                if before != after:
                    self.wake_pods(Updated(found, found))
                    return

    def _end_volume_promise(self, item: Object) -> None:
        """End the assumption about a volume or a claim once the object itself says the same."""
        if isinstance(item, PersistentVolume) and item.spec.claim_ref is not None:
            self.cache.columns.catalog.end_promise(item.name)
        elif isinstance(item, PersistentVolumeClaim) and (
            item.spec.volume_name or SELECTED_NODE in (item.metadata.annotations or {})
        ):
            self.cache.columns.catalog.end_promise(item.key)

    def evicted_with(self, key: str) -> str:
        """What a pod of a group is evicted with: its group, or itself; empty for other pods."""
        pod = self.pod_named(key)
        if pod is None or not pod.group:
            return ""
        namespace, _, name = pod.group.partition("/")
        group = self.cache.columns.catalog.pod_groups.get(name, namespace)
        return pod.group if group is not None and group.evicted_together else key

    def wake_pods(self, event: ClusterEvent) -> None:
        """Move the unschedulable pods that an event could help to the active or backoff queue."""
        moved = self.queue.on_event(event)
        if moved:
            self._on_pod_ready()
            for label, count in moved.items():
                for observer in self._observers:
                    observer.event_seen(label, count)
