"""A simulated cluster without other actors: node order, cursors, nominations, retries."""

from __future__ import annotations

import pytest

from builders import ZONE, node, objects, pod, profile, simulation
from builders_v1_36 import spec_with
from podium.cluster.simulation import Simulation
from podium.engine.rules.nodes import EqualPriority
from podium.generations.known import GENERATIONS
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import SchedulingGate
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options

CPU = {"cpu": 1}


def zoned(*names: str, cpu: int = 4) -> list[Node]:
    """Nodes whose first letter is their zone."""
    return [node(name, labels={ZONE: name[0]}, cpu=cpu) for name in names]


def looked_at(made: Simulation, **options: object) -> str:
    """The nodes in the order in which the next pod looks at them."""
    decision = made.attempt(pod("q", **options), recording=True)  # type: ignore[arg-type]
    return " ".join(decision.examined)


UNEVEN = ("a1", "a2", "a3", "b1", "c1", "c2")

# Turns --------------------------------------------------------------------------------------------


def test_zones_take_turns_and_every_pod_starts_at_the_beginning() -> None:
    made = simulation(*zoned(*UNEVEN))

    assert looked_at(made) == "a1 b1 c1 a2 c2 a3"
    assert looked_at(made) == "a1 b1 c1 a2 c2 a3"


def test_nodes_without_zone_are_a_zone_of_their_own() -> None:
    made = simulation(*zoned("a1", "a2"), node("x"), node("y"))

    assert looked_at(made) == "a1 x a2 y"


def test_a_node_that_comes_later_shifts_the_turns_for_good() -> None:
    made = simulation(*zoned("a1", "a2"))
    looked_at(made)

    made.cache.put_node(zoned("a3")[0])

    assert looked_at(made) == "a3 a1 a2"
    assert looked_at(made) == "a3 a1 a2"


def test_a_node_that_comes_later_may_be_met_twice_and_another_not_at_all() -> None:
    made = simulation(*zoned(*UNEVEN))
    looked_at(made)

    made.cache.put_node(zoned("b2")[0])

    assert looked_at(made) == "b2 a1 b1 c1 a2 b2 c2"
    assert looked_at(made) == "a3 a1 b1 c1 a2 b2 c2"


def test_a_node_met_twice_counts_once_and_one_not_met_may_be_freed() -> None:
    made = simulation(*zoned(*UNEVEN, cpu=1), *(pod(f"l{n}", node=n, requests=CPU) for n in UNEVEN))
    made.attempt(pod("q", requests=CPU))
    made.cache.put_node(zoned("b2", cpu=0)[0])

    decision = made.attempt(pod("q", requests=CPU, priority=1), recording=True)

    # a3 was not looked at, b2 twice.
    assert list(decision.examined).count("b2") == 2
    assert decision.message == "0/7 nodes are available: 6 Insufficient cpu."
    assert decision.preemption is not None
    assert sorted(decision.preemption.potential) == ["a1", "a2", "a3", "b1", "b2", "c1", "c2"]
    assert sorted(decision.preemption.candidates) == ["a1", "a2", "a3", "b1", "c1", "c2"]


def test_a_feasible_node_met_twice_may_be_chosen_twice() -> None:
    made = simulation(*zoned(*UNEVEN), profile=profile(priorities=[EqualPriority()]))
    looked_at(made)
    made.cache.put_node(zoned("b2")[0])

    decision = made.attempt(pod("q"), recording=True)

    assert list(decision.feasible) == ["b2", "a1", "b1", "c1", "a2", "b2", "c2"]
    assert decision.tied == 7


def test_a_node_that_leaves_may_hide_another_once() -> None:
    # Its zone had yielded one node; the second steps into the freed place and is passed over.
    made = simulation(*(node(f"n{i:03}") for i in range(150)), profile=profile(percentage=50))
    assert looked_at(made).startswith("n000 ")  # 101 were taken

    made.cache.drop_node(node("n000"))

    assert looked_at(made).startswith("n102 ")  # n101 has become the 101st


def test_an_update_changes_no_turn() -> None:
    made = simulation(*zoned("a1", "b1", "a2"))
    looked_at(made)

    made.cache.put_node(node("a1", labels={ZONE: "a", "new": "label"}))

    assert looked_at(made) == "a1 b1 a2"


def test_the_listed_order_knows_no_zones() -> None:
    made = simulation(*zoned("a1", "a2", "b1"), listed_order=True)

    assert looked_at(made) == "a1 a2 b1"


# One pod after the other --------------------------------------------------------------------------


def test_the_cursor_of_ties_carries_over() -> None:
    made = simulation(*(node(name) for name in "abc"))

    steps = made.run([pod(f"p{i}") for i in range(4)])

    assert [step.decision.node for step in steps] == ["a", "b", "c", "a"]


def test_an_attempt_alone_changes_only_cursors() -> None:
    made = simulation(node("a", cpu=1), node("b", cpu=1))

    decisions = [made.attempt(pod("p", requests=CPU)) for _ in range(3)]

    assert [decision.node for decision in decisions] == ["a", "b", "a"]
    assert made.cache.columns.pods.total == 0


