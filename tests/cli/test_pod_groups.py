"""Pod groups in `schedule` and `explain`: a group as one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Files, Podium
from manifests import node, pod, pod_group, priority_class
from past.replay.test_pod_groups import recorded, too_small
from render.json_schema import problems

SCHEMA = Path(__file__).parents[2] / "docs" / "decision.schema.json"
TOGETHER = ("--profile", "v1.37", "--feature-gates", "GenericWorkload=true")


def members(count: int, cpu: str, **spec: Any) -> list[dict[str, Any]]:
    spec = {"schedulingGroup": {"podGroupName": "g"}, **spec}
    return [pod(f"a{number}", cpu, **spec) for number in range(count)]


@pytest.fixture
def too_big(write: Files) -> str:
    """A gang of three pods in a cluster with room for two."""
    return write([node("n1", "2"), node("n2", "2"), pod_group("g", 3), *members(3, "1500m")])


def test_a_group_that_does_not_fit_says_how_many_are_missing(podium: Podium, too_big: str) -> None:
    result = podium("schedule", too_big, *TOGETHER)

    assert result.code == 0
    assert (
        "pod group default/g does not fit, so that none of its pods gets a node\n"
        "  3 must have a node, 2 pods of the group fit together: 1 more needed\n"
        "  undone because the group does not fit: default/a0 on n1, default/a1 on n2\n"
    ) in result.out
    assert "no event wakes a group: it is tried again when its backoff is over" in result.out


def test_a_group_of_which_a_part_is_scheduled_says_that_no_more_pods_fit(
    podium: Podium, write: Files
) -> None:
    basic: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    file = write([node("n1", "2"), pod_group("g", 1, **basic), *members(3, "1")])

    result = podium("schedule", file, *TOGETHER)

    assert "2 of 3 pods placed" in result.out
    assert "pod group default/g is scheduled, but no more of its pods fit\n" in result.out


def test_pods_that_are_evicted_with_their_group_are_evicted_from_their_own_nodes(
    podium: Podium, write: Files
) -> None:
    together: dict[str, Any] = {"disruptionMode": {"all": {}}}
    file = write(
        [
            *(node("n1", "2"), node("n2", "2"), pod_group("g", 2, **together)),
            *(
                pod(f"a{n}", "1", schedulingGroup={"podGroupName": "g"}, nodeName=f"n{n}")
                for n in (1, 2)
            ),
            pod("b", "2", priority=10),
        ]
    )

    result = podium("schedule", file, *TOGETHER)

    evicted = [line.split()[:3] for line in result.lines if line.startswith("default/a")]
    assert evicted == [["default/a1", "n1", "default/b"], ["default/a2", "n2", "default/b"]]
    assert "preempted 2 pods on n1, n2" in result.out


def test_without_the_gate_pods_are_tried_alone_and_a_note_says_so(
    podium: Podium, too_big: str
) -> None:
    result = podium("schedule", too_big, "--profile", "v1.37")

    assert "2 of 3 pods placed" in result.out
    assert "add --feature-gates GenericWorkload=true" in result.err


@pytest.mark.parametrize("name", ["a0", "a2"])
def test_explain_shows_every_member(podium: Podium, too_big: str, name: str) -> None:
    result = podium("explain", name, too_big, *TOGETHER)

    assert result.code == 0
    assert (
        "MEMBER       OUTCOME        NODE     REASON\n"
        "default/a0   fits, undone   n1\n"
        "default/a1   fits, undone   n2\n"
        "default/a2   fits nowhere   <none>   0/2 nodes are available: 2 Insufficient cpu.\n"
    ) in result.out


def test_plain_data_has_the_group(podium: Podium, too_big: str) -> None:
    result = podium("explain", "a0", too_big, *TOGETHER, "-o", "json")

    found = json.loads(result.out)
    told = found["podGroup"]
    schema = json.loads(SCHEMA.read_text())
    assert not list(problems(found, schema, schema))
    assert (told["outcome"], told["scheduled"], told["missing"]) == ("unschedulable", 2, 1)
    assert [each["outcome"] for each in told["members"]] == ["undone", "undone", "unschedulable"]
    assert told["members"][0]["undoneNode"] == "n1"


def test_pods_are_evicted_for_the_whole_group(podium: Podium, write: Files) -> None:
    low = [pod(f"low{n}", "1500m", nodeName=f"n{n}", priority=0) for n in (1, 2)]
    file = write(
        [
            *(node("n1", "2"), node("n2", "2")),
            *low,
            pod_group("g", 2, priority=10),
            *members(2, "1500m", priority=10),
        ]
    )

    result = podium("schedule", file, *TOGETHER)

    assert result.code == 0
    assert "default/low1   n1     pod group default/g   lower priority" in result.out
    assert "2 of 2 pods placed, 2 pods evicted" in result.out


def test_groups_of_older_releases_are_refused(podium: Podium, write: Files) -> None:
    file = write([node("n1", "2"), *members(1, "1")])

    result = podium("schedule", file, "--profile", "v1.36", *TOGETHER[2:])

    assert result.code == 2
    assert "feature gate GenericWorkload=true is not supported" in result.err


def test_a_history_shows_a_group_as_one_thing(podium: Podium, tmp_path: Path) -> None:
    recorded(tmp_path, too_small)

    result = podium("history", "replay", str(tmp_path))
    told = json.loads(podium("history", "replay", str(tmp_path), "-o", "json").out)
    member = podium("history", "replay", str(tmp_path), "--pod", "a1", "--attempt", "1")
    judged = podium("history", "judge", str(tmp_path))

    assert result.code == 0
    assert "5 cycles of pod groups made again, 5 equal" in result.out
    assert "attempts 1 to 4\npod group default/g does not fit" in result.out
    assert "attempt 5\npod group default/g is scheduled: 3 pods get a node" in result.out
    assert [(each["attempt"], each["lastAttempt"]) for each in told["podGroups"]] == [
        (1, 4),
        (5, 5),
    ]
    assert "undone because the group does not fit: default/a0 on n1, default/a1" in member.out
    assert "pod group default/g: 3 placements, 3 agree; 3 must have a node" in judged.out
    # Pods that fit and were undone are not missed.
    assert "that Podium would place" not in judged.out


def test_a_plan_schedules_groups_and_shows_each_as_one_thing(podium: Podium, too_big: str) -> None:
    fits = podium("plan", too_big, "--add", "1:n1", *TOGETHER, "-o", "json").json
    result = podium("plan", too_big, "--cordon", "n1", *TOGETHER)
    waits = podium("plan", too_big, "--cordon", "n1", *TOGETHER, "-o", "json").json

    schema = json.loads((SCHEMA.parent / "plan.schema.json").read_text())
    assert not list(problems(waits, schema, schema))
    [group] = fits["groups"]
    assert (group["missing"], len(group["placed"]), group["why"]) == (0, 3, [])
    [group] = waits["groups"]
    assert (group["minCount"], group["placed"], group["missing"]) == (3, {}, 3)
    assert group["cycle"]["missing"] == 2
    # It rests and is tried in vain again and again, which is no reason to wait for it.
    assert not waits["changes"][0]["unfinished"]
    assert [each["message"] for each in waits["pending"]][1].startswith("0/2 nodes are available")
    assert "default/g   3       0 of 3      3         <none>" in result.out
    assert "undone because the group does not fit: default/a0 on n2" in result.out


def test_a_plan_names_the_pods_that_are_evicted_for_a_group(podium: Podium, write: Files) -> None:
    low = [pod(f"low{n}", "1500m", nodeName=f"n{n}", priority=0) for n in (1, 2)]
    cluster = write(
        [priority_class("high", 10), node("n1", "2"), node("n2", "2"), *low], "cluster.json"
    )
    wanted = pod_group("g", 2, priorityClassName="high")
    new = write([wanted, *members(2, "1500m", priorityClassName="high")], "group.json")

    found = podium("plan", cluster, "--apply", new, *TOGETHER, "-o", "json").json

    assert {(each["pod"], each["node"], each["preemptor"]) for each in found["evicted"]} == {
        ("default/low1", "n1", "pod group default/g"),
        ("default/low2", "n2", "pod group default/g"),
    }
    [told] = found["groups"]
    assert (len(told["placed"]), told["missing"]) == (2, 0)
