"""The quota controller: counts what the objects of a namespace use, into the status of its quotas.

Upstream: pkg/controller/resourcequota.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.resources import STORED
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, no_listed_pods
from podium.lab.controllers.framework.object_fields import Key, key_of
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.registry.quotas import count
from podium.objects.kinds.meta import JsonObject

_UNCOUNTED: Final = frozenset({"Event", "Lease", "Pod", "ResourceQuota"})


class QuotaController(Controller[Key]):
    """Counts again when a quota changes or an object leaves. Its keys are those of quotas.

    Objects that come are counted at admission.
    """

    name: ClassVar = "resourcequota-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch quotas and all namespaced kinds."""
        super().__init__(cluster)
        for row in STORED.values():
            if row.namespaced and row.kind not in _UNCOUNTED:
                self.watch(row.kind, self._on_object)
        self.watch("ResourceQuota", self._on_quota)
        self.watch_pods(self._on_pod, listed=no_listed_pods)
        self.watch_custom(lambda _, old, new: self._on_object(old, new))

    def _on_quota(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._count_again(old["metadata"]["namespace"])
        elif old is None or old.get("spec") != new.get("spec"):
            self._count_again(new["metadata"]["namespace"])

    def _on_object(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None:
            return
        spec_changed = new is not None and old.get("spec") != new.get("spec")
        if new is None or spec_changed:
            self._count_again(old["metadata"].get("namespace", ""))

    def _on_pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is not None and (new is None or old.finished != new.finished):
            self._count_again(old.key[0])

    def _count_again(self, namespace: str) -> None:
        for quota in self.cluster.list_in_namespace("ResourceQuota", namespace):
            self.enqueue(key_of(quota))

    def sync(self, key: Key) -> None:
        """Write the status of a quota."""
        quota = self.cluster.get("ResourceQuota", *key)
        if quota is not None:
            self.cluster.update_status(quota, count(self.cluster.registry, quota))
