"""The built-in workloads place their pods as intended, fast and plain alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from podium.cluster.simulation import Simulation, Step
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.library.profiles import default_profile
from podium.objects.kinds.pod import Pod
from podium.releases import RELEASES
from podium_research.bench.definitions import BenchWorkload
from podium_research.bench.executor import WorkloadExecutor
from podium_research.bench.measurement import MeasurementClocks, Result
from podium_research.bench.runner import run_workload
from podium_research.bench.workload_selection import SizeOverrides, load_workloads, select_workloads

pytestmark = pytest.mark.slow

PROFILES = [default_profile(generation.name) for generation in RELEASES]
CASES = list(dict.fromkeys(workload.case for workload in load_workloads()))
SIZES = {"Preemption": SizeOverrides(6, 24, 5), "Unschedulable": SizeOverrides(12, 5, 120)}


class Ticks:
    """A clock that advances by a millisecond with every reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def small(case: str) -> BenchWorkload:
    [workload] = select_workloads(
        load_workloads(), [case], SIZES.get(case, SizeOverrides(30, 10, 18))
    )
    return workload


def played(case: str, profile: Profile, *, fast: bool = True) -> tuple[Result, list[Step]]:
    return _played(case, PROFILES.index(profile), fast)


@cache
def _played(case: str, place: int, fast: bool) -> tuple[Result, list[Step]]:
    steps: list[Step] = []
    clocks = MeasurementClocks(Ticks(), Ticks())
    [result] = run_workload(
        small(case), PROFILES[place], fast=fast, clocks=clocks, watch=steps.append
    )
    return result, steps


def outcome(decision: Decision) -> dict[str, Any]:
    """What must not depend on how the decision was reached."""
    return {
        "node": decision.node,
        "error": decision.error,
        "tied": decision.tied,
        "cursor": decision.cursor if decision.tied else 0,
        "feasible": decision.feasible_count,
        "reasons": decision.reasons,
        "preemption": decision.preemption
        and (decision.preemption.node, dict(decision.preemption.candidates)),
    }


by_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)


@by_profile
@pytest.mark.parametrize("case", CASES)
def test_fast_and_plain_decide_alike(case: str, profile: Profile) -> None:
    (_, fast), (result, plain) = played(case, profile), played(case, profile, fast=False)

    assert result.skipped or plain
    assert [outcome(step.decision) for step in fast] == [outcome(step.decision) for step in plain]


@by_profile
@pytest.mark.parametrize("case", CASES)
def test_all_that_is_measured_finds_a_place(case: str, profile: Profile) -> None:
    result, _ = played(case, profile)

    if result.skipped:
        lacking = {"PodTopologySpread", "DynamicResources"}
        assert result.skipped in {f"{profile.name} has no {name}" for name in lacking}
        return
    wanted = small(case).params
    assert result.placed == result.pods == wanted["measurePods"]
    assert result.nodes == wanted["initNodes"]


def nodes_of(steps: list[Step]) -> list[str]:
    return [step.decision.node for step in steps if step.decision.node is not None]


def zones_of(steps: list[Step]) -> Counter[int]:
    """Nodes are numbered from one, zones from zero, in turn."""
    return Counter((int(name.removeprefix("node-")) - 1) % 3 for name in nodes_of(steps))


@by_profile
def test_solitary_pods_share_no_node(profile: Profile) -> None:
    _, steps = played("SchedulingPodAntiAffinity", profile)

    assert set(Counter(nodes_of(steps)).values()) == {1}


@by_profile
def test_sociable_pods_share_a_zone(profile: Profile) -> None:
    _, steps = played("SchedulingPodAffinity", profile)

    assert len(zones_of(steps)) == 1


@by_profile
def test_choosing_pods_keep_to_their_zones(profile: Profile) -> None:
    _, steps = played("SchedulingNodeAffinity", profile)

    assert set(zones_of(steps)) == {0, 1}


@by_profile
def test_pods_of_a_set_are_spread_over_nodes_and_zones(profile: Profile) -> None:
    _, steps = played("SchedulingSpread", profile)

    assert max(Counter(nodes_of(steps)).values()) == 1
    counts = zones_of(steps).values()
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("case", ["TopologySpreading", "PreferredTopologySpreading"])
def test_even_pods_are_spread_over_zones(case: str) -> None:
    served_by = [profile for profile in PROFILES if not played(case, profile)[0].skipped]
    for profile in served_by:
        result, steps = played(case, profile)
        counts = zones_of(steps[-result.pods :]).values()
        assert max(counts) - min(counts) <= 5


@by_profile
def test_an_urgent_pod_takes_the_place_of_three(profile: Profile) -> None:
    result, steps = played("Preemption", profile)

    assert result.victims == 15
    assert len(steps) == 24 + 5 * 2


@by_profile
def test_pods_that_fit_nowhere_come_in_between(profile: Profile) -> None:
    result, steps = played("Unschedulable", profile)
    lost = [step.decision for step in steps if step.decision.node is None]

    assert result.placed == 120
    assert len(lost) == 2
    assert "0/12 nodes are available" in lost[0].message


@by_profile
def test_no_two_pods_of_their_own_class_are_alike(profile: Profile) -> None:
    kinds: list[int] = []

    class Counting(WorkloadExecutor):
        def schedule(self, pod: Pod) -> int:
            kinds.append(self.simulation.cache.columns.pods.class_of(pod).id)
            return super().schedule(pod)

    def measure(executor: WorkloadExecutor, _: str, pods: Sequence[Pod]) -> None:
        for pod in pods:
            executor.schedule(pod)

    workload = small("SchedulingOwnClass")
    executor = Counting(workload, Simulation(profile), clock=Ticks(), measure=measure)
    for place, op in enumerate(workload.ops):
        executor.run(place, op)

    assert len(set(kinds)) == len(kinds) == 28


def test_every_case_says_what_it_is_about() -> None:
    assert all(workload.description for workload in load_workloads())


def test_every_case_has_the_usual_sizes() -> None:
    sizes = {case: [w.size for w in load_workloads() if w.case == case] for case in CASES}

    assert all(found[:2] == ["500Nodes", "5000Nodes"] for found in sizes.values())
