"""What a pod counts for, in plain integers.

cpu is in thousandths, everything else in units. An `Accounting` says how the containers of a pod
add up; generations differ here, so a profile brings its own. Names of scalar resources keep their
text; the view gives them column numbers.

Since v1.34 requests add up in exact billionths:

    sum over containers and sidecars
    raised to what each init container needs while it runs, with the sidecars started before it
    replaced by what the pod itself requests, where it does
    plus its overhead

Upstream: component-helpers/resource, Kubernetes v1.34 to v1.37.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from podium.engine.state.affinity_terms import compiled, compiled_terms, declared_terms
from podium.engine.state.pod_class import Port, host_ports
from podium.objects.names import is_scalar
from podium.objects.quantity import milli, nano, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.engine.state.affinity_terms import Terms
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.meta import ResourceList
    from podium.objects.kinds.pod import Container, ContainerStatus, Pod

TOP = 1 << 63


def wrap(number: int) -> int:
    """The number as a signed 64-bit integer holds it."""
    if -TOP <= number < TOP:
        return number
    return (number + TOP) % (2 * TOP) - TOP


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


class Resizes(NamedTuple):
    """How the requests of a pod that is being resized add up; the defaults are those of v1.36."""

    #: Whether the largest of the sums counts (what is wanted, what runs, what is allocated);
    #: otherwise the sum of what is largest for each container.
    by_sums: bool = False
    #: Whether resizes of the resources of the whole pod count.
    of_pod_level: bool = True


NORMAL_RESIZES: Final = Resizes()


def pod_requests(
    pod: Pod,
    *,
    status: bool = False,
    pod_level: bool = True,
    floors: Exact | None = None,
    resizes: Resizes = NORMAL_RESIZES,
) -> Exact:
    """What the pod requests; with `status` what it really has after a resize."""
    reported = _reported(pod) if status else {}
    if status and resizes.by_sums:
        total = _largest_sum(pod, reported, floors or {}, resizes)
    else:
        total = _containers(pod, reported, floors or {})
    if pod_level and has_pod_level(pod):
        total.update(_pod_level(pod, resizes, status=status))
    _add(total, _exact(pod.spec.overhead))
    return total


def _containers(pod: Pod, reported: dict[str, ContainerStatus], floors: Exact) -> Exact:
    """The sums; statuses of init containers that end count for nothing."""
    return _sum(
        pod,
        lambda container: _floored(_effective(pod, container, reported), floors),
        lambda container: _floored(_requests(container), floors),
    )


def _sum(
    pod: Pod, of_running: Callable[[Container], Exact], of_ending: Callable[[Container], Exact]
) -> Exact:
    """Containers and sidecars together, raised to what init containers need while they run."""
    total: Exact = {}
    for container in pod.spec.containers or ():
        _add(total, of_running(container))
    sidecars: Exact = {}
    most: Exact = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            requests = of_running(container)
            _add(total, requests)
            _add(sidecars, requests)
            _raise(most, sidecars)
        else:
            running = dict(of_ending(container))
            _add(running, sidecars)
            _raise(most, running)
    _raise(total, most)
    return total


def _largest_sum(
    pod: Pod, reported: dict[str, ContainerStatus], floors: Exact, resizes: Resizes
) -> Exact:
    """The largest of the sums of what is wanted, what runs and what is allocated."""
    hopeless = _is_hopeless(pod)

    def wanted(container: Container) -> Exact:
        return _floored(_requests(container), floors)

    def allocated(container: Container) -> Exact:
        status = reported.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _floored(_exact(status.allocated_resources), floors)
        return _floored({} if hopeless else _requests(container), floors)

    def running(container: Container) -> Exact:
        status = reported.get(container.name)
        resources = status.resources if status is not None else None
        if resources is not None and resources.requests is not None:
            return _floored(_exact(resources.requests), floors)
        return allocated(container)

    whole = pod.status.resources
    if (
        resizes.of_pod_level
        and pod.status.allocated_resources is not None
        and whole is not None
        and whole.requests is not None
    ):
        sums = [_exact(whole.requests), _exact(pod.status.allocated_resources)]
    else:
        sums = [_sum(pod, running, running), _sum(pod, allocated, allocated)]
    total: Exact = {}
    for each in sums if hopeless else (_sum(pod, wanted, wanted), *sums):
        _raise(total, each)
    return total


def _pod_level(pod: Pod, resizes: Resizes, *, status: bool) -> Exact:
    assert pod.spec.resources is not None
    spec = _exact(pod.spec.resources.requests)
    wanted = {name: number for name, number in spec.items() if _is_pod_level(name)}
    if not (status and resizes.of_pod_level) or pod.status.resources is None:
        return wanted
    allocated = _exact(pod.status.allocated_resources)
    real = _largest(pod, spec, _exact(pod.status.resources.requests), allocated)
    if resizes.by_sums:
        return {name: number for name, number in real.items() if _is_pod_level(name)}
    return {name: real.get(name, 0) for name in wanted}


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
    for part in (actual, allocated) if _is_hopeless(pod) else (spec, actual, allocated):
        _raise(total, part)
    return total


def _is_hopeless(pod: Pod) -> bool:
    """Whether the node cannot carry out the resize."""
    pending = (c for c in pod.status.conditions or () if c.type == "PodResizePending")
    first = next(pending, None)
    return first is not None and first.reason == "Infeasible"


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


DEFAULT_CPU_MILLIS = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
NATIVE = ("cpu", "memory", "ephemeral-storage")
CPU, MEMORY = range(2)
_COLUMNS = {name: column for column, name in enumerate(NATIVE)}


def amount(name: str, raw: str | float) -> int:
    """A quantity of the named resource as an integer."""
    return milli(raw) if name == "cpu" else value(raw)


@dataclass(slots=True)
class Amounts:
    """Amounts of the native resources, and of each scalar that was named at all."""

    native: list[int] = field(default_factory=lambda: [0] * len(NATIVE))
    scalars: dict[str, int] = field(default_factory=dict)

    def add(self, resources: ResourceList | None) -> None:
        """Add a resource list; names that scheduling does not track are dropped."""
        for name, raw in (resources or {}).items():
            index = _COLUMNS.get(name)
            if index is not None:
                self.native[index] = wrap(self.native[index] + amount(name, raw))
            elif is_scalar(name):
                self.scalars[name] = wrap(self.scalars.get(name, 0) + value(raw))

    def raise_to(self, resources: ResourceList | None) -> None:
        """Take the larger of both, resource by resource."""
        for name, raw in (resources or {}).items():
            number = amount(name, raw)
            if name in NATIVE:
                index = NATIVE.index(name)
                self.native[index] = max(self.native[index], number)
            elif is_scalar(name) and number > self.scalars.get(name, 0):
                self.scalars[name] = number


class Accounting(Protocol):
    """How a pod's containers add up, and how its terms are read."""

    #: Whether one term that cannot be compiled takes the others of its list with it.
    drops_invalid_terms: bool

    def wanted(self, pod: Pod) -> Amounts:
        """What an incoming pod must find free."""

    def taken(self, pod: Pod) -> Amounts:
        """What a pod on a node uses up."""

    def nonzero_requests(self, pod: Pod) -> tuple[int, int]:
        """cpu and memory for the scores, with a floor for containers that name none."""

    def limits(self, pod: Pod) -> Amounts:
        """The most the pod may use."""

    def ports(self, pod: Pod) -> tuple[Port, ...]:
        """The host ports it uses."""

    def terms(self, cls: PodClass) -> Terms:
        """The affinity terms that pods of a class declare, by kind."""


