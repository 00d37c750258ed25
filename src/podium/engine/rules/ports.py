"""Host ports: PodFitsHostPorts of v1.13 and the plugin NodePorts.

Upstream: the queueing hints of nodeports, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.engine.framework.causes import Cause, PortInUse, placed_pod
from podium.engine.framework.declaration import PluginDeclaration, PredicateDeclaration, plain
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, all_rows, scope_with
from podium.engine.framework.trace import Prepared
from podium.engine.rows.rows import Ints, K, ManyRows, Rows, conflict
from podium.engine.rules.plugins import always, holds_place
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.pod import ContainerPort, Pod

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

HOST_PORT_CONFLICT = Reason("node(s) didn't have free ports for the requested pod ports")
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  a literal of the API, nothing is bound to it


class HostPorts(BitFilter):
    """No host port of the pod may be in use on the node.

    The address 0.0.0.0 conflicts with every address, on either side.
    """

    keyed_by_form = True
    scope = scope_with("ports", Scope.PODS)

    def row_key(self, cls: PodClass) -> Hashable:
        """The host ports."""
        return cls.ports

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: the ports in use are known for each row."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a conflicting port is in use."""
        if not pod.cls.ports:
            return at.full(0)
        return at.port_conflict(pod.cls.ports) * 1

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The host ports."""
        for ip, protocol, number in pod.cls.ports:
            yield Prepared(self.name, "host port", f"{protocol} {number} on {ip}")

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """Every port that is in use, with its holder."""
        for resident in at.residents():
            for used in resident.cls.ports:
                for wanted in pod.cls.ports:
                    if conflict(used, wanted):
                        ip, protocol, number = used
                        holder = placed_pod(resident, at)
                        yield PortInUse(
                            self.reasons[0].text, protocol, number, wanted[0], ip, holder
                        )


class PodFitsHostPorts(HostPorts):
    """The predicate on host ports."""

    name = "PodFitsHostPorts"
    reasons = (HOST_PORT_CONFLICT,)


class NodePorts(HostPorts):
    """The filter on host ports."""

    name = "NodePorts"
    reasons = (HOST_PORT_CONFLICT,)


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


POD_FITS_HOST_PORTS: Final = PredicateDeclaration(
    "PodFitsHostPorts",
    "the host ports that the pod wants are free on the node",
    plain(PodFitsHostPorts),
)

POD_FITS_PORTS: Final = PredicateDeclaration(
    "PodFitsPorts", "an old name of PodFitsHostPorts; never runs", plain(PodFitsHostPorts)
)

NODE_PORTS: Final = PluginDeclaration(
    "NodePorts",
    "preFilter filter",
    "free host ports",
    filter=plain(NodePorts),
    pre_filter_error='reading "PreFilterNodePorts" from cycleState: not found',
    events={"Node Add": always, "Pod Delete": frees_ports},
)
