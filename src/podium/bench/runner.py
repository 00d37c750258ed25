"""Run a workload from its first operation to its last."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from podium.bench.cluster import World
from podium.bench.definitions import CreatePods, CreatePodSets, Workload
from podium.bench.measure import Clocks, Result, forget_peak, measure
from podium.cluster.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cluster.simulation import Step
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

FAST, PLAIN = "fast", "plain"


def nothing(_: int) -> None:
    """Nobody watches."""


def missing(workload: Workload, profile: Profile) -> list[str]:
    """The rules that the workload is about and the profile does not have."""
    known = {
        *(predicate.name for predicate in profile.predicates),
        *(priority.name for priority in profile.priorities),
        *profile.configured_predicates,
    }
    return [name for name in workload.needs if name not in known]


def run(
    workload: Workload,
    profile: Profile,
    *,
    fast: bool = True,
    clocks: Clocks = Clocks(),  # noqa: B008  nothing changes it
    progress: Callable[[int], None] = nothing,
    watch: Callable[[Step], None] | None = None,
) -> list[Result]:
    """The figures of every measured operation, in order."""
    lacking = missing(workload, profile)
    if lacking:
        why = f"{profile.name} has no {' and no '.join(lacking)}"
        return [Result(workload.name, profile.name, skipped=why)]
    forget_peak()
    simulation = Simulation(profile, fast=fast)
    results: list[tuple[str, Result]] = []

    def measured(world: World, namespace: str, pods: Sequence[Pod]) -> None:
        columns = world.simulation.cache.columns
        result = Result(
            workload.name,
            profile.name,
            FAST if fast else PLAIN,
            nodes=len(columns.order),
            existing=columns.pod_total,
        )
        measure(world, pods, result, clocks, progress)
        results.append((namespace, result))

    world = World(workload, simulation, clock=clocks.wall, measure=measured, watch=watch)
    for place, op in enumerate(workload.ops):
        world.run(place, op)
    # The next workload starts without the remains of this one.
    del world, simulation
    gc.collect()
    if len(results) > 1:
        for namespace, result in results:
            result.workload += f"/{namespace}"
    return [result for _, result in results]


def measured_pods(workload: Workload) -> int:
    """How many pods will be measured."""
    total, params = 0, workload.params
    for op in workload.ops:
        if isinstance(op, CreatePods) and op.collect_metrics:
            total += op.number(params)
        elif isinstance(op, CreatePodSets) and op.create_pods_op.collect_metrics:
            total += op.number(params) * op.create_pods_op.number(params)
    return total
