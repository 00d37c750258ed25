"""From what the API server says to what we believe: the cache, the queue, and who wakes.

Every change of the cluster passes through here, and nothing else writes the cache or the queue
but the loop itself. While an extender is being asked about a pod the view must stand still, so
changes that arrive meanwhile wait (`hold`, `release`).

Upstream: eventhandlers.go, Kubernetes v1.36; factory/factory.go, v1.13.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from podium.cluster.cache.cache import Cache, CacheError
from podium.cluster.queue.queue import SchedulingQueue
from podium.cluster.wakeups.wakeups import Added, Deleted, MoveRequest, Updated
from podium.daemon.object_index import PodSink, Sink
from podium.daemon.observers import POD_ADDED, Observer
from podium.engine.rules.volumes.binding.shared import SELECTED_NODE
from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.cluster.wakeups.wakeups import ClusterEvent
    from podium.daemon.behaviour import Manners
    from podium.engine.framework.profile import Profile
    from podium.engine.state.catalog import Shelf
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

logger = logging.getLogger(__name__)

_ACTIONS = {Added: "Add", Updated: "Update", Deleted: "Delete"}


class Beliefs:
    """Cache and queue, kept in step with the API server."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        manners: Manners,
        clock: Callable[[], float],
        observers: Sequence[Observer] = (),
        *,
        stir: Callable[[], None] = lambda: None,
        surprised: Callable[[Pod], None] | None = None,
        ttl_seconds: float = float("inf"),
    ) -> None:
        """Nothing is known yet. *stir* is called whenever a pod may have become ready.

        Pods count as placed from the moment the API server took the binding until it says
        otherwise; *ttl_seconds* is for those who place without binding. *surprised* is called
        before a pod that still waits for us is placed by somebody else.
        """
        self.profiles = profiles
        first = next(iter(profiles.values()))
        self.cache = Cache(first.accounting, node_order=first.node_order, ttl_seconds=ttl_seconds)
        self.queue = self._new_queue(manners, clock)
        self._clock = clock
        self._observers = observers
        self._listener = Observer()
        self._stir = stir
        self._surprised = surprised
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        self._pods = PodSink(lambda old, new: self.do(self._pod, old, new))
        self._nodes: Sink[Node] = Sink(lambda old, new: self.do(self._node, old, new))
        self._others: dict[str, Sink[Any]] = {}

    def _new_queue(self, manners: Manners, clock: Callable[[], float]) -> SchedulingQueue:
        rules = manners.wake_rules(tuple(self.profiles.values()))
        return SchedulingQueue(clock, rules, manners.queue)

    def change_profiles(self, profiles: Mapping[str, Profile], manners: Manners) -> None:
        """Believe the same for other rules: who counts how much may change, and who waits."""
        self.profiles = profiles
        first = next(iter(profiles.values()))
        self.cache = self.cache.rebuilt(
            first.accounting, node_order=first.node_order, pod_named=self._pods.known.get
        )
        self.queue = self._new_queue(manners, self._clock)
        for pod in self._pods.known.values():
            placed = pod.spec.node_name or self.cache.is_assumed(pod.uid)
            if not placed and self.is_ours(pod):
                self.queue.add(pod)
        self._stir()

    # --- who is told ------------------------------------------------------------------------

    def sink(self, kind: str) -> Sink[Any]:
        """Who is to be told of objects of this kind."""
        if kind == "Pod":
            return self._pods
        if kind == "Node":
            return self._nodes
        found = self._others.get(kind)
        if found is None:
            shelf = self.cache.columns.catalog.shelf(kind)
            found = self._others[kind] = Sink(
                lambda old, new: self.do(self._shelve, shelf, old, new)
            )
        return found

    def listen(self, listener: Observer) -> None:
        """Tell this one of pods, too, and no longer the one before."""
        self._listener = listener

    def pod(self, pod: Pod) -> Pod | None:
        """The newest version of a pod; None if it is gone, be there another of its name or not."""
        known = self._pods.known.get(pod.key)
        return known if known is not None and known.uid == pod.uid else None

    def pod_named(self, key: str) -> Pod | None:
        """The pod of this `namespace/name`."""
        return self._pods.known.get(key)

    def node(self, name: str) -> Node | None:
        """A node that is there."""
        row = self.cache.columns.row_of.get(name)
        return None if row is None else self.cache.columns.nodes[row]

    def sizes(self) -> dict[str, int]:
        """How much is believed, under the names that metrics have for it."""
        columns = self.cache.columns
        return {
            "nodes": len(columns.order),
            "pods": columns.pod_total,
            "assumed_pods": self.cache.assumed_total,
        }

    def is_ours(self, pod: Pod) -> bool:
        """Whether one of our profiles decides about the pod."""
        return pod.spec.scheduler_name in self.profiles

    # --- standing still ---------------------------------------------------------------------

    def do(self, change: Callable[..., None], *arguments: Any) -> None:
        """Make a change, as soon as the view may move."""
        if self._held is None:
            change(*arguments)
        else:
            self._held.append((change, arguments))

    def hold(self) -> None:
        """From now on changes wait."""
        self._held = []

    def release(self) -> None:
        """Let the changes that waited happen."""
        held, self._held = self._held or [], None
        for change, arguments in held:
            change(*arguments)

    # --- pods -------------------------------------------------------------------------------

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        if self._surprised is not None and old is not None and new is not None:
            self._look_out(old, new)
        for observer in self._observers:
            observer.pod_seen(old, new)
        self._listener.pod_seen(old, new)
        if new is None:
            assert old is not None
            self._went(old)
        elif old is not None and old.spec.node_name:
            self._placed_changed(old, new)
        elif new.spec.node_name:
            self._placed(old, new)
        elif self.is_ours(new):
            self._waits(old, new)

    def _look_out(self, old: Pod, new: Pod) -> None:
        """Somebody else may have been faster."""
        assert self._surprised is not None
        just_placed = new.spec.node_name and not old.spec.node_name
        if just_placed and self.queue.pool_of(old) is not None:
            self._surprised(old)

    def _waits(self, old: Pod | None, new: Pod) -> None:
        """A pod of ours without a node came or changed."""
        if old is None:
            pool = self.queue.add(new)
            for observer in self._observers:
                observer.queued(pool, POD_ADDED)
        elif not self.cache.is_assumed(new.uid):
            self.queue.update(old, new)
        elif new.terminating:
            # Its binding will be refused; until then others may have the room.
            self.forget(new)
        # What else changes about a pod that is being bound concerns nobody here.
        self._stir()

    def _placed(self, old: Pod | None, new: Pod) -> None:
        """A pod has got its node, from us or somebody else."""
        self._believe(self.cache.add_pod, new)
        if old is not None and self.is_ours(old):
            self.queue.delete(old, bound=True)
        self.tell(Added(new))

    def _placed_changed(self, old: Pod, new: Pod) -> None:
        self._believe(self.cache.update_pod, old, new)
        self.tell(Updated(old, new))

    def _went(self, old: Pod) -> None:
        known = self.cache.columns.pod(old.uid) is not None
        if not old.spec.node_name and self.is_ours(old):
            self.queue.delete(old)
        if known and not old.spec.node_name:
            self.forget(old)
        elif old.spec.node_name:
            self._believe(self.cache.remove_pod, old)
            self.tell(Deleted(old))

    def forget(self, pod: Pod) -> None:
        """A pod that we placed is not placed after all; somebody may take its room."""
        if not self.cache.is_assumed(pod.uid):
            return
        resident = self.cache.columns.pod(pod.uid)
        assert resident is not None
        node = self.cache.columns.names[resident.row]
        self.cache.forget(pod)
        spec = replace(pod.spec, node_name=node)
        self.tell(Deleted(replace(pod, spec=spec)))

    def expire(self, now: float) -> None:
        """Stop believing in placements that nobody confirmed, where they have a time limit."""
        if self._held is None and self.cache.expire(now):
            self.queue.move_all()
            self._stir()

    def _believe(self, change: Callable[..., None], *pods: Pod) -> None:
        try:
            change(*pods)
        except CacheError as error:
            # Two sources told of one pod in an order that nobody foresaw; the next list settles it.
            logger.warning("%s", error)

    # --- everything else --------------------------------------------------------------------

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.cache.put_node(new)
            self.tell(Added(new) if old is None else Updated(old, new))
        elif old is not None:
            # Pods are woken before the node is taken away, as upstream does it.
            self.tell(Deleted(old))
            self.cache.drop_node(old)

    def _shelve(self, shelf: Shelf[Any], old: Object | None, new: Object | None) -> None:
        if new is not None:
            shelf.put(new)
            self._keep_promise(new)
            self.tell(Added(new) if old is None else Updated(old, new))
        elif old is not None:
            shelf.drop(old)
            self.tell(Deleted(old))

    def _keep_promise(self, item: Object) -> None:
        """From now on a volume or a claim speaks for itself, if it says what was promised."""
        if isinstance(item, PersistentVolume) and item.spec.claim_ref is not None:
            self.cache.keep_promise(item.name)
        elif isinstance(item, PersistentVolumeClaim) and (
            item.spec.volume_name or SELECTED_NODE in (item.metadata.annotations or {})
        ):
            self.cache.keep_promise(item.key)

    def tell(self, event: ClusterEvent) -> None:
        """Wake the pods that an event could help."""
        moved = self.queue.on_event(event)
        if moved:
            self._stir()
        if self._observers:
            label = MoveRequest(event, _ACTIONS.get(type(event), "")).label
            for observer in self._observers:
                observer.event_seen(label, moved)
