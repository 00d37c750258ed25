"""What `kubectl get` prints: the columns of each kind, and a row for each object.

A cell in a column of priority 1 is shown only with `-o wide`; the client leaves it out, so it is
always there.

Upstream: pkg/printers/internalversion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.lab.api.status import JsonDict
from podium.lab.tables import cluster, workloads
from podium.lab.tables.pods import pod_cells, pod_conditions
from podium.lab.tables.text import metadata, part, seconds_of

_Cells = Callable[[JsonDict, float], list[Any]]

#: Columns as they are headed; `*` marks those for `-o wide`, `#` numbers, `?` truth values.
_COLUMNS = """
    ConfigMap: Name, Data, Age
    ControllerRevision: Name, Controller, Revision, Age
    CronJob: Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age, *Containers, *Images, *Selector
    CSIDriver: Name, ?AttachRequired, ?PodInfoOnMount, ?StorageCapacity, TokenRequests, ?RequiresRepublish, Modes, Age
    CSINode: Name, #Drivers, Age
    CSIStorageCapacity: Name, StorageClassName, Capacity
    DaemonSet: Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age, *Containers, *Images, *Selector
    Deployment: Name, Ready, Up-to-date, Available, Age, *Containers, *Images, *Selector
    Endpoints: Name, Endpoints, Age
    EndpointSlice: Name, AddressType, Ports, Endpoints, Age
    Event: Last Seen, Type, Reason, Object, *Subobject, *Source, Message, *First Seen, *Count, *Name
    Job: Name, Status, Completions, Duration, Age, *Containers, *Images, *Selector
    Lease: Name, Holder, Age
    Namespace: Name, Status, Age
    Node: Name, Status, Roles, Age, Version, *Internal-IP, *External-IP, *OS-Image, *Kernel-Version, *Container-Runtime
    PersistentVolume: Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, *VolumeMode
    PersistentVolumeClaim: Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, *VolumeMode
    Pod: Name, Ready, Status, Restarts, Age, *IP, *Node, *Nominated Node, *Readiness Gates
    PodDisruptionBudget: Name, Min Available, Max Unavailable, #Allowed Disruptions, Age
    PodTemplate: Name, Containers, Images, Pod Labels
    PriorityClass: Name, #Value, ?Global-Default, Age, PreemptionPolicy
    ReplicaSet: Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector
    ReplicationController: Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector
    ResourceQuota: Name, Request, Limit, Age
    Scale: Name, #Desired, #Available, Age
    Secret: Name, Type, Data, Age
    Service: Name, Type, Cluster-IP, External-IP, Port(s), Age, *Selector
    ServiceAccount: Name, Age
    StatefulSet: Name, Ready, Age, *Containers, *Images
    StorageClass: Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age
    VolumeAttachment: Name, Attacher, PV, Node, ?Attached, Age
    : Name, @Created At
"""  # noqa: E501  one kind, one line
_CELLS: Mapping[str, _Cells] = {
    "ConfigMap": cluster.config_map_cells,
    "ControllerRevision": workloads.controller_revision_cells,
    "CronJob": workloads.cron_job_cells,
    "CSIDriver": cluster.csi_driver_cells,
    "CSINode": cluster.csi_node_cells,
    "CSIStorageCapacity": cluster.capacity_cells,
    "DaemonSet": workloads.daemon_set_cells,
    "Deployment": workloads.deployment_cells,
    "Endpoints": cluster.endpoints_cells,
    "EndpointSlice": cluster.endpoint_slice_cells,
    "Event": cluster.event_cells,
    "Job": workloads.job_cells,
    "Lease": cluster.lease_cells,
    "Namespace": cluster.namespace_cells,
    "Node": cluster.node_cells,
    "PersistentVolume": cluster.volume_cells,
    "PersistentVolumeClaim": cluster.claim_cells,
    "Pod": pod_cells,
    "PodDisruptionBudget": workloads.disruption_budget_cells,
    "PodTemplate": workloads.pod_template_cells,
    "PriorityClass": cluster.priority_class_cells,
    "ReplicaSet": workloads.replica_set_cells,
    "ReplicationController": workloads.replication_controller_cells,
    "ResourceQuota": cluster.quota_cells,
    "Scale": workloads.scale_cells,
    "Secret": cluster.secret_cells,
    "Service": cluster.service_cells,
    "ServiceAccount": cluster.named_cells,
    "StatefulSet": workloads.stateful_set_cells,
    "StorageClass": cluster.storage_class_cells,
    "VolumeAttachment": cluster.attachment_cells,
}
_HEADED = dict(row.strip().split(": ", 1) for row in _COLUMNS.strip("\n").splitlines())
_TYPES = {"#": "integer", "?": "boolean"}
_DEFAULT_CLASSES = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def columns(kind: str) -> list[JsonDict]:
    """The columns of a kind as a `Table` defines them."""
    return [_column(word) for word in (_HEADED.get(kind) or _HEADED[""]).split(", ")]


def _column(word: str) -> JsonDict:
    mark, name = word[0], word.lstrip("*#?@")
    form = "name" if name in ("Name", "Attacher") else ""
    kind = "date" if mark == "@" else _TYPES.get(mark, "string")
    return {
        "name": name,
        "type": kind,
        "format": form,
        "description": _DESCRIPTIONS.get(name, name),
        "priority": 1 if mark == "*" else 0,
    }


_DESCRIPTIONS = {
    "Name": "Name must be unique within a namespace.",
    "Age": "The time since the object was created.",
    "Status": "The state of the object in a word.",
}


def table(
    kind: str,
    objects: Sequence[JsonDict],
    *,
    include_object: str = "Metadata",
    now: float | None = None,
) -> JsonDict:
    """A `Table` of objects of one kind; each row has its object's metadata, the object, or none."""
    at = time.time() if now is None else now
    cells = _CELLS.get(kind, cluster.dated_cells)
    rows: list[JsonDict] = []
    for each in objects:
        row: JsonDict = {"cells": cells(each, at)}
        if kind == "Pod" and (said := pod_conditions(each)):
            row["conditions"] = said
        row["object"] = _included(each, include_object)
        rows.append(row)
    if kind == "StorageClass":
        _mark_default(objects, rows)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns(kind),
        "rows": rows,
    }


def _included(object_: JsonDict, include: str) -> JsonDict | None:
    if include == "None":
        return None
    if include == "Object":
        return object_
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata(object_),
    }


def _mark_default(objects: Sequence[JsonDict], rows: Sequence[JsonDict]) -> None:
    """The class that claims get who name none: the youngest of those that say so."""
    said = [
        (-(seconds_of(metadata(each).get("creationTimestamp")) or 0), row["cells"][0], at)
        for at, (each, row) in enumerate(zip(objects, rows, strict=True))
        if any(
            part(each, "metadata", "annotations").get(name) == "true" for name in _DEFAULT_CLASSES
        )
    ]
    if said:
        rows[min(said)[2]]["cells"][0] += " (default)"
