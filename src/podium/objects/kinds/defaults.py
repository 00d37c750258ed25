"""What the API server fills in when an object is created, kind by kind.

An object with a `metadata.uid` came from a cluster and is taken as it is. All others get what
defaulting and admission would have given them, as far as scheduling reads it. So a manifest is
decided as the same manifest would be after `kubectl apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.devices import (
    EXACT_COUNT,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from podium.objects.kinds.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    RawQuantity,
    ResourceList,
)
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import (
    Affinity,
    AzureDisk,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Volume,
    WeightedPodAffinityTerm,
)
from podium.objects.kinds.pod_group import SINGLE, PodGroup
from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.objects.kinds.workloads import (
    DaemonSet,
    Deployment,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from podium.objects.quantity import milli, nano

_T = TypeVar("_T")
_Workload = TypeVar("_Workload", ReplicaSet, StatefulSet, Deployment, DaemonSet)
_DeviceRequest = TypeVar("_DeviceRequest", ExactDeviceRequest, DeviceSubRequest)
_NANO_PER_MILLI = 10**6
_BUILT_IN = {
    "system-cluster-critical": PriorityClass(value=2_000_000_000),
    "system-node-critical": PriorityClass(value=2_000_001_000),
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


class Admission(msgspec.Struct, frozen=True):
    """The objects that admission looks up: priority classes and the default storage class."""

    priority_classes: Mapping[str, PriorityClass] = msgspec.field(default_factory=dict)
    default_storage_class: str | None = None

    @classmethod
    def given(
        cls, priority_classes: Iterable[PriorityClass], storage_classes: Iterable[StorageClass]
    ) -> Admission:
        """With all classes of these kinds; of several default storage classes the first counts."""
        default = next((each.name for each in storage_classes if _is_default(each)), None)
        return cls({each.name: each for each in priority_classes}, default)


def _is_default(storage_class: StorageClass) -> bool:
    annotations = storage_class.metadata.annotations or {}
    return "true" in {annotations.get(_DEFAULT_CLASS), annotations.get(_BETA_DEFAULT_CLASS)}


def default_pod(pod: Pod, admission: Admission) -> Pod:
    """A namespace, a uid, the priority of its class and the defaults of its containers."""
    if pod.metadata.uid:
        return pod
    metadata = replace(pod.metadata, namespace=pod.namespace, uid=pod.key)
    return replace(pod, metadata=metadata, spec=_spec(pod, admission.priority_classes))


def _spec(pod: Pod, priorities: Mapping[str, PriorityClass]) -> PodSpec:
    spec = _with_priority(pod.spec, priorities)
    return replace(
        spec,
        scheduler_name=spec.scheduler_name or "default-scheduler",
        containers=_each(spec.containers, lambda each: _container(each, spec)),
        init_containers=_each(spec.init_containers, lambda each: _container(each, spec)),
        overhead=_rounded(spec.overhead),
        volumes=_each(spec.volumes, _volume),
        affinity=_merge_label_keys(spec.affinity, pod.labels) if spec.affinity else None,
    )


def _each(items: Iterable[_T] | None, change: Callable[[_T], _T]) -> list[_T] | None:
    return None if items is None else [change(item) for item in items]


def _with_priority(spec: PodSpec, priorities: Mapping[str, PriorityClass]) -> PodSpec:
    """The priority of its class, or of the class that is the default for all."""
    if spec.priority is not None:
        return spec
    chosen = _priority_class(spec.priority_class_name, priorities)
    policy = spec.preemption_policy or chosen.preemption_policy
    name = spec.priority_class_name or chosen.name
    return replace(spec, priority=chosen.value, preemption_policy=policy, priority_class_name=name)


def _priority_class(name: str, priorities: Mapping[str, PriorityClass]) -> PriorityClass:
    """The class of this name; without a name, the class that is the default for all."""
    if not name:
        defaults = [each for each in priorities.values() if each.global_default]
        # Of several defaults the lowest wins, as in the admission plugin.
        return min(defaults, key=lambda each: each.value, default=PriorityClass())
    chosen = priorities.get(name) or _BUILT_IN.get(name)
    if chosen is None:
        known = ", ".join(sorted(_BUILT_IN.keys() | priorities.keys()))
        raise InputError(
            f"no PriorityClass with name {name} was found",
            path="spec.priorityClassName",
            hint=f"add it to the input, or use one of {known}",
        )
    return chosen


def default_pod_group(group: PodGroup, admission: Admission) -> PodGroup:
    """A namespace, a uid, the priority of its class and the mode in which it is evicted."""
    if group.metadata.uid:
        return group
    spec = group.spec
    if spec.priority is None:
        chosen = _priority_class(spec.priority_class_name, admission.priority_classes)
        name = spec.priority_class_name or chosen.name
        spec = replace(spec, priority=chosen.value, priority_class_name=name)
    spec = replace(spec, disruption_mode=spec.disruption_mode or SINGLE)
    metadata = replace(group.metadata, namespace=group.namespace, uid=f"PodGroup {group.key}")
    return replace(group, metadata=metadata, spec=spec)


def _container(container: Container, spec: PodSpec) -> Container:
    ports = container.ports
    if spec.host_network and ports:
        ports = [replace(port, host_port=port.host_port or port.container_port) for port in ports]
    return replace(container, ports=ports, resources=_resources(container.resources))


def _resources(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    """Requests that are not given are the limits."""
    if resources is None:
        return None
    requests, limits = _rounded(resources.requests), _rounded(resources.limits)
    if limits:
        requests = {**limits, **(requests or {})}
    return ResourceRequirements(requests=requests, limits=limits)


def _rounded(quantities: ResourceList | None) -> ResourceList | None:
    """Round quantities up to thousandths; the API server stores nothing finer."""
    if quantities is None:
        return None
    return {name: _to_milli(quantity) for name, quantity in quantities.items()}


def _to_milli(quantity: RawQuantity) -> RawQuantity:
    return f"{milli(quantity)}m" if nano(quantity) % _NANO_PER_MILLI else quantity


def _volume(volume: Volume) -> Volume:
    if volume.rbd is not None and not volume.rbd.pool:
        volume = replace(volume, rbd=replace(volume.rbd, pool="rbd"))
    return replace(volume, azure_disk=_azure_disk(volume.azure_disk))


def _azure_disk(disk: AzureDisk | None) -> AzureDisk | None:
    return disk if disk is None or disk.kind is not None else replace(disk, kind="Shared")


def _merge_label_keys(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    return replace(
        affinity,
        pod_affinity=_merge_into_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_merge_into_terms(affinity.pod_anti_affinity, labels),
    )


def _merge_into_terms(
    affinity: PodAffinity | None, labels: Mapping[str, str]
) -> PodAffinity | None:
    if affinity is None:
        return None

    def weighted(term: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        return replace(term, pod_affinity_term=_merge_into_term(term.pod_affinity_term, labels))

    return replace(
        affinity,
        required=_each(affinity.required, lambda term: _merge_into_term(term, labels)),
        preferred=_each(affinity.preferred, weighted),
    )


def _merge_into_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    """Turn matchLabelKeys and mismatchLabelKeys into expressions with the pod's own values.

    A term without a selector matches nothing, so its keys have no effect.
    """
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    expressions = list(term.label_selector.match_expressions or ())
    for keys, operator in ((term.match_label_keys, "In"), (term.mismatch_label_keys, "NotIn")):
        expressions += [
            LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
            for key in keys or ()
            if key in labels
        ]
    selector = LabelSelector(term.label_selector.match_labels, expressions)
    return replace(term, label_selector=selector)


def default_node(node: Node, _: Admission) -> Node:
    """Allocatable resources: the capacity unless the node reports them."""
    if node.metadata.uid:
        return node
    capacity, allocatable = _rounded(node.status.capacity), _rounded(node.status.allocatable)
    status = replace(
        node.status,
        capacity=capacity,
        allocatable=capacity if allocatable is None else allocatable,
    )
    return replace(node, status=status)


def default_replication_controller(
    controller: ReplicationController, _: Admission
) -> ReplicationController:
    """A selector: the labels of the template unless there is one."""
    spec = controller.spec
    if spec.selector or not spec.template or not spec.template.metadata.labels:
        return controller
    return replace(controller, spec=replace(spec, selector=spec.template.metadata.labels))


def default_workload(workload: _Workload, _: Admission) -> _Workload:
    """A selector: before apps/v1 it could be left out and was the labels of the template."""
    spec = workload.spec
    if spec.selector is not None or not spec.template or not spec.template.metadata.labels:
        return workload
    selector = LabelSelector(match_labels=spec.template.metadata.labels)
    return replace(workload, spec=replace(spec, selector=selector))


def default_storage_class(storage_class: StorageClass, _: Admission) -> StorageClass:
    """The binding mode `Immediate` unless there is one."""
    return replace(
        storage_class, volume_binding_mode=storage_class.volume_binding_mode or "Immediate"
    )


def default_persistent_volume(volume: PersistentVolume, _: Admission) -> PersistentVolume:
    """The phase `Available`, which a controller sets as soon as the volume exists."""
    spec = replace(volume.spec, azure_disk=_azure_disk(volume.spec.azure_disk))
    if volume.metadata.uid or volume.status.phase:
        return replace(volume, spec=spec)
    return replace(volume, spec=spec, status=replace(volume.status, phase="Available"))


def default_claim(claim: PersistentVolumeClaim, admission: Admission) -> PersistentVolumeClaim:
    """The default storage class unless the claim names one."""
    default, annotations = admission.default_storage_class, claim.metadata.annotations or {}
    chosen = claim.spec.storage_class_name is not None or _BETA_CLASS in annotations
    if claim.metadata.uid or default is None or chosen:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default))


def default_resource_claim(claim: ResourceClaim, _: Admission) -> ResourceClaim:
    """One device for each request that says neither how many nor that it wants all."""
    return replace(claim, spec=claim_spec_with_defaults(claim.spec))


def default_resource_claim_template(
    template: ResourceClaimTemplate, _: Admission
) -> ResourceClaimTemplate:
    """The same for the claims that are made from a template."""
    spec = replace(template.spec, spec=claim_spec_with_defaults(template.spec.spec))
    return replace(template, spec=spec)


def claim_spec_with_defaults(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """The specification of a claim with allocation mode and count of every request."""
    requests = [
        replace(
            request,
            exactly=None if request.exactly is None else _counted(request.exactly),
            first_available=_each(request.first_available, _counted),
        )
        for request in spec.devices.requests or ()
    ]
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _counted(request: _DeviceRequest) -> _DeviceRequest:
    mode = request.allocation_mode or EXACT_COUNT
    count = request.count or 1 if mode == EXACT_COUNT else request.count
    return replace(request, allocation_mode=mode, count=count)