def test_a_removed_pod_makes_room() -> None:
    made = simulation(node("n", cpu=1), pod("x", node="n", requests=CPU))
    assert made.attempt(pod("p", requests=CPU)).node is None

    made.remove("default/x")

    assert made.attempt(pod("p", requests=CPU)).node == "n"


def test_a_placed_pod_can_be_removed_too() -> None:
    made = simulation(node("n", cpu=1))
    list(made.run([pod("p", uid="u", requests=CPU)]))

    made.remove("u")

    assert made.cache.columns.pods.total == 0


def test_finished_and_waiting_pods_are_not_on_nodes() -> None:
    made = simulation(
        node("n"), pod("done", node="n", phase="Failed"), pod("waiting"), pod("runs", node="n")
    )

    assert [r.key for r in made.cache.columns.pods.residents[0]] == ["default/runs"]


def test_objects_can_be_loaded_in_parts() -> None:
    made = simulation(node("a"), pod("x", node="b"))
    assert {
        made.cache.columns.nodes.names[row] for row in made.cache.columns.pods.unknown_nodes
    } == {"b"}

    made.load(objects(node("b")))

    assert made.cache.columns.pods.unknown_nodes == set()
    assert looked_at(made) == "a b"


# Promises -----------------------------------------------------------------------------------------


def promised(made: Simulation) -> dict[str, list[str]]:
    columns = made.cache.columns
    return {
        name: [resident.key.removeprefix("default/") for resident in pods]
        for name, pods in columns.pods.nominated.items()
    }


def test_promises_are_kept_in_the_order_they_were_made() -> None:
    made = simulation(node("a"), node("b"))
    made.nominate(pod("p"), "a")
    made.nominate(pod("q"), "a")
    made.nominate(pod("r"), "b")
    assert promised(made) == {"a": ["p", "q"], "b": ["r"]}

    made.nominate(pod("p"), "a")
    assert promised(made) == {"a": ["q", "p"], "b": ["r"]}

    made.nominate(pod("q"), "b")
    made.nominate(pod("r"), "")
    assert promised(made) == {"a": ["p"], "b": ["q"]}


def test_a_promise_of_an_unknown_node_counts_once_the_node_is_there() -> None:
    made = simulation(pod("o", nominated="n", requests=CPU))

    made.load(objects(node("n", cpu=1)))

    assert made.attempt(pod("p", requests=CPU)).message == (
        "0/1 nodes are available: 1 Insufficient cpu."
    )


def test_a_promise_of_a_node_that_left_does_not_pass_to_the_node_in_its_row() -> None:
    made = simulation(node("old", cpu=1), pod("o", nominated="old", requests=CPU))

    made.cache.drop_node(node("old"))
    made.load(objects(node("new", cpu=1)))

    assert made.attempt(pod("p", requests=CPU)).node == "new"


def test_pods_that_wait_for_their_nodes_are_promised_before_anybody_is_tried() -> None:
    made = simulation(node("n", cpu=1))

    first, second = made.run([pod("p", requests=CPU), pod("q", nominated="n", requests=CPU)])

    assert first.decision.node is None
    assert second.decision.node == "n"


def test_own_promise_is_cleared_when_nothing_can_help() -> None:
    made = simulation(node("n", unschedulable=True), node("m", cpu=0))
    waiting = pod("p", nominated="n", node_selector={"none": "such"})

    [step] = made.run([waiting])

    assert step.decision.preemption is not None
    assert step.decision.preemption.cleared == (("default/p", "default/p"),)
    assert promised(made) == {}


@pytest.mark.parametrize("after", ["retry", "defer", "terminate"])
def test_a_successful_preemption_leaves_a_promise(after: str) -> None:
    low = pod("low", node="n", requests=CPU, priority=1)
    made = simulation(node("n", cpu=1), low, after_preemption=after)

    steps = made.run([pod("p", requests=CPU, priority=2)])
    next(steps)

    # The promise is made before the pod is tried again.
    retry = next(steps)
    assert retry.attempt == 2
    assert retry.pod.status.nominated_node_name == "n"
    if after == "terminate":
        assert list(steps) == []
        assert promised(made) == {"n": ["p"]}
    else:
        assert retry.decision.node == "n"


@pytest.mark.parametrize(("release", "fits"), [("v1.36", True), ("v1.37", False)])
def test_the_nomination_of_a_gated_pod_counts_from_v1_37_on(release: str, *, fits: bool) -> None:
    [chosen] = from_config(default_config(generation=GENERATIONS[release]), Options())
    made = Simulation(chosen)
    made.load(objects(node("a", cpu="2")))
    held = pod("held", requests={"cpu": "2"}, nominated="a")
    gated = spec_with(held, scheduling_gates=[SchedulingGate("g")])
    _, step = made.run([gated, pod("p", requests={"cpu": "1"})])

    assert (step.decision.node == "a") is fits
