"""A decision between nodes of different sizes, for tests of its renderings."""

from __future__ import annotations

from builders import node, pod, profile, simulation
from podium.engine.framework.decision import Decision
from podium.engine.rules.resources.predicates import LeastRequestedPriority, MostRequestedPriority

RULES = profile(priorities=[(LeastRequestedPriority(), 3), (MostRequestedPriority(), 1)])
WANTED = pod(requests={"cpu": "1", "memory": "1Gi"})


def choice() -> Decision:
    """Two equals and a smaller one."""
    sizes = {"small": "2", "large": "8", "big": "8"}
    made = [node(name, cpu=cpu, memory=f"{cpu}Gi") for name, cpu in sizes.items()]
    return simulation(*made, node("no", unschedulable=True), profile=RULES).attempt(
        WANTED, recording=True
    )
