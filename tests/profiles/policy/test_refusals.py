"""What kube-scheduler refuses is refused with its words, to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from cases import cases
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_provider
from profiles.policy.policies import policy, predicates, priorities, profile, refusal

MAX_WEIGHT = (2**63 - 1) // 10
RE = '"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".'
PRESENCE = {"labelsPresence": {"labels": ["a"], "presence": True}}
LABEL = {"labelPreference": {"label": "a", "presence": True}}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": x, "score": y} for x, y in points]
    return priorities(
        {"name": "Ratio", "argument": {"requestedToCapacityRatioArguments": {"shape": shape}}}
    )


def extender(**fields: Any) -> dict[str, Any]:
    return policy(extenders=[{"urlPrefix": "http://x", **fields}])


def managing(*names: str) -> dict[str, Any]:
    return extender(managedResources=[{"name": name} for name in names])


OVERFLOWN = "Priority P should have a positive weight applied to it or it has overflown"
TOTAL = "Total priority of priority functions has overflown"
SHAPE = "invalid RequestedToCapacityRatioPriority arguments: "


@cases(
    ("document", "text"),
    {
        "no weight": (policy(priorities=[{"name": "P"}]), OVERFLOWN),
        "negative weight": (priorities({"name": "P", "weight": -1}), OVERFLOWN),
        "huge weight": (priorities({"name": "P", "weight": MAX_WEIGHT}), OVERFLOWN),
        "extender without weight": (
            extender(prioritizeVerb="p"),
            "Priority for extender http://x should have a positive weight applied to it",
        ),
        "native resource": (managing("cpu"), "cpu is an invalid extended resource name"),
        "quota name": (
            managing("requests.example.com/x"),
            "requests.example.com/x is an invalid extended resource name",
        ),
        "managed twice": (
            managing("a.b/c", "a.b/c"),
            "Duplicate extender managed resource name a.b/c",
        ),
        "two binders": (
            policy(extenders=[{"bindVerb": "b"}, {"BindVerb": "b"}, {"bindverb": ""}]),
            "Only one extender can implement bind, found 2",
        ),
        "insecure with a certificate authority": (
            extender(tlsConfig={"Insecure": True, "CAFile": "ca.crt"}),
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        "empty predicate argument": (
            predicates({"name": "P", "argument": {}}),
            "Exactly 1 predicate argument is required, numArgs: 0, Predicate: P",
        ),
        "two predicate arguments": (
            predicates({"name": "P", "argument": PRESENCE | {"serviceAffinity": {}}}),
            "Exactly 1 predicate argument is required, numArgs: 2, Predicate: P",
        ),
        "null priority argument": (
            priorities({"name": "P", "argument": {"labelPreference": None}}),
            "Exactly 1 priority argument is required, numArgs: 0, Priority: P",
        ),
        "two priority arguments": (
            priorities({"name": "P", "argument": LABEL | {"serviceAntiAffinity": {}}}),
            "Exactly 1 priority argument is required, numArgs: 2, Priority: P",
        ),
        "names are case-sensitive": (
            predicates("podfitsresources"),
            "Invalid configuration: Predicate type not found for podfitsresources",
        ),
        "no predicate name": (
            policy(predicates=[{}]),
            "Invalid configuration: Predicate type not found for ",
        ),
        "unknown priority": (
            priorities("Nothing"),
            "Invalid configuration: Priority type not found for Nothing",
        ),
        "a priority without its gate": (
            priorities("ResourceLimitsPriority"),
            "Invalid configuration: Priority type not found for ResourceLimitsPriority",
        ),
        "predicate name of one letter": (
            predicates({"name": "P", "argument": PRESENCE}),
            f"Algorithm name P does not match the name validation regexp {RE}",
        ),
        "predicate name with a line break": (
            predicates({"name": "Good\n", "argument": PRESENCE}),
            f"Algorithm name Good\n does not match the name validation regexp {RE}",
        ),
        "priority name with a dash in front": (
            priorities({"name": "-P", "argument": LABEL}),
            f"Algorithm name -P does not match the name validation regexp {RE}",
        ),
        "no points": (ratio(), f"{SHAPE}at least one point must be specified"),
        "unsorted points": (
            ratio((50, 1), (50, 2)),
            f"{SHAPE}utilization values must be sorted. Utilization[0]==50 >= Utilization[1]==50",
        ),
        "low utilization": (
            ratio((-1, 11)),
            f"{SHAPE}utilization values must not be less than 0. Utilization[0]==-1",
        ),
        "high utilization": (
            ratio((0, 0), (101, -1)),
            f"{SHAPE}utilization values must not be greater than 100. Utilization[1]==101",
        ),
        "low score": (ratio((0, -1)), f"{SHAPE}score values must not be less than 0. Score[0]==-1"),
        "high score": (
            ratio((0, 1), (5, 11)),
            f"{SHAPE}score valuses not be greater than 10. Score[1]==11",
        ),
        "weights too large together": (
            priorities(
                {"name": "EqualPriority", "weight": MAX_WEIGHT - 1},
                {"name": "MostRequestedPriority", "weight": 2},
            ),
            TOTAL,
        ),
        "hard weight": (
            policy(hardPodAffinitySymmetricWeight=-1),
            "invalid hardPodAffinitySymmetricWeight: -1, must be in the range 1-100",
        ),
        "hard weight wraps at 32 bits": (
            policy(hardPodAffinitySymmetricWeight=2**31),
            "invalid hardPodAffinitySymmetricWeight: -2147483648, must be in the range 1-100",
        ),
    },
)
def test_the_text_is_the_real_one(document: dict[str, Any], text: str) -> None:
    assert refusal(document).text == text


def test_qualified_name_reasons_are_verbatim() -> None:
    assert refusal(managing("/x")).text == "prefix part must be non-empty"


def test_all_that_is_invalid_is_said_at_once_and_in_order() -> None:
    document = policy(
        priorities=[{"name": "A"}, {"name": "B", "weight": 1}, {"name": "C", "weight": -1}],
        extenders=[
            {
                "urlPrefix": "u",
                "prioritizeVerb": "p",
                "bindVerb": "b",
                "managedResources": [{"name": "cpu"}, {"name": "cpu"}],
            },
            {"bindVerb": "b"},
        ],
    )

    assert refusal(document).text == (
        "[Priority A should have a positive weight applied to it or it has overflown, "
        "Priority C should have a positive weight applied to it or it has overflown, "
        "Priority for extender u should have a positive weight applied to it, "
        "cpu is an invalid extended resource name, cpu is an invalid extended resource name, "
        "Duplicate extender managed resource name cpu, "
        "Only one extender can implement bind, found 2]"
    )


def test_validation_comes_before_names_and_predicates_before_priorities() -> None:
    wrong = predicates("Nothing") | {"priorities": [{"name": "Nothing", "weight": 0}]}
    assert refusal(wrong).text.startswith("Priority Nothing should")

    wrong["priorities"] = [{"name": "Nothing", "weight": 1}]
    assert refusal(wrong).text.startswith("Invalid configuration: Predicate")


def test_the_hard_weight_is_looked_at_before_shapes() -> None:
    assert refusal(ratio() | {"hardPodAffinitySymmetricWeight": 101}).text.startswith(
        "invalid hard"
    )


def test_a_shape_that_is_replaced_is_never_looked_at() -> None:
    document = ratio()
    document["priorities"].append({"name": "Ratio", "weight": 2, "argument": LABEL})

    (weighted,) = profile(document).priorities

    assert weighted.weight == 2


def test_the_largest_weights_are_accepted() -> None:
    document = priorities(
        {"name": "EqualPriority", "weight": MAX_WEIGHT - 1},
        {"name": "MostRequestedPriority", "weight": 1},
    )

    assert [w.weight for w in profile(document).priorities] == [MAX_WEIGHT - 1, 1]


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (predicates("PodFitsResource"), "did you mean PodFitsResources?"),
        (predicates("hostname"), "did you mean HostName?"),
        (priorities("LeastRequested"), "did you mean LeastRequestedPriority?"),
        (predicates("CheckServiceAffinity"), "it needs an argument: serviceAffinity"),
        (predicates("CheckNodeDiskPressure"), "TaintNodesByCondition=false"),
        (predicates("Zzz"), "known: CheckNodeUnschedulable, CheckVolumeBinding"),
    ],
)
def test_the_hint_says_what_would_work(document: dict[str, Any], hint: str) -> None:
    error = refusal(document)

    assert hint in str(error)
    assert hint not in error.text


def test_an_unknown_provider() -> None:
    with pytest.raises(ConfigError) as caught:
        from_provider("defaultProvider", Options())

    assert caught.value.text == 'plugin "defaultProvider" has not been registered'
    assert caught.value.hint == "did you mean DefaultProvider?"
