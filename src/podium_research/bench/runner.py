"""Runs all operations of a workload and measures those that ask for it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from podium.cluster.simulation import Simulation
from podium.engine.framework.plan import plan_of
from podium_research.bench.definitions import (
    BenchWorkload,
    CreatePods,
    CreatePodSets,
    StartCollectingMetrics,
)
from podium_research.bench.executor import Batches, WorkloadExecutor
from podium_research.bench.measurement import (
    MeasuredSection,
    MeasurementClocks,
    Result,
    measure_batches,
    measure_pods,
    reset_peak_memory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cluster.simulation import Step
    from podium.cluster.verification import Verification
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

#: The path of decisions: with all caches, or with every rule asked about every node.
FAST, PLAIN = "fast", "plain"


def no_progress(_: int) -> None:
    """Stand in for a progress bar where none is shown."""


def missing_rules(workload: BenchWorkload, profile: Profile) -> list[str]:
    """The rules that the workload needs and the profile does not have."""
    known = {
        *(predicate.name for predicate in profile.predicates),
        *(priority.name for priority in profile.priorities),
        *profile.configured_predicates,
    }
    return [name for name in workload.needs if name not in known]


def run_workload(
    workload: BenchWorkload,
    profile: Profile,
    *,
    fast: bool = True,
    verification: Verification | None = None,
    clocks: MeasurementClocks = MeasurementClocks(),  # noqa: B008  nothing changes it
    progress: Callable[[int], None] = no_progress,
    watch: Callable[[Step], None] | None = None,
) -> list[Result]:
    """The figures of every measured operation, in order.

    Unless it is *fast*, nothing is kept between decisions. *verification* says which decisions are
    made twice.
    """
    lacking = missing_rules(workload, profile)
    if lacking:
        why = f"{profile.name} has no {' and no '.join(lacking)}"
        return [Result(workload.name, profile.name, skipped=why)]
    reset_peak_memory()
    simulation = Simulation(profile, fast=fast, verification=verification)
    results: list[tuple[str, Result]] = []

    def started(executor: WorkloadExecutor, name: str) -> Result:
        columns = executor.simulation.cache.columns
        result = Result(
            workload.name,
            profile.name,
            FAST if fast else PLAIN,
            nodes=len(columns.nodes.order),
            existing=columns.pods.total,
        )
        results.append((name, result))
        return result

    def measure(executor: WorkloadExecutor, namespace: str, pods: Sequence[Pod]) -> None:
        result = started(executor, namespace)
        measure_pods(executor, pods, result, clocks, progress)
        if pods:
            measured = executor.simulation.cache.columns.pods.incoming(pods[-1])
            result.plan = plan_of(measured.cls, profile).lines

    def measure_steadily(executor: WorkloadExecutor, namespace: str, batches: Batches) -> None:
        made = iter(batches.make, None)
        measure_batches(executor, made, batches.seconds, started(executor, namespace), clocks)

    def sections(executor: WorkloadExecutor, op: StartCollectingMetrics) -> MeasuredSection:
        result = started(executor, op.name or "/".join(op.namespaces))
        return MeasuredSection(op, result, clocks, lambda done: progress(done.pods))

    executor = WorkloadExecutor(
        workload,
        simulation,
        clock=clocks.wall,
        measure=measure,
        measure_steadily=measure_steadily,
        sections=sections,
        watch=watch,
    )
    for place, op in enumerate(workload.ops):
        executor.run(place, op)
    # Free the memory of this workload before the next one is measured.
    del executor, simulation
    gc.collect()
    if len(results) > 1:
        for namespace, result in results:
            result.workload += f"/{namespace}"
    return [result for _, result in results]


def measured_pods(workload: BenchWorkload) -> int:
    """The number of pods that a run of the workload measures."""
    total, params = 0, workload.params
    for op in workload.ops:
        if isinstance(op, CreatePods) and op.collect_metrics:
            total += op.number(params)
        elif isinstance(op, CreatePodSets) and op.create_pods_op.collect_metrics:
            total += op.number(params) * op.create_pods_op.number(params)
    return total
