"""The scheduler's cache: nodes and placed pods, confirmed by the API server or assumed.

    absent --assume--> assumed --add_pod--> confirmed --remove_pod--> absent
                         |                     ^
                         |forget               |add_pod (of a pod that another scheduler placed)
                         v                     |
                       absent                absent

A pod is assumed on its node as soon as the node is chosen, so that the next decision counts it; the
watch confirms it later. An assumption lasts until the pod is confirmed, forgotten or removed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from podium.cluster.cache.columns import Columns
from podium.cluster.cache.node_tree import (
    BETA_ZONE_LABELS,
    ZONE_LABELS,
    NodeTree,
    ZoneLabels,
    zone_key,
)
from podium.cluster.cache.past import Past
from podium.engine.framework.rule import ReserveRule
from podium.engine.state.journal import DEFAULT_LIMIT
from podium.errors import PodiumError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from podium.engine.framework.profile import Profile
    from podium.engine.state.accounting import Accounting
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

NOTHING: Mapping[str, Reservation] = MappingProxyType({})


def no_reservations(pod: Pod) -> Mapping[str, Reservation]:  # noqa: ARG001
    """Nothing was reserved for the pod."""
    return NOTHING


class CacheError(PodiumError):
    """An event does not fit the state of the cache."""


class Cache:
    """Columns, node order and assumed pods, kept in step."""

    def __init__(
        self,
        accounting: Accounting,
        *,
        catalog: Catalog | None = None,
        listed_order: bool = False,
        node_order: str = "cursors",
        journal_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.columns = Columns(accounting, catalog=catalog, journal_limit=journal_limit)
        self._journal_limit = journal_limit
        self.tree = NodeTree()
        self._listed_order = listed_order
        self._one_list = node_order == "list"
        self._zone_labels: ZoneLabels = ZONE_LABELS if self._one_list else BETA_ZONE_LABELS
        #: Where the next pod begins in the list.
        self.start = 0
        #: The node of each pod that this scheduler placed and the API server has not confirmed yet.
        self._assumed: dict[str, str] = {}
        #: What was reserved for a placed pod that this cache did not assume, read from the pod.
        self.restored: Callable[[Pod], Mapping[str, Reservation]] = no_reservations
        #: Rows in node order, and the same twice in a row: an order is a part of them.
        self._ring: tuple[np.ndarray, np.ndarray] = (np.zeros(0, np.int64),) * 2
        #: The same order (the same array) for as long as it does not change.
        self._rolled: tuple[int, np.ndarray] = (0, self._ring[1])

    def rebuilt(
        self,
        accounting: Accounting,
        *,
        node_order: str,
        pod_named: Callable[[str], Pod | None],
    ) -> Cache:
        """A cache of the same nodes and pods, in their order, for other rules.

        *pod_named* returns the newest version of a pod; pods that it does not know are left out.
        The history of nodes (image counts, pressures no longer reported) starts afresh.
        """
        columns = self.columns
        new = Cache(
            accounting,
            catalog=columns.catalog,
            node_order=node_order,
            journal_limit=self._journal_limit,
        )
        for row in columns.nodes.order.tolist():
            node = columns.nodes.objects[row]
            assert node is not None
            new.put_node(node)
        for row, residents in enumerate(columns.pods.residents):
            for resident in residents:
                pod = pod_named(resident.key)
                if pod is not None and pod.uid == resident.uid:
                    new.columns.add_pod(pod, columns.nodes.names[row])
        new._assumed = {
            u: a for u, a in self._assumed.items() if new.columns.pods.by_uid.get(u) is not None
        }
        for uid, reservations in columns.pods.reservations.items():
            new.columns.pods.reserve(uid, reservations)
        new.restored = self.restored
        return new

    @property
    def catalog(self) -> object:
        """Services, controllers, volumes and budgets."""
        return self.columns.catalog

    # Nodes
    def labels_of(self, name: str) -> Mapping[str, str]:
        """The labels of a node; none if there is no such node."""
        row = self.columns.nodes.row_of.get(name)
        node = self.columns.nodes.objects[row] if row is not None else None
        return node.labels if node is not None else {}

    def put_node(self, node: Node) -> None:
        """A node was added or changed."""
        if self.columns.put_node(node):
            row = self.columns.nodes.row_of[node.name]
            self.tree.update(node.name, zone_key(node.labels, self._zone_labels), row)

    def drop_node(self, node: Node) -> None:
        """A node was deleted; pods that are still on it stay."""
        self.columns.drop_node(node.name)
        self.tree.remove(node.name)

    def order(self) -> np.ndarray:
        """The rows of all nodes in the order the next pod looks at them."""
        if self._listed_order:
            return self.columns.nodes.order
        if self._one_list:
            listed, start = self.tree.listed, self.start
            rows = self.tree.round_robin_order() if listed is None else listed
        else:
            rows, start = self.tree.ring()
        if rows is not self._ring[0]:
            self._ring = (rows, np.concatenate([rows, rows]))
            self._rolled = (0, rows)
        if self._rolled[0] != start:
            # No copy: the cost of an order does not depend on the number of nodes.
            nodes, before = self.columns.nodes, self._rolled[1]
            rolled = self._ring[1][start : start + len(before)]
            nodes.note_order(rolled, names_once=nodes.names_once(before))
            self._rolled = (start, rolled)
        return self._rolled[1]

    def listed(self) -> np.ndarray:
        """The rows of all nodes in the order of the list, wherever the next pod begins."""
        if self._one_list and not self._listed_order:
            return self.tree.round_robin_order()
        return self.columns.nodes.order

    def advance(self, consumed: int, *, dropped: bool = False) -> None:
        """Move on by the nodes that were examined; *dropped*: the last one did not count."""
        if self._one_list:
            self.start = (self.start + consumed - dropped) % max(len(self.tree.zone_of), 1)
        else:
            self.tree.advance(consumed)

    # The past
    def past(self) -> Past:
        """What decisions depend on and does not follow from the present nodes and pods."""
        return Past(self.start, self.tree.position(), *self.columns.past())

    def restore_past(self, past: Past) -> None:
        """Continue a cache with the same nodes and pods, and this past."""
        self.start = past.start
        self.tree = NodeTree.restored(past.tree, self.columns.nodes.row_of)
        self.columns.restore_past(past)

    # Pods
    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is assumed and not confirmed."""
        return uid in self._assumed

    @property
    def assumed(self) -> Mapping[str, str]:
        """The node of each pod that is assumed and not confirmed, by uid."""
        return self._assumed

    @property
    def assumed_total(self) -> int:
        """The number of pods that are assumed and not confirmed."""
        return len(self._assumed)

    def assume(
        self, pod: Pod, node: str, reservations: Mapping[str, Reservation] = NOTHING
    ) -> None:
        """Assume that the pod runs on the node, with everything that was reserved for it there."""
        uid = pod.uid
        if uid in self.columns.pods.by_uid:
            raise CacheError(f"pod {uid} is in the cache, so can't be assumed")
        self.columns.add_pod(pod, node)
        if reservations:
            self.columns.pods.reserve(uid, reservations)
            for reserved in reservations.values():
                reserved.assume(pod, node, self.columns.catalog)
        self._assumed[uid] = node

    def _release(self, uid: str, *, bound: bool) -> None:
        """Release what was reserved for a pod that leaves its node."""
        resident = self.columns.pods.by_uid[uid]
        node = self.columns.nodes.names[resident.row]
        for reserved in self.columns.pods.unreserve(uid).values():
            reserved.release(resident.key, node, self.columns.catalog, bound=bound)

    def forget(self, pod: Pod) -> None:
        """The pod was not bound after all."""
        assumed = self._assumed.get(pod.uid)
        if assumed is None:
            raise CacheError(f"pod {pod.uid} wasn't assumed so cannot be forgotten")
        if pod.spec.node_name and pod.spec.node_name != assumed:
            wrong = f"pod {pod.uid} was assumed on {assumed}"
            raise CacheError(f"{wrong} but assigned to {pod.spec.node_name}")
        del self._assumed[pod.uid]
        self._release(pod.uid, bound=False)
        self.columns.remove_pod(pod.uid)

    def add_pod(self, pod: Pod) -> None:
        """The API server says that the pod has a node."""
        assumed = self._assumed.pop(pod.uid, None)
        known = self.columns.pods.by_uid.get(pod.uid)
        if known is None:
            self.columns.add_pod(pod)
            self.columns.pods.reserve(pod.uid, self.restored(pod))
        elif assumed is None:
            raise CacheError(f"pod {pod.uid} was already in added state")
        elif assumed != pod.spec.node_name:
            # Another scheduler bound it elsewhere; on the same node, the assumed copy stays.
            self.columns.remove_pod(pod.uid)
            self.columns.add_pod(pod)

    def add_pods(self, pods: Sequence[Pod]) -> list[Pod]:
        """Add pods together, as `add_pod` does it one by one; returns those that were not added.

        These are pods that the cache knows, and pods about which `add_pod` may raise an error.
        """
        placed, restores = self.columns.pods.by_uid, self.restored is not no_reservations
        known = set(placed) if restores else set()
        left = self.columns.add_pods(pods)
        for pod in pods if restores else ():
            if pod.uid in placed and pod.uid not in known:
                self.columns.pods.reserve(pod.uid, self.restored(pod))
        return left

    def update_pod(self, old: Pod, new: Pod) -> None:
        """A placed pod changed."""
        if self.columns.pods.by_uid.get(old.uid) is None or old.uid in self._assumed:
            raise CacheError(f"pod {old.uid} is not added to scheduler cache, so cannot be updated")
        self.columns.remove_pod(old.uid)
        self.columns.add_pod(new)

    def remove_pod(self, pod: Pod) -> None:
        """A placed pod was deleted, or has finished. An assumption goes with it."""
        self.remove(pod.uid)

    def remove(self, uid: str) -> None:
        """The same, by its uid."""
        if self.columns.pods.by_uid.get(uid) is None:
            raise CacheError(
                f"pod {uid} is not found in scheduler cache, so cannot be removed from it"
            )
        self._assumed.pop(uid, None)
        self._release(uid, bound=True)
        self.columns.remove_pod(uid)


def restoring(profiles: Iterable[Profile]) -> Callable[[Pod], Mapping[str, Reservation]]:
    """What reads reservations from a pod, by the reserve rules of the profiles."""
    rules = [
        rule
        for profile in profiles
        for rule in profile.reserve_rules
        if type(rule).restore is not ReserveRule.restore
    ]
    if not rules:
        return no_reservations

    def restored(pod: Pod) -> Mapping[str, Reservation]:
        found = ((rule.name, rule.restore(pod)) for rule in rules)
        return {name: reserved for name, reserved in found if reserved is not None}

    return restored
