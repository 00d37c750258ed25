"""The JSON form of a Decision, held against its published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import (
    claim,
    claim_volume,
    node,
    nodes,
    pod,
    profile,
    simulation,
    storage_class,
    volume,
)
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.extenders import Extender, Filtered
from podium.engine.framework.rule import Refused
from podium.engine.rules.resources.predicates import LeastRequestedPriority
from podium.engine.rules.volumes.binding import CheckVolumeBinding
from podium.errors import ConfigError
from podium.library.decision_json import to_json
from podium.past.recordings.replay import profiles_of
from podium.past.recordings.scenarios import objects_of, pending_of, scenario_of
from render.json_schema import problems

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "decision.schema.json").read_text())
RECORDINGS = sorted((ROOT / "tests" / "golden" / "v1.13").glob("*.jsonl"))
RULES = profile(priorities=[(LeastRequestedPriority(), 2)])


def checked(decision: Decision, **options: Any) -> dict[str, Any]:
    """The JSON form, after it went through text and the schema."""
    found: dict[str, Any] = json.loads(json.dumps(to_json(decision, **options)))
    assert problems(found, SCHEMA, SCHEMA) == []
    return found


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
def test_every_decision_follows_the_schema(file: Path) -> None:
    decisions = 0
    for line in file.read_text().splitlines()[:12]:
        scenario = scenario_of(json.loads(line))
        try:
            [rules] = profiles_of(scenario)
        except ConfigError:
            continue
        assert scenario.options is not None
        run = Simulation(rules, after_preemption=scenario.options.after_preemption)
        run.load(objects_of(scenario))
        for step in run.run(pending_of(scenario), recording=True):
            checked(step.decision, attempt=step.attempt)
            decisions += 1
    assert decisions


def test_a_choice_has_the_matrix_and_the_tie() -> None:
    cluster = simulation(
        node("a", cpu="4", memory="4Gi"),
        node("b", cpu="8", memory="8Gi"),
        node("c", cpu="8", memory="8Gi"),
        node("d", unschedulable=True),
        profile=RULES,
    )

    found = checked(cluster.attempt(pod(requests={"cpu": "1", "memory": "1Gi"}), recording=True))

    assert found["outcome"] == "placed"
    assert found["nodes"] == {"total": 4, "examined": 4, "feasible": 3}
    assert found["feasible"] == ["a", "b", "c"]
    [column] = found["scores"]
    assert column == {
        "priority": "LeastRequestedPriority",
        "weight": 2,
        "raw": [7, 8, 8],
        "scores": [7, 8, 8],
    }
    assert found["totals"] == [14, 16, 16]
    assert found["selection"] == {"tied": 2, "cursor": 0, "best": ["b", "c"]}
    assert (found["node"], "message" in found) == ("b", False)
    assert found["rejections"] == [
        {
            "predicate": "CheckNodeUnschedulable",
            "reasons": ["node(s) were unschedulable"],
            "curable": False,
            "count": 1,
            "nodes": ["d"],
        }
    ]


def test_without_recording_the_counts_remain() -> None:
    cluster = simulation(*nodes(3, cpu="1"), profile=RULES)

    found = checked(cluster.attempt(pod(requests={"cpu": "2"})))

    assert found["nodes"]["total"] == 3
    assert [(g["count"], g["reasons"], "nodes" in g) for g in found["rejections"]] == [
        (3, ["Insufficient cpu"], False)
    ]
    assert found["message"] == "0/3 nodes are available: 3 Insufficient cpu."


def test_preemption_lists_victims_in_order() -> None:
    cluster = simulation(
        node("a", cpu="2"),
        pod("low", node="a", requests={"cpu": "1"}, priority=1),
        pod("lower", node="a", requests={"cpu": "1"}, priority=0),
        profile=RULES,
    )

    found = checked(cluster.attempt(pod(requests={"cpu": "2"}, priority=9), recording=True))

    assert found["outcome"] == "nominated"
    assert found["preemption"] == {
        "eligible": True,
        "potentialNodes": ["a"],
        "candidates": [
            {
                "node": "a",
                "victims": [
                    {"pod": "default/low", "uid": "default/low", "priority": 1},
                    {"pod": "default/lower", "uid": "default/lower", "priority": 0},
                ],
                "pdbViolations": 0,
            }
        ],
        "node": "a",
        "clearedNominations": [],
        "criterion": "only candidate",
    }


def test_an_error_is_an_outcome() -> None:
    found = checked(simulation(profile=RULES).attempt(pod(), recording=True))

    assert (found["outcome"], found["node"]) == ("error", None)
    assert found["error"] == "no nodes available to schedule pods"


def test_extenders_reject_nodes_too() -> None:
    def answer(question: Any) -> Any:
        return Filtered(("a",), {"b": "no licence"}) if hasattr(question, "nodes") else None

    rules = profile(extenders=[Extender("http://x/", filter_verb="filter")])
    cluster = simulation(node("a"), node("b"), profile=rules, answer=answer)

    found = checked(cluster.attempt(pod(), recording=True))

    [group] = found["rejections"]
    assert (group["extender"], group["reasons"], group["nodes"]) == (True, ["no licence"], ["b"])


def test_volumes_are_part_of_the_decision() -> None:
    rules = profile(CheckVolumeBinding())
    cluster = simulation(
        node("a"),
        storage_class("local"),
        volume("v", storage_class="local"),
        claim("c", storage_class="local"),
        profile=rules,
    )

    found = checked(cluster.attempt(pod(volumes=[claim_volume("c")]), recording=True))

    assert found["volumes"] == {"bind": {"c": "v"}, "provision": []}


def test_a_pod_that_was_not_tried_is_held() -> None:
    decision = Decision("default/p", "u", "test", nodes=1)
    decision.held = Refused("SchedulingGates", "waiting for scheduling gates: [quota]")

    found = checked(decision)

    assert (found["outcome"], found["held"]["plugin"]) == ("held", "SchedulingGates")
    assert found["message"] == "waiting for scheduling gates: [quota]"


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "lost"},
        {"node": 7},
        {"node": None},
        {"kind": "Choice"},
        {"rejections": [{"predicate": "P"}]},
        {"totals": ["7"]},
        {"pod": "no-namespace"},
    ],
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    cluster = simulation(*nodes(2), profile=RULES)
    good = checked(cluster.attempt(pod(), recording=True))

    assert problems(good | change, SCHEMA, SCHEMA)


def test_fields_are_documented() -> None:
    text = (ROOT / "docs" / "decision.md").read_text()

    assert [name for name in SCHEMA["properties"] if f"`{name}`" not in text] == []
