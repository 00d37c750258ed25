"""Every reason a node is turned down for, in one place.

`curable` reasons are those that evicting pods could make go away; a node rejected for any other
reason is no candidate for preemption.
"""

from __future__ import annotations

from functools import cache

from podium.engine.state.verdicts import Reason

DISK_CONFLICT = Reason("node(s) had no available disk")
VOLUME_ZONE = Reason("node(s) had no available volume zone", curable=False)
NODE_SELECTOR = Reason("node(s) didn't match node selector", curable=False)
POD_AFFINITY = Reason("node(s) didn't match pod affinity/anti-affinity")
OWN_AFFINITY = Reason("node(s) didn't match pod affinity rules", curable=False)
OWN_ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Reason("node(s) didn't satisfy existing pods anti-affinity rules")
TAINTS = Reason("node(s) had taints that the pod didn't tolerate", curable=False)
HOST_NAME = Reason("node(s) didn't match the requested hostname", curable=False)
HOST_PORTS = Reason("node(s) didn't have free ports for the requested pod ports")
LABEL_PRESENCE = Reason("node(s) didn't have the requested labels", curable=False)
SERVICE_AFFINITY = Reason("node(s) didn't match service affinity")
VOLUME_COUNT = Reason("node(s) exceed max volume count")
MEMORY_PRESSURE = Reason("node(s) had memory pressure", curable=False)
DISK_PRESSURE = Reason("node(s) had disk pressure", curable=False)
PID_PRESSURE = Reason("node(s) had pid pressure", curable=False)
OUT_OF_DISK = Reason("node(s) were out of disk space", curable=False)
NOT_READY = Reason("node(s) were not ready", curable=False)
NETWORK_UNAVAILABLE = Reason("node(s) had unavailable network", curable=False)
UNSCHEDULABLE = Reason("node(s) were unschedulable", curable=False)
UNKNOWN_CONDITION = Reason("node(s) had unknown conditions", curable=False)
VOLUME_NODE_AFFINITY = Reason("node(s) had volume node affinity conflict", curable=False)
VOLUME_BINDING = Reason("node(s) didn't find available persistent volumes to bind", curable=False)


@cache
def insufficient(resource: str) -> Reason:
    """Too little of a resource is left."""
    return Reason(f"Insufficient {resource}")
