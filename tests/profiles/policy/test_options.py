"""Feature gates, flags and the environment."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.rules.volumes.limits import MaxVolumeCount
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_provider
from profiles.policy.policies import policy, predicates, profile, refusal, running

CONDITIONS = {"TaintNodesByCondition": False}


def gates(**values: bool) -> dict[str, Any]:
    return {"feature_gates": values}


def test_conditions_instead_of_taints() -> None:
    assert running(policy(), feature_gates=CONDITIONS) == [
        "CheckNodeCondition",
        "GeneralPredicates",
        "NoDiskConflict",
        "PodToleratesNodeTaints",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxCSIVolumeCountPred",
        "MaxAzureDiskVolumeCount",
        "CheckVolumeBinding",
        "NoVolumeZoneConflict",
        "CheckNodeMemoryPressure",
        "CheckNodePIDPressure",
        "CheckNodeDiskPressure",
        "MatchInterPodAffinity",
    ]


def test_conditions_change_what_is_mandatory_and_known() -> None:
    assert running(policy(predicates=[]), feature_gates=CONDITIONS) == ["CheckNodeCondition"]
    assert running(predicates("CheckNodePIDPressure"), feature_gates=CONDITIONS) == [
        "CheckNodeCondition",
        "CheckNodePIDPressure",
    ]
    error = refusal(predicates("CheckNodeUnschedulable"), feature_gates=CONDITIONS)
    assert error.text.endswith("type not found for CheckNodeUnschedulable")


def test_resource_limits_join_the_providers() -> None:
    on = gates(ResourceLimitsPriorityFunction=True)
    for name in ("DefaultProvider", "ClusterAutoscalerProvider"):
        made = from_provider(name, Options(**on))
        assert "ResourceLimitsPriority" in [weighted.name for weighted in made.priorities]


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        ("VolumeScheduling", "CheckVolumeBinding"),
        ("AttachVolumeLimit", "MaxCSIVolumeCountPred"),
    ],
)
def test_a_predicate_that_a_gate_turns_off_stays_configured(gate: str, name: str) -> None:
    made = profile(policy(), feature_gates={gate: False})

    assert name in made.configured_predicates
    assert name not in [rule.name for rule in made.predicates]
    assert any(name in note for note in made.notes)


@pytest.mark.parametrize("on", [True, False])
def test_attach_volume_limit_makes_node_limits_count(on: bool) -> None:
    made = profile(policy(), feature_gates={"AttachVolumeLimit": on})

    counts = [rule for rule in made.predicates if isinstance(rule, MaxVolumeCount)]
    assert [rule.node_limits for rule in counts] == [on] * 3


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, None),
        ("", None),
        ("4", 4),
        ("+4", 4),
        ("007", 7),
        ("0", None),
        ("-4", None),
        ("x", None),
        (" 4", None),
        ("4\n", None),
        ("1_0", None),
        ("٤", None),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
    ],
)
def test_the_limit_of_the_environment(text: str | None, limit: int | None) -> None:
    made = profile(policy(), max_pd_volumes=text)

    counts = [rule for rule in made.predicates if isinstance(rule, MaxVolumeCount)]
    assert [rule.limit for rule in counts] == [limit] * 3
    assert bool(made.notes) == (limit is None and bool(text))


@pytest.mark.parametrize(
    ("changes", "preempts"),
    [
        ({}, True),
        ({"disable_preemption": True}, False),
        ({"feature_gates": {"PodPriority": False}}, False),
    ],
)
def test_preemption(changes: dict[str, Any], preempts: bool) -> None:
    assert from_provider("DefaultProvider", Options(**changes)).preemption == preempts


@pytest.mark.parametrize(("given", "used"), [(None, 100), (0, 50), (1, 1), (30, 30), (100, 100)])
def test_percentage_of_nodes_to_score(given: int | None, used: int) -> None:
    made = profile(policy(), percentage_of_nodes_to_score=given)

    assert made.percentage_of_nodes_to_score == used


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"percentage_of_nodes_to_score": 101}, "must be in the range 0-100"),
        ({"hard_pod_affinity_symmetric_weight": 0}, "must be in the range 1-100"),
        ({"ties": "coin"}, "known: kube-scheduler, first, round-robin, random:SEED"),
        (gates(PodPriorities=True), "did you mean PodPriority? known: AttachVolumeLimit, "),
        (gates(BalanceAttachedNodeVolumes=True), "BalanceAttachedNodeVolumes=true is not supp"),
        (gates(BlockVolume=False), "feature gate BlockVolume=false is not supported"),
        ({"feature_gates": {"PodPriority": "yes"}}, "expected true or false, got 'yes'"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_provider("DefaultProvider", Options(**options))

    assert words in str(caught.value)


def test_gates_may_be_given_their_defaults() -> None:
    given = gates(BalanceAttachedNodeVolumes=False, BlockVolume=True, PodPriority=True)

    assert profile(policy(), **given).notes == ()


def test_what_else_a_profile_says() -> None:
    document = policy(alwaysCheckAllPredicates=True)
    made = profile(document, ties="random:7", scheduler_name="other")

    assert (made.name, made.ties, made.scheduler_name) == ("v1.13 policy", "random:7", "other")
    assert made.always_check_all
    provider = from_provider("DefaultProvider", Options())
    assert (provider.name, provider.ties) == ("v1.13 DefaultProvider", "round-robin")
    assert not provider.always_check_all
