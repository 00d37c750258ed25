"""Which priorities score, and with which weights."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.framework.profile import Profile
from podium.engine.rules.nodes import NodeLabelPriority
from podium.engine.rules.pod_affinity import InterPodAffinityPriority
from podium.engine.rules.resources.predicates import RequestedToCapacityRatioPriority
from podium.engine.rules.service_affinity import ServiceAntiAffinity
from podium.profiles.policy.build import Options, from_provider
from profiles.policy.policies import policy, priorities, profile

DEFAULTS = {
    "BalancedResourceAllocation": 1,
    "ImageLocalityPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "NodeAffinityPriority": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "SelectorSpreadPriority": 1,
    "TaintTolerationPriority": 1,
}


def weights(made: Profile) -> dict[str, int]:
    return {weighted.name: weighted.weight for weighted in made.priorities}


def hard_weight(made: Profile) -> int:
    rules = [weighted.priority for weighted in made.priorities]
    return next(rule.hard_weight for rule in rules if isinstance(rule, InterPodAffinityPriority))


@pytest.mark.parametrize("document", [policy(), policy(priorities=None)])
def test_a_policy_without_priorities_has_the_defaults(document: dict[str, Any]) -> None:
    assert weights(profile(document)) == DEFAULTS


def test_the_autoscaler_provider_prefers_full_nodes() -> None:
    found = weights(from_provider("ClusterAutoscalerProvider", Options()))

    assert found.pop("MostRequestedPriority") == 1
    assert found == {n: w for n, w in DEFAULTS.items() if n != "LeastRequestedPriority"}


def test_an_empty_list_is_no_priorities() -> None:
    made = profile(policy(priorities=[]))

    assert made.priorities == ()
    assert made.notes == ("no priorities: every node that fits is as good as any other",)


def test_without_priorities_the_extenders_that_score_are_named() -> None:
    scores = {"urlPrefix": "http://scores", "prioritizeVerb": "prioritize", "weight": 1}
    filters = {"urlPrefix": "http://filters", "filterVerb": "filter"}

    assert profile(policy(priorities=[], extenders=[filters, scores])).notes == (
        "no priorities: only the extenders score nodes: http://scores",
    )
    assert profile(policy(priorities=[], extenders=[filters])).notes == (
        "no priorities: every node that fits is as good as any other",
    )


def test_the_last_of_equal_names_counts() -> None:
    made = profile(priorities({"name": "EqualPriority", "weight": 3}, "EqualPriority"))

    assert weights(made) == {"EqualPriority": 1}
    assert any("more than once" in note for note in made.notes)


def test_arguments_make_priorities_under_any_name() -> None:
    made = profile(
        priorities(
            {"name": "Zoned", "argument": {"serviceAntiAffinity": {"label": "zone"}}},
            {"name": "Ssd", "weight": 2, "argument": {"labelPreference": {"label": "ssd"}}},
            {
                "name": "LeastRequestedPriority",
                "argument": {
                    "requestedToCapacityRatioArguments": {"shape": [{"utilization": 5, "score": 7}]}
                },
            },
        )
    )

    ratio, label, spread = (weighted.priority for weighted in made.priorities)
    assert isinstance(ratio, RequestedToCapacityRatioPriority)
    assert (ratio.name, ratio.shape) == ("LeastRequestedPriority", ((5, 7),))
    assert isinstance(label, NodeLabelPriority)
    assert (label.name, label.label, label.presence) == ("Ssd", "ssd", False)
    assert isinstance(spread, ServiceAntiAffinity)
    assert (spread.name, spread.label) == ("Zoned", "zone")
    assert any("LeastRequestedPriority" in note for note in made.notes)


def test_a_custom_priority_is_found_again_by_its_bare_name() -> None:
    argument = {"labelPreference": {"label": "ssd", "presence": True}}
    made = profile(priorities({"name": "Ssd", "argument": argument}, {"name": "Ssd", "weight": 4}))

    (weighted,) = made.priorities
    assert isinstance(weighted.priority, NodeLabelPriority)
    assert weighted.weight == 4


@pytest.mark.parametrize(
    ("in_policy", "option", "expected"),
    [(0, 7, 7), (None, 7, 7), (9, 7, 9), (4294967297, 7, 1), (4294967296, 7, 7)],
)
def test_the_hard_weight(in_policy: int | None, option: int, expected: int) -> None:
    document = policy(hardPodAffinitySymmetricWeight=in_policy)

    made = profile(document, hard_pod_affinity_symmetric_weight=option)

    assert hard_weight(made) == expected
