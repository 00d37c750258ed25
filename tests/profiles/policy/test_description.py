"""The plain data behind `policy show` and `policy check`."""

from __future__ import annotations

import json
from typing import Any

from podium.generations.predicates import PREDICATES
from podium.profiles.policy.build import Options, from_provider
from podium.profiles.policy.description import catalogue, describe
from profiles.policy.policies import policy, predicates, priorities, profile


def described(document: dict[str, Any], **options: Any) -> dict[str, Any]:
    return describe(profile(document, **options), Options(**options))


def test_the_default_provider() -> None:
    found = describe(from_provider("DefaultProvider", Options()), Options())

    assert found["profile"] == "v1.13 DefaultProvider"
    assert found["predicates"][0] == {
        "runs": 1,
        "name": "CheckNodeUnschedulable",
        "position": 2,
        "description": "the node is not cordoned, or the pod tolerates that",
        "mandatory": True,
    }
    assert found["priorities"][5] == {
        "name": "NodePreferAvoidPodsPriority",
        "weight": 10000,
        "description": "the node does not ask to be spared the pod's controller",
    }
    assert found["idlePredicates"] == found["extenders"] == found["notes"] == []
    assert found["options"]["hardPodAffinitySymmetricWeight"] == 1


def test_predicates_that_never_run_say_why() -> None:
    argument = {"serviceAffinity": {"labels": ["zone"]}}
    document = predicates("CheckVolumeBinding", {"name": "Zones", "argument": argument})

    found = described(document, feature_gates={"VolumeScheduling": False})

    assert found["idlePredicates"] == [
        {"name": "CheckVolumeBinding", "why": "the feature gate VolumeScheduling is off"},
        {"name": "Zones", "why": "its name is not in the order of predicates"},
    ]


def test_arguments_are_shown_as_they_are_written() -> None:
    affinity = {"serviceAffinity": {"labels": ["zone"]}}
    presence = {"labelsPresence": {"labels": ["a", "b"], "presence": True}}
    found = described(
        predicates(
            {"name": "HostName", "argument": affinity},
            {"name": "NoDiskConflict", "argument": presence},
        )
    )
    arguments = {rule["name"]: rule.get("argument") for rule in found["predicates"]}
    assert (arguments["HostName"], arguments["NoDiskConflict"]) == (affinity, presence)

    given = [
        {"labelPreference": {"label": "ssd", "presence": False}},
        {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 1}]}},
        {"serviceAntiAffinity": {"label": "zone"}},
    ]
    document = priorities(*({"name": f"P{i}", "argument": each} for i, each in enumerate(given)))
    assert [each["argument"] for each in described(document)["priorities"]] == given


def test_extenders_are_shown_without_their_secrets() -> None:
    document = policy(
        extenders=[{"urlPrefix": "u", "filterVerb": "f", "tlsConfig": {"KeyData": "aGk="}}]
    )

    assert described(document)["extenders"] == [
        {
            "urlPrefix": "u",
            "verbs": {"filter": "f"},
            "weight": 0,
            "timeoutSeconds": 5.0,
            "managedResources": [],
            "ignorable": False,
        }
    ]


def test_everything_can_be_written_as_json() -> None:
    document = policy(extenders=[{"httpTimeout": -1, "tlsConfig": {"KeyData": "aGk="}}])

    json.dumps([described(document), catalogue(Options())], allow_nan=False)


def test_the_catalogue_follows_the_gates() -> None:
    def names(**gates: bool) -> list[str]:
        return [each["name"] for each in catalogue(Options(feature_gates=gates))["predicates"]]

    assert "CheckNodeCondition" not in names()
    assert "CheckNodeCondition" in names(TaintNodesByCondition=False)
    assert "PodFitsPorts" in names()


def test_the_order_has_22_names() -> None:
    assert len({entry.name for entry in PREDICATES}) == 22
    assert all(entry.description for entry in PREDICATES)


def test_a_policy_is_shown_with_its_order_and_what_was_added() -> None:
    document = predicates(
        {"name": "PodFitsHost", "order": 1}, {"name": "PodFitsResources", "order": 3}
    )

    found = describe(profile(document), Options(), document)

    shown = [
        (each["runs"], each["name"], each["position"], each["order"], each.get("added", False))
        for each in found["predicates"]
    ]
    assert shown == [
        (1, "HostName", 4, 1, False),
        (2, "CheckNodeUnschedulable", 2, None, True),
        (3, "PodFitsResources", 7, 3, False),
        (4, "PodToleratesNodeTaints", 9, None, True),
    ]
    assert not any("mandatory" in note for note in found["notes"])


def test_everything_that_can_be_named_is_listed() -> None:
    found = catalogue(Options())

    by_name = {each["name"]: each for each in found["allPredicates"]}
    assert [each["position"] for each in found["allPredicates"]] == [*range(1, 23), None]
    assert by_name["HostName"]["aliases"] == ["PodFitsHost"]
    assert by_name["CheckServiceAffinity"]["argument"] == "serviceAffinity"
    assert by_name["CheckNodeCondition"]["featureGate"] == "TaintNodesByCondition=false"
    assert by_name["PodToleratesNodeTaints"]["mandatory"]
    kinds = {each["name"]: each["kind"] for each in found["allPriorities"]}
    assert kinds["InterPodAffinityPriority"] == "function"
    assert kinds["NodeAffinityPriority"] == "map and reduce"
    assert kinds["LeastRequestedPriority"] == "map"
    assert all(each["formula"] for each in found["allPriorities"])
