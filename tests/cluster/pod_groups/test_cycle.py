"""The cycle of a pod group against a plain model of its description."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import node
from cluster.pod_groups.groups import group, member, simulation
from podium.cluster.simulation import Simulation
from podium.engine.framework.group_decision import GroupDecision
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import PodGroup
from view_snapshot import snapshot


def decided(made: Simulation, of: PodGroup, pods: list[Pod]) -> GroupDecision:
    made.groups.expect(pods)
    return made.answered(made.groups.cycle.run(of, pods))


def content(made: Simulation) -> dict[str, object]:
    """The cluster as plain values; that rows were changed and changed back may be noted."""
    found = snapshot(made.cache.columns)
    del found["journal"]
    return found


@dataclass
class Modelled:
    """What the description says of a group, worked out pod by pod."""

    nodes: dict[str, str]
    tried: list[str]
    succeeds: bool


def modelled(cluster: list[object], pods: list[Pod], minimum: int, running: int) -> Modelled:
    """Place one pod after the other in a cluster of its own, and count as the text says.

    A pod that does not fit ends the cycle only if the minimum cannot be reached any more.
    """
    made = simulation(*cluster, together=False)  # type: ignore[arg-type]
    scheduled, remaining = running, len(pods)
    found = Modelled({}, [], succeeds=False)
    if scheduled + remaining < minimum:
        return found
    for pod in pods:
        decision = made.attempt(pod)
        found.tried.append(pod.key)
        remaining -= 1
        if decision.node is not None:
            made.place(pod, decision)
            found.nodes[pod.key] = decision.node
            scheduled += 1
        if scheduled + remaining < minimum:
            break
    found.succeeds = scheduled >= minimum and bool(found.nodes)
    return found


@given(seed=st.integers(0, 2**32), gang=st.booleans())
def test_a_group_is_scheduled_as_the_description_says(seed: int, *, gang: bool) -> None:
    random = Random(seed)  # noqa: S311  not a secret
    nodes: list[object] = [
        node(f"n{n}", cpu=str(random.randint(1, 4))) for n in range(random.randint(1, 4))
    ]
    running = [
        member(f"r{n}", node=f"n{random.randrange(len(nodes))}", cpu="500m")
        for n in range(random.randint(0, 2))
    ]
    pods = [
        member(f"a{n}", cpu=f"{random.choice((500, 1000, 2000, 3000))}m")
        for n in range(random.randint(1, 5))
    ]
    of = group(minimum=random.randint(1, 6) if gang else None)
    cluster = [*nodes, *running, of]
    made = simulation(*cluster)  # type: ignore[arg-type]
    before = content(made)

    found = decided(made, of, pods)

    wanted = modelled(cluster, pods, of.min_count, len(running))
    placed = {each.pod.key: each.node for each in found.members if each.node is not None}
    assert (found.code == "Success") is wanted.succeeds
    assert placed == (wanted.nodes if wanted.succeeds else {})
    assert [each.pod.key for each in found.members] == [pod.key for pod in pods]
    assert [each.pod for each in found.attempt.decisions] == wanted.tried  # type: ignore[union-attr]
    # Never below the minimum, and nothing is left of what was assumed.
    assert not placed or len(placed) + len(running) >= of.min_count
    assert content(made) == before
    undone = {} if wanted.succeeds else wanted.nodes
    assert dict(found.undone) == undone


@given(seed=st.integers(0, 2**32))
def test_victims_make_room_and_no_fewer_would(seed: int) -> None:
    random = Random(seed)  # noqa: S311  not a secret
    nodes = [node(f"n{n}", cpu="4") for n in range(random.randint(1, 3))]
    low = [
        member(f"v{n}", "low", node=f"n{n % len(nodes)}", cpu="1", priority=random.choice((0, 5)))
        for n in range(random.randint(1, 8))
    ]
    whole = random.random() < 0.5
    victims = group("low", 1, priority=random.choice((0, 5)), evict_all=whole)
    pods = [member(f"a{n}", cpu="2", priority=10) for n in range(random.randint(1, 4))]
    of = group(minimum=random.randint(1, len(pods)), priority=10)
    made = simulation(*nodes, *low, of, victims)
    before = content(made)

    found = decided(made, of, pods)

    assert content(made) == before
    if found.preemption is None:
        return
    if whole:
        assert len(found.preemption.pods) in {0, len(low)}
    for uid in found.preemption.uids:
        made.remove(uid)
    again = decided(
        made, of, [made.renominated(p, found.preemption.nominated.get(p.uid)) for p in pods]
    )
    assert again.code == "Success"


def test_pods_that_fitted_tell_of_the_group_and_the_others_of_themselves() -> None:
    of = group(minimum=3)
    made = simulation(node("n1", cpu="1"), of)
    pods = [member(f"a{n}", cpu="1") for n in range(3)]

    found = decided(made, of, pods)

    fitted, failed, untried = found.members
    counted = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    nothing = "pod group preemption: No preemption victims found for incoming preemptor"
    assert fitted.message == f"pod group is unschedulable, {counted}, {nothing}"
    assert failed.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert untried.message == counted
    assert found.message == f"{counted}, {nothing}"
    assert found.undone == (("default/a0", "n1"),)


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        (
            [member("a", priority=5)],
            (
                "all pods in a single pod group should have the same priority as the pod group's "
                "priority, got 5 and 0"
            ),
        ),
        (
            [member("a"), member("b", scheduler="other")],
            (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                'got: "other" and "default-scheduler"'
            ),
        ),
        (
            [member("a", scheduler="other")],
            'profile not found for scheduler name "other"',
        ),
    ],
    ids=["another priority", "two schedulers", "a scheduler without a profile"],
)
def test_what_pods_of_a_group_must_share(pods: list[Pod], message: str) -> None:
    of = group(minimum=1)
    made = simulation(node("n1"), of)

    found = decided(made, of, pods)

    assert (found.code, found.queue_code, found.message) == ("Error", "Error", message)
    assert {each.message for each in found.members} == {message}
    assert {each.nomination for each in found.members} == {""}


def test_what_is_left_of_a_scheduled_group_is_tried_again_and_may_preempt() -> None:
    of = group(minimum=1, priority=10)
    low = member("v", "", node="n1", cpu="1")
    made = simulation(node("n1", cpu="2"), low, of)
    pods = [member(f"a{n}", cpu="1", priority=10) for n in range(2)]

    steps = list(made.run(pods))

    assert [(step.pod.name, step.decision.node) for step in steps] == [
        ("a0", "n1"),
        ("a1", None),
        ("a1", None),
        ("a1", "n1"),
    ]


@pytest.mark.parametrize("after", ["retry", "terminate"])
def test_a_group_is_tried_again_once_where_its_victims_stay(after: str) -> None:
    low = member("v", "", node="n1", cpu="2")
    made = simulation(node("n1", cpu="2"), low, group(minimum=2, priority=10))
    made.after_preemption = after
    pods = [member(f"a{n}", cpu="1", priority=10) for n in range(2)]

    steps = list(islice(made.run(pods), 20))

    assert [step.pod.name for step in steps] == ["a0", "a1", "a0", "a1"]
    assert [step.decision.node for step in steps[-2:]] == (
        ["n1", "n1"] if after == "retry" else [None, None]
    )


def test_a_gated_pod_holds_its_group_and_a_missing_group_its_pods() -> None:
    gated = member("a", gates=["later"])
    made = simulation(node("n1"), group(minimum=1))

    held = [step.decision.held for step in made.run([gated, member("b"), member("c", "absent")])]

    assert [each.reason for each in held if each is not None] == [
        "waiting for scheduling gates: [later]",
        "waiting for scheduling gates: [later]",
        'waiting for pods\'s pod group "absent" to appear in scheduling queue',
    ]


@pytest.mark.parametrize(
    ("priority", "nodes"),
    [
        # As kube-scheduler finds no priority of the nominated pod, which is not in its queue.
        pytest.param(10, ["n1", None], id="it does not count"),
        # It takes the last place for a pod on the node, and no more than that.
        pytest.param(0, [None, "n1"], id="it takes up a place"),
        pytest.param(-1, [None, "n1"], id="its priority is 0"),
    ],
)
def test_a_nomination_within_the_group(priority: int, nodes: list[str | None]) -> None:
    of = group(minimum=1, priority=priority)
    made = simulation(node("n1", cpu="4", pods="1"), of)
    pods = [member(f"a{n}", cpu="1", priority=priority) for n in range(2)]
    pods[1] = made.renominated(pods[1], "n1")

    found = decided(made, of, pods)

    assert [each.node for each in found.members] == nodes


def test_a_nomination_within_the_group_asks_for_nothing() -> None:
    of = group(minimum=1)
    made = simulation(node("n1", cpu="2"), of)
    pods = [member(f"a{n}", cpu="2") for n in range(2)]
    pods[1] = made.renominated(pods[1], "n1")
    other = member("b", "", cpu="1")

    found = decided(made, of, pods)

    assert [each.node for each in found.members] == ["n1", None]
    # When the group is not tried any more, its pods count as they are.
    assert made.attempt(other).node is None
