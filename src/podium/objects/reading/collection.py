"""The objects of one input, in the order in which they were read.

Objects know neither the file they came from nor the fields that scheduling does not read; the
collection remembers both, in little memory, for error messages and for writing pods back.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import msgspec

from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.objects.kinds.workloads import (
    DaemonSet,
    Deployment,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class Kind(NamedTuple):
    """A kind of object that scheduling reads."""

    attribute: str  # of `Objects`
    type: type[Object]
    namespaced: bool = True


KINDS = {
    "Node": Kind("nodes", Node, namespaced=False),
    "Pod": Kind("pods", Pod),
    "Namespace": Kind("namespaces", Namespace, namespaced=False),
    "Service": Kind("services", Service),
    "ReplicationController": Kind("replication_controllers", ReplicationController),
    "ReplicaSet": Kind("replica_sets", ReplicaSet),
    "StatefulSet": Kind("stateful_sets", StatefulSet),
    "Deployment": Kind("deployments", Deployment),
    "Job": Kind("jobs", Job),
    "DaemonSet": Kind("daemon_sets", DaemonSet),
    "PersistentVolume": Kind("persistent_volumes", PersistentVolume, namespaced=False),
    "PersistentVolumeClaim": Kind("persistent_volume_claims", PersistentVolumeClaim),
    "StorageClass": Kind("storage_classes", StorageClass, namespaced=False),
    "PodDisruptionBudget": Kind("pod_disruption_budgets", PodDisruptionBudget),
    "PriorityClass": Kind("priority_classes", PriorityClass, namespaced=False),
    "CSINode": Kind("csi_nodes", CsiNode, namespaced=False),
    "CSIDriver": Kind("csi_drivers", CsiDriver, namespaced=False),
    "CSIStorageCapacity": Kind("csi_storage_capacities", CsiStorageCapacity),
    "VolumeAttachment": Kind("volume_attachments", VolumeAttachment, namespaced=False),
}


#: What a controller, or a pod's number, decides about its metadata.
_KNOWN_METADATA = ("name", "namespace", "labels", "ownerReferences")


@dataclass(slots=True)
class Objects:
    """Everything read, one list per kind, each in the order of the input."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    daemon_sets: list[DaemonSet] = field(default_factory=list)
    persistent_volumes: list[PersistentVolume] = field(default_factory=list)
    persistent_volume_claims: list[PersistentVolumeClaim] = field(default_factory=list)
    storage_classes: list[StorageClass] = field(default_factory=list)
    pod_disruption_budgets: list[PodDisruptionBudget] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    csi_nodes: list[CsiNode] = field(default_factory=list)
    csi_drivers: list[CsiDriver] = field(default_factory=list)
    csi_storage_capacities: list[CsiStorageCapacity] = field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = field(default_factory=list)

    #: What the snapshot they came from says of itself, and of the profile that was in use.
    snapshot: JsonObject | None = None
    #: Kinds that were skipped, with how often.
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    #: Files without a single object.
    empty_files: list[str] = field(default_factory=list)
    #: JSON of what was written, for objects that may be written back: pods without a node by
    #: `namespace/name`, workloads without a uid by `Kind namespace/name`.
    sources: dict[str, bytes] = field(default_factory=dict)
    #: Per kind, the places in its list where a new file begins.
    files: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Any]:
        """The list of one kind."""
        found: list[Any] = getattr(self, KINDS[kind].attribute)
        return found

    def add(self, kind: str, item: Object, where: str = "") -> None:
        """Append *item*, read from the file *where*."""
        items = self.of(kind)
        runs = self.files.setdefault(kind, [])
        if not runs or runs[-1][1] != where:
            runs.append((len(items), where))
        items.append(item)

    def copied(self) -> Objects:
        """A collection of the same objects that can be added to on its own."""
        parts = {each.name: copy(getattr(self, each.name)) for each in fields(self)}
        parts["files"] = {kind: list(runs) for kind, runs in self.files.items()}
        return Objects(**parts)

    def where(self, kind: str, index: int) -> str:
        """The file from which the object at *index* of its list was read; empty if none."""
        runs = self.files.get(kind, [])
        place = bisect(runs, index, key=lambda run: run[0]) - 1
        return runs[place][1] if place >= 0 else ""

    def everything(self) -> Iterator[tuple[str, int, Object]]:
        """Kind, index in its list and object, kind by kind."""
        for kind in KINDS:
            for index, item in enumerate(self.of(kind)):
                yield kind, index, item

    def manifest(self, pod: Pod) -> JsonObject:
        """The whole pod as it was written, with the name that it has now.

        What a controller adds to its template (claims, tolerations, a node) is there as well, but
        no owner: the uid of one that never met an API server is made up, and a cluster would
        delete a pod whose owner does not exist.
        """
        typed: JsonObject = msgspec.to_builtins(pod)
        source = self.sources.get(pod.key)
        if source is None:
            return {"apiVersion": "v1", "kind": "Pod"} | typed
        written: JsonObject = msgspec.json.decode(source)
        metadata = typed["metadata"]
        known = {part: metadata[part] for part in _KNOWN_METADATA if part in metadata}
        written["metadata"] = (written.get("metadata") or {}) | known
        if "kind" not in written:  # a template
            written["spec"] = _instance(written.get("spec") or {}, typed["spec"])
            written["metadata"].pop("ownerReferences", None)
        return {"apiVersion": "v1", "kind": "Pod"} | written


def _instance(template: JsonObject, spec: JsonObject) -> JsonObject:
    """The template with what its controller put into it."""
    added: JsonObject = {}
    if "nodeAffinity" in spec.get("affinity", ()):
        node_affinity = spec["affinity"]["nodeAffinity"]
        added["affinity"] = (template.get("affinity") or {}) | {"nodeAffinity": node_affinity}
    tolerations = template.get("tolerations") or []
    if len(spec.get("tolerations", ())) > len(tolerations):
        added["tolerations"] = tolerations + spec["tolerations"][len(tolerations) :]
    if "volumes" in spec:
        written = {each.get("name"): each for each in template.get("volumes") or () if each}
        added["volumes"] = [
            each if "persistentVolumeClaim" in each else written.get(each.get("name"), each)
            for each in spec["volumes"]
        ]
    return template | added


def label(kind: str, namespace: str | None, name: str) -> str:
    """How an object is called in messages: `Pod default/web-0`, `Node n1`."""
    known = KINDS.get(kind)
    if known and known.namespaced and name:
        return f"{kind} {namespace or 'default'}/{name}"
    return f"{kind} {name}".strip()
