"""Documents into the registry: what never met an API server is created, the rest is put back.

An object with a `metadata.uid` came from a cluster. It keeps its uid, its times and its status;
controllers find everything as it was and have nothing to do. Whatever those objects say about
owners that are not among them is written down, so that nobody takes them for garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME, STORED, Resource
from podium.lab.api.status import StatusError
from podium.lab.contents.documents import Document
from podium.lab.contents.restoring import Restorer
from podium.lab.controllers.garbage_collector import MISSING_OWNERS, MISSING_OWNERS_FIELD
from podium.lab.controllers.nodes.node_registration import (
    default_labels,
    is_registered,
    registered_status,
)
from podium.lab.controllers.storage.volume_binding import PROVISIONER
from podium.lab.schema.typed_bodies import check_types
from podium.objects.kinds.meta import JsonObject
from podium.objects.reading.collection import label

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: What others refer to comes first; kinds that are not here come in between.
_FIRST: Final = (
    "Namespace",
    "PriorityClass",
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
#: Kinds that say nothing about a cluster at rest.
_PASSING: Final = frozenset({"Event", "Lease", "Binding"})
#: The head of a snapshot.
_OWN: Final = "podium/v1"
_CLASSES: Final = (
    ("lab-standard", "WaitForFirstConsumer", True),
    ("lab-immediate", "Immediate", False),
)

#: Passes on what it is given, and may show how far it is.
Tracking = Callable[[Sequence[tuple[Resource, Document]]], Iterable[tuple[Resource, Document]]]


class Built:
    """What became of a world."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.objects = 0
        self.skipped: dict[str, int] = {}


def build(registry: Registry, documents: Iterable[Document], tracking: Tracking = iter) -> Built:
    """Put all documents into the registry, those that others need first."""
    built = Built()
    known: list[tuple[Resource, Document]] = []
    for document in documents:
        row = _row(document.item)
        if document.item["apiVersion"] == _OWN:
            continue
        if row is None:
            kind = str(document.item["kind"])
            built.skipped[kind] = built.skipped.get(kind, 0) + 1
        elif row.kind not in _PASSING:
            known.append((row, document))
    for row, document in known:
        _check_shape(row, document)
    _make_namespaces(registry, known)
    known.sort(key=lambda each: _place(each[0].kind))
    _make_classes(registry, known)
    restorer = Restorer(registry, (document.item for _, document in known))
    for row, document in tracking(known):
        try:
            _put(registry, restorer, row, document.item)
        except StatusError as error:
            raise _refused(document, row, error) from None
        except InputError as error:
            name = _name(row, document.item)
            raise error.located(where=document.where, object=name) from None
    built.objects = len(known)
    _note_missing_owners(registry, [document.item for _, document in known])
    return built


def _row(item: JsonObject) -> Resource | None:
    row = BY_NAME.get(str(item["kind"]))
    group = str(item.get("apiVersion", "")).rpartition("/")[0]
    if row is None or row.qualified not in STORED:
        return None
    aliases = {row.group, "extensions"} if row.group == "apps" else {row.group}
    return row if group in aliases or row.kind == "Event" else None


def _place(kind: str) -> int:
    if kind in _FIRST:
        return _FIRST.index(kind)
    return 100 + (_LAST.index(kind) + 1 if kind in _LAST else 0)


def _put(registry: Registry, restorer: Restorer, row: Resource, item: JsonObject) -> None:
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        raise InputError("is missing", path="metadata")
    for field in ("resourceVersion", "selfLink"):
        metadata.pop(field, None)
    if metadata.get("uid"):
        restorer.put(row, item)
        return
    if row.kind == "Namespace" and registry.find(row.kind, metadata.get("name", "")):
        registry.modify(row.kind, metadata["name"], change=lambda it: _labelled(it, metadata))
        return
    if row.kind == "Node" and not is_registered(item):
        metadata["labels"] = {**(metadata.get("labels") or {}), **default_labels(item)}
        item["status"] = registered_status(item, registry.now())
    status = item.get("status")
    made = registry.create(row.kind, item)
    if status and status != made.get("status"):
        name, namespace = made["metadata"]["name"], made["metadata"].get("namespace", "")
        registry.modify(
            row.kind,
            name,
            namespace,
            change=lambda it: {**it, "status": status},
            subresource="status",
        )


def _labelled(item: JsonObject, metadata: JsonObject) -> JsonObject:
    for part in ("labels", "annotations"):
        if metadata.get(part):
            item["metadata"][part] = {**(item["metadata"].get(part) or {}), **metadata[part]}
    return item


def _make_namespaces(registry: Registry, known: Sequence[tuple[Resource, Document]]) -> None:
    """Namespaces that are only mentioned exist, too."""
    mentioned = {
        str((document.item.get("metadata") or {}).get("namespace") or "default")
        for row, document in known
        if row.namespaced
    }
    listed = {
        str((document.item.get("metadata") or {}).get("name", ""))
        for row, document in known
        if row.kind == "Namespace"
    }
    for name in sorted(mentioned - listed):
        if registry.find("Namespace", name) is None:
            try:
                registry.create("Namespace", {"metadata": {"name": name}})
            except StatusError as error:
                raise InputError(error.message) from None


def _make_classes(registry: Registry, known: Sequence[tuple[Resource, Document]]) -> None:
    """Storage that the lab provides, in worlds that have none of their own."""
    if any(row.kind == "StorageClass" for row, _ in known) or registry.list("StorageClass"):
        return
    for name, mode, default in _CLASSES:
        annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
        registry.create(
            "StorageClass",
            {
                "metadata": {"name": name, "annotations": annotations},
                "provisioner": PROVISIONER,
                "volumeBindingMode": mode,
            },
        )


def _note_missing_owners(registry: Registry, items: list[JsonObject]) -> None:
    live = {item["metadata"].get("uid") for item in items}
    missing = {
        reference.get("uid", "")
        for item in items
        for reference in item["metadata"].get("ownerReferences") or ()
        if reference.get("uid") not in live
    }
    if not missing:
        return
    namespace, name = MISSING_OWNERS
    metadata = {"namespace": namespace, "name": name}
    uids = "\n".join(sorted(missing))
    registry.create("ConfigMap", {"metadata": metadata, "data": {MISSING_OWNERS_FIELD: uids}})


def _check_shape(row: Resource, document: Document) -> None:
    """Refuse what is not built as objects of this kind are; our own worlds are."""
    if not document.where:
        return
    try:
        check_types(row, document.item)
    except StatusError as error:
        raise _refused(document, row, error) from None


def _refused(document: Document, row: Resource, error: StatusError) -> InputError:
    return InputError(error.message, where=document.where, object=_name(row, document.item))


def _name(row: Resource, item: JsonObject) -> str:
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    return label(row.kind, metadata.get("namespace"), name)
