"""Objects of another cluster, stored as they were there: with uid, times and status.

A snapshot has only the fields that scheduling reads. Other fields that controllers need are
derived: the template of a workload from one of its pods, the state of containers from the phase of
their pod. Pods that were read from JSON stay text until one of them is needed whole (`PodTexts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import msgspec

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME, Resource
from podium.lab.api.status import StatusError, invalid
from podium.lab.contents.documents import Document
from podium.lab.controllers.framework.object_fields import condition, controller_of, uid_of
from podium.lab.kinds.field_checks import validate_annotations, validate_labels, validate_metadata
from podium.lab.kinds.known import strategy_of
from podium.lab.kinds.pod import set_pod_defaults
from podium.lab.registry.registry import Registry
from podium.lab.schema.typed_bodies import refuse_wrong_types
from podium.lab.store.imported_pods import ImportedPod, MetadataHead, SharedParts, read_head
from podium.lab.store.store import Key
from podium.objects.field_errors import NameRule, dns_label_reasons
from podium.objects.kinds.meta import JsonObject, OwnerReference
from podium.objects.names import is_qualified_name
from podium.objects.reading.collection import label

_WORKLOADS: Final = frozenset(
    {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"}
)
#: Labels and fields of pods that controllers and the scheduler set, and templates do not have.
POD_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "statefulset.kubernetes.io/pod-name",
    }
)
_POD_FIELDS: Final = frozenset({"nodeName", "hostname", "priority", "preemptionPolicy"})
_UNKNOWN_CONTAINER: Final = {"name": "unknown", "image": "unknown"}


class ClusterImport:
    """Stores objects with a uid without creating them anew."""

    def __init__(
        self,
        registry: Registry,
        items: Iterable[JsonObject],
        pods: Iterable[ImportedPod] = (),
    ) -> None:
        """Import into *registry*; *items* and *pods* are all objects of the cluster."""
        self._registry = registry
        #: One pod of each workload, by the uid of the workload.
        self._pods: dict[str, JsonObject | ImportedPod] = {}
        for pod in pods:
            for reference in pod.head.metadata.owner_references or ():
                if reference.controller:
                    self._pods.setdefault(reference.uid, pod)
                    break
        replica_sets: list[tuple[str, str]] = []
        for item in items:
            owner = controller_of(item) if item.get("kind") in {"Pod", "ReplicaSet"} else None
            if owner is not None and item["kind"] == "Pod":
                self._pods.setdefault(str(owner.get("uid")), item)
            elif owner is not None and (item.get("spec") or {}).get("replicas"):
                replica_sets.append((str(owner.get("uid")), uid_of(item)))
        for deployment, replica_set in replica_sets:
            if replica_set in self._pods:
                self._pods.setdefault(deployment, self._pods[replica_set])

    def put(self, resource: Resource, item: JsonObject) -> None:
        """Store one object of a resource; an object that was stored before is an error."""
        metadata = item["metadata"]
        item["apiVersion"], item["kind"] = resource.group_version, resource.kind
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        metadata.setdefault("creationTimestamp", self._registry.timestamp())
        strategy = strategy_of(resource)
        errors = list(validate_metadata(metadata, strategy.name_rule))
        if errors:
            raise invalid(resource.kind, resource.group, str(metadata.get("name", "")), errors)
        if resource.kind in _WORKLOADS:
            self._complete_workload(item)
        strategy.set_defaults(item)
        if resource.kind == "Namespace":
            strategy.prepare_for_create(resource, item)
        elif resource.kind == "Pod":
            complete_status(item)
        key = Key(metadata.get("namespace", "") if resource.namespaced else "", metadata["name"])
        present = self._registry.store.get(resource.storage, key)
        old = None if present is None else present.object()
        if old is not None and old["metadata"]["uid"] == metadata["uid"]:
            raise InputError("is there twice")
        self._registry.write(resource, item, old)

    def _complete_workload(self, item: JsonObject) -> None:
        """Give a workload without a template one, from a pod or from its selector."""
        spec = item.setdefault("spec", {})
        if spec.get("template"):
            return
        pod = self._pods.get(uid_of(item))
        if pod is not None:
            whole = pod.object() if isinstance(pod, ImportedPod) else pod
            spec["template"] = _template(whole, item["kind"])
            if item["kind"] == "StatefulSet" and not spec.get("volumeClaimTemplates"):
                spec["volumeClaimTemplates"] = _claim_templates(whole)
            return
        selector = spec.get("selector") or {}
        labels = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
        spec["template"] = {
            "metadata": {"labels": labels},
            "spec": {"containers": [_UNKNOWN_CONTAINER]},
        }


def _template(pod: JsonObject, kind: str) -> JsonObject:
    """A template that a pod of a workload of this kind may have been created from."""
    name = pod["metadata"]["name"]
    labels = pod["metadata"].get("labels") or {}
    spec = {part: value for part, value in pod["spec"].items() if part not in _POD_FIELDS}
    spec["volumes"] = [
        each
        for each in spec.get("volumes") or ()
        if not (each.get("persistentVolumeClaim") or {}).get("claimName", "").endswith(name)
    ]
    if kind == "DaemonSet":
        _remove_node_affinity(spec)
    added = POD_LABELS | {"pod-template-hash"} if kind == "Deployment" else POD_LABELS
    kept = {key: text for key, text in labels.items() if key not in added}
    return {"metadata": {"labels": kept}, "spec": spec}


def _claim_templates(pod: JsonObject) -> list[JsonObject]:
    """Templates of the claims that belong to one pod of a stateful set.

    Their names matter: the claims exist, and the pods that are created anew use them again.
    """
    tail = f"-{pod['metadata']['name']}"
    claims = [
        (each.get("persistentVolumeClaim") or {}).get("claimName", "")
        for each in pod["spec"].get("volumes") or ()
    ]
    return [
        {
            "metadata": {"name": name.removesuffix(tail)},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1"}},
            },
        }
        for name in claims
        if name.endswith(tail)
    ]


def _remove_node_affinity(spec: JsonObject) -> None:
    """Remove the affinity of a daemon set's pod to its node."""
    affinity = dict(spec.get("affinity") or {})
    affinity.pop("nodeAffinity", None)
    spec["affinity"] = affinity


