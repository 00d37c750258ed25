"""v1.13 PodFitsHostPorts: no host port is used twice on a node."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.declaration import PredicateDeclaration, plain
from podium.engine.rules.ports.shared import HostPorts
from podium.engine.state.verdicts import Reason

HOST_PORT_CONFLICT = Reason("node(s) didn't have free ports for the requested pod ports")


class PodFitsHostPorts(HostPorts):
    """The predicate on host ports."""

    name = "PodFitsHostPorts"
    reasons = (HOST_PORT_CONFLICT,)


POD_FITS_HOST_PORTS: Final = PredicateDeclaration(
    "PodFitsHostPorts",
    "the host ports that the pod wants are free on the node",
    plain(PodFitsHostPorts),
)

POD_FITS_PORTS: Final = PredicateDeclaration(
    "PodFitsPorts", "an old name of PodFitsHostPorts; never runs", plain(PodFitsHostPorts)
)
