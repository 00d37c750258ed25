"""Where the objects of a kind have quantities, so that all of them can be checked."""

from __future__ import annotations

from collections.abc import Iterator

from podium.objects.field_errors import joined
from podium.objects.kinds.devices import (
    CapacityPolicy,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from podium.objects.kinds.meta import RawQuantity, ResourceList
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodSpec, ResourceRequirements
from podium.objects.kinds.storage import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
)
from podium.objects.kinds.workloads import StatefulSet

#: Paths and values.
Quantities = Iterator[tuple[str, RawQuantity]]


def of_node(node: Node) -> Quantities:
    """What the node has."""
    yield from _of_list(node.status.capacity, "status.capacity")
    yield from _of_list(node.status.allocatable, "status.allocatable")


def of_pod(pod: Pod) -> Quantities:
    """What the pod asks for."""
    yield from of_pod_spec(pod.spec, "spec")


def of_pod_spec(spec: PodSpec, path: str) -> Quantities:
    """What a pod, or the template of one at *path*, asks for."""
    for index, container in enumerate(spec.containers or ()):
        if container.resources:
            yield from _of_resources(container.resources, f"{path}.containers[{index}].resources")
    for index, container in enumerate(spec.init_containers or ()):
        if container.resources:
            where = f"{path}.initContainers[{index}].resources"
            yield from _of_resources(container.resources, where)
    yield from _of_resources(spec.resources, f"{path}.resources")
    yield from _of_list(spec.overhead, f"{path}.overhead")


def of_persistent_volume(volume: PersistentVolume) -> Quantities:
    """The size of the volume."""
    yield from _of_list(volume.spec.capacity, "spec.capacity")


def of_claim(claim: PersistentVolumeClaim) -> Quantities:
    """The size that the claim asks for."""
    yield from _of_resources(claim.spec.resources, "spec.resources")


def of_csi_storage_capacity(capacity: CsiStorageCapacity) -> Quantities:
    """The capacity and the size of the largest volume."""
    yield "capacity", capacity.capacity or 0
    yield "maximumVolumeSize", capacity.maximum_volume_size or 0


def of_stateful_set(workload: StatefulSet) -> Quantities:
    """The sizes that the claims of its pods ask for."""
    for index, claim in enumerate(workload.spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}].spec.resources"
        yield from _of_resources(claim.spec.resources, path)


def of_resource_claim(claim: ResourceClaim) -> Quantities:
    """The capacity that the requests of a claim need."""
    yield from _of_claim_spec(claim.spec, "spec")


def of_resource_claim_template(template: ResourceClaimTemplate) -> Quantities:
    """The capacity that the requests of the claims need."""
    yield from _of_claim_spec(template.spec.spec, "spec.spec")


def of_resource_slice(found: ResourceSlice) -> Quantities:
    """The capacity of devices, and the counters that they share."""
    for index, counters in enumerate(found.spec.shared_counters or ()):
        path = f"spec.sharedCounters[{index}].counters"
        for name, counter in (counters.counters or {}).items():
            yield joined(path, name), counter.value
    for index, device in enumerate(found.spec.devices or ()):
        path = f"spec.devices[{index}]"
        for name, capacity in (device.capacity or {}).items():
            where = joined(f"{path}.capacity", name)
            yield where, capacity.value
            if capacity.request_policy is not None:
                yield from _of_policy(capacity.request_policy, f"{where}.requestPolicy")
        for place, consumed in enumerate(device.consumes_counters or ()):
            for name, counter in (consumed.counters or {}).items():
                yield joined(f"{path}.consumesCounters[{place}].counters", name), counter.value


def _of_policy(policy: CapacityPolicy, path: str) -> Quantities:
    found = [("default", policy.default)]
    found += [(f"validValues[{i}]", value) for i, value in enumerate(policy.valid_values or ())]
    if policy.valid_range is not None:
        limits = policy.valid_range
        found += [("min", limits.min), ("max", limits.max), ("step", limits.step)]
    for name, quantity in found:
        if quantity is not None:
            yield f"{path}.{name}", quantity


def _of_claim_spec(spec: ResourceClaimSpec, path: str) -> Quantities:
    for index, request in enumerate(spec.devices.requests or ()):
        where = f"{path}.devices.requests[{index}]"
        if request.exactly is not None and request.exactly.capacity is not None:
            place = f"{where}.exactly.capacity.requests"
            yield from _of_list(request.exactly.capacity.requests, place)
        for number, each in enumerate(request.first_available or ()):
            if each.capacity is not None:
                place = f"{where}.firstAvailable[{number}].capacity.requests"
                yield from _of_list(each.capacity.requests, place)


def _of_resources(resources: ResourceRequirements | None, path: str) -> Quantities:
    if resources is not None:
        yield from _of_list(resources.requests, f"{path}.requests")
        yield from _of_list(resources.limits, f"{path}.limits")


def _of_list(resources: ResourceList | None, path: str) -> Quantities:
    for name, quantity in (resources or {}).items():
        yield joined(path, name), quantity