class ContainerSums:
    """The predicates-and-priorities generation: only regular containers count on a node.

    The incoming pod's own request is raised to its largest init container; what runs already is
    the plain sum of its regular containers.
    """

    drops_invalid_terms = False

    def wanted(self, pod: Pod) -> Amounts:
        """Sum of the containers, raised to each init container."""
        total = self.taken(pod)
        for container in pod.spec.init_containers or ():
            total.raise_to(container.resources.requests if container.resources else None)
        return total

    def taken(self, pod: Pod) -> Amounts:
        """Sum of the regular containers."""
        total = Amounts()
        for container in pod.spec.containers or ():
            total.add(container.resources.requests if container.resources else None)
        return total

    def nonzero_requests(self, pod: Pod) -> tuple[int, int]:
        """Sum of the regular containers, each counted with a floor where it names nothing."""
        return _with_defaults(pod.spec.containers or ())

    def limits(self, pod: Pod) -> Amounts:
        """Sum of the containers' limits, raised to each init container's."""
        total = Amounts()
        for container in pod.spec.containers or ():
            total.add(container.resources.limits if container.resources else None)
        for container in pod.spec.init_containers or ():
            total.raise_to(container.resources.limits if container.resources else None)
        return total

    def ports(self, pod: Pod) -> tuple[Port, ...]:
        """Those of the regular containers."""
        return host_ports(pod.spec.containers or ())

    def terms(self, cls: PodClass) -> Terms:
        """Namespaces by name only."""
        return compiled_terms(cls, compiled)


