"""Objects that select pods by labels: which of them a change of a pod concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import key_of
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector


class SelectsPods(Controller):
    """A controller of objects that select pods: it is told of those that a pod concerns."""

    kind: ClassVar[str]
    hears_pods = True

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._selectors: dict[str, dict[Key, Selector]] = {}

    def hears(self) -> dict[str, Callable[[JsonObject | None, JsonObject | None], None]]:
        """Of its own kind."""
        return {self.kind: self.hear_own}

    def selects(self, item: JsonObject) -> Selector:
        """Which pods an object is about."""
        raise NotImplementedError

    def matters(self, old: PodFacts, new: PodFacts) -> bool:
        """Whether a change of a pod can make a difference."""
        raise NotImplementedError

    def hear_own(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """An object of its kind came, changed or went."""
        item = new if new is not None else old
        assert item is not None
        key = key_of(item)
        selectors = self._selectors.setdefault(key[0], {})
        selectors.pop(key, None)
        if new is not None:
            selectors[key] = self.selects(new)
        elif not selectors:
            del self._selectors[key[0]]
        self.add(key)

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod came, changed or went."""
        pod = new or old
        assert pod is not None
        selectors = self._selectors.get(pod.key[0])
        if not selectors or (old is not None and new is not None and not self.matters(old, new)):
            return
        for key, wanted in selectors.items():
            if wanted.matches(pod.labels) or (old is not None and wanted.matches(old.labels)):
                self.add(key)

    def selected(self, item: JsonObject) -> Iterator[PodFacts]:
        """The pods that an object selects."""
        wanted = self.selects(item)
        matches: dict[int, bool] = {}
        for pod in self.cluster.pods.within(item["metadata"]["namespace"]).values():
            which = id(pod.labels)  # pods with the same labels share them
            found = matches.get(which)
            if found is None:
                found = matches[which] = wanted.matches(pod.labels)
            if found:
                yield pod
