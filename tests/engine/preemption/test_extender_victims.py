"""Extenders that change the candidates and victims of preemption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import budget, decided, node, pod, profile, selector, view
from podium.engine.framework.decision import Preemption
from podium.engine.framework.extenders import AcceptedVictims, AskVictims, Extender, Failure
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.generations.v1_13 import V1_13
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

GPU = "example.com/gpu"
Reply = AcceptedVictims | Failure


def preempts(name: str, **options: Any) -> Extender:
    protocol = V1_13.extenders
    return Extender(f"http://{name}", preempt_verb="preempt", protocol=protocol, **options)


def low(name: str, where: str, priority: int = 1, **more: Any) -> Pod:
    return pod(name, uid=name, node=where, priority=priority, requests={"cpu": 1}, **more)


#: Two nodes with two pods each; one of them must go from either.
GROUND: tuple[Object, ...] = (
    node("a", cpu=2),
    node("b", cpu=2),
    low("a1", "a", 3),
    low("a2", "a", 1),
    low("b1", "b", 4),
    low("b2", "b", 2),
)
WANTED = pod("high", priority=9, requests={"cpu": 1})


class World:
    """Answers for extenders, and remembers which victims they were shown."""

    def __init__(self, **replies: Reply | Callable[[AskVictims], Reply]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, dict[str, tuple[str, ...]]]] = []

    def __call__(self, question: AskVictims) -> Reply:
        name = question.extender.url_prefix.removeprefix("http://")
        shown = {where: question.candidates[where].uids for where in question.candidates}
        self.asked.append((name, shown))
        reply = self.replies[name]
        return reply(question) if callable(reply) else reply


def kept(**victims: tuple[str, ...]) -> AcceptedVictims:
    """A reply that names victims per node."""
    return AcceptedVictims({name: (uids, 0) for name, uids in victims.items()})


def preempted(
    world: World, *extenders: Extender, ground: tuple[Object, ...] = GROUND, wanted: Pod = WANTED
) -> Preemption:
    rules = profile(GeneralPredicates(), extenders=extenders)
    found = decided(view(*ground), wanted, rules, answer=world).preemption
    assert found is not None
    return found


def test_without_extenders_the_least_important_victim_decides() -> None:
    found = preempted(World())

    assert found.node == "a"
    assert found.candidates["a"].uids == ("a2",)


def test_each_is_shown_what_the_one_before_left() -> None:
    world = World(one=kept(b=("b2",)), two=kept(b=("b2",)))

    found = preempted(world, preempts("one"), preempts("two"))

    assert world.asked == [("one", {"a": ("a2",), "b": ("b2",)}), ("two", {"b": ("b2",)})]
    assert found.node == "b"


def test_other_victims_may_be_named() -> None:
    found = preempted(World(one=kept(a=("a1", "a2"), b=("b2",))), preempts("one"))

    assert found.candidates["a"].uids == ("a1", "a2")
    assert found.candidates["a"].priorities == (3, 1)
    # The most important victim on a is now more important than the one on b.
    assert found.node == "b"


def test_the_first_victim_of_the_reply_counts_as_the_most_important() -> None:
    found = preempted(World(one=kept(a=("a2", "a1"), b=("b2",))), preempts("one"))

    assert found.candidates["a"].uids == ("a2", "a1")
    assert found.node == "a"


def test_violations_are_forgotten_once_an_extender_was_asked() -> None:
    ground = (
        node("a", cpu=1),
        node("b", cpu=1),
        low("a2", "a", 1, labels={"app": "x"}),
        low("b2", "b", 2),
        budget("used-up", selector({"app": "x"})),
    )

    alone = preempted(World(), ground=ground)
    asked = preempted(
        World(one=AcceptedVictims({"a": (("a2",), 1), "b": (("b2",), 0)})),
        preempts("one"),
        ground=ground,
    )

    assert (alone.candidates["a"].violations, alone.node) == (1, "b")
    assert (asked.candidates["a"].violations, asked.node) == (0, "a")


def test_without_candidates_left_no_pod_is_evicted() -> None:
    world = World(one=kept(), two=kept())

    found = preempted(world, preempts("one"), preempts("two"))

    assert [name for name, _ in world.asked] == ["one"]
    assert (found.node, found.error, dict(found.candidates)) == (None, "", {})


def test_a_node_without_victims_wins() -> None:
    found = preempted(World(one=kept(a=("a2",), b=())), preempts("one"))

    assert found.node == "b"
    assert found.candidates["b"].pods == ()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(Failure("timeout"), "timeout", id="a failure"),
        pytest.param(
            kept(a=("a2",), b=("gone",)),
            "extender: http://one claims to preempt pod (UID: gone) on node: b, "
            "but the pod is not found on that node",
            id="a victim that is not there",
        ),
        pytest.param(
            kept(a=("b1",)),
            "extender: http://one claims to preempt pod (UID: b1) on node: a, "
            "but the pod is not found on that node",
            id="a victim that is elsewhere",
        ),
    ],
)
def test_errors(reply: Reply, error: str) -> None:
    strict = preempted(World(one=reply, two=kept()), preempts("one"), preempts("two"))
    ignored = preempted(World(one=reply), preempts("one", ignorable=True))

    assert (strict.node, strict.error) == (None, error)
    assert (ignored.node, ignored.error) == ("a", "")


def test_extenders_without_the_verb_or_the_resource_are_not_asked() -> None:
    world = World()
    bystanders = (
        Extender("http://filter", bind_verb="bind"),
        preempts("gpu", managed_resources=frozenset({GPU})),
    )

    found = preempted(world, *bystanders)

    assert world.asked == []
    assert found.node == "a"


def test_no_extender_is_asked_without_candidates() -> None:
    world = World()

    found = preempted(world, preempts("one"), ground=(node("a", cpu=0),))

    assert world.asked == []
    assert found.potential == ("a",)
    assert found.node is None


def test_no_extender_is_asked_for_a_pod_that_may_not_preempt() -> None:
    world = World()
    polite = pod("polite", priority=9, requests={"cpu": 1}, preemption_policy="Never")

    found = preempted(world, preempts("one"), wanted=polite)

    assert world.asked == []
    assert found == Preemption(eligible=False)


def test_lower_nominations_are_cleared_on_the_node_that_was_left() -> None:
    ground = (*GROUND, pod("waits", nominated="b", priority=5))

    found = preempted(World(one=kept(b=("b2",))), preempts("one"), ground=ground)

    assert found.cleared == (("default/waits", "default/waits"),)
