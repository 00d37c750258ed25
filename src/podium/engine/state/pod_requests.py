"""How much a pod requests, in exact billionths: containers, sidecars, pod level and overhead.

    sum over containers and sidecars
    raised to what each init container needs while it runs, with the sidecars started before it
    replaced by what the pod itself requests, where it does
    plus its overhead

Upstream: component-helpers/resource, Kubernetes v1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.state.int64 import wrap
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from podium.objects.kinds.meta import ResourceList
    from podium.objects.kinds.pod import Container, ContainerStatus, Pod

NANO, MILLI = 10**9, 10**6
#: What a container is taken to request where it names none.
FLOORS = {"cpu": 100 * MILLI, "memory": 200 * 1024 * 1024 * NANO}

Exact = dict[str, int]


def rounded(name: str, exact: int) -> int:
    """An exact amount as an integer, rounded up: thousandths of cpu, units of all else."""
    return wrap(-(-exact // (MILLI if name == "cpu" else NANO)))


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod itself requests a resource that may be requested there."""
    requests = pod.spec.resources.requests if pod.spec.resources else None
    return any(map(_is_pod_level, requests or ()))


def _is_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith("hugepages-")


def pod_requests(
    pod: Pod, *, status: bool = False, pod_level: bool = True, floors: Exact | None = None
) -> Exact:
    """What the pod requests; with `status` what it really has after a resize."""
    reported = _reported(pod) if status else {}
    total = _containers(pod, reported, floors or {})
    if pod_level and has_pod_level(pod):
        total.update(_pod_level(pod, status=status))
    _add(total, _exact(pod.spec.overhead))
    return total


def _containers(pod: Pod, reported: dict[str, ContainerStatus], floors: Exact) -> Exact:
    total: Exact = {}
    for container in pod.spec.containers or ():
        _add(total, _floored(_effective(pod, container, reported), floors))
    sidecars: Exact = {}
    most: Exact = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            requests = _floored(_effective(pod, container, reported), floors)
            _add(total, requests)
            _add(sidecars, requests)
            _raise(most, sidecars)
        else:
            running = _floored(_requests(container), floors)
            _add(running, sidecars)
            _raise(most, running)
    _raise(total, most)
    return total


def _pod_level(pod: Pod, *, status: bool) -> Exact:
    assert pod.spec.resources is not None
    spec = _exact(pod.spec.resources.requests)
    wanted = {name: number for name, number in spec.items() if _is_pod_level(name)}
    if status and pod.status.resources is not None:
        allocated = _exact(pod.status.allocated_resources)
        real = _largest(pod, spec, _exact(pod.status.resources.requests), allocated)
        return {name: real.get(name, 0) for name in wanted}
    return wanted


def _reported(pod: Pod) -> dict[str, ContainerStatus]:
    statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    return {status.name: status for status in statuses}


def _effective(pod: Pod, container: Container, reported: dict[str, ContainerStatus]) -> Exact:
    status = reported.get(container.name)
    if status is None or status.resources is None:
        return _requests(container)
    actual = _exact(status.resources.requests)
    return _largest(pod, _requests(container), actual, _exact(status.allocated_resources))


def _largest(pod: Pod, spec: Exact, actual: Exact, allocated: Exact) -> Exact:
    """The largest of all three; a resize that cannot be done does not count."""
    total: Exact = {}
    hopeless = any(
        c.type == "PodResizePending" and c.reason == "Infeasible"
        for c in pod.status.conditions or ()
    )
    for part in (actual, allocated) if hopeless else (spec, actual, allocated):
        _raise(total, part)
    return total


def _requests(container: Container) -> Exact:
    return _exact(container.resources.requests if container.resources else None)


def _exact(resources: ResourceList | None) -> Exact:
    return {name: nano(raw) for name, raw in (resources or {}).items()}


def _floored(requests: Exact, floors: Exact) -> Exact:
    return {**floors, **requests}


def _add(total: Exact, other: Exact) -> None:
    for name, number in other.items():
        total[name] = total.get(name, 0) + number


def _raise(total: Exact, other: Exact) -> None:
    for name, number in other.items():
        total[name] = max(total.get(name, number), number)
