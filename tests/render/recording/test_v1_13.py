"""Decisions in the format of recordings of v1.13."""

from __future__ import annotations

from builders import node, objects, pod, profile, simulation
from podium.render.recording.v1_13 import scenario

RULES = profile()
LOW = pod("low", node="a", requests={"cpu": "1"})
VIP = pod("vip", requests={"cpu": "1"}, priority=5)


def test_a_scenario_holds_objects_pods_and_steps() -> None:
    world = objects(LOW, node("a", cpu="1"))
    run = simulation(node("a", cpu="1"), LOW, profile=RULES)
    steps = list(run.run([VIP], recording=True))

    made = scenario(world, [VIP], steps, RULES)

    assert [each["kind"] for each in made["objects"]] == ["Node", "Pod"]
    assert made["objects"][0]["apiVersion"] == "v1"
    assert made["pending"][0]["spec"]["priority"] == 5
    assert [step["attempt"] for step in made["expected"]["steps"]] == [1, 2]
    assert "priorities" not in made["expected"]
