"""Pod groups, their pods, and simulations that schedule them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from builders import pod
from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.engine.rules.pod_groups import FEATURE_GATE
from podium.library.profiles import Options, default_profile
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import Pod, PodSchedulingGroup, SchedulingGate
from podium.objects.kinds.pod_group import (
    BasicPolicy,
    DisruptAll,
    DisruptionMode,
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    SchedulingPolicy,
)
from podium.objects.reading.collection import Objects


def profile(*, together: bool = True) -> Profile:
    """The default profile of v1.37; pods of a group are scheduled *together* or alone."""
    gates = {FEATURE_GATE: True} if together else {}
    return default_profile(options=Options(generation="v1.37", feature_gates=gates))


def group(
    name: str = "g", minimum: int | None = None, *, priority: int = 0, evict_all: bool = False
) -> PodGroup:
    """A gang with a *minimum*, or a group with the basic policy."""
    policy = SchedulingPolicy(basic=BasicPolicy())
    if minimum is not None:
        policy = SchedulingPolicy(gang=GangPolicy(minimum))
    mode = DisruptionMode(all=DisruptAll()) if evict_all else None
    spec = PodGroupSpec(policy, priority=priority, disruption_mode=mode)
    return PodGroup("scheduling.k8s.io/v1beta1", "PodGroup", ObjectMeta(name=name), spec)


def member(
    name: str,
    of: str = "g",
    *,
    cpu: str = "",
    scheduler: str = "default-scheduler",
    gates: Sequence[str] = (),
    **given: Any,
) -> Pod:
    """A pod of a group; without a name of the group, a pod on its own."""
    made = pod(name, requests={"cpu": cpu} if cpu else None, **given)
    spec = replace(
        made.spec,
        scheduling_group=PodSchedulingGroup(of) if of else None,
        scheduler_name=scheduler,
        scheduling_gates=[SchedulingGate(name) for name in gates] or None,
    )
    return replace(made, spec=spec)


def collected(*items: Object) -> Objects:
    """Objects of all kinds, pod groups included."""
    found = Objects()
    for item in items:
        found.add(item.kind or type(item).__name__, item)
    return found


def simulation(*items: Object, together: bool = True) -> Simulation:
    """A simulation of these objects."""
    made = Simulation(profile(together=together))
    made.load(collected(*items))
    return made
