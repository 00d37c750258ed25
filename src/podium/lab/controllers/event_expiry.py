"""Deletes Events an hour after they were last written, as kube-apiserver does (`--event-ttl`).

Everything of a lab is in memory, so that the oldest Events go earlier where there are very many.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import ClassVar, Final

from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject

_KIND: Final = "Event"
_STORAGE: Final = "events"
EVENT_SECONDS: Final = 3600.0
#: How many Events are kept; beyond that, the oldest ones go.
MOST_EVENTS: Final = 10_000
#: How many are deleted at a time, because requests wait meanwhile; more where a tenth is too many.
AT_ONCE: Final = 50
#: Events that become old within so many seconds go together.
_TOGETHER: Final = 10.0
_NOT_FOUND: Final = 404


class EventExpiry(Controller[str]):
    """Deletes old Events. It has a single key, which is due when the oldest Event is."""

    name: ClassVar = "event-expiry"

    def __init__(self, cluster: Cluster) -> None:
        """Follow the writes of Events, which no cache of objects keeps."""
        super().__init__(cluster)
        #: When each Event was last written, the oldest first.
        self._written: OrderedDict[Key, float] = OrderedDict()
        now = cluster.queue.now()
        self._written.update(dict.fromkeys(cluster.registry.store.table(_STORAGE).records, now))
        cluster.registry.subscribe([_KIND], self._on_event)
        self._wait()

    def _on_event(self, _: str, old: JsonObject | None, new: JsonObject | None) -> None:
        about = changed(old, new)["metadata"]
        key = Key(about.get("namespace", ""), about["name"])
        was_waiting = bool(self._written)
        self._written.pop(key, None)
        if new is not None:
            self._written[key] = self.cluster.queue.now()
            if not was_waiting or len(self._written) > MOST_EVENTS:
                self._wait()

    def _wait(self) -> None:
        if not self._written:
            return
        after = next(iter(self._written.values())) + EVENT_SECONDS - self.cluster.queue.now()
        if len(self._written) > MOST_EVENTS or after <= 0:
            self.enqueue(_KIND)
        else:
            self.enqueue(_KIND, after + _TOGETHER, clock=True)

    def sync(self, key: str) -> None:
        """Delete some of the Events that are old, and of the oldest where there are too many."""
        del key
        now = self.cluster.queue.now()
        too_many = len(self._written) - MOST_EVENTS
        at_once = max(AT_ONCE, too_many - MOST_EVENTS // 10)
        old = [
            each
            for place, (each, at) in enumerate(islice(self._written.items(), at_once))
            if place < too_many or at + EVENT_SECONDS <= now
        ]
        for each in old:
            self._written.pop(each, None)
            try:
                self.cluster.registry.delete(_KIND, each.name, each.namespace)
            except StatusError as error:
                if error.code != _NOT_FOUND:
                    self._written[each] = now - EVENT_SECONDS
                    self._written.move_to_end(each, last=False)
                    raise
        self._wait()
