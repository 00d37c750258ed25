"""v1.13 node selectors and node affinity, required and preferred."""

from __future__ import annotations

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
from cases import cases
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.node_affinity import MatchNodeSelector, NodeAffinityPriority
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelectorTerm, Pod

SELECTOR = ("node(s) didn't match node selector",)


def said(predicate: FilterRule, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


def name_is(operator: str, *names: str) -> NodeSelectorTerm:
    return node_term(fields=[expression("metadata.name", operator, *names)])


@cases(
    ("terms", "fits"),
    {
        "no terms match no node": ([], False),
        "an empty term matches nothing": ([node_term()], False),
        "terms are alternatives": ([node_term(), name_is("In", "n")], True),
        "the node's own name": ([name_is("In", "n")], True),
        "another name": ([name_is("In", "m")], False),
        "not another name": ([name_is("NotIn", "m")], True),
        "not its own name": ([name_is("NotIn", "n")], False),
        "two names are an invalid term": ([name_is("In", "n", "m")], False),
        "fields know only In and NotIn": ([name_is("Exists")], False),
        "unknown fields are ''": ([node_term(fields=[expression("spec.x", "In", "")])], True),
        "and are not not ''": ([node_term(fields=[expression("spec.x", "NotIn", "")])], False),
        "labels and fields must both match": (
            [
                node_term(
                    expression("disk", "In", "ssd"),
                    fields=[expression("metadata.name", "In", "m")],
                )
            ],
            False,
        ),
        "greater": ([node_term(expression("size", "Gt", "5"))], True),
        "not greater than equal": ([node_term(expression("size", "Gt", "6"))], False),
        "leading zeros": ([node_term(expression("size", "Lt", "07"))], True),
        "not a number": ([node_term(expression("disk", "Gt", "5"))], False),
        "no such label": ([node_term(expression("gone", "Lt", "5"))], False),
        "absent is not in": ([node_term(expression("gone", "NotIn", "x"))], True),
        "an invalid term is skipped": (
            [node_term(expression("disk", "Near", "x")), node_term(expression("disk", "Exists"))],
            True,
        ),
    },
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


@cases(
    ("preferred", "expected"),
    {
        "no preference": ([], [0, 0, 0]),
        "the best gets ten, whatever the weight": ([(1, SSD)], [10, 0, 0]),
        "weights add up": ([(2, SSD), (1, BIGGER)], [10, 3, 0]),
        "an empty preference matches nothing": ([(5, node_term())], [0, 0, 0]),
        "fields are not looked at": (
            [(5, node_term(fields=[expression("metadata.name", "In", "c")]))],
            [0, 0, 0],
        ),
        "all alike": ([(5, node_term(expression("x", "DoesNotExist")))], [10, 10, 10]),
    },
)
def test_node_affinity(preferred: list, expected: list[int]) -> None:  # type: ignore[type-arg]
    columns = view(
        node("a", labels={"disk": "ssd", "size": "9"}), node("b", labels={"size": "7"}), node("c")
    )

    found = scored(NodeAffinityPriority(), pod(prefers_nodes=preferred), columns)

    assert list(found.values()) == expected