class WholePod:
    """The plugins generation: sidecars, pod-level resources, overhead and resizes all count."""

    drops_invalid_terms = True

    def __init__(self, resizes: Resizes = NORMAL_RESIZES) -> None:
        self.resizes = resizes

    def wanted(self, pod: Pod) -> Amounts:
        """What the specification asks for."""
        return _amounts(pod_requests(pod))

    def taken(self, pod: Pod) -> Amounts:
        """What it asks for or, after a resize, really has."""
        return _amounts(pod_requests(pod, status=True, resizes=self.resizes))

    def nonzero_requests(self, pod: Pod) -> tuple[int, int]:
        """As taken, with a floor for containers that name no cpu or memory."""
        requests = pod_requests(pod, status=True, resizes=self.resizes)
        floors = {
            name: floor
            for name, floor in FLOORS.items()
            if not has_pod_level(pod) or name not in requests
        }
        if floors:
            requests = pod_requests(pod, status=True, floors=floors, resizes=self.resizes)
        return rounded("cpu", requests.get("cpu", 0)), rounded("memory", requests.get("memory", 0))

    def limits(self, pod: Pod) -> Amounts:
        """As in the earlier generation; no rule of this one asks."""
        return ContainerSums().limits(pod)

    def ports(self, pod: Pod) -> tuple[Port, ...]:
        """Those of the regular containers and of sidecars."""
        sidecars = [c for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
        return host_ports((*(pod.spec.containers or ()), *sidecars))

    def terms(self, cls: PodClass) -> Terms:
        """Namespaces by name and by label."""
        return declared_terms(cls)


def _amounts(requests: dict[str, int]) -> Amounts:
    amounts = Amounts()
    for name, exact in requests.items():
        number = rounded(name, exact)
        if name in NATIVE:
            amounts.native[NATIVE.index(name)] = number
        elif is_scalar(name):
            amounts.scalars[name] = number
    return amounts


def _with_defaults(containers: Iterable[Container]) -> tuple[int, int]:
    cpu = memory = 0
    for container in containers:
        requests = (container.resources.requests if container.resources else None) or {}
        cpu += milli(requests["cpu"]) if "cpu" in requests else DEFAULT_CPU_MILLIS
        memory += value(requests["memory"]) if "memory" in requests else DEFAULT_MEMORY_BYTES
    return wrap(cpu), wrap(memory)


def is_best_effort(pod: Pod) -> bool:
    """Whether no regular container asks for or limits any cpu or memory."""
    for container in pod.spec.containers or ():
        resources = container.resources
        for part in (resources.requests, resources.limits) if resources else ():
            if any(
                amount(name, raw) > 0 for name, raw in (part or {}).items() if name in NATIVE[:2]
            ):
                return False
    return True
