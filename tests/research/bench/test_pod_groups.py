"""Workloads with pod groups: a group is tried once it has its minimum, and all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium_research.bench.definitions import read_workloads
from podium_research.bench.runner import measured_pods, run_workload
from podium_research.bench.workload_selection import profile_for

SAMPLE = Path(__file__).parent / "sample" / "pod-groups.yaml"
WORKLOADS = {workload.size: workload for workload in read_workloads(SAMPLE)}
SOURCE = ProfileSource(profile="v1.37", environment={})


@pytest.mark.parametrize(
    ("size", "pods", "placed", "victims"),
    [
        ("fit", 6, 6, 0),
        ("do-not-fit", 6, 3, 0),
        ("too-few", 6, 0, 0),
        ("preempt", 2, 2, 2),
        ("basic", 6, 4, 0),
    ],
)
@pytest.mark.parametrize("fast", [True, False])
def test_groups_are_placed_whole_or_not_at_all(
    size: str, pods: int, placed: int, victims: int, *, fast: bool
) -> None:
    workload = WORKLOADS[size]
    workload.check()
    tried: list[tuple[str, str | None]] = []

    [found] = run_workload(
        workload,
        profile_for(workload, SOURCE),
        fast=fast,
        watch=lambda step: tried.append((step.pod.group, step.decision.node)),
    )

    assert measured_pods(workload) == pods
    assert (found.pods, found.placed, found.victims) == (pods, placed, victims)
    on_nodes = [group for group, node in tried if group and node is not None]
    minimum = workload.params["minCount"]
    assert all(on_nodes.count(group) >= minimum for group in set(on_nodes))


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(InputError, match="feature gate TopologyAwareWorkloadScheduling"):
        profile_for(WORKLOADS["placements"], SOURCE)
    with pytest.raises(InputError, match="feature gate GenericWorkload"):
        profile_for(WORKLOADS["fit"], ProfileSource(profile="v1.36", environment={}))
