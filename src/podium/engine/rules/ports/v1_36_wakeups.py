"""Which events wake pods that NodePorts rejected.

Upstream: the queueing hints of nodeports, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.engine.rules.v1_36_wakeups import holds_place
from podium.objects.kinds.pod import ContainerPort, Pod

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  a literal of the API, nothing is bound to it


def frees_ports(waiting: Pod, old: Pod, _new: None) -> bool:
    """A pod went that held a host port which the waiting one wants."""
    if not holds_place(old):
        return False
    held = list(_host_ports(old))
    return any(_collide(mine, other) for mine in _host_ports(waiting) for other in held)


def _host_ports(pod: Pod) -> Iterator[tuple[str, str, int]]:
    init = (each for each in pod.spec.init_containers or () if each.restart_policy == "Always")
    for container in (*(pod.spec.containers or ()), *init):
        yield from (_host_port(port) for port in container.ports or () if port.host_port > 0)


def _host_port(port: ContainerPort) -> tuple[str, str, int]:
    return port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or _ANY_ADDRESS in (one[0], other[0]))
