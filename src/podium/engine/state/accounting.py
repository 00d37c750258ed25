"""What a pod counts for, in plain integers.

cpu is in thousandths, everything else in units. An `Accounting` says how the containers of a pod
add up; generations differ here, so a profile brings its own. Names of scalar resources keep their
text; the view gives them column numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from podium.engine.state.affinity_terms import compiled, compiled_terms, declared_terms
from podium.engine.state.int64 import wrap
from podium.engine.state.pod_class import Port, host_ports
from podium.engine.state.pod_requests import FLOORS, has_pod_level, pod_requests, rounded
from podium.objects.quantity import milli, value
from podium.objects.resource_names import is_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.state.affinity_terms import Terms
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.meta import ResourceList
    from podium.objects.kinds.pod import Container, Pod

DEFAULT_CPU_MILLIS = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
NATIVE = ("cpu", "memory", "ephemeral-storage")
CPU, MEMORY, EPHEMERAL = range(3)
_COLUMNS = {name: column for column, name in enumerate(NATIVE)}


def amount(name: str, raw: str | float) -> int:
    """A quantity of the named resource as an integer."""
    return milli(raw) if name == "cpu" else value(raw)


@dataclass(slots=True)
class Amounts:
    """Amounts of the native resources, and of each scalar that was named at all."""

    native: list[int] = field(default_factory=lambda: [0, 0, 0])
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
        return _floored(pod.spec.containers or ())

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

    def wanted(self, pod: Pod) -> Amounts:
        """What the specification asks for."""
        return _amounts(pod_requests(pod))

    def taken(self, pod: Pod) -> Amounts:
        """What it asks for or, after a resize, really has."""
        return _amounts(pod_requests(pod, status=True))

    def nonzero_requests(self, pod: Pod) -> tuple[int, int]:
        """As taken, with a floor for containers that name no cpu or memory."""
        requests = pod_requests(pod, status=True)
        floors = {
            name: floor
            for name, floor in FLOORS.items()
            if not has_pod_level(pod) or name not in requests
        }
        if floors:
            requests = pod_requests(pod, status=True, floors=floors)
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


def _floored(containers: Iterable[Container]) -> tuple[int, int]:
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
