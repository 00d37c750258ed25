"""v1.13 node selectors and node affinity, required and preferred."""

from __future__ import annotations

import pytest

from builders import (
    ZONE,
    Said,
    expression,
    judged,
    node,
    node_term,
    pod,
    scored,
    view,
)
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.node_affinity import MatchNodeSelector, NodeAffinityPriority
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelectorTerm, Pod

SELECTOR = ("node(s) didn't match node selector",)


def said(predicate: FilterRule, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


def name_is(operator: str, *names: str) -> NodeSelectorTerm:
    return node_term(fields=[expression("metadata.name", operator, *names)])


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        pytest.param([], False, id="no terms match no node"),
        pytest.param([node_term()], False, id="an empty term matches nothing"),
        pytest.param([node_term(), name_is("In", "n")], True, id="terms are alternatives"),
        pytest.param([name_is("In", "n")], True, id="the node's own name"),
        pytest.param([name_is("In", "m")], False, id="another name"),
        pytest.param([name_is("NotIn", "m")], True, id="not another name"),
        pytest.param([name_is("NotIn", "n")], False, id="not its own name"),
        pytest.param([name_is("In", "n", "m")], False, id="two names are an invalid term"),
        pytest.param([name_is("Exists")], False, id="fields know only In and NotIn"),
        pytest.param(
            [node_term(fields=[expression("spec.x", "In", "")])], True, id="unknown fields are ''"
        ),
        pytest.param(
            [node_term(fields=[expression("spec.x", "NotIn", "")])], False, id="and are not not ''"
        ),
        pytest.param(
            [
                node_term(
                    expression("disk", "In", "ssd"),
                    fields=[expression("metadata.name", "In", "m")],
                )
            ],
            False,
            id="labels and fields must both match",
        ),
        pytest.param([node_term(expression("size", "Gt", "5"))], True, id="greater"),
        pytest.param(
            [node_term(expression("size", "Gt", "6"))], False, id="not greater than equal"
        ),
        pytest.param([node_term(expression("size", "Lt", "07"))], True, id="leading zeros"),
        pytest.param([node_term(expression("disk", "Gt", "5"))], False, id="not a number"),
        pytest.param([node_term(expression("gone", "Lt", "5"))], False, id="no such label"),
        pytest.param([node_term(expression("gone", "NotIn", "x"))], True, id="absent is not in"),
        pytest.param(
            [node_term(expression("disk", "Near", "x")), node_term(expression("disk", "Exists"))],
            True,
            id="an invalid term is skipped",
        ),
    ],
)
def test_required_node_affinity(terms: list[NodeSelectorTerm], fits: bool) -> None:
    one = node("n", labels={"disk": "ssd", "size": "6"})

    found = said(MatchNodeSelector(), pod(node_affinity=terms), one)

    assert found == (() if fits else SELECTOR)


def test_a_node_selector_with_an_invalid_value_matches_every_node() -> None:
    wanted = pod(node_selector={"disk": "-bad", "zone": "nowhere"})

    assert said(MatchNodeSelector(), wanted, node("n")) == ()


def test_node_selector_and_affinity_must_both_match() -> None:
    columns = view(node("a", labels={"x": "1", ZONE: "z"}), node("b", labels={"x": "1"}))
    wanted = pod(node_selector={"x": "1"}, node_affinity=[node_term(expression(ZONE, "Exists"))])

    assert judged(MatchNodeSelector(), wanted, columns) == {"a": (), "b": SELECTOR}


SSD = node_term(expression("disk", "In", "ssd"))
BIGGER = node_term(expression("size", "Gt", "5"))


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param([], [0, 0, 0], id="no preference"),
        pytest.param([(1, SSD)], [10, 0, 0], id="the best gets ten, whatever the weight"),
        pytest.param([(2, SSD), (1, BIGGER)], [10, 3, 0], id="weights add up"),
        pytest.param([(5, node_term())], [0, 0, 0], id="an empty preference matches nothing"),
        pytest.param(
            [(5, node_term(fields=[expression("metadata.name", "In", "c")]))],
            [0, 0, 0],
            id="fields are not looked at",
        ),
        pytest.param(
            [(5, node_term(expression("x", "DoesNotExist")))], [10, 10, 10], id="all alike"
        ),
    ],
)
def test_node_affinity(preferred: list, expected: list[int]) -> None:  # type: ignore[type-arg]
    columns = view(
        node("a", labels={"disk": "ssd", "size": "9"}), node("b", labels={"size": "7"}), node("c")
    )

    found = scored(NodeAffinityPriority(), pod(prefers_nodes=preferred), columns)

    assert list(found.values()) == expected
