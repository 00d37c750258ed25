"""Feature gates: known ones are taken, all others refused with the real program's words."""

from __future__ import annotations

import pytest

from podium.errors import ConfigError
from podium.generations.known import GENERATIONS
from podium.generations.v1_36 import GATES, OTHER_GATES, V1_36
from podium.profiles.config.feature_gates import ConfigurationGates

ON = """
    SchedulerQueueingHints SchedulerAsyncPreemption SchedulerPopFromBackoffQ OpportunisticBatching
    NominatedNodeNameForExpectation PodLevelResources InPlacePodVerticalScaling
    InPlacePodLevelResourcesVerticalScaling NodeInclusionPolicyInPodTopologySpread
    MatchLabelKeysInPodTopologySpread VolumeAttributesClass DynamicResourceAllocation
    DRAExtendedResource DRAPrioritizedList NodeDeclaredFeatures
"""
OFF = """
    SchedulerAsyncAPICalls StorageCapacityScoring TaintTolerationComparisonOperators
    VolumeLimitScaling GenericWorkload GangScheduling TopologyAwareWorkloadScheduling
    WorkloadAwarePreemption DRANodeAllocatableResources
"""


def refusal(**gates: bool) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        ConfigurationGates(gates, V1_36)
    return caught.value


def test_the_defaults() -> None:
    gates = ConfigurationGates(generation=V1_36)

    assert all(gates[name] for name in ON.split())
    assert not any(gates[name] for name in OFF.split())
    assert gates.changed() == []


def test_no_gate_is_listed_twice() -> None:
    names = [gate.name for gate in GATES]

    assert len(set(names)) == len(names)
    assert not OTHER_GATES & set(names)


@pytest.mark.parametrize("release", ["v1.34", "v1.35"])
def test_a_gate_that_came_with_a_patch_release_is_accepted(release: str) -> None:
    generation = GENERATIONS[release]
    gates = {"StatefulSetSemanticRevisionComparison": False}
    if release == "v1.35":
        gates["ChangeContainerStatusOnKubeletRestart"] = False

    ConfigurationGates(gates, generation).check_supported()


@pytest.mark.parametrize(
    ("release", "gates"),
    [
        ("v1.34", "WatchListClient ClientsAllowCBOR InOrderInformers"),
        ("v1.35", "WatchListClient InOrderInformersBatchProcess"),
        ("v1.36", "WatchListClient AtomicFIFO UnlockWhileProcessingFIFO"),
        ("v1.37", "WatchListClient AtomicFIFO ClientsAllowTLSCacheGC"),
    ],
)
def test_gates_of_the_client_are_taken_and_do_nothing(release: str, gates: str) -> None:
    generation = GENERATIONS[release]

    found = ConfigurationGates(dict.fromkeys(gates.split(), False), generation)

    found.check_supported()
    assert found.as_dict() == ConfigurationGates(generation=generation).as_dict()


@pytest.mark.parametrize(
    ("release", "gate"),
    [("v1.34", "InOrderInformersBatchProcess"), ("v1.35", "AtomicFIFO")],
)
def test_gates_of_a_later_client_are_not(release: str, gate: str) -> None:
    with pytest.raises(ConfigError, match=f"unrecognized feature gate: {gate}"):
        ConfigurationGates({gate: True}, GENERATIONS[release])


def test_every_need_is_a_gate() -> None:
    names = {gate.name for gate in GATES}

    assert {need for gate in GATES for need in gate.needs} <= names


def test_a_change() -> None:
    gates = ConfigurationGates(
        {"SchedulerAsyncAPICalls": True, "DRAExtendedResource": False}, V1_36
    )

    assert gates.changed() == ["DRAExtendedResource", "SchedulerAsyncAPICalls"]
    gates.check_supported()


def test_a_gate_of_another_program_is_taken_and_does_nothing() -> None:
    assert (
        ConfigurationGates({"KubeletTracing": False}, V1_36).as_dict()
        == ConfigurationGates(generation=V1_36).as_dict()
    )


@pytest.mark.parametrize(
    ("gates", "text"),
    [
        pytest.param({"Foo": True}, "unrecognized feature gate: Foo", id="unknown"),
        pytest.param(
            {"SchedulerQueueingHints": False},
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
            id="locked",
        ),
        pytest.param(
            {"GangScheduling": True},
            "GangScheduling is enabled, but depends on features that are disabled: "
            "[GenericWorkload]",
            id="what it needs is off",
        ),
        pytest.param(
            {"DRAResourceClaimDeviceStatus": False, "DRADeviceTaints": False},
            "DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
            "[DRAResourceClaimDeviceStatus]",
            id="what another one needs is off",
        ),
    ],
)
def test_refusals(gates: dict[str, bool], text: str) -> None:
    assert refusal(**gates).text == text


def test_several_refusals_are_a_list() -> None:
    text = refusal(SidecarContainers=False, VolumeAttributesClass=False).text

    assert text == (
        "[cannot set feature gate SidecarContainers to false, feature is locked to true, "
        "cannot set feature gate VolumeAttributesClass to false, feature is locked to true]"
    )


def test_a_hint() -> None:
    assert refusal(StorageCapacityScore=True).hint == "did you mean StorageCapacityScoring?"


@pytest.mark.parametrize(
    ("release", "gate"),
    [
        ("v1.36", "StorageCapacityScoring"),
        ("v1.36", "DRAListTypeAttributes"),
        ("v1.37", "DRAListTypeAttributes"),
    ],
)
def test_what_the_real_program_takes_and_podium_cannot_do(release: str, gate: str) -> None:
    gates = ConfigurationGates({gate: True}, GENERATIONS[release])

    with pytest.raises(ConfigError) as caught:
        gates.check_supported()

    assert caught.value.text == f"feature gate {gate}=true is not supported"
    assert caught.value.hint == f"leave it out or write {gate}=false"
