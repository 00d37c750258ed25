"""Which predicates run, and in which order."""

from __future__ import annotations

import pytest

from podium.engine.rules.nodes import CheckNodeLabelPresence, HostName
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.profiles.policy.shipped import SHIPPED
from profiles.policy.policies import policy, predicates, profile, refusal, running

PRESENCE = {"labelsPresence": {"labels": ["a"], "presence": True}}
AFFINITY = {"serviceAffinity": {"labels": ["zone"]}}
MANDATORY = ["CheckNodeUnschedulable", "PodToleratesNodeTaints"]
PROVIDED = [
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "MatchInterPodAffinity",
]


@pytest.mark.parametrize("document", [policy(), policy(predicates=None)])
def test_a_policy_without_predicates_has_those_of_the_provider(document: dict[str, object]) -> None:
    assert running(document) == PROVIDED


def test_both_providers_run_the_same() -> None:
    for name in ("DefaultProvider", "ClusterAutoscalerProvider"):
        assert [p.name for p in from_provider(name, Options()).predicates] == PROVIDED


def test_an_empty_list_leaves_the_mandatory_ones() -> None:
    assert running(policy(predicates=[])) == MANDATORY


def test_they_run_in_the_built_in_order_whatever_the_order_of_the_file() -> None:
    document = predicates("MatchInterPodAffinity", "NoDiskConflict", "HostName")

    assert running(document) == [
        "CheckNodeUnschedulable",
        "HostName",
        "NoDiskConflict",
        "PodToleratesNodeTaints",
        "MatchInterPodAffinity",
    ]


def test_order_moves_a_predicate_among_the_built_in_positions() -> None:
    document = predicates(
        {"name": "MatchInterPodAffinity", "order": 1},
        {"name": "GeneralPredicates", "order": 30},
        {"name": "HostName", "order": 2},
    )

    assert running(document) == [
        "MatchInterPodAffinity",
        "CheckNodeUnschedulable",  # built-in position 2, before HostName's 4
        "HostName",
        "PodToleratesNodeTaints",
        "GeneralPredicates",
    ]
    assert any("`order`" in note for note in profile(document).notes)


def test_order_may_be_negative_and_moves_mandatory_ones_too() -> None:
    document = predicates({"name": "PodToleratesNodeTaints", "order": -1})

    assert running(document) == ["PodToleratesNodeTaints", "CheckNodeUnschedulable"]


def test_equal_order_falls_back_to_the_built_in_position() -> None:
    document = predicates(
        {"name": "NoDiskConflict", "order": 0},
        {"name": "HostName", "order": 0},
        {"name": "CheckNodeUnschedulable", "order": 0},
    )

    assert running(document)[:3] == ["CheckNodeUnschedulable", "HostName", "NoDiskConflict"]


def test_pod_fits_host_is_host_name() -> None:
    made = profile(predicates("PodFitsHost"))

    assert made.configured_predicates == ("CheckNodeUnschedulable", "HostName", MANDATORY[1])
    assert isinstance(made.predicates[1], HostName)
    assert any("PodFitsHost" in note for note in made.notes)


def test_pod_fits_host_with_an_argument_is_a_custom_name() -> None:
    made = profile(predicates({"name": "PodFitsHost", "argument": PRESENCE}))

    assert "PodFitsHost" in made.configured_predicates
    assert [p.name for p in made.predicates] == MANDATORY


def test_pod_fits_ports_is_configured_and_never_runs() -> None:
    made = profile(predicates("PodFitsPorts"))

    assert "PodFitsPorts" in made.configured_predicates
    assert [p.name for p in made.predicates] == MANDATORY
    assert any("PodFitsPorts has no effect" in note for note in made.notes)


def test_a_custom_predicate_runs_under_a_name_of_the_order_only() -> None:
    made = profile(
        predicates(
            {"name": "Zones", "argument": AFFINITY},
            {"name": "CheckServiceAffinity", "argument": AFFINITY},
            {"name": "PodToleratesNodeNoExecuteTaints", "argument": PRESENCE},
        )
    )

    assert [p.name for p in made.predicates] == [
        *MANDATORY,
        "PodToleratesNodeNoExecuteTaints",
        "CheckServiceAffinity",
    ]
    assert any("Zones never runs" in note for note in made.notes)


def test_an_argument_replaces_a_built_in_predicate_even_a_mandatory_one() -> None:
    made = profile(predicates({"name": "CheckNodeUnschedulable", "argument": PRESENCE}))

    first = made.predicates[0]
    assert isinstance(first, CheckNodeLabelPresence)
    assert (first.name, first.labels, first.presence) == ("CheckNodeUnschedulable", ["a"], True)


def test_the_last_argument_counts_and_a_bare_name_takes_it() -> None:
    made = profile(
        predicates(
            {"name": "HostName", "argument": PRESENCE},
            {"name": "HostName", "argument": AFFINITY},
            {"name": "HostName"},
        )
    )

    rule = made.predicates[1]
    assert isinstance(rule, CheckServiceAffinity)
    assert rule.labels == ["zone"]


