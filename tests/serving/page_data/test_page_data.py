"""What the page_data tells: pictures in parts, rules as text, pods placed again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.objects.reading.collection import Objects
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.state.cluster_copy import ClusterCopies, LiveCopy
from podium.serving.page_data.cluster_map import CORDONED, NOT_READY, ClusterMap
from podium.serving.page_data.profile_data import read_profiles, reweighted, written
from web.playground import Playground

ZONE = "topology.kubernetes.io/zone"


def playground(*names: str) -> Playground:
    made = Playground()
    made.load(Objects({"Node": [node(name, cpu="4", labels={ZONE: name[0]}) for name in names]}))
    return made


def picture(made: Playground, cursor: str = "") -> dict[str, Any]:
    return asyncio.run(made.page_data.cluster(cursor))


def cells(told: dict[str, Any]) -> dict[str, int]:
    nodes = told["nodes"]
    return {name: len(pods) for name, pods in zip(nodes["name"], nodes["pods"], strict=True)}


def test_a_picture_has_every_node_with_its_load() -> None:
    made = playground("a1", "b1")
    made.create(pod("p", requests={"cpu": "1"}))
    made.work()

    told = picture(made)

    assert told["whole"]
    assert told["words"]["zones"] == [("", "a"), ("", "b")]
    assert sum(cells(told).values()) == 1
    cpu = told["nodes"]["load"][told["resources"].index("cpu")]
    assert sorted(cpu) == [0, 250]
    assert told["totals"]["load"]["cpu"] == 0.125


def test_a_cursor_is_told_only_what_changed() -> None:
    made = playground("a1", "a2", "a3")
    first = picture(made)
    made.create(pod("p", namespace="new"))
    made.work()

    later = picture(made, first["cursor"])

    assert not later["whole"]
    assert list(cells(later).values()) == [1]
    assert later["words"]["workloads"] == [("new", "Pod", "")]
    assert later["words"]["from"][1] == 0
    again = picture(made, later["cursor"])
    assert again["nodes"]["row"] == []


def test_a_new_node_makes_the_picture_whole_again() -> None:
    made = playground("a1")
    first = picture(made)
    made.cache.put_node(node("a2"))

    assert picture(made, first["cursor"])["whole"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "1-2-3", "9-9-9-9-9-9", "-1-0-0-0-0-0"])
def test_a_cursor_of_another_time_is_told_everything(cursor: str) -> None:
    assert picture(playground("a1"), cursor)["whole"]


def test_a_cursor_of_other_columns_is_told_everything() -> None:
    picture = ClusterMap()
    one, other = playground("a1"), playground("a1")
    cursor = picture.since(one.cache.columns)["cursor"]

    assert picture.since(other.cache.columns, cursor)["whole"]


def test_a_changed_node_is_told_with_its_flags() -> None:
    made = playground("a1")
    first = picture(made)
    made.cache.put_node(node("a1", unschedulable=True, conditions={"Ready": "False"}))

    later = picture(made, first["cursor"])

    assert later["nodes"]["flags"] == [CORDONED | NOT_READY]


def test_a_picture_in_parts_equals_a_whole_one() -> None:
    made = playground("a1", "a2", "b1")
    known = picture(made)
    seen = dict(zip(known["nodes"]["row"], known["nodes"]["pods"], strict=True))
    for number in range(12):
        made.create(pod(f"p{number}", namespace=f"n{number % 3}", requests={"cpu": "100m"}))
        made.work()
        if number % 2:
            known = picture(made, known["cursor"])
            seen |= dict(zip(known["nodes"]["row"], known["nodes"]["pods"], strict=True))

    whole = picture(made)
    assert seen == dict(zip(whole["nodes"]["row"], whole["nodes"]["pods"], strict=True))


def test_five_thousand_nodes_are_told_within_a_second_of_cpu() -> None:
    made = Playground()
    nodes = [node(f"n{i}", labels={ZONE: str(i % 3)}) for i in range(5000)]
    pods = [
        pod(f"p{i}", namespace=f"team-{i % 7}", node=f"n{i % 5000}", labels={"app": f"a{i % 40}"})
        for i in range(50_000)
    ]
    made._simulation.load(Objects({"Node": nodes, "Pod": pods}))

    began = time.process_time()
    told = picture(made)
    first = time.process_time() - began
    began = time.process_time()
    picture(made, told["cursor"])
    again = time.process_time() - began

    assert sum(cells(told).values()) == 50_000
    assert first < 1
    assert again < 0.1


def rule_names(profile: Profile) -> tuple[list[str], list[tuple[str, int]]]:
    return (
        [rule.name for rule in profile.predicates],
        [(each.name, each.weight) for each in profile.priorities],
    )


@pytest.mark.parametrize(
    "profile",
    [
        from_provider("DefaultProvider", Options()),
        from_provider("ClusterAutoscalerProvider", Options()),
        from_config(default_config(), Options())[0],
    ],
    ids=lambda profile: profile.name,
)
def test_written_rules_make_the_same_profile(profile: Profile) -> None:
    [made] = read_profiles(written([profile], Options()), Options()).profiles

    assert rule_names(made)[0] == rule_names(profile)[0]
    assert sorted(rule_names(made)[1]) == sorted(rule_names(profile)[1])
    assert made.scheduler_name == profile.scheduler_name


def test_new_weights_keep_everything_else_of_the_text() -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 7
profiles:
- schedulerName: one
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
- schedulerName: two
"""
    rules = read_profiles(text, Options())
    changed = read_profiles(reweighted(rules, {"NodeResourcesFit": 9}, "one", Options()), Options())
    weights = [dict(rule_names(profile)[1]) for profile in changed.profiles]

    assert weights[0]["NodeResourcesFit"] == 9
    assert weights[1] == dict(rule_names(rules.profiles[1])[1])
    assert "MostAllocated" in changed.text
    assert "podMaxBackoffSeconds: 7" in changed.text


