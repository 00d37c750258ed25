"""The objects that every namespace has: a service account and the certificates of the API server.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go,
pkg/controller/certificates/rootcacertpublisher.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller
from podium.lab.controllers.framework.object_fields import is_terminating
from podium.objects.kinds.meta import JsonObject

_SERVICE_ACCOUNT: Final = "default"
_ROOT_CERTIFICATES: Final = "kube-root-ca.crt"
_NO_CERTIFICATES: Final = "# The lab speaks plain HTTP on loopback: it has no certificates.\n"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)
_CONFLICT: Final = 409


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
        try:
            self.cluster.create(kind, item)
        except StatusError as error:
            if error.code != _CONFLICT:
                raise


def _metadata(namespace: str, name: str) -> JsonObject:
    return {"namespace": namespace, "name": name}


def _restore(item: JsonObject) -> None:
    item["data"] = {"ca.crt": _NO_CERTIFICATES}
