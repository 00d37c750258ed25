"""NodePorts: no host port may be used twice."""

from __future__ import annotations

from podium.engine.rules.plugins import FilterPlugin
from podium.engine.rules.resources.v1_13_filters import PodFitsHostPorts


class NodePorts(PodFitsHostPorts, FilterPlugin):
    """The same rule under its present name."""

    name = "NodePorts"
