"""The objects that a plan starts from: of files, of a snapshot or of a live cluster.

Of a live cluster, secrets, config maps and events are not read: nothing in a plan depends on them.
Ages, tolerations of taints and deadlines count from the time at which the objects were read. The
newest time that a controller or a kubelet wrote is close to it: nodes report every few minutes.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError
from podium.kube.client import ApiClient
from podium.kube.errors import ApiError
from podium.lab.api.encoding import parse_time
from podium.lab.api.resources import BY_NAME, TABLE, Resource
from podium.lab.contents.documents import Document, documents
from podium.library.reading import Paths, parsed_contents, path_list
from podium.library.snapshots.writing import listed_items
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.json_text import without_nulls
from podium.objects.reading.validation import forbidden_notes

if TYPE_CHECKING:
    from podium.kube.access import Access
    from podium.objects.kinds.meta import JsonObject

_SNAPSHOT: Final = ("podium/v1", "Snapshot")


@dataclass(slots=True)
class ClusterDocuments:
    """The objects of a cluster as they were written."""

    documents: list[Document] = field(default_factory=list)
    #: What a snapshot says about itself and about its profile.
    snapshot: JsonObject | None = None
    #: Kinds that no controller and no scheduler reads, with how often.
    skipped: Counter[str] = field(default_factory=Counter)
    #: Resources of the cluster that the user may not list.
    forbidden: set[str] = field(default_factory=set)
    #: When a live cluster was read, in seconds since 1970.
    read_at: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are all objects of a cluster: a snapshot, or a live one."""
        if self.snapshot is not None:
            return not self.snapshot.get("ofHistory") and not self.forbidden
        return self.read_at is not None and not self.forbidden

    def notes(self) -> Iterator[str]:
        """What was left out, as sentences."""
        for kind, count in sorted(self.skipped.items()):
            yield f"{count} of kind {kind} left out: nothing in a plan depends on them"
        yield from forbidden_notes(self.forbidden)


def cluster_documents(paths: Paths, *, workers: int = 1) -> ClusterDocuments:
    """The objects of all *paths*: manifests, lists, dumps, or a snapshot; at least one node.

    With several *workers* much YAML is parsed in so many copies of this process.
    """
    found = ClusterDocuments()
    names = path_list(paths)
    with without_gc(lasting=True):
        for where, data, parse_yaml in parsed_contents(names, workers):
            for document in documents(data, where, parse_yaml):
                _sort_in(found, document)
    if not any(each.kind == "Node" for each in found.documents):
        hint = "a plan needs the nodes of a cluster"
        raise InputError("holds no node", where=", ".join(names), hint=hint)
    return found


def _sort_in(found: ClusterDocuments, document: Document) -> None:
    kind = document.kind
    if (document.api_version, kind) == _SNAPSHOT:
        found.snapshot = document.item
        found.forbidden |= {*(document.item.get("notRead") or ())}
    elif kind in BY_NAME:
        found.documents.append(document)
    else:
        found.skipped[kind] += 1


_STATUS_FORBIDDEN: Final = 403
_NOT_SERVED: Final = frozenset({_STATUS_FORBIDDEN, 404})
#: The kinds that controllers and the scheduler read; pods first, so that their nodes are there.
_KINDS: Final = (
    "Pod",
    "Node",
    "Namespace",
    "Service",
    "ReplicationController",
    "LimitRange",
    "ResourceQuota",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "DaemonSet",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "ControllerRevision",
    "Job",
    "CronJob",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "DeviceTaintRule",
)


def live_documents(access: Access) -> ClusterDocuments:
    """List the objects of the cluster; kinds that are not served, or not allowed, are left out."""
    with without_gc(lasting=True):
        return asyncio.run(_listed_live(access))


async def _listed_live(access: Access) -> ClusterDocuments:
    found = ClusterDocuments(read_at=time.time())
    async with ApiClient(access) as client:
        for kind in _KINDS:
            for resource in (row for row in TABLE if row.kind == kind):
                items = await _items(client, resource, found.forbidden)
                if items is not None:
                    found.forbidden.discard(resource.plural)
                    found.documents += [Document("", _completed(item, resource)) for item in items]
                    break
    return found


async def _items(
    client: ApiClient, resource: Resource, forbidden: set[str]
) -> list[JsonObject] | None:
    """All objects of a resource, page by page; None if it cannot be read.

    Those that may not be read are noted in *forbidden*.
    """
    try:
        listed = listed_items(client, resource.path())
        return [msgspec.json.decode(each) async for each in listed]
    except ApiError as error:
        if error.status in _NOT_SERVED and resource.kind not in {"Pod", "Node"}:
            if error.status == _STATUS_FORBIDDEN:
                forbidden.add(resource.plural)
            return None
        raise


def _completed(item: JsonObject, resource: Resource) -> JsonObject:
    """The object with its kind, which items of lists lack."""
    whole = {**item, "kind": resource.kind, "apiVersion": resource.group_version}
    whole["metadata"].pop("managedFields", None)
    cleaned = without_nulls(whole)
    assert isinstance(cleaned, dict)
    return cleaned


#: Fields with times of what has happened.
_FIELDS: Final = frozenset(
    {
        "creationTimestamp",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "startTime",
        "completionTime",
        "time",
        "timeAdded",
    }
)
#: Of pods in JSON text only the creation is looked for; there may be tens of thousands.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_CREATED: Final = re.compile(rb'"creationTimestamp"\s*:\s*"([^"]+)"')


def newest_time(documents: Iterable[Document]) -> float | None:
    """The newest time in the objects, in seconds since 1970; None if they have no times."""
    newest = max((text for each in documents for text in _times(each)), default="")
    return parse_time(newest) if newest else None


def _times(document: Document) -> Iterator[str]:
    if document.kind == "Pod" and document.text is not None:
        found = _CREATED.search(bytes(document.text))
        if found is not None:
            yield found[1].decode(errors="replace")
        return
    yield from _in_value(document.item)


def _in_value(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name in _FIELDS and isinstance(part, str) and _is_time(part):
                yield part
            elif isinstance(part, dict | list):
                yield from _in_value(part)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _in_value(part)


def _is_time(text: str) -> bool:
    return _TIME.match(text) is not None
