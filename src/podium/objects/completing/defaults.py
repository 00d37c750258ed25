"""What the API server would have filled in, for objects that never met one.

An object with a `metadata.uid` came from a cluster and is taken as it is. The rest get what
defaulting and admission would have given them, as far as scheduling reads it, so that a manifest
is decided as the same manifest would be after `kubectl apply`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    Object,
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
from podium.objects.reading.collection import Objects, label

_T = TypeVar("_T")
_Workload = TypeVar("_Workload", ReplicaSet, StatefulSet, Deployment, DaemonSet)
_MILLI = 10**6  # billionths in a thousandth
_BUILT_IN = {
    "system-cluster-critical": PriorityClass(value=2_000_000_000),
    "system-node-critical": PriorityClass(value=2_000_001_000),
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


def with_defaults(objects: Objects) -> Objects:
    """A collection of the same objects with everything filled in."""
    priorities = {each.name: each for each in objects.priority_classes}
    pods = []
    for index, pod in enumerate(objects.pods):
        try:
            pods.append(default_pod(pod, priorities))
        except InputError as error:
            name = label("Pod", pod.namespace, pod.name)
            raise error.located(where=objects.where("Pod", index), object=name) from None
    return dataclasses.replace(
        objects,
        pods=pods,
        replication_controllers=[_controller(each) for each in objects.replication_controllers],
        replica_sets=[_selecting(each) for each in objects.replica_sets],
        stateful_sets=[_selecting(each) for each in objects.stateful_sets],
        deployments=[_selecting(each) for each in objects.deployments],
        daemon_sets=[_selecting(each) for each in objects.daemon_sets],
        nodes=[_node(node) for node in objects.nodes],
        storage_classes=[_storage_class(each) for each in objects.storage_classes],
        persistent_volumes=[_persistent_volume(each) for each in objects.persistent_volumes],
        persistent_volume_claims=default_claims(
            objects.persistent_volume_claims, objects.storage_classes
        ),
    )


def _persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    """A volume that no cluster has seen yet becomes available as soon as one does."""
    spec = replace(volume.spec, azure_disk=_azure_disk(volume.spec.azure_disk))
    if volume.metadata.uid or volume.status.phase:
        return replace(volume, spec=spec)
    return replace(volume, spec=spec, status=replace(volume.status, phase="Available"))


def default_pod(pod: Pod, priorities: Mapping[str, PriorityClass]) -> Pod:
    """The pod as the API server would have stored it, with a namespace, a uid and a priority."""
    if pod.metadata.uid:
        return pod
    metadata = replace(pod.metadata, namespace=pod.namespace, uid=pod.key)
    return replace(pod, metadata=metadata, spec=_spec(pod, priorities))


def _spec(pod: Pod, priorities: Mapping[str, PriorityClass]) -> PodSpec:
    spec = _prioritized(pod.spec, priorities)
    return replace(
        spec,
        scheduler_name=spec.scheduler_name or "default-scheduler",
        containers=_each(spec.containers, lambda each: _container(each, spec)),
        init_containers=_each(spec.init_containers, lambda each: _container(each, spec)),
        overhead=_rounded(spec.overhead),
        volumes=_each(spec.volumes, _volume),
        affinity=_folded(spec.affinity, pod.labels) if spec.affinity else None,
    )


def _each(items: Iterable[_T] | None, change: Callable[[_T], _T]) -> list[_T] | None:
    return None if items is None else [change(item) for item in items]


def _prioritized(spec: PodSpec, priorities: Mapping[str, PriorityClass]) -> PodSpec:
    """The priority of its class, or of the class that is the default for all."""
    if spec.priority is not None:
        return spec
    if spec.priority_class_name:
        chosen = priorities.get(spec.priority_class_name) or _BUILT_IN.get(spec.priority_class_name)
        if chosen is None:
            known = ", ".join(sorted(_BUILT_IN.keys() | priorities.keys()))
            raise InputError(
                f"no PriorityClass with name {spec.priority_class_name} was found",
                path="spec.priorityClassName",
                hint=f"add it to the input, or use one of {known}",
            )
    else:
        defaults = [each for each in priorities.values() if each.global_default]
        # Of several defaults the lowest wins, as in the admission plugin.
        chosen = min(defaults, key=lambda each: each.value, default=PriorityClass())
    policy = spec.preemption_policy or chosen.preemption_policy
    name = spec.priority_class_name or chosen.name
    return replace(spec, priority=chosen.value, preemption_policy=policy, priority_class_name=name)


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
    """Nothing finer than a thousandth is stored; the rest is rounded up."""
    if quantities is None:
        return None
    return {name: _to_milli(quantity) for name, quantity in quantities.items()}


def _to_milli(quantity: RawQuantity) -> RawQuantity:
    return f"{milli(quantity)}m" if nano(quantity) % _MILLI else quantity


def _volume(volume: Volume) -> Volume:
    if volume.rbd is not None and not volume.rbd.pool:
        volume = replace(volume, rbd=replace(volume.rbd, pool="rbd"))
    return replace(volume, azure_disk=_azure_disk(volume.azure_disk))


def _azure_disk(disk: AzureDisk | None) -> AzureDisk | None:
    return disk if disk is None or disk.kind is not None else replace(disk, kind="Shared")


def _folded(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    return replace(
        affinity,
        pod_affinity=_folded_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_folded_terms(affinity.pod_anti_affinity, labels),
    )


def _folded_terms(affinity: PodAffinity | None, labels: Mapping[str, str]) -> PodAffinity | None:
    if affinity is None:
        return None

    def weighted(term: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        return replace(term, pod_affinity_term=_folded_term(term.pod_affinity_term, labels))

    return replace(
        affinity,
        required=_each(affinity.required, lambda term: _folded_term(term, labels)),
        preferred=_each(affinity.preferred, weighted),
    )


def _folded_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    """Label keys that must (not) agree become expressions with the pod's own values.

    Without a selector, which matches nothing, they stay without effect.
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


