"""Operations about devices, updates and measured sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.cluster.simulation import Step
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium_research.bench.definitions import read_workloads
from podium_research.bench.measurement import MeasurementClocks, Result
from podium_research.bench.runner import run_workload
from podium_research.bench.workload_selection import profile_for

SAMPLE = Path(__file__).parent / "sample" / "devices.yaml"
WORKLOADS = {workload.name: workload for workload in read_workloads(SAMPLE)}


class Ticks:
    """A clock that advances by ten milliseconds with every reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def played(name: str, release: str = "v1.36") -> tuple[list[Result], list[Step]]:
    steps: list[Step] = []
    clocks = MeasurementClocks(Ticks(), Ticks())
    workload = WORKLOADS[name]
    workload.check()
    profile = profile_for(workload, ProfileSource(profile=release, environment={}))
    return run_workload(workload, profile, clocks=clocks, watch=steps.append), steps


def devices_of(step: Step) -> list[tuple[str, str]]:
    assert step.claims is not None
    return [
        (result.pool, result.device)
        for claim in step.claims.claims.values()
        if claim is not None and claim.status.allocation is not None
        for result in claim.status.allocation.devices.results or ()
    ]


def test_pods_get_devices_that_no_claim_has() -> None:
    (slices, result), steps = played("Devices/once")

    assert (slices.pods, slices.placed) == (0, 0)
    assert slices.seconds > 0
    assert (result.pods, result.placed) == (5, 5)
    given = [device for step in steps for device in devices_of(step)]
    assert len(set(given)) == len(given) == 5


def test_a_steady_state_deletes_pods_with_their_claims() -> None:
    (_, result), steps = played("Devices/steady")

    assert result.placed == result.pods
    assert result.pods > 10, "more pods than devices are left: they were given back"
    assert len({device for step in steps for device in devices_of(step)}) <= 5


def test_parameters_of_templates_make_several_requests() -> None:
    (_, result), steps = played("Devices/two-each")

    assert result.placed == 2
    assert [len(devices_of(step)) for step in steps] == [2, 2]


def test_claims_that_cannot_be_allocated_are_named() -> None:
    with pytest.raises(InputError, match=r"claim init/claim-8 cannot be allocated: number 9 of 9"):
        played("Devices/too-many")


def test_a_case_behind_a_gate_that_is_missing_is_refused() -> None:
    with pytest.raises(InputError, match="needs the feature gate GenericWorkload, which is off"):
        played("Groups/any")


@pytest.mark.parametrize("release", ["v1.36", "v1.37"])
def test_rules_taint_devices_if_the_workload_turns_them_on(release: str) -> None:
    ([on], _), ([off], _) = played("Tainted/on", release), played("Tainted/off", release)

    assert (on.pods, on.placed) == (2, 0)
    assert (off.pods, off.placed) == (2, 2)


@pytest.mark.parametrize("release", ["v1.36", "v1.37"])
def test_a_gate_that_a_release_does_not_have_or_serve_is_refused(release: str) -> None:
    with pytest.raises(InputError, match="needs the feature gate DRADerivedAttributes, which is"):
        played("Tainted/derived", release)


def test_updated_pods_and_nodes_let_pods_in_at_the_next_barrier() -> None:
    [result], steps = played("Events/small")

    assert (result.pods, result.placed) == (3, 3)
    assert [step.decision.node for step in steps] == [None, None, None, "only", "only", "only"]
