"""What a controller is: it hears of changes, notes keys, and looks at them one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.object_fields import key_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.objects.kinds.meta import JsonObject

#: What is called with an object before and after a change; None where it did not exist.
Hearing = Callable[[JsonObject | None, JsonObject | None], None]


class Controller:
    """Brings what is closer to what is wished, one key at a time."""

    #: What it is called in events.
    name: ClassVar[str]
    #: Whether it wants to hear of pods.
    hears_pods: ClassVar[bool] = False

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        self.cluster = cluster

    def hears(self) -> Mapping[str, Hearing]:
        """What to call when an object of a kind changes; pods are told in another way."""
        raise NotImplementedError

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod came, changed or went."""

    def sync(self, key: Any) -> None:
        """Look at one key and do what has to be done; being called once more does no harm."""
        raise NotImplementedError

    def add(self, key: Any, after: float = 0.0) -> None:
        """Note that *key* has to be looked at."""
        if after > 0:
            self.cluster.queue.add_after((self, key), after)
        else:
            self.cluster.queue.add((self, key))

    def hear_own(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A change of an object that the controller is there for."""
        item = new if new is not None else old
        assert item is not None
        self.add(key_of(item))
