"""Namespaces that are being deleted: first what is in them, then they themselves.

Upstream: pkg/controller/namespace.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import STORED, Resource
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import is_leaving
from podium.objects.kinds.meta import JsonObject

_FINALIZER: Final = "kubernetes"
#: Objects deleted in one go; the rest follows when others had their turn.
_BURST: Final = 100


class Namespaces(Controller):
    """Empties namespaces that are going away."""

    name: ClassVar = "namespace-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._going: set[str] = set()
        self._rows = [row for row in STORED.values() if row.namespaced]

    def hears(self) -> dict[str, Hearing]:
        """Of namespaces, and of everything that is in one."""
        found: dict[str, Hearing] = {row.kind: self.hear_content for row in self._rows}
        return found | {"Namespace": self.hear_own}

    def hear_own(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A namespace came, changed or went."""
        if new is None:
            assert old is not None
            self._going.discard(old["metadata"]["name"])
        elif is_leaving(new):
            self._going.add(new["metadata"]["name"])
            self.add(new["metadata"]["name"])

    def hear_content(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Something that was in the way went."""
        if self._going and new is None and old is not None:
            namespace = old["metadata"].get("namespace", "")
            if namespace in self._going:
                self.add(namespace)

    def sync(self, key: Any) -> None:
        """Delete what is left; let the namespace go when nothing is."""
        namespace = self.cluster.get("Namespace", "", key)
        if namespace is None or not is_leaving(namespace):
            return
        left, budget = 0, _BURST
        for row in self._rows:
            records = self.cluster.registry.store.table(row.storage).within(key)
            for record in list(records.values()):
                if budget <= 0:
                    self.add(key)
                    return
                budget -= self._delete(row, record.key.name, key)
            left += len(self.cluster.registry.store.table(row.storage).within(key))
        if left == 0:
            self.cluster.change("Namespace", ("", key), _finalized, "finalize")

    def _delete(self, row: Resource, name: str, namespace: str) -> int:
        """Delete an object unless that was asked for before; 1 if something was done."""
        found = self.cluster.get(row.kind, namespace, name)
        if found is not None and is_leaving(found):
            return 0
        options = DeleteOptions(propagation="Background")
        try:
            self.cluster.registry.delete(row.kind, name, namespace, options)
        except StatusError as error:
            if error.code != 404:
                raise
        return 1


def _finalized(namespace: JsonObject) -> None:
    spec = namespace.setdefault("spec", {})
    kept = [each for each in spec.get("finalizers") or () if each != _FINALIZER]
    spec["finalizers"] = kept
    if not kept:
        del spec["finalizers"]
