"""A decision that is made twice, from kept answers and without any, and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from builders import node, nodes, pod
from builders_v1_36 import DEFAULT
from cluster.unnoted_rule import CLOSED, with_closed
from podium.cluster.simulation import Simulation, no_extenders
from podium.cluster.verification import Discrepancy, Verification
from podium.engine.framework.extenders import Extender, Filtered
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import ReserveRule
from podium.engine.preemption.kept_victims import KeptVictims
from podium.engine.state.reservation import Reservation
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.build import Options, from_provider

CLASSIC = from_provider("DefaultProvider", Options())
BOTH = pytest.mark.parametrize("profile", [CLASSIC, DEFAULT], ids=["v1.13", "v1.36"])


def verified(
    profile: Profile,
    verification: Verification,
    ground: Sequence[Node] = (),
    answer: Callable[[Any], Any] = no_extenders,
) -> Simulation:
    made = Simulation(profile, verification=verification, answer=answer)
    for each in ground or nodes(4):
        made.cache.put_node(each)
    return made


def place(made: Simulation, *pods: Pod) -> list[str | None]:
    """Decide about pods in turn, and place each."""
    placed = []
    for each in pods:
        decision = made.attempt(each)
        if decision.node is not None:
            made.place(each, decision)
        placed.append(decision.node)
    return placed


def like(*names: str, **options: Any) -> list[Pod]:
    return [pod(name, **options) for name in names]


# Without a fault ----------------------------------------------------------------------------------


@BOTH
def test_one_attempt_in_n_is_decided_both_ways(profile: Profile) -> None:
    verification = Verification(3)
    place(verified(profile, verification), *like(*"abcdefgh"))

    assert (verification.compared, verification.differing) == (2, 0)


def test_zero_verifies_nothing() -> None:
    verification = Verification(0)
    place(verified(DEFAULT, verification), *like(*"abc"))

    assert verification.compared == 0


@pytest.mark.parametrize("ties", ["round-robin", "first", "random:7"])
def test_decisions_are_those_without_verification(ties: str) -> None:
    profile = replace(DEFAULT, ties=ties)
    pods = like(*"abcdefghij")

    with_it = place(verified(profile, Verification(1)), *pods)
    without = place(verified(profile, Verification(0)), *pods)

    assert with_it == without


def test_extenders_are_asked_once() -> None:
    extender = Extender("http://x", filter_verb="filter")
    asked = []

    def answer(question: Any) -> Filtered:
        asked.append(question)
        return Filtered(question.nodes[:1])

    verification = Verification(1)
    made = verified(replace(DEFAULT, extenders=(extender,)), verification, answer=answer)

    place(made, *like(*"ab"))

    assert len(asked) == verification.compared == 2
    assert verification.differing == 0


class Pool(ReserveRule):
    """Hands out the numbers of a pool that it keeps itself."""

    name = "Pool"

    def __init__(self) -> None:
        self.free = [1, 2, 3]
        self.undone: list[object] = []

    def reserve(self, pod: object, at: object) -> Reservation:
        return FromPool(self.free.pop(0), self)


class FromPool(Reservation, frozen=True):
    """A number of the pool."""

    number: int
    pool: Pool

    def undo(self, pod: str, node: str) -> None:
        self.pool.free.insert(0, self.number)
        self.pool.undone.append(self.number)


def test_what_was_reserved_is_given_back_before_the_rule_is_asked_again() -> None:
    pool, verification = Pool(), Verification(1)
    made = verified(replace(DEFAULT, reserves=(pool,)), verification)

    decision = made.attempt(pod())

    assert verification.differing == 0
    assert decision.reservations == {"Pool": FromPool(1, pool)}
    assert (pool.free, pool.undone) == ([2, 3], [1])


# With a fault -------------------------------------------------------------------------------------


@BOTH
def test_a_wrong_kept_answer_is_found_reported_and_dropped(profile: Profile) -> None:
    profile, rule = with_closed(profile)
    reported: list[Discrepancy] = []
    verification = Verification(4, reported.append)
    made = verified(profile, verification, [node("big", cpu=64), node("small", cpu=4)])
    pods = like(*"abcdef", requests={"cpu": "1"})
    assert place(made, *pods[:3]) == ["big"] * 3

    rule.nodes.add("big")
    verified_one, after = place(made, pods[3], pods[4])

    assert (verified_one, after) == ("small", "small")
    assert (verification.compared, verification.differing) == (1, 1)
    [difference] = reported
    assert difference.pod is pods[3]
    assert (difference.kept.node, difference.plain.node) == ("big", "small")
    assert {each.field for each in difference.fields} >= {"node", "verdict of big", "rejections"}
    text = str(difference)
    assert "pod default/d by default-scheduler" in text
    assert "attempt 3, journal" in text
    assert f"verdict of big: fits instead of Closed ({CLOSED})" in text
    assert "node: big instead of small" in text
    assert difference.plain.differences == tuple(map(str, difference.fields))


def test_totals_and_best_nodes_are_compared() -> None:
    profile, rule = with_closed(DEFAULT)
    verification = Verification(4)
    made = verified(profile, verification, nodes(3))
    place(made, *like(*"abc"))

    rule.nodes.add("n001")
    made.attempt(pod("d"))

    [difference] = verification.found
    found = {each.field: each for each in difference.fields}
    assert found["best nodes"].kept != found["best nodes"].plain
    assert found["total of n001"].plain == "none"


def test_wrong_victims_are_found() -> None:
    verification = Verification(4)
    made = verified(DEFAULT, verification, [node("a", cpu=2), node("b", cpu=2)])
    for name in ("a", "b"):
        made.cache.add_pod(pod(f"on-{name}", node=name, requests={"cpu": "2"}, priority=1))
    wanted = like(*"pqrs", requests={"cpu": "2"}, priority=5)
    with patch.object(KeptVictims, "refresh", lambda _: None):
        for each in wanted[:3]:
            made.attempt(each)
        made.remove("default/on-a")
        made.cache.add_pod(pod("other", node="a", requests={"cpu": "2"}, priority=4))

        decision = made.attempt(wanted[3])

    [difference] = verification.found
    assert "victims on a" in {each.field for each in difference.fields}
    assert decision.preemption is not None
    assert decision.preemption.node == "b"
