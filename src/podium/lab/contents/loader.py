"""Loads documents into an empty registry.

An object without a `metadata.uid` is a manifest and is created as a client would. An object with a
uid comes from a cluster and is imported with its uid, times and status, so that controllers find
the cluster at rest. Owners that such objects name and that are not loaded themselves are written
down for the garbage collector, which would delete the dependents otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME, STORED, Resource, to_stored
from podium.lab.api.status import StatusError
from podium.lab.contents.cluster_import import ClusterImport, PodTexts
from podium.lab.contents.documents import Document
from podium.lab.controllers.garbage_collector import MISSING_OWNERS, MISSING_OWNERS_FIELD
from podium.lab.controllers.node_lifecycle import (
    default_labels,
    is_registered,
    registered_status,
)
from podium.lab.controllers.volume_binding import PROVISIONER
from podium.lab.kinds.custom_resource_definition import set_definition_defaults, validate_definition
from podium.lab.registry.custom_resources import (
    DEFINITIONS,
    CustomResources,
    admit_custom,
)
from podium.lab.registry.registry import Registry
from podium.lab.schema.typed_bodies import refuse_wrong_types
from podium.lab.store.imported_pods import ImportedPod
from podium.objects.kinds.meta import JsonObject
from podium.objects.reading.collection import label

#: Kinds that other objects refer to; they are loaded first.
_FIRST: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "PodGroup",
    "StorageClass",
    "Node",
    "CSINode",
    "CSIDriver",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ServiceAccount",
    "Service",
    "PodDisruptionBudget",
)
#: Kinds that refer to others; they are loaded last. All other kinds come in between.
_LAST: Final = (
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "CronJob",
    "Job",
    "Pod",
)
#: Kinds that are not loaded: they are no part of a cluster at rest.
_TRANSIENT: Final = frozenset({"Event", "Lease", "Binding"})
#: The `apiVersion` of the first document of a snapshot.
_SNAPSHOT_HEADER: Final = "podium/v1"
#: Name, binding mode and default of the storage classes that the lab provides.
_STORAGE_CLASSES: Final = (
    ("lab-standard", "WaitForFirstConsumer", True),
    ("lab-immediate", "Immediate", False),
)

#: Iterates over the objects that are loaded, and may show progress.
Progress = Callable[[Sequence[tuple[Resource, Document]]], Iterable[tuple[Resource, Document]]]


@dataclass(slots=True)
class LoadResult:
    """The number of loaded objects, and of skipped ones by kind."""

    objects: int = 0
    skipped: dict[str, int] = field(default_factory=dict)


def load(
    registry: Registry,
    documents: Iterable[Document],
    progress: Progress = iter,
    *,
    keep_text: bool = False,
) -> LoadResult:
    """Load all documents, in the order in which objects depend on each other.

    With *keep_text*, pods of another cluster that were read from JSON stay text until they are
    needed whole. Subscribers of the registry are not called for them.
    """
    result = LoadResult()
    served = _served(registry, list(documents), result)
    result.objects = len(served)
    texts = PodTexts(registry, progress(served) if keep_text else served, keep_text=keep_text)
    served = texts.others
    for resource, document in served:
        _check_types(resource, document)
    _create_missing_namespaces(registry, served, texts.namespaces)
    texts.load()
    served.sort(key=lambda each: _load_order(each[0].kind))
    _create_storage_classes(registry, served)
    items = [document.item for _, document in served]
    cluster_import = ClusterImport(registry, items, texts.pods)
    for resource, document in progress(served):
        try:
            _load_one(registry, cluster_import, resource, document.item)
        except StatusError as error:
            raise _refused(document, resource, error) from None
        except InputError as error:
            name = _label(resource, document.item)
            raise error.located(where=document.where, object=name) from None
    _note_missing_owners(registry, items, texts.pods)
    return result


def _served(
    registry: Registry, documents: Sequence[Document], result: LoadResult
) -> list[tuple[Resource, Document]]:
    """The documents that are loaded, each with its resource; *result* counts the others."""
    custom = _custom_resources(registry, documents)
    resources: dict[tuple[str, str], Resource | None] = {}
    found = []
    for document in documents:
        named = (document.api_version, document.kind)
        if named not in resources:
            resources[named] = _resource_of(*named, custom)
        resource = resources[named]
        if document.api_version == _SNAPSHOT_HEADER:
            continue
        if resource is None:
            result.skipped[document.kind] = result.skipped.get(document.kind, 0) + 1
        elif resource.kind not in _TRANSIENT:
            found.append((resource, document))
    return found


def _custom_resources(registry: Registry, documents: Sequence[Document]) -> CustomResources:
    """The custom resources of the registry and of the definitions among the documents."""
    found = CustomResources()
    for record in registry.store.table(DEFINITIONS).records.values():
        found.put(record.object())
    for document in documents:
        if document.kind == "CustomResourceDefinition":
            definition = deepcopy(document.item)
            set_definition_defaults(definition)
            if not list(validate_definition(definition)):
                found.put(definition)
    return found


def _resource_of(version: str, kind: str, custom: CustomResources) -> Resource | None:
    own = custom.of_object({"apiVersion": version, "kind": kind})
    if own is not None:
        return own
    resource = BY_NAME.get(kind)
    group = version.rpartition("/")[0]
    if resource is None or resource.qualified not in STORED:
        return None
    groups = {resource.group, "extensions"} if resource.group == "apps" else {resource.group}
    return resource if group in groups or resource.kind == "Event" else None


def _load_order(kind: str) -> int:
    if kind in _FIRST:
        return _FIRST.index(kind)
    return 100 + (_LAST.index(kind) + 1 if kind in _LAST else 0)


def _load_one(
    registry: Registry, cluster_import: ClusterImport, resource: Resource, item: JsonObject
) -> None:
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        raise InputError("is missing", path="metadata")
    for name in ("resourceVersion", "selfLink"):
        metadata.pop(name, None)
    if metadata.get("uid"):
        cluster_import.put(resource, item)
        return
    if resource.kind == "Namespace" and registry.find(resource.kind, metadata.get("name", "")):
        registry.modify(
            resource.kind, metadata["name"], change=lambda it: _merge_maps(it, metadata)
        )
        return
    if resource.kind == "Node" and not is_registered(item):
        metadata["labels"] = {**(metadata.get("labels") or {}), **default_labels(item)}
        item["status"] = registered_status(item, registry.timestamp())
    status = item.get("status")
    if resource.custom is not None:
        admit_custom(resource, item)
        registry.create(resource.storage, to_stored(resource, item))
        return
    made = registry.create(resource.kind, item)
    if status and status != made.get("status"):
        name, namespace = made["metadata"]["name"], made["metadata"].get("namespace", "")
        registry.modify(
            resource.kind,
            name,
            namespace,
            change=lambda it: {**it, "status": status},
            subresource="status",
        )


def _merge_maps(item: JsonObject, metadata: JsonObject) -> JsonObject:
    """Add the labels and annotations of *metadata* to an object that exists."""
    for part in ("labels", "annotations"):
        if metadata.get(part):
            item["metadata"][part] = {**(item["metadata"].get(part) or {}), **metadata[part]}
    return item


def _create_missing_namespaces(
    registry: Registry, served: Sequence[tuple[Resource, Document]], others: AbstractSet[str]
) -> None:
    """Create the namespaces that objects are in and that are not loaded themselves."""
    used = others | {
        str((document.item.get("metadata") or {}).get("namespace") or "default")
        for resource, document in served
        if resource.namespaced
    }
    listed = {
        str((document.item.get("metadata") or {}).get("name", ""))
        for resource, document in served
        if resource.kind == "Namespace"
    }
    for name in sorted(used - listed):
        if registry.find("Namespace", name) is None:
            try:
                registry.create("Namespace", {"metadata": {"name": name}})
            except StatusError as error:
                raise InputError(error.message) from None


def _create_storage_classes(
    registry: Registry, served: Sequence[tuple[Resource, Document]]
) -> None:
    """Create the storage classes of the lab, unless the cluster has storage classes."""
    if any(resource.kind == "StorageClass" for resource, _ in served) or registry.list(
        "StorageClass"
    ):
        return
    for name, mode, default in _STORAGE_CLASSES:
        annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
        registry.create(
            "StorageClass",
            {
                "metadata": {"name": name, "annotations": annotations},
                "provisioner": PROVISIONER,
                "volumeBindingMode": mode,
            },
        )


def _note_missing_owners(
    registry: Registry, items: list[JsonObject], pods: Collection[ImportedPod]
) -> None:
    live = {item["metadata"].get("uid") for item in items}
    live.update(pod.head.metadata.uid for pod in pods)
    missing = {
        reference.get("uid", "")
        for item in items
        for reference in item["metadata"].get("ownerReferences") or ()
        if reference.get("uid") not in live
    }
    missing |= {
        reference.uid
        for pod in pods
        for reference in pod.head.metadata.owner_references or ()
        if reference.uid not in live
    }
    if not missing:
        return
    namespace, name = MISSING_OWNERS
    metadata = {"namespace": namespace, "name": name}
    uids = "\n".join(sorted(missing))
    registry.create("ConfigMap", {"metadata": metadata, "data": {MISSING_OWNERS_FIELD: uids}})


def _check_types(resource: Resource, document: Document) -> None:
    """Refuse fields of a wrong type in objects from files; generated objects have none."""
    if not document.where or resource.custom is not None:
        return
    try:
        refuse_wrong_types(resource, document.item)
    except StatusError as error:
        raise _refused(document, resource, error) from None


def _refused(document: Document, resource: Resource, error: StatusError) -> InputError:
    return InputError(error.message, where=document.where, object=_label(resource, document.item))


def _label(resource: Resource, item: JsonObject) -> str:
    """The kind, namespace and name of an object in an error."""
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    return label(resource.kind, metadata.get("namespace"), name)
