"""Attempts at one pod, told in order."""

from __future__ import annotations

from msgspec.structs import replace

from builders import node, pod, profile, simulation
from podium.cluster.simulation import TERMINATE
from podium.engine.framework.decision import Decision
from podium.engine.rules.resources.predicates import LeastRequestedPriority
from podium.library.explained_causes import add_causes
from podium.objects.kinds.meta import OwnerReference
from podium.render.decision import sentences
from podium.render.decision.story import StoryAttempt, is_story, story

RULES = profile(priorities=[LeastRequestedPriority()])
OWNER = OwnerReference(kind="ReplicaSet", name="batch-5d", uid="r", controller=True)
ALONE = pod("low", uid="low", node="n", requests={"cpu": "3"})
LOW = replace(ALONE, metadata=replace(ALONE.metadata, owner_references=[OWNER]))
VIP = pod("vip", uid="vip", requests={"cpu": "3"}, priority=100)


def attempts() -> list[Decision]:
    """A preemption, two attempts while the victim ends, and the placement."""
    world = simulation(node("n", cpu="4"), LOW, profile=RULES)
    world.after_preemption = TERMINATE
    first = world.attempt(VIP, recording=True)
    add_causes(world.cache.columns, VIP, RULES, first)
    waiting = [world.attempt(VIP) for _ in range(2)]
    for each in waiting:
        each.preemption = None
    world.remove("low")
    return [first, *waiting, world.attempt(VIP)]


def test_a_preemption_is_told_from_the_attempt_to_the_placement() -> None:
    told = story(
        [StoryAttempt(i, 10.0 * i, each) for i, each in enumerate(attempts(), 1)],
        {"default/low": 36.0},
    )

    lines = [text for each in told for text in each.lines()]
    assert lines == [
        (
            "00:00:10.0  attempt 1: fits nowhere; 1 pod makes room on n: it is the only node where "
            "evicting pods helps; 0/1 nodes are available: 1 Insufficient cpu."
        ),
        (
            "  default/low (ReplicaSet batch-5d, priority 0) is evicted: with it back, cpu: "
            "wants 3, 1 free of 4 (3 used); gone at 00:00:36.0"
        ),
        "  n is promised to it while they end (nominatedNodeName)",
        (
            "00:00:20.0 to 00:00:30.0  attempts 2 to 3 (2 times): 0/1 nodes are available: 1 "
            "Insufficient cpu."
        ),
        "00:00:40.0  attempt 4: placed on n, which was promised to it",
        "  30.0 s after the first attempt",
    ]


def test_times_order_the_attempts_and_data_has_the_same() -> None:
    made = [StoryAttempt(i, 10.0 * i, each) for i, each in enumerate(attempts(), 1)]

    told = [each.as_json() for each in story(reversed(made))]

    assert [each["attempts"] for each in told] == [[1, 1], [2, 3], [4, 4]]
    assert told[0]["victims"][0]["workload"] == "ReplicaSet batch-5d"
    assert told[0]["victims"][0]["endedAt"] is None


def test_a_failed_binding_is_an_attempt_of_its_own() -> None:
    placed = attempts()[-1]

    told = story([StoryAttempt(1, 1.0, placed, "conflict"), StoryAttempt(2, 2.0, placed)])

    assert [each.text for each in told] == ["binding to n failed: conflict", "placed on n"]


def test_one_placement_is_no_story() -> None:
    found = attempts()

    assert not is_story([StoryAttempt(1, 1.0, found[-1])])
    assert is_story([StoryAttempt(1, 1.0, found[0])])


def test_a_promised_node_is_said_to_be_looked_at_first() -> None:
    found = attempts()[-1]
    found.nominated, found.nodes, found.consumed = "n", 3, 0

    assert sentences.reason_for_choice(found, "first").startswith("the node was promised to it")
    assert sentences.unexamined_nodes(found) == "the other 2 nodes were not looked at"
