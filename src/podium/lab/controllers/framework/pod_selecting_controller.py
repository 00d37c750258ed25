"""The base class of controllers whose objects select pods by labels."""

from __future__ import annotations

from collections.abc import Iterator

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import (
    Controller,
    changed_key,
    no_listed_pods,
)
from podium.lab.controllers.framework.object_fields import Key
from podium.lab.controllers.framework.pod_info import PodInfo
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector


class PodSelectingController(Controller[Key]):
    """Enqueues an object when it changes, and when a pod that it selects changes."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        """Watch the objects of one kind, and pods."""
        super().__init__(cluster)
        self._selectors: dict[str, dict[Key, Selector]] = {}
        self.watch(kind, self._on_object)
        self.watch_pods(self._on_pod, listed=no_listed_pods)

    def selector_of(self, item: JsonObject) -> Selector:
        """The selector of an object."""
        raise NotImplementedError

    def is_relevant(self, old: PodInfo, new: PodInfo) -> bool:
        """Whether the change of a pod can change the result of a sync."""
        raise NotImplementedError

    def selected_pods(self, item: JsonObject) -> Iterator[PodInfo]:
        """The pods that an object selects."""
        selector = self.selector_of(item)
        matches: dict[int, bool] = {}
        for pod in self.cluster.pods.in_namespace(item["metadata"]["namespace"]).values():
            which = id(pod.labels)  # pods with equal labels share one dictionary
            found = matches.get(which)
            if found is None:
                found = matches[which] = selector.matches(pod.labels)
            if found:
                yield pod

    def _on_object(self, old: JsonObject | None, new: JsonObject | None) -> None:
        key = changed_key(old, new)
        selectors = self._selectors.setdefault(key[0], {})
        selectors.pop(key, None)
        if new is not None:
            selectors[key] = self.selector_of(new)
        elif not selectors:
            del self._selectors[key[0]]
        self.enqueue(key)

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        pod = new or old
        assert pod is not None
        selectors = self._selectors.get(pod.key[0])
        if not selectors:
            return
        if old is not None and new is not None and not self.is_relevant(old, new):
            return
        for key, selector in selectors.items():
            if selector.matches(pod.labels) or (old is not None and selector.matches(old.labels)):
                self.enqueue(key)
