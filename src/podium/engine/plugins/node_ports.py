"""NodePorts: no host port may be used twice."""

from __future__ import annotations

from podium.engine.plugins.base import FilterPlugin
from podium.engine.predicates.room import PodFitsHostPorts


class NodePorts(PodFitsHostPorts, FilterPlugin):
    """The same rule under its present name."""

    name = "NodePorts"
