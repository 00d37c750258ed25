"""Causes as tables, JSON and pages show them: with few nodes, and with thousands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import builders as b
import builders_v1_36 as c
import podium
from podium.engine.framework import causes
from podium.library.decision_json import from_json, to_json
from podium.library.explanation import Explanation
from podium.library.reasoning.causes import find_causes
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.render.decision.analysis import rejection_groups
from podium.render.decision.causes import cause_lines, causes_of_groups, causes_of_node
from podium.render.reports.explanation_page import explanation_page

DOCUMENTS = Path(__file__).parents[3] / "docs"


def explained(
    wanted: Pod, *items: Object, generation: str = "v1.36", **options: Any
) -> Explanation:
    profile = podium.default_profile(generation, podium.Options(**options))
    return podium.explain(b.objects(*items, wanted), wanted, profile)


def entries(found: Explanation) -> list[dict[str, Any]]:
    return [cause for group in found.as_json()["rejections"] for cause in group["causes"]]


def test_a_nominated_pod_is_named_where_its_room_is_missing() -> None:
    found = explained(
        b.pod("p", requests={"cpu": "1"}),
        b.node("n", cpu="2"),
        b.pod("vip", nominated="n", requests={"cpu": "1500m"}, priority=10),
    )

    [cause] = entries(found)
    assert cause == {
        "predicate": "NodeResourcesFit",
        "kind": "room",
        "reason": "Insufficient cpu",
        "resource": "cpu",
        "wanted": 1000,
        "allocatable": 2000,
        "used": 0,
        "nominated": [{"pod": "default/vip", "amount": 1500}],
        "text": "cpu: wants 1, 500m free of 2 (0 used, 1500m promised to default/vip)",
        "nodes": ["n"],
    }


def test_the_room_of_one_node_includes_what_is_promised() -> None:
    wanted = b.pod("p", requests={"cpu": "1"})
    vip = b.pod("vip", nominated="n", requests={"cpu": "1500m"}, priority=10)
    objects = b.objects(b.node("n", cpu="2"), vip, wanted)

    found = podium.explain(objects, wanted, podium.default_profile("v1.13"), node="n")

    [cpu, *_] = found.as_json()["asked"]["room"]
    assert cpu == {
        "resource": "cpu",
        "wanted": 1000,
        "used": 0,
        "promised": 1500,
        "allocatable": 2000,
    }
    assert [each["kind"] for each in found.as_json()["asked"]["causes"]] == ["room"]


def test_a_node_that_plugins_left_out_has_the_expression_as_its_cause() -> None:
    named = b.node_term(fields=[b.expression("metadata.name", "In", "m")])
    found = explained(b.pod("p", node_affinity=[named]), b.node("n"), b.node("m"))

    [group] = found.as_json()["rejections"]
    assert group["reasons"] == ["node(s) didn't satisfy plugin(s) [NodeAffinity]"]
    assert [(each["predicate"], each["text"]) for each in group["causes"]] == [
        ("NodeAffinity", "nodeSelectorTerms[0]: metadata.name In [m]: the node is n")
    ]


def test_reasons_belong_to_their_predicates_when_all_are_checked() -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "alwaysCheckAllPredicates": True}
    profile = podium.from_policy(policy)
    wanted = b.pod("p", requests={"cpu": "9"})
    full = b.node("n", cpu="1", unschedulable=True, taints=[b.taint("gpu")])

    found = podium.explain(b.objects(full, wanted), wanted, profile, node="n")

    data = found.as_json()
    [group] = data["rejections"]
    assert group["byRule"] == [
        {"predicate": "CheckNodeUnschedulable", "reasons": ["node(s) were unschedulable"]},
        {"predicate": "GeneralPredicates", "reasons": ["Insufficient cpu"]},
        {
            "predicate": "PodToleratesNodeTaints",
            "reasons": ["node(s) had taints that the pod didn't tolerate"],
        },
    ]
    assert data["asked"]["byRule"] == group["byRule"]
    assert [(each["predicate"], each["reason"]) for each in group["causes"]] == [
        ("CheckNodeUnschedulable", "node(s) were unschedulable"),
        ("GeneralPredicates", "Insufficient cpu"),
        ("PodToleratesNodeTaints", "node(s) had taints that the pod didn't tolerate"),
    ]
    again = from_json(json.loads(json.dumps(data)))
    assert to_json(again)["rejections"] == data["rejections"]


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_thousands_of_nodes_give_few_lines(generation: str) -> None:
    nodes = [
        b.node(f"n{i:04}", cpu=f"{i % 7}", labels={"disk": "hdd"} if i % 2 else None)
        for i in range(2000)
    ]
    wanted = b.pod("p", requests={"cpu": "7"}, node_selector={"disk": "ssd"})
    found = explained(wanted, *nodes, generation=generation)

    groups = rejection_groups(found.decision)
    lines = [cause_lines(each, 5) for each in causes_of_groups(found.decision, groups)]

    assert all(len(each) <= 5 for each in lines)
    texts = {line.text: len(line.nodes) for each in lines for line in each}
    assert texts["nodeSelector: disk In [ssd]: the node has hdd"] == 1000
    assert texts["nodeSelector: disk In [ssd]: the node does not have it"] == 1000
    if generation == "v1.13":
        assert texts["cpu: wants 7, 6 free of 6 (0 used) on n0006, which has the most"] == 2000


def test_more_causes_than_lines_are_counted() -> None:
    nodes = [b.node(f"n{i}", taints=[b.taint(f"t{i}")]) for i in range(9)]
    found = explained(b.pod("p"), *nodes)
    [group] = causes_of_groups(found.decision, rejection_groups(found.decision))

    lines = cause_lines(group, 4)

    assert [len(line.nodes) for line in lines] == [1, 1, 1, 6]
    assert lines[-1].text == "6 more causes, all of them with -o json"


def test_a_cause_of_a_later_version_is_skipped() -> None:
    found = explained(b.pod("p"), b.node("n", unschedulable=True)).as_json()
    found["rejections"][0]["causes"].append(
        {"kind": "comet", "predicate": "Sky", "reason": "x", "text": "y", "nodes": ["n"]}
    )

    again = from_json(found)

    assert [each.cause for each in again.causes] == [causes.Cordoned("node(s) were unschedulable")]


def test_the_page_shows_causes() -> None:
    page = explanation_page(explained(b.pod("p"), b.node("n", taints=[b.taint("gpu")])))

    assert "<td>taint gpu:NoSchedule is not tolerated</td>" in page


def test_finding_causes_changes_nothing() -> None:
    columns = c.view(b.node("n", taints=[b.taint("gpu")]), b.pod("u", node="n"))
    profile, wanted = podium.default_profile("v1.36"), b.pod("p", requests={"cpu": "1"})
    before = b.decided(columns, wanted, profile)

    incoming = columns.pods.incoming(wanted)
    first = find_causes(columns, incoming, profile, before)

    after = b.decided(columns, wanted, profile)
    assert find_causes(columns, incoming, profile, after) == first
    assert to_json(after) == to_json(before)
    assert before.causes == ()


def test_the_document_lists_every_kind_with_its_fields() -> None:
    listed = {}
    for line in (DOCUMENTS / "decision.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1].startswith("`"):
            listed[cells[1].strip("`")] = cells[2].replace("`", "").replace(" ", "")
    for kind in get_args(causes.AnyCause):
        fields = [f.encode_name for f in msgspec.structs.fields(kind) if f.name != "reason"]
        assert listed[kind.__struct_config__.tag] == ",".join(fields)
    assert len(causes_of_node(explained(b.pod("p"), b.node("n")).decision, "n")) == 0


def test_scores_have_their_formula_and_numbers() -> None:
    wanted = b.pod("p", requests={"cpu": "1", "memory": "1Gi"})
    nodes = (b.node("n1", cpu="2", memory="4Gi"), b.node("n2", cpu="4", memory="4Gi"))

    found = explained(wanted, *nodes, generation="v1.13").as_json()

    [least] = [each for each in found["scores"] if each["priority"] == "LeastRequestedPriority"]
    assert least["formula"] == (
        "the mean of cpu and memory: (capacity - requested) * 10 / capacity"
    )
    assert {each["node"]: each["numbers"] for each in least["numbers"]} == {
        "n1": [
            {"name": "cpu", "value": 1000, "of": 2000, "resource": "cpu"},
            {"name": "memory", "value": 1 << 30, "of": 4 << 30, "resource": "memory"},
        ],
        "n2": [
            {"name": "cpu", "value": 1000, "of": 4000, "resource": "cpu"},
            {"name": "memory", "value": 1 << 30, "of": 4 << 30, "resource": "memory"},
        ],
    }
    assert least["raw"] == least["scores"] == [6, 7]


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_every_score_rule_says_how_it_is_computed(generation: str) -> None:
    profile = podium.default_profile(generation)

    missing = {
        each.name
        for each in profile.priorities
        if not each.priority.formula and each.name not in {"DynamicResources", "VolumeBinding"}
    }

    assert not missing


VIP = b.pod("vip", requests={"cpu": "1"}, priority=10)


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_preemption_says_why_victims_stay_victims_and_why_nodes_are_no_candidates(
    generation: str,
) -> None:
    labels = {"app": "db"}
    items = (
        b.node("n1", cpu="1"),
        b.node("n2", cpu="1", taints=[b.taint("gpu")]),
        b.node("n3", cpu="1"),
        b.node("n4", cpu="1"),
        b.pod("small", node="n1", requests={"cpu": "100m"}),
        b.pod("guarded", node="n1", requests={"cpu": "500m"}, labels=labels),
        b.pod("peer", node="n3", requests={"cpu": "1"}, priority=10),
        b.pod("peer2", node="n4", requests={"cpu": "600m"}, priority=10),
        b.pod("less", node="n4", requests={"cpu": "100m"}),
        b.budget("db", b.selector(labels)),
    )

    found = explained(VIP, *items, generation=generation).as_json()["preemption"]

    by_node = {tuple(each["nodes"]): (each["why"], each["text"]) for each in found["noCandidates"]}
    assert by_node["n2",][0] == "notHelpful"
    assert by_node["n3",] == ("noLowerPriority", "no pod of lower priority is there")
    assert by_node["n4",] == (
        "stillRejected",
        "not even without all pods of lower priority: cpu: wants 1, 400m free of 1 (600m used)",
    )
    [candidate] = found["candidates"]
    victims = {each["pod"]: each for each in candidate["victims"]}
    assert victims["default/guarded"]["budgets"] == ["default/db"]
    assert victims["default/small"]["budgets"] == []
    assert victims["default/small"]["reasons"] == ["Insufficient cpu"]
    assert [each["text"] for each in victims["default/small"]["causes"]] == [
        "cpu: wants 1, 900m free of 1 (100m used)"
    ]
    again = explained(VIP, *items, generation=generation).as_json()
    assert to_json(from_json(json.loads(json.dumps(again))))["preemption"] == again["preemption"]


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_scores_are_read_again_with_their_numbers(generation: str) -> None:
    items = (b.node("n1", cpu="4"), b.node("n2", cpu="8"), b.pod("a", node="n1"))
    data = explained(b.pod("p", requests={"cpu": "1"}), *items, generation=generation).as_json()

    again = to_json(from_json(json.loads(json.dumps(data))))

    assert again["scores"] == data["scores"]
    assert any(column["numbers"] for column in again["scores"])


def test_nodes_on_which_the_search_is_not_repeated_are_named() -> None:
    nodes = [b.node(f"n{i:03}", cpu="1") for i in range(230)]
    full = [
        b.pod(f"p{i}", node=f"n{i:03}", requests={"cpu": "900m"}, priority=10) for i in range(230)
    ]
    less = [b.pod(f"q{i}", node=f"n{i:03}", requests={"cpu": f"{i % 10}m"}) for i in range(5, 230)]

    profile = podium.default_profile("v1.13", podium.Options())
    found = podium.explain(b.objects(*nodes, *full, *less, VIP), VIP, profile, node="n229")

    by_why: dict[str, list[str]] = {}
    for each in found.as_json()["preemption"]["noCandidates"]:
        by_why.setdefault(each["why"], []).extend(each["nodes"])
    assert by_why["noLowerPriority"] == [f"n{i:03}" for i in range(5)]
    assert by_why["stillRejected"][0] == "n229"
    assert len(by_why["stillRejected"]) == 200
    assert len(by_why["notTried"]) == 25


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (b.node_term(), "an empty term matches no node"),
        (
            b.node_term(b.expression("n", "Near", "x")),
            (
                'the term is not valid, and matches no node: "Near" is not a valid node selector '
                "operator"
            ),
        ),
        (
            b.node_term(b.expression("n", "Gt", "7")),
            "n Gt [7]: the node has ten, which is no integer",
        ),
    ],
)
def test_terms_that_cannot_match_say_why(term: Any, text: str) -> None:
    found = explained(b.pod("p", node_affinity=[term]), b.node("n", labels={"n": "ten"}))

    assert [each["text"] for each in entries(found)] == [f"nodeSelectorTerms[0]: {text}"]
