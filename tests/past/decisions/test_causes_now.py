"""Causes of recorded decisions, found on the cluster as it is now."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from weakref import ref

import pytest
from msgspec.structs import replace

from builders import node, objects, pod
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.objects.kinds.pod import Pod
from podium.past.decisions.causes_now import Causes, causes_of, decided_on
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.render.decision.causes import cause_text
from podium.scheduler.state.cluster_copy import ClusterCopies

PROFILES = {
    "v1.13": from_provider("DefaultProvider", Options()),
    "v1.37": from_config(default_config({}), Options())[0],
}
ITEMS = (
    node("full", cpu="2"),
    node("hdd", cpu="8", labels={"disk": "hdd"}),
    node("ssd", cpu="8", labels={"disk": "ssd"}),
    node("other", cpu="8", labels={"disk": "ssd"}),
    pod("there", node="full", requests={"cpu": "2"}),
)
WANTED = pod("web", requests={"cpu": "1"}, node_selector={"disk": "ssd"})


def decided(profile: Profile, wanted: Pod) -> tuple[Simulation, Decision]:
    """A cluster, and a decision in it that is carried out."""
    simulation = Simulation(profile)
    simulation.load(objects(*ITEMS))
    decision = simulation.attempt(wanted, recording=True)
    if decision.node is not None:
        simulation.place(wanted, decision)
    return simulation, decision


def causes(
    simulation: Simulation, key: str, decision: Decision, waiting: Pod | None = None
) -> Causes:
    async def found() -> Causes:
        async with ClusterCopies(simulation).ready() as copied:
            return causes_of(copied(), key, waiting, [simulation.profile], decision)

    return asyncio.run(found())


def texts(found: Causes) -> dict[str, list[str]]:
    """Node -> its causes in words."""
    by_node: dict[str, list[str]] = {}
    for each in found.rejections:
        for name in each.nodes:
            by_node.setdefault(name, []).append(cause_text(each.cause))
    return by_node


@pytest.mark.parametrize("generation", PROFILES)
def test_a_placed_pod_is_explained_without_itself(generation: str) -> None:
    simulation, decision = decided(PROFILES[generation], WANTED)

    found = causes(simulation, "default/web", decision)

    assert decision.node in {"ssd", "other"}
    assert texts(found)["hdd"] == ["nodeSelector: disk In [ssd]: the node has hdd"]
    assert {one.node for each in found.scores for one in each.nodes} == {"ssd", "other"}
    assert all(each.formula for each in found.scores)


@pytest.mark.parametrize("generation", PROFILES)
def test_what_is_not_as_it_was_has_no_cause(generation: str) -> None:
    simulation, decision = decided(PROFILES[generation], WANTED)
    simulation.cache.put_node(node("hdd", cpu="8", labels={"disk": "ssd"}))
    later = pod("later", node="ssd", requests={"cpu": "5"})
    simulation.cache.add_pod(later)

    found = causes(simulation, "default/web", decision)

    assert "hdd" not in texts(found)
    assert "full" in texts(found)
    fit = [
        each
        for each in found.scores
        if each.priority in {"LeastRequestedPriority", "NodeResourcesFit"}
    ]
    assert {one.node for each in fit for one in each.nodes} == {"other"}


@pytest.mark.parametrize("generation", PROFILES)
def test_a_pod_that_waits_is_explained_on_a_copy(generation: str) -> None:
    big = pod("big", requests={"cpu": "9"}, priority=5)
    simulation, decision = decided(PROFILES[generation], big)

    found = causes(simulation, "default/big", decision, big)
    found.add_to(decision)

    assert texts(found)["full"] == ["cpu: wants 9, 0 free of 2 (2 used)"]
    assert decision.causes == found.rejections
    assert found.preemption is not None


@pytest.mark.parametrize("generation", PROFILES)
def test_a_copy_has_the_nominated_pods(generation: str) -> None:
    """Without the nomination the pod would fit there, and the rejection would have no cause."""
    simulation, _ = decided(PROFILES[generation], WANTED)
    urgent = pod("urgent", requests={"cpu": "8"}, priority=10)
    for name in ("hdd", "ssd", "other"):
        simulation.nominate(replace(urgent, metadata=replace(urgent.metadata, uid=name)), name)
    later = pod("later", requests={"cpu": "1"})
    decision = simulation.decider.look(later, PROFILES[generation])

    found = causes(simulation, "default/later", decision, later)

    assert decision.node is None
    assert set(texts(found)) == {"full", "hdd", "ssd", "other"}
    assert found.trace is not None


@pytest.mark.parametrize("generation", PROFILES)
def test_a_pod_of_the_same_name_has_other_causes(generation: str) -> None:
    simulation, decision = decided(PROFILES[generation], WANTED)
    decision.uid = "another"

    assert causes(simulation, "default/web", decision) == Causes()


@pytest.mark.parametrize("ties", ["round-robin", "random:7", "first", "kube-scheduler"])
def test_a_tie_is_broken_on_a_copy_as_the_next_decision_breaks_it(ties: str) -> None:
    profile = dataclasses.replace(PROFILES["v1.37"], ties=ties)
    simulation = Simulation(profile)
    simulation.load(objects(*(node(f"n{number}") for number in range(9))))
    wanted = pod("web")

    async def on_a_copy() -> str | None:
        async with ClusterCopies(simulation).ready() as copied:
            return decided_on(copied(), wanted, [profile])[0].node

    for _ in range(9):
        told = asyncio.run(on_a_copy())
        assert simulation.attempt(wanted).node == told


def test_a_simulation_is_freed_when_it_is_dropped() -> None:
    """Left to the collection of garbage, each answer to a reader would hold up decisions."""
    simulation, _ = decided(PROFILES["v1.37"], WANTED)
    alive = ref(simulation)
    gc.disable()
    try:
        del simulation
        assert alive() is None
    finally:
        gc.enable()
