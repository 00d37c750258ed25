"""Deletes the objects of a CustomResourceDefinition that is deleted, then lets it go.

Upstream: apiextensions-apiserver/pkg/controller/finalizer.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import is_terminating, remove_finalizer
from podium.lab.kinds.custom_resource_definition import CLEANUP
from podium.objects.kinds.meta import JsonObject

_KIND: Final = "CustomResourceDefinition"
_NOT_FOUND: Final = 404


class CustomResourceCleanup(Controller[str]):
    """Empties deleted definitions. Its keys are names of definitions."""

    name: ClassVar = "crd-finalizer"

    def __init__(self, cluster: Cluster) -> None:
        """Watch definitions and custom objects."""
        super().__init__(cluster)
        self.watch(_KIND, self._on_definition)
        self.watch_custom(self._on_custom)

    def _on_definition(self, _old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and is_terminating(new):
            self.enqueue(new["metadata"]["name"])

    def _on_custom(self, storage: str, _old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            self.enqueue(storage)

    def sync(self, key: str) -> None:
        """Delete all objects of a deleted definition; remove its finalizer once none is left."""
        definition = self.cluster.get(_KIND, "", key)
        if definition is None or not is_terminating(definition):
            return
        registry = self.cluster.registry
        table = registry.store.table(key)
        for record in list(table.records.values()):
            if is_terminating(record.object()):
                continue
            try:
                registry.delete(key, record.key.name, record.key.namespace, DeleteOptions())
            except StatusError as error:
                if error.code != _NOT_FOUND:
                    raise
        if not table.records:
            self.cluster.update(_KIND, ("", key), _let_go)


def _let_go(definition: JsonObject) -> None:
    remove_finalizer(definition["metadata"], CLEANUP)
