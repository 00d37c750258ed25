"""The controllers of what contains other objects: namespaces and CustomResourceDefinitions.

One creates what each namespace has. One empties namespaces that are deleted, one definitions.

Upstream: pkg/controller/namespace, pkg/controller/certificates/rootcacertpublisher,
pkg/controller/serviceaccount/serviceaccounts_controller.go,
apiextensions-apiserver/pkg/controller/finalizer.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import STORED, Resource
from podium.lab.api.status import ignoring
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import BURST, Controller
from podium.lab.controllers.framework.object_fields import is_terminating, remove_finalizer
from podium.lab.kinds.custom_resource_definition import CLEANUP
from podium.objects.kinds.meta import JsonObject

_FINALIZER: Final = "kubernetes"
_SERVICE_ACCOUNT: Final = "default"
_ROOT_CERTIFICATES: Final = "kube-root-ca.crt"
_NO_CERTIFICATES: Final = "# The lab speaks plain HTTP on loopback: it has no certificates.\n"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class NamespaceController(Controller[str]):
    """Deletes the contents of terminating namespaces. Its keys are names of namespaces."""

    name: ClassVar = "namespace-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch namespaces and all namespaced kinds."""
        super().__init__(cluster)
        self._terminating: set[str] = set()
        self._resources = [row for row in STORED.values() if row.namespaced]
        for row in self._resources:
            self.watch(row.kind, self._on_content)
        self.watch("Namespace", self._on_namespace)
        self.watch_custom(lambda _, old, new: self._on_content(old, new))

    def _on_namespace(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._terminating.discard(old["metadata"]["name"])
        elif is_terminating(new):
            self._terminating.add(new["metadata"]["name"])
            self.enqueue(new["metadata"]["name"])

    def _on_content(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if self._terminating and new is None and old is not None:
            namespace = old["metadata"].get("namespace", "")
            if namespace in self._terminating:
                self.enqueue(namespace)

    def sync(self, key: str) -> None:
        """Delete objects of a terminating namespace; finalize it when none is left."""
        namespace = self.cluster.get("Namespace", "", key)
        if namespace is None or not is_terminating(namespace):
            return
        left, budget = 0, BURST
        custom = [row for row in self.cluster.registry.custom.stored() if row.namespaced]
        for row in (*self._resources, *custom):
            table = self.cluster.registry.store.table(row.storage)
            for record in list(table.in_namespace(key).values()):
                if budget <= 0:
                    self.enqueue(key)
                    return
                budget -= self._delete(row, record.key.name, key)
            left += len(table.in_namespace(key))
        if left == 0:
            self.cluster.update("Namespace", ("", key), _finalize, "finalize")

    def _delete(self, row: Resource, name: str, namespace: str) -> int:
        """Delete an object unless it is terminating; returns the number of deletions."""
        kind = row.kind if row.custom is None else row.storage
        found = self.cluster.get(kind, namespace, name)
        if found is not None and is_terminating(found):
            return 0
        options = DeleteOptions(propagation="Background")
        with ignoring(404):
            self.cluster.registry.delete(kind, name, namespace, options)
        return 1


def _finalize(namespace: JsonObject) -> None:
    remove_finalizer(namespace.setdefault("spec", {}), _FINALIZER)


class NamespaceContentsController(Controller[str]):
    """Creates `default` and `kube-root-ca.crt` in namespaces. Its keys are names of namespaces."""

    name: ClassVar = "service-account-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch namespaces, and the deletion of the objects that they must have."""
        super().__init__(cluster)
        self.watch("Namespace", self._on_namespace)
        self.watch("ServiceAccount", self._on_content)
        self.watch("ConfigMap", self._on_content)

    def _on_namespace(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None and new is not None:
            self.enqueue(new["metadata"]["name"])

    def _on_content(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None or old["metadata"]["name"] not in {_SERVICE_ACCOUNT, _ROOT_CERTIFICATES}:
            return
        if new is None or old["kind"] == "ConfigMap":
            self.enqueue(old["metadata"]["namespace"])

    def sync(self, key: str) -> None:
        """Create what a namespace lacks, unless it is terminating."""
        namespace = self.cluster.get("Namespace", "", key)
        if namespace is None or is_terminating(namespace):
            return
        if self.cluster.get("ServiceAccount", key, _SERVICE_ACCOUNT) is None:
            self._create("ServiceAccount", {"metadata": _metadata(key, _SERVICE_ACCOUNT)})
        found = self.cluster.get("ConfigMap", key, _ROOT_CERTIFICATES)
        data = {"ca.crt": _NO_CERTIFICATES}
        if found is None:
            metadata = _metadata(key, _ROOT_CERTIFICATES)
            metadata["annotations"] = {"kubernetes.io/description": _DESCRIPTION}
            self._create("ConfigMap", {"metadata": metadata, "data": data})
        elif found.get("data") != data and not is_terminating(found):
            self.cluster.update("ConfigMap", (key, _ROOT_CERTIFICATES), _restore)

    def _create(self, kind: str, item: JsonObject) -> None:
        with ignoring(409):
            self.cluster.create(kind, item)


def _metadata(namespace: str, name: str) -> JsonObject:
    return {"namespace": namespace, "name": name}


def _restore(item: JsonObject) -> None:
    item["data"] = {"ca.crt": _NO_CERTIFICATES}


_KIND: Final = "CustomResourceDefinition"


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
            with ignoring(404):
                registry.delete(key, record.key.name, record.key.namespace, DeleteOptions())
        if not table.records:
            self.cluster.remove_finalizer(_KIND, ("", key), CLEANUP)