def _node(node: Node) -> Node:
    if node.metadata.uid:
        return node
    capacity, allocatable = _rounded(node.status.capacity), _rounded(node.status.allocatable)
    status = replace(
        node.status,
        capacity=capacity,
        allocatable=capacity if allocatable is None else allocatable,
    )
    return replace(node, status=status)


def _controller(controller: ReplicationController) -> ReplicationController:
    spec = controller.spec
    if spec.selector or not spec.template or not spec.template.metadata.labels:
        return controller
    return replace(controller, spec=replace(spec, selector=spec.template.metadata.labels))


def _selecting(workload: _Workload) -> _Workload:
    """Before apps/v1 a selector could be left out; it was the labels of the template."""
    spec = workload.spec
    if spec.selector is not None or not spec.template or not spec.template.metadata.labels:
        return workload
    selector = LabelSelector(match_labels=spec.template.metadata.labels)
    return replace(workload, spec=replace(spec, selector=selector))


def _storage_class(storage_class: StorageClass) -> StorageClass:
    return replace(
        storage_class, volume_binding_mode=storage_class.volume_binding_mode or "Immediate"
    )


def default_claims(
    claims: Iterable[PersistentVolumeClaim], classes: Iterable[StorageClass]
) -> list[PersistentVolumeClaim]:
    """Claims that name no storage class get the default one, if there is one."""
    default = next((each.name for each in classes if _is_default(each)), None)
    return [_claim(claim, default) for claim in claims]


def _is_default(storage_class: Object) -> bool:
    annotations = storage_class.metadata.annotations or {}
    return "true" in {annotations.get(_DEFAULT_CLASS), annotations.get(_BETA_DEFAULT_CLASS)}


def _claim(claim: PersistentVolumeClaim, default: str | None) -> PersistentVolumeClaim:
    chosen = claim.spec.storage_class_name is not None or _BETA_CLASS in (
        claim.metadata.annotations or {}
    )
    if claim.metadata.uid or default is None or chosen:
        return claim
    return replace(claim, spec=replace(claim.spec, storage_class_name=default))
