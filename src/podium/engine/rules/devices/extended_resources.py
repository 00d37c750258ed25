"""Extended resources that a class of devices serves: the claim made for them.

A container asks for an extended resource as ever. Where the node has none of it (no device plugin)
and a DeviceClass serves it, the scheduler makes one claim for all such resources of the pod.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, Kubernetes
v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from podium.engine.rules.devices.claims import SPECIAL_NAME
from podium.engine.state.accounting import pod_requests, rounded
from podium.engine.state.pod_class import once_per_requests
from podium.objects.kinds.devices import (
    EXACT_COUNT,
    EXTENDED_RESOURCE_CLAIM,
    IMPLICIT_RESOURCE_PREFIX,
    ClaimMeta,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.pod import ContainerExtendedResource
from podium.objects.names import is_extended, is_scalar
from podium.objects.quantity import amount_of

if TYPE_CHECKING:
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.devices import DeviceClass
    from podium.objects.kinds.pod import Container, Pod


def may_be_served(name: str) -> bool:
    """Whether a class of devices can serve a resource of this name."""
    return is_extended(name) or name.startswith(IMPLICIT_RESOURCE_PREFIX)


@once_per_requests
def extended_requests(cls: PodClass) -> dict[str, int]:
    """The extended resources that pods of a class request, with amounts above zero."""
    exact = pod_requests(cls.sample)
    found = {name: rounded(name, n) for name, n in exact.items() if is_scalar(name)}
    return {name: n for name, n in sorted(found.items()) if n and may_be_served(name)}


def special_uid(pod_uid: str) -> str:
    """The uid of the claim for the extended resources of a pod, before it is made."""
    return f"{pod_uid} {SPECIAL_NAME}"


def special_claim(pod: Pod) -> ResourceClaim:
    """The claim for extended resources, before a node is known: without requests."""
    owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
    metadata = ClaimMeta(
        name=SPECIAL_NAME,
        namespace=pod.namespace,
        generate_name=f"{pod.name}-extended-resources-",
        uid=special_uid(pod.uid),
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata)


def requests_and_mappings(
    pod: Pod, resources: Collection[str], served: Mapping[str, DeviceClass]
) -> tuple[list[DeviceRequest], list[ContainerExtendedResource]]:
    """The requests of the claim for these resources, and which containers use them.

    An init container that runs to its end first uses what sidecars and main containers at its own
    or a later place request; of what such containers need beyond that, only the most counts.
    """
    init = list(pod.spec.init_containers or ())
    containers = [*init, *(pod.spec.containers or ())]
    passing = [i for i, each in enumerate(init) if each.restart_policy != "Always"]
    lasting = [i for i in range(len(containers)) if i not in passing]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResource] = []
    for name in sorted(resources):
        if name not in served:
            continue
        own: list[DeviceRequest | None] = [None] * len(containers)
        for i in lasting:
            own[i], more = _request(i, containers[i], name, served[name].name, ())
            mappings += more
        most: DeviceRequest | None = None
        made: set[str] = set()
        passing_mappings: list[ContainerExtendedResource] = []
        for i in passing:
            found, more = _request(i, containers[i], name, served[name].name, own[i:])
            passing_mappings += more
            if found is not None:
                made.add(found.name)
                if most is None or _count(most) < _count(found):
                    most = found
        if most is not None:
            requests.append(most)
            passing_mappings = [
                ContainerExtendedResource(
                    each.container_name,
                    each.resource_name,
                    most.name if each.request_name in made else each.request_name,
                )
                for each in passing_mappings
            ]
        requests += [each for each in own if each is not None]
        mappings += passing_mappings
    return sorted(requests, key=lambda each: each.name), mappings


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _request(
    index: int,
    container: Container,
    resource: str,
    device_class: str,
    reusable: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResource]]:
    """What a container requests of its own, and the requests that it uses."""
    given = (container.resources.requests if container.resources else None) or {}
    if resource not in given:
        return None, []
    amount = amount_of(given[resource])
    wanted = amount.digits * 10**amount.scale if amount.short and amount.scale >= 0 else 0
    if not wanted:
        return None, []
    mappings, found = [], 0
    for each in reusable:
        if each is not None:
            found += _count(each)
            mappings.append(ContainerExtendedResource(container.name, resource, each.name))
            if found >= wanted:
                return None, mappings
    name = f"container-{index}-request-{sorted(given).index(resource)}"
    mappings.append(ContainerExtendedResource(container.name, resource, name))
    exactly = ExactDeviceRequest(
        device_class_name=device_class, allocation_mode=EXACT_COUNT, count=wanted - found
    )
    return DeviceRequest(name, exactly), mappings
