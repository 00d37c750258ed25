"""Every kind of object that scheduling reads, declared once.

A new kind is a value class with the fields that scheduling reads, and a declaration here. From then
on it is decoded, checked, completed, discovered, watched, kept in the catalogue and written to
snapshots.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from podium.objects.kinds import defaults, devices, renamed_fields
from podium.objects.kinds.devices import (
    DeviceClass,
    DeviceConfig,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.node import Node, NodeReports
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import PodGroup, check_pod_group
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
    CronJob,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    LimitRange,
    Namespace,
    PodDisruptionBudget,
    PodTemplate,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    RuntimeClass,
    Service,
    StatefulSet,
)
from podium.objects.selectors.selectors import Selector, from_label_selector, from_map_literal
from podium.objects.snapshots import pseudonyms

_Workload = ReplicationController | ReplicaSet | StatefulSet | Deployment | DaemonSet | Job
_STORAGE: Final = ("storage.k8s.io/v1", "storage.k8s.io/v1beta1")


def _template(workload: _Workload) -> PodTemplate | None:
    return workload.spec.template


def _map_selector(item: Service | ReplicationController) -> Selector | None:
    return None if item.spec.selector is None else from_map_literal(item.spec.selector)


def _label_selector(item: ReplicaSet | StatefulSet) -> Selector:
    return from_label_selector(item.spec.selector)


def _trimmed_pod(pod: Pod) -> Pod:
    """The pod with the words of its scheduler; those of kubelets name what only they read."""
    conditions = pod.status.conditions
    if not any(each.message and each.type != "PodScheduled" for each in conditions or ()):
        return pod
    kept = [
        each if each.type == "PodScheduled" else replace(each, message="")
        for each in conditions or ()
    ]
    return replace(pod, status=replace(pod.status, conditions=kept))


def _without_parameters(config: list[DeviceConfig] | None) -> list[DeviceConfig] | None:
    """The configuration without what only a driver reads, which may be secret."""
    return None if config is None else [replace(each, opaque=None) for each in config]


def _trimmed_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    devices = replace(spec.devices, config=_without_parameters(spec.devices.config))
    return replace(spec, devices=devices)


def _trimmed_claim(claim: ResourceClaim) -> ResourceClaim:
    status, allocation = claim.status, claim.status.allocation
    if allocation is not None:
        config = _without_parameters(allocation.devices.config)
        devices = replace(allocation.devices, config=config)
        status = replace(status, allocation=replace(allocation, devices=devices))
    return replace(claim, spec=_trimmed_spec(claim.spec), status=status)


def _trimmed_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    about = ObjectMeta(labels=template.spec.metadata.labels)
    spec = replace(template.spec, metadata=about, spec=_trimmed_spec(template.spec.spec))
    return replace(template, spec=spec)


def _trimmed_class(found: DeviceClass) -> DeviceClass:
    spec = replace(found.spec, config=_without_parameters(found.spec.config))
    return replace(found, spec=spec)


NODE: Final = Kind(
    "Node",
    Node,
    namespaced=False,
    looked_up=False,
    has_long_lists=True,
    apply_defaults=defaults.default_node,
    reports=NodeReports,
    category=pseudonyms.NODE,
    renamed=renamed_fields.OF_NODE,
)
POD: Final = Kind(
    "Pod",
    Pod,
    looked_up=False,
    has_long_lists=True,
    apply_defaults=defaults.default_pod,
    trim=_trimmed_pod,
    category=pseudonyms.POD,
    renamed=renamed_fields.OF_POD,
)
NAMESPACE: Final = Kind("Namespace", Namespace, namespaced=False, category=pseudonyms.NAMESPACE)
SERVICE: Final = Kind(
    "Service",
    Service,
    pod_selector=_map_selector,
    renamed=renamed_fields.OF_SERVICE,
)
REPLICATION_CONTROLLER: Final = Kind(
    "ReplicationController",
    ReplicationController,
    template=_template,
    apply_defaults=defaults.default_replication_controller,
    pod_selector=_map_selector,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_REPLICATION_CONTROLLER,
)
REPLICA_SET: Final = Kind(
    "ReplicaSet",
    ReplicaSet,
    ("apps/v1",),
    former_groups=("extensions",),
    template=_template,
    apply_defaults=defaults.default_workload,
    pod_selector=_label_selector,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_WORKLOAD,
)
STATEFUL_SET: Final = Kind(
    "StatefulSet",
    StatefulSet,
    ("apps/v1",),
    template=_template,
    apply_defaults=defaults.default_workload,
    pod_selector=_label_selector,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_WORKLOAD,
)
# Rules look none of these up: their pods exist in a cluster. Controllers of a plan read them.
DEPLOYMENT: Final = Kind(
    "Deployment",
    Deployment,
    ("apps/v1",),
    former_groups=("extensions",),
    template=_template,
    apply_defaults=defaults.default_workload,
    looked_up=False,
    in_histories=False,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_WORKLOAD,
)
JOB: Final = Kind(
    "Job",
    Job,
    ("batch/v1",),
    template=_template,
    looked_up=False,
    in_histories=False,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_WORKLOAD,
)
CRON_JOB: Final = Kind(
    "CronJob",
    CronJob,
    ("batch/v1", "batch/v1beta1"),
    looked_up=False,
    in_histories=False,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_CRON_JOB,
)
DAEMON_SET: Final = Kind(
    "DaemonSet",
    DaemonSet,
    ("apps/v1",),
    former_groups=("extensions",),
    template=_template,
    apply_defaults=defaults.default_workload,
    looked_up=False,
    in_histories=False,
    category=pseudonyms.OWNER,
    renamed=renamed_fields.OF_WORKLOAD,
)
HORIZONTAL_POD_AUTOSCALER: Final = Kind(
    "HorizontalPodAutoscaler",
    HorizontalPodAutoscaler,
    ("autoscaling/v2", "autoscaling/v1"),
    looked_up=False,
    in_histories=False,
    renamed=renamed_fields.OF_AUTOSCALER,
)
LIMIT_RANGE: Final = Kind("LimitRange", LimitRange, looked_up=False, in_histories=False)
RESOURCE_QUOTA: Final = Kind(
    "ResourceQuota",
    ResourceQuota,
    looked_up=False,
    in_histories=False,
    renamed=renamed_fields.OF_QUOTA,
)
RUNTIME_CLASS: Final = Kind(
    "RuntimeClass",
    RuntimeClass,
    ("node.k8s.io/v1",),
    namespaced=False,
    looked_up=False,
    in_histories=False,
    renamed=renamed_fields.OF_RUNTIME_CLASS,
)
PERSISTENT_VOLUME: Final = Kind(
    "PersistentVolume",
    PersistentVolume,
    namespaced=False,
    apply_defaults=defaults.default_persistent_volume,
    category=pseudonyms.VOLUME,
    renamed=renamed_fields.OF_PERSISTENT_VOLUME,
)
PERSISTENT_VOLUME_CLAIM: Final = Kind(
    "PersistentVolumeClaim",
    PersistentVolumeClaim,
    apply_defaults=defaults.default_claim,
    category=pseudonyms.CLAIM,
    renamed=renamed_fields.OF_CLAIM,
)
STORAGE_CLASS: Final = Kind(
    "StorageClass",
    StorageClass,
    ("storage.k8s.io/v1",),
    namespaced=False,
    apply_defaults=defaults.default_storage_class,
    category=pseudonyms.CLASS,
    renamed=renamed_fields.OF_STORAGE_CLASS,
)
POD_DISRUPTION_BUDGET: Final = Kind(
    "PodDisruptionBudget",
    PodDisruptionBudget,
    ("policy/v1", "policy/v1beta1"),
    renamed=renamed_fields.OF_POD_DISRUPTION_BUDGET,
)
# Only admission reads priority classes; a pod that exists has the number of its class.
PRIORITY_CLASS: Final = Kind(
    "PriorityClass",
    PriorityClass,
    ("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"),
    namespaced=False,
    looked_up=False,
)
POD_GROUP: Final = Kind(
    "PodGroup",
    PodGroup,
    ("scheduling.k8s.io/v1beta1",),
    faults=check_pod_group,
    apply_defaults=defaults.default_pod_group,
    renamed=renamed_fields.OF_POD_GROUP,
)
CSI_NODE: Final = Kind("CSINode", CsiNode, _STORAGE, namespaced=False, category=pseudonyms.NODE)
# Drivers are products, and resources are named after them: their names are kept.
CSI_DRIVER: Final = Kind("CSIDriver", CsiDriver, _STORAGE, namespaced=False, category="")
CSI_STORAGE_CAPACITY: Final = Kind(
    "CSIStorageCapacity",
    CsiStorageCapacity,
    _STORAGE,
    renamed=renamed_fields.OF_CSI_STORAGE_CAPACITY,
)
VOLUME_ATTACHMENT: Final = Kind(
    "VolumeAttachment",
    VolumeAttachment,
    _STORAGE,
    namespaced=False,
    renamed=renamed_fields.OF_VOLUME_ATTACHMENT,
)
_DEVICES: Final = ("resource.k8s.io/v1",)
RESOURCE_CLAIM: Final = Kind(
    "ResourceClaim",
    ResourceClaim,
    _DEVICES,
    faults=devices.check_claim,
    apply_defaults=defaults.default_resource_claim,
    trim=_trimmed_claim,
    renamed=renamed_fields.OF_RESOURCE_CLAIM,
)
# Claims are made from templates when pods are; rules look at the claims alone.
RESOURCE_CLAIM_TEMPLATE: Final = Kind(
    "ResourceClaimTemplate",
    ResourceClaimTemplate,
    _DEVICES,
    faults=devices.check_template,
    apply_defaults=defaults.default_resource_claim_template,
    looked_up=False,
    trim=_trimmed_template,
    renamed=renamed_fields.OF_RESOURCE_CLAIM_TEMPLATE,
)
# Extended resources are named after classes: their names are kept.
DEVICE_CLASS: Final = Kind(
    "DeviceClass",
    DeviceClass,
    _DEVICES,
    namespaced=False,
    faults=devices.check_class,
    trim=_trimmed_class,
    category="",
)
# Slices and pools are searched in the order of their names, often those of nodes: new names of one
# category keep that order.
RESOURCE_SLICE: Final = Kind(
    "ResourceSlice",
    ResourceSlice,
    _DEVICES,
    namespaced=False,
    faults=devices.check_slice,
    category=pseudonyms.NODE,
    renamed=renamed_fields.OF_RESOURCE_SLICE,
)
DEVICE_TAINT_RULE: Final = Kind(
    "DeviceTaintRule",
    DeviceTaintRule,
    ("resource.k8s.io/v1", "resource.k8s.io/v1beta2"),
    namespaced=False,
    faults=devices.check_taint_rule,
    renamed=renamed_fields.OF_DEVICE_TAINT_RULE,
)

#: Name -> kind, in the order of the declarations above: objects are checked and written in it.
KINDS: Final[dict[str, Kind[Any]]] = {
    each.name: each for each in globals().values() if isinstance(each, Kind)
}


def api_groups() -> frozenset[str]:
    """The API groups of all kinds."""
    return frozenset().union(*(kind.groups for kind in KINDS.values()))


@cache
def kind_of(type_: type[Object]) -> Kind[Any]:
    """The kind whose objects are values of this class."""
    return next(kind for kind in KINDS.values() if kind.type is type_)