def complete_status(pod: JsonObject) -> None:
    """Give a running pod the status of its containers."""
    status = pod.setdefault("status", {})
    if status.get("phase") != "Running" or status.get("containerStatuses"):
        return
    ready = condition(pod, "Ready").get("status") == "True"
    since = status.get("startTime") or pod["metadata"]["creationTimestamp"]
    status["containerStatuses"] = [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "imageID": "",
            "lastState": {},
            "ready": ready,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }
        for each in pod["spec"].get("containers") or ()
    ]


#: Names that every rule for names of pods allows; others are checked by the rule.
_PLAIN_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class PodTexts:
    """The pods among some documents that can be kept as text, and all other documents.

    A pod with a field that no API server writes is among the others. It is loaded like any other
    object, and the error says what is wrong with it.
    """

    def __init__(
        self, registry: Registry, served: Iterable[tuple[Resource, Document]], *, keep_text: bool
    ) -> None:
        """Sort *served*; without *keep_text* all of them are among the others.

        The pods are not in *registry* before `load`.
        """
        self._registry = registry
        self.others: list[tuple[Resource, Document]] = []
        self.pods: list[ImportedPod] = []
        self.namespaces: set[str] = set()
        self._checks = _MetadataChecks(strategy_of(BY_NAME["Pod"]).name_rule)
        self._created = registry.timestamp()
        self._keys: set[Key] = set()
        self._shared = SharedParts()
        for each in served:
            resource, document = each
            pod = None
            if keep_text and resource.kind == "Pod" and document.text is not None:
                pod = self._imported(resource, document)
            if pod is None:
                self.others.append(each)
            else:
                self.pods.append(pod)

    def load(self) -> None:
        """Put the pods into the store of the registry."""
        if self.pods:
            self._registry.store.load_new("pods", self.pods)

    def _imported(self, resource: Resource, document: Document) -> ImportedPod | None:
        text = document.text
        assert text is not None
        try:
            head = self._shared.head(read_head(text))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        about = head.metadata
        if not about.uid or not about.namespace or not self._checks.are_valid(about):
            return None
        key = Key(about.namespace, about.name)
        if key in self._keys:
            return None
        if about.creation_timestamp is None:
            about = msgspec.structs.replace(about, creation_timestamp=self._created)
            head = msgspec.structs.replace(head, metadata=about)
        complete = partial(_completed, resource, document, self._created)
        version = self._registry.store.next_version()
        try:
            pod = ImportedPod(key, version, text, head, complete, shared=self._shared)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        self._keys.add(key)
        self.namespaces.add(about.namespace)
        return pod


class _MetadataChecks:
    """Whether metadata is valid, with what many pods have in common checked once."""

    def __init__(self, name_reasons: NameRule) -> None:
        self._reasons = name_reasons
        self._shared: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], bool] = {}

    def are_valid(self, about: MetadataHead) -> bool:
        """Whether `validate_metadata` would find nothing wrong."""
        name = about.name
        if not _PLAIN_NAME.fullmatch(name) and (not name or self._reasons(name)):
            return False
        labels = tuple(about.labels.items()) if about.labels else ()
        shared = (about.namespace, about.generate_name, labels)
        known = self._shared.get(shared)
        if known is None:
            known = self._shared[shared] = self._are_shared_valid(about)
        if not known or (about.owner_references and not _are_owners(about.owner_references)):
            return False
        if about.annotations and any(validate_annotations(about.annotations)):
            return False
        return not about.finalizers or all(map(is_qualified_name, about.finalizers))

    def _are_shared_valid(self, about: MetadataHead) -> bool:
        prefix = about.generate_name
        if prefix and self._reasons(prefix.rstrip("-") or prefix):
            return False
        if dns_label_reasons(about.namespace):
            return False
        return not any(validate_labels(about.labels or {}, ""))


def _are_owners(references: Sequence[OwnerReference]) -> bool:
    controllers = 0
    for each in references:
        if not (each.api_version and each.kind and each.name and each.uid):
            return False
        controllers += bool(each.controller)
    return controllers < 2


def _completed(resource: Resource, document: Document, created: str) -> JsonObject:
    """The whole pod, as `ClusterImport.put` would have stored it."""
    item = document.item
    metadata = item["metadata"]
    try:
        refuse_wrong_types(resource, item)
    except StatusError as error:
        name = label(resource.kind, metadata["namespace"], metadata["name"])
        raise InputError(error.message, where=document.where, object=name) from None
    for name in ("resourceVersion", "selfLink"):
        metadata.pop(name, None)
    item["apiVersion"], item["kind"] = resource.group_version, resource.kind
    metadata.setdefault("creationTimestamp", created)
    set_pod_defaults(item)
    complete_status(item)
    return item
