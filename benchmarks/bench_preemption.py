"""Preempting in a full cluster, against a failed decision of a class that was never seen before.

5,000 nodes hold four pods of low priority each. A pod of high priority finds room only where three
of them are evicted; a pod of low priority fits nowhere and may evict nobody.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any

from measuring import SizeOverrides, load_workloads, profiles, script, select_workloads
from msgspec.structs import replace

from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.objects.kinds.pod import Pod
from podium_research.bench.definitions import CreatePods
from podium_research.bench.executor import WorkloadExecutor
from podium_research.bench.templates import Template

TRIES = 9


def full_cluster(profile: Profile, *, quick: bool) -> WorkloadExecutor:
    """The cluster of the workload Preemption, before anything is measured."""
    sizes = SizeOverrides(20, 80, 1) if quick else SizeOverrides(5000, 20000, 1)
    [workload] = select_workloads(load_workloads(), ["Preemption"], sizes)
    simulation = Simulation(profile)
    executor = WorkloadExecutor(
        workload, simulation, clock=time.perf_counter, measure=lambda *_: None
    )
    for place, op in enumerate(workload.ops):
        if not (isinstance(op, CreatePods) and op.collect_metrics):
            executor.run(place, op)
    return executor


def asked(simulation: Simulation, template: Template, number: int, priority: int) -> float:
    """Processor time, in milliseconds, of one decision about a pod of a class of its own."""
    made = template.make(0, 1)
    assert isinstance(made, Pod)
    name = f"asked-{priority}-{number}"
    metadata = replace(made.metadata, name=name, uid=name, labels={"own": name})
    pod = replace(made, metadata=metadata, spec=replace(made.spec, priority=priority))
    start = time.process_time()
    decision = simulation.attempt(pod)
    taken = time.process_time() - start
    found = decision.preemption is not None and decision.preemption.node is not None
    assert decision.node is None
    assert found == (priority > 0), decision.message
    return taken * 1000


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Generation -> milliseconds of both, the median of several."""
    found = {}
    for name, profile in profiles().items():
        executor = full_cluster(profile, quick=quick)
        high = executor.template("templates/pod-high-priority.yaml")
        gc.collect()
        gc.freeze()
        simulation = executor.simulation
        failed = [asked(simulation, high, number, priority=0) for number in range(TRIES)]
        preempting = [asked(simulation, high, number, priority=10) for number in range(TRIES)]
        gc.unfreeze()
        found[name] = {
            "nodes": len(simulation.cache.columns.nodes.order),
            "pods": simulation.cache.columns.pods.total,
            "failedCpuMs": round(statistics.median(failed), 3),
            "preemptingCpuMs": round(statistics.median(preempting), 3),
        }
    return found


if __name__ == "__main__":
    script(measure)