def test_a_policy_with_arguments_keeps_them() -> None:
    text = """
kind: Policy
apiVersion: v1
priorities:
- {name: Spread, weight: 2, argument: {serviceAntiAffinity: {label: rack}}}
- {name: LeastRequestedPriority, weight: 1}
"""
    rules = read_profiles(text, Options())
    changed = reweighted(rules, {"Spread": 5, "LeastRequestedPriority": 0}, "", Options())

    [profile] = read_profiles(changed, Options()).profiles
    assert rule_names(profile)[1] == [("Spread", 5)]
    assert "rack" in changed


def test_a_text_of_no_rules_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a Policy nor a KubeSchedulerConfiguration"):
        read_profiles("kind: Deployment", Options())


def test_speed_is_remembered_though_nobody_looks() -> None:
    made = playground("a1")
    for number in range(3):
        made.create(pod(f"p{number}"))
    made.work()

    history = made.page_data.history()

    assert sum(decided for _, decided, _ in history) == 3
    assert history[-1][2] == 0


def test_pods_that_ran_before_are_placed_again_in_the_order_of_their_start() -> None:
    made = playground("a1", "a2")
    old = pod("old", node="a2", requests={"cpu": "1"})
    new = pod("new", node="a1", requests={"cpu": "1"})
    for each, second in ((new, "20"), (old, "10")):
        started = f"2026-01-01T00:00:{second}Z"
        made.cache.add_pod(replace(each, status=replace(each.status, start_time=started)))

    scene, small = asyncio.run(copied(made)), asyncio.run(copied(made))
    scene.place_again(10, {}, [], ())
    small.place_again(1, {}, [], ())

    assert [each.key for each in scene.replayed] == ["default/old", "default/new"]
    assert scene.pods()[0].status.start_time == "2026-01-01T00:00:10Z"
    assert scene.pods()[0].spec.node_name == ""
    assert [each.key for each in small.fixed] == ["default/old"]


async def copied(made: Playground) -> LiveCopy:
    async with ClusterCopies(made).ready() as now:
        return now()


async def _told(made: Playground, name: str) -> Any:
    return await made.page_data.decision("default", name)


def test_candidates_are_told_in_the_order_of_their_cost() -> None:
    """One pod of priority -100 costs less than two, though the plain sum of those is lower."""
    made = playground("a1", "a2")
    for name, where, cpu in (("one", "a1", "4"), ("two", "a2", "2"), ("three", "a2", "2")):
        made.cache.add_pod(pod(name, node=where, priority=-100, requests={"cpu": cpu}))
    made.create(pod("urgent", priority=10, requests={"cpu": "4"}))
    made.work()

    told = asyncio.run(_told(made, "urgent"))["preemption"]

    assert [each["node"] for each in told["candidates"]] == ["a1", "a2"]
    assert told["node"] == "a1"
    assert told["criterionWords"] == "the sum of the priorities of its victims is the lowest"
    [victim] = told["candidates"][0]["victims"]
    assert victim["why"] == "with it back, cpu: wants 4, 0 free of 4 (4 used)"


def test_a_placed_pod_is_told_with_its_causes() -> None:
    made = playground("a1", "a2", "a3")
    made.cache.add_pod(pod("large", node="a1", requests={"cpu": "4"}))
    made.create(pod("small", requests={"cpu": "1"}))
    made.work()

    told = asyncio.run(_told(made, "small"))

    assert (told["outcome"], told["source"]) == ("placed", "recorded")
    [group] = told["rejections"]
    assert [line["text"] for line in group["causeLines"]] == ["cpu: wants 1, 0 free of 4 (4 used)"]
    assert all(line["formula"] for line in told["scoreLines"])
    assert len(told["scoreLines"]) == len(told["scores"])


def test_nodes_without_a_candidate_are_told_with_the_reason() -> None:
    made = playground("a1")
    made.cache.add_pod(pod("peer", node="a1", priority=10, requests={"cpu": "4"}))
    made.create(pod("urgent", priority=10, requests={"cpu": "4"}))
    made.work()

    told = asyncio.run(_told(made, "urgent"))["preemption"]

    [line] = told["noCandidates"]
    assert (line["nodes"], line["text"]) == (["a1"], "no pod of lower priority is there")


def test_a_large_cluster_is_copied_between_decisions() -> None:
    """Other tasks run after some nodes; the copy is that of the moment at its end."""
    made = playground(*(f"n{number:03}" for number in range(300)))
    for number in range(300):
        made.cache.add_pod(pod(f"p{number}", uid=f"p{number}", node=f"n{number:03}"))
    turns = 0

    async def decide() -> None:
        nonlocal turns
        while True:
            turns += 1
            if turns == 2:
                made.cache.drop_node(node("n299"))
            if turns < 40:  # more nodes change in a turn than are copied in the first ones
                for number in range(turns % 7, 300, 7):
                    uid, where = f"p{number}", f"n{(number + turns) % 300:03}"
                    made.cache.remove(uid)
                    made.cache.add_pod(pod(uid, uid=uid, node=where))
            await asyncio.sleep(0)

    async def run() -> dict[str, str]:
        deciding = asyncio.ensure_future(decide())
        async with ClusterCopies(made).ready() as now:
            found = {each.key: each.node for each in now().fixed}
            assert found == placed(made)
        deciding.cancel()
        return found

    found = asyncio.run(run())

    assert turns >= 8
    assert len(found) == 300


def placed(made: Playground) -> dict[str, str]:
    columns = made.cache.columns
    pods = columns.pods.by_uid.values()
    return {each.key: columns.nodes.names[each.row] for each in pods}
