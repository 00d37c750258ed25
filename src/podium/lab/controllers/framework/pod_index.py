"""Pods by owner, by node and by namespace, kept up to date one change at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.lab.controllers.framework.pod_info import Key, PodFacts

_NOBODY: Final[dict[Key, PodFacts]] = {}


class Group:
    """The pods of one owner, and how many of them count."""

    __slots__ = ("active", "pods", "ready")

    def __init__(self) -> None:
        """Nobody yet."""
        self.pods: dict[Key, PodFacts] = {}
        self.active = 0
        self.ready = 0

    def __iter__(self) -> Iterator[PodFacts]:
        """All of them, finished and leaving ones too."""
        return iter(self.pods.values())

    def active_pods(self) -> list[PodFacts]:
        """Those that are neither finished nor leaving."""
        return [pod for pod in self.pods.values() if pod.active]

    def change(self, pod: PodFacts, by: int) -> None:
        """Count a pod in or out."""
        if pod.active:
            self.active += by
            if pod.ready:
                self.ready += by


class PodIndex:
    """Where every pod is found."""

    def __init__(self) -> None:
        """No pods yet."""
        self.all: dict[Key, PodFacts] = {}
        self.by_owner: dict[str, Group] = {}
        self.by_node: dict[str, dict[Key, PodFacts]] = {}
        self.by_namespace: dict[str, dict[Key, PodFacts]] = {}
        #: Pods that nobody manages, by namespace: they may be adopted.
        self.orphans: dict[str, dict[Key, PodFacts]] = {}

    def of_owner(self, uid: str) -> Group:
        """The pods that the owner with this uid manages."""
        return self.by_owner.get(uid) or Group()

    def on_node(self, name: str) -> dict[Key, PodFacts]:
        """The pods that are bound to a node."""
        return self.by_node.get(name, _NOBODY)

    def within(self, namespace: str) -> dict[Key, PodFacts]:
        """The pods of a namespace."""
        return self.by_namespace.get(namespace, _NOBODY)

    def unmanaged(self, namespace: str) -> dict[Key, PodFacts]:
        """The pods of a namespace that nobody manages."""
        return self.orphans.get(namespace, _NOBODY)

    def put(self, pod: PodFacts) -> PodFacts | None:
        """A pod came or changed; what it was before."""
        key = pod.key
        before = self.all.get(key)
        self.all[key] = pod
        if before is not None:
            self._leave(before)
        _placed(self.by_namespace, key[0])[key] = pod
        if pod.node:
            _placed(self.by_node, pod.node)[key] = pod
        if pod.owner is None:
            _placed(self.orphans, key[0])[key] = pod
        else:
            uid = pod.owner[2]
            group = self.by_owner.get(uid)
            if group is None:
                group = self.by_owner[uid] = Group()
            group.pods[key] = pod
            group.change(pod, 1)
        return before

    def drop(self, key: Key) -> PodFacts | None:
        """A pod went; what it was."""
        before = self.all.pop(key, None)
        if before is None:
            return None
        self._leave(before)
        _discard(self.by_namespace, key[0], key)
        _discard(self.by_node, before.node, key)
        if before.owner is not None and not self.by_owner[before.owner[2]].pods:
            del self.by_owner[before.owner[2]]
        return before

    def _leave(self, pod: PodFacts) -> None:
        """Leave the company of the owner, or of those without one."""
        if pod.owner is None:
            _discard(self.orphans, pod.key[0], pod.key)
        else:
            group = self.by_owner[pod.owner[2]]
            del group.pods[pod.key]
            group.change(pod, -1)


def _placed(index: dict[str, dict[Key, PodFacts]], under: str) -> dict[Key, PodFacts]:
    found = index.get(under)
    if found is None:
        found = index[under] = {}
    return found


def _discard(index: dict[str, dict[Key, PodFacts]], under: str, key: Key) -> None:
    found = index.get(under)
    if found is not None:
        found.pop(key, None)
        if not found:
            del index[under]
