"""Pods by owner, by node and by namespace, kept up to date with every write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.lab.controllers.framework.object_fields import Key
from podium.lab.controllers.framework.pod_info import PodInfo

_NO_PODS: Final[dict[Key, PodInfo]] = {}


class OwnedPods:
    """The pods that one controller manages, and how many of them are active and ready."""

    __slots__ = ("active", "pods", "ready")

    def __init__(self) -> None:
        self.pods: dict[Key, PodInfo] = {}
        self.active = 0
        self.ready = 0

    def __iter__(self) -> Iterator[PodInfo]:
        """All pods, finished and terminating ones too."""
        return iter(self.pods.values())

    def active_pods(self) -> list[PodInfo]:
        """The pods that are neither finished nor terminating."""
        return [pod for pod in self.pods.values() if pod.active]

    def add(self, pod: PodInfo) -> None:
        """Add a pod and count it."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Remove a pod that was added."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def _count(self, pod: PodInfo, by: int) -> None:
        if pod.active:
            self.active += by
            if pod.ready:
                self.ready += by


class LabPods:
    """All pods of the cluster, and where to find them."""

    def __init__(self) -> None:
        self.all: dict[Key, PodInfo] = {}
        self.by_owner: dict[str, OwnedPods] = {}
        self.by_node: dict[str, dict[Key, PodInfo]] = {}
        self.by_namespace: dict[str, dict[Key, PodInfo]] = {}
        #: Pods without a managing controller by namespace; controllers may adopt them.
        self.orphans: dict[str, dict[Key, PodInfo]] = {}

    def of_owner(self, uid: str) -> OwnedPods:
        """The pods that the controller with this uid manages."""
        return self.by_owner.get(uid) or OwnedPods()

    def on_node(self, name: str) -> dict[Key, PodInfo]:
        """The pods that are bound to a node."""
        return self.by_node.get(name, _NO_PODS)

    def in_namespace(self, namespace: str) -> dict[Key, PodInfo]:
        """The pods of a namespace."""
        return self.by_namespace.get(namespace, _NO_PODS)

    def orphans_in(self, namespace: str) -> dict[Key, PodInfo]:
        """The pods of a namespace without a managing controller."""
        return self.orphans.get(namespace, _NO_PODS)

    def put(self, pod: PodInfo) -> PodInfo | None:
        """Add or replace a pod; returns the version before."""
        key = pod.key
        before = self.all.get(key)
        self.all[key] = pod
        if before is not None:
            self._remove_from_owner(before)
        _entry(self.by_namespace, key[0])[key] = pod
        if pod.node:
            _entry(self.by_node, pod.node)[key] = pod
        if pod.owner is None:
            _entry(self.orphans, key[0])[key] = pod
        else:
            uid = pod.owner[2]
            owned = self.by_owner.get(uid)
            if owned is None:
                owned = self.by_owner[uid] = OwnedPods()
            owned.add(pod)
        return before

    def drop(self, key: Key) -> PodInfo | None:
        """Remove a pod; returns its last version."""
        before = self.all.pop(key, None)
        if before is None:
            return None
        self._remove_from_owner(before)
        _discard(self.by_namespace, key[0], key)
        _discard(self.by_node, before.node, key)
        if before.owner is not None and not self.by_owner[before.owner[2]].pods:
            del self.by_owner[before.owner[2]]
        return before

    def _remove_from_owner(self, pod: PodInfo) -> None:
        if pod.owner is None:
            _discard(self.orphans, pod.key[0], pod.key)
        else:
            self.by_owner[pod.owner[2]].remove(pod)


def _entry(index: dict[str, dict[Key, PodInfo]], name: str) -> dict[Key, PodInfo]:
    found = index.get(name)
    if found is None:
        found = index[name] = {}
    return found


def _discard(index: dict[str, dict[Key, PodInfo]], name: str, key: Key) -> None:
    found = index.get(name)
    if found is not None:
        found.pop(key, None)
        if not found:
            del index[name]
