"""The objects of a live cluster that a plan starts from, listed whole.

Secrets, config maps and events are not read: nothing in a plan depends on them.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from podium.kube.client import ApiClient
from podium.kube.errors import ApiError
from podium.lab.api.resources import TABLE, Resource
from podium.lab.contents.documents import Document
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.json_text import without_nulls
from podium.what_if.plan.inputs import ClusterDocuments

if TYPE_CHECKING:
    from podium.kube.access import Access
    from podium.objects.kinds.meta import JsonObject

_PAGE: Final = 500
_FORBIDDEN: Final = 403
_NOT_SERVED: Final = frozenset({_FORBIDDEN, 404})
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
        return asyncio.run(_listed(access))


async def _listed(access: Access) -> ClusterDocuments:
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
    found: list[JsonObject] = []
    at = ""
    while True:
        params = {"limit": str(_PAGE)} | ({"continue": at} if at else {})
        try:
            answer = await client.request("GET", resource.path(), params=params, timeout=120.0)
        except ApiError as error:
            if error.status in _NOT_SERVED and resource.kind not in {"Pod", "Node"}:
                if error.status == _FORBIDDEN:
                    forbidden.add(resource.plural)
                return None
            raise
        page = msgspec.json.decode(answer)
        found += page.get("items") or []
        at = (page.get("metadata") or {}).get("continue", "")
        if not at:
            return found


def _completed(item: JsonObject, resource: Resource) -> JsonObject:
    """The object with its kind, which items of lists lack."""
    whole = {**item, "kind": resource.kind, "apiVersion": resource.group_version}
    whole["metadata"].pop("managedFields", None)
    cleaned = without_nulls(whole)
    assert isinstance(cleaned, dict)
    return cleaned