def test_a_bare_name_before_its_argument_is_unknown() -> None:
    document = predicates("Zones", {"name": "Zones", "argument": AFFINITY})

    assert refusal(document).text == "Invalid configuration: Predicate type not found for Zones"


#: The table of the design proposal on the order of predicates, and further names of articles.
OTHER_NAMES = {
    "PodFitsHost": {"HostName"},
    "PodMatchNodeSelector": {"MatchNodeSelector"},
    "PodToleratesNodeNoExecuteTaints": {"PodToleratesNodeTaints"},
    "MaxPDVolumeCountPredicate": {
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
    },
    "VolumeNodePredicate": {"CheckVolumeBinding"},
    "NoVolumeNodeConflict": {"CheckVolumeBinding"},
    "VolumeZonePredicate": {"NoVolumeZoneConflict"},
    "InterPodAffinityMatches": {"MatchInterPodAffinity"},
    "MaxCSIVolumeCount": {"MaxCSIVolumeCountPred"},
}
BY_CONDITION = {
    "CheckNodeConditionPredicate": {"CheckNodeCondition"},
    "CheckNodeMemoryPressurePredicate": {"CheckNodeMemoryPressure"},
    "CheckNodeDiskPressurePredicate": {"CheckNodeDiskPressure"},
    "CheckNodePIDPressurePredicate": {"CheckNodePIDPressure"},
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_of_documents_are_read_with_a_note(name: str) -> None:
    made = profile(predicates(name))

    assert set(made.configured_predicates) == {*MANDATORY, *OTHER_NAMES[name]}
    assert any(note.startswith(f"{name} is read as ") for note in made.notes)


@pytest.mark.parametrize("name", BY_CONDITION)
def test_names_of_condition_predicates_are_read_with_their_gate(name: str) -> None:
    with_gate = profile(predicates(name), feature_gates={"TaintNodesByCondition": False})
    without = profile(predicates(name))

    assert set(with_gate.configured_predicates) == {"CheckNodeCondition", *BY_CONDITION[name]}
    assert set(without.configured_predicates) == set(MANDATORY)
    assert any("taints do its work" in note for note in without.notes)


def test_another_name_that_needs_an_argument_says_which() -> None:
    with pytest.raises(ConfigError) as caught:
        profile(predicates("checkServiceAffinity"))

    assert "it needs an argument: serviceAffinity" in str(caught.value)


def test_another_name_with_its_argument_is_read_as_the_name_that_runs() -> None:
    entry = {"name": "checkServiceAffinity", "argument": {"serviceAffinity": {"labels": ["zone"]}}}
    policy = {"kind": "Policy", "apiVersion": "v1", "predicates": [entry]}

    read, as_kube_scheduler = profile(policy), profile(policy, accepts_other_names=False)

    assert "CheckServiceAffinity" in [rule.name for rule in read.predicates]
    assert any("checkServiceAffinity is read as" in note for note in read.notes)
    assert not {rule.name for rule in as_kube_scheduler.predicates} - set(MANDATORY)


#: Constants of the source whose values are other names.
CONSTANTS = {
    "GeneralPred": {"GeneralPredicates"},
    "HostNamePred": {"HostName"},
    "MatchNodeSelectorPred": {"MatchNodeSelector"},
    "MatchInterPodAffinityPred": {"MatchInterPodAffinity"},
    "MaxCSIVolumeCountPred": {"MaxCSIVolumeCountPred"},
    "PodToleratesNodeNoExecuteTaintsPred": set(),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_the_source_are_read(name: str) -> None:
    made = profile(predicates(name))

    assert set(made.configured_predicates) == CONSTANTS[name] | set(MANDATORY)


@pytest.mark.parametrize("name", [*OTHER_NAMES, *BY_CONDITION])
def test_kube_scheduler_refuses_these_names(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Predicate type not found for {name}"):
        profile(predicates(name), accepts_other_names=False)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_policy_that_is_shipped_is_accepted(name: str) -> None:
    shipped = SHIPPED[name]

    made = from_policy(shipped.document, Options(feature_gates=shipped.feature_gates), name)

    assert made.predicates
    assert made.priorities


def test_the_provider_of_1_8_has_eleven_predicates_and_seven_priorities() -> None:
    shipped = SHIPPED["kubernetes-1.8"]
    made = from_policy(shipped.document, Options(feature_gates=shipped.feature_gates))

    assert len(shipped.predicates) == 11
    assert len(made.priorities) == 7
    assert made.always_check_all  # 1.8 stops at no predicate
    assert set(made.configured_predicates) == {
        "CheckNodeCondition",
        "CheckVolumeBinding",
        *(each["name"] for each in shipped.predicates if each["name"] != "NoVolumeNodeConflict"),
    }
