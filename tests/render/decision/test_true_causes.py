"""Explanations agree with what was scored and why nodes were rejected."""

from __future__ import annotations

import pytest

import builders as b
import podium
from podium.engine.framework.profile import Profile
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import NodeSelectorTerm
from podium.render.decision.causes import cause_text, numbers_of

V1_13 = podium.default_profile("v1.13")
ZONE = "failure-domain.beta.kubernetes.io/zone"


def explained(*items: Object, pod: str = "p", profile: Profile = V1_13) -> podium.Explanation:
    return podium.explain(b.objects(*items), pod, profile)


def causes(*items: Object) -> set[str]:
    return {cause_text(each.cause) for each in explained(*items).decision.causes}


def test_spreading_counts_the_pods_of_a_zone_on_nodes_that_fit() -> None:
    labels = {"app": "web"}
    nodes = [
        b.node("a1", labels={ZONE: "a"}),
        b.node("a2", labels={ZONE: "a"}, taints=[b.taint("k")]),
        b.node("b1", labels={ZONE: "b"}),
    ]
    pods = [b.pod(f"a1-{i}", node="a1", labels=labels) for i in range(1)]
    pods += [b.pod(f"a2-{i}", node="a2", labels=labels) for i in range(5)]
    pods += [b.pod(f"b1-{i}", node="b1", labels=labels) for i in range(2)]

    found = explained(*nodes, *pods, b.service("web", labels), b.pod("p", labels=labels)).decision

    assert found.node == "a1"
    told = numbers_of(found, "SelectorSpreadPriority", "a1")
    assert told == "pods of the same owner on the node 1, on the nodes of its zone that fit 1"


def test_a_pod_on_an_unknown_node_does_not_hide_where_matching_pods_are() -> None:
    found = causes(
        b.node("n1", labels={"region": "north"}),
        b.node("n2", labels={"region": "south"}),
        b.pod("mate", node="n1", labels={"app": "b"}),
        b.pod("ghost", node="gone"),
        b.pod("p", affinity=[b.term({"app": "b"}, "region")]),
    )

    assert found == {"affinity to app=b in default: none in region=south; they are in north (1)"}


def test_nodes_with_the_same_image_get_the_same_score() -> None:
    holding = [b.node(f"n{i}", images={"big:1": 500 << 20}) for i in range(3)]
    wanted = b.pod("p", containers=[b.container(image="big:1")])

    found = explained(*holding, b.node("n3"), wanted).decision

    [column] = [each for each in found.scores if each.name == "ImageLocalityPriority"]
    assert column.score.tolist() == [3, 3, 3, 0]


@pytest.mark.parametrize(
    ("operator", "values", "told"),
    [
        ("Equals", ["a"], '"Equals" is not a valid node selector operator'),
        ("Gt", ["1", "2"], "for 'Gt', 'Lt' operators, exactly one value is required"),
        ("Gt", ["x"], "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("In", [], "for 'in', 'notin' operators, values set can't be empty"),
        ("In", ["prd.*"], "values are compared as they are, they are no regular expressions"),
    ],
)
def test_a_term_that_is_not_valid_says_why(operator: str, values: list[str], told: str) -> None:
    term = b.node_term(b.expression("size", operator, *values))

    [text] = causes(b.node("n"), b.pod("p", node_affinity=[term]))

    assert text.startswith("nodeSelectorTerms[0]: the term is not valid, and matches no node: ")
    assert text.endswith(told)


def test_a_field_that_the_scheduler_does_not_know_is_said_to_be_empty() -> None:
    term = NodeSelectorTerm(match_fields=[b.expression("metadata.uid", "In", "b")])

    assert causes(b.node("n"), b.pod("p", node_affinity=[term])) == {
        (
            "nodeSelectorTerms[0]: metadata.uid In [b]: the scheduler knows metadata.name only, "
            "every other field is empty"
        )
    }


def test_service_anti_affinity_tells_the_count_behind_the_score() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "priorities": [
            {
                "name": "Spread",
                "weight": 1,
                "argument": {"serviceAntiAffinity": {"label": "zone"}},
            }
        ],
    }
    labels = {"app": "web"}
    items = [
        b.node("n1", labels={"zone": "a"}),
        b.node("n2", labels={"zone": "a"}),
        b.pod("w", node="n2", labels=labels),
        b.service("web", labels),
        b.pod("p", labels=labels),
    ]

    found = explained(*items, profile=podium.from_policy(policy)).decision

    assert numbers_of(found, "Spread", "n1") == (
        "pods of the service on the node 0, on the nodes with zone=a that fit 1 of 1"
    )
