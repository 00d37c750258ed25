"""Another scheduler judged in hindsight: bindings are late, refused and in another order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest

from builders import node, pod, selector, term
from builders_v1_36 import HARD, HOST, SOFT, ZONE, spec_with, spread
from past.judge.other_scheduler import OtherScheduler
from past.judge.other_scheduler import judged as judged_by
from podium.engine.framework.profile import Profile
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.past.judge.agreement import AS_GOOD, DIFFERENT, OTHER_ORDER, SAME, Agreement, Judgement
from podium.past.judge.ahead import LISTED, UNKNOWN
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from scheduler.fakes import PROFILES, VERSIONS

Make = Callable[[int, Random], Pod]
WEB = {"app": "web"}


def plain(number: int, dice: Random, **more: Any) -> Pod:
    cpu = dice.choice(["100m", "300m"])
    return pod(f"p{number:04}", uid=f"u{number}", labels=WEB, requests={"cpu": cpu}, **more)


def spread_out(number: int, dice: Random) -> Pod:
    constraints = [
        spread(ZONE, 1, selector(WEB), when=HARD),
        spread(HOST, 1, selector(WEB), when=SOFT),
    ]
    return spec_with(plain(number, dice), topology_spread_constraints=constraints)


def apart(number: int, dice: Random) -> Pod:
    """Pods of one of twelve groups keep apart from each other."""
    group = {"group": str(number % 12)}
    return pod(f"p{number:04}", uid=f"u{number}", labels=group, anti=[term(group, HOST)])


def together(number: int, dice: Random) -> Pod:
    """Pods of one of six groups go where the first one is."""
    group = {"group": str(number % 6)}
    made = pod(f"p{number:04}", uid=f"u{number}", labels=group, requests={"cpu": "100m"})
    wanted = [term(group, ZONE)]
    return spec_with(made, affinity=pod("a", affinity=wanted, labels=group).spec.affinity)


def preferring(number: int, dice: Random) -> Pod:
    wanted = [(dice.choice([1, 50]), term(WEB, HOST))]
    if number % 2:
        return plain(number, dice, prefers=wanted)
    return plain(number, dice, avoids=wanted)


def ranked(number: int, dice: Random) -> Pod:
    """Large pods of several priorities: later ones overtake, and evict."""
    made = pod(f"p{number:04}", uid=f"u{number}", labels=WEB, requests={"cpu": "1500m"})
    return spec_with(made, priority=dice.choice([0, 0, 0, 100, 1000]))


KINDS: dict[str, Make] = {
    "plain": plain,
    "spread": spread_out,
    "anti-affinity": apart,
    "affinity": together,
    "preferred": preferring,
    "priorities and preemption": ranked,
}


def burst(other: OtherScheduler, make: Make, *, nodes: int, pods: int) -> None:
    """Nodes in three zones, and pods that come faster than they are decided."""
    for number in range(nodes):
        labels = {ZONE: f"z{number % 3}", HOST: f"n{number}"}
        other.put(node(f"n{number}", cpu=4, memory="16Gi", labels=labels))
    other.burst([make(number, other.dice) for number in range(pods)])


def judged(other: OtherScheduler, profile: Profile | None = None) -> Agreement:
    """The placements of the other scheduler, by its own rules or by other ones."""
    return judged_by(other, profile or dataclasses.replace(other.profile, ties="first"))


def placements(other: OtherScheduler) -> int:
    """How many bindings the API server has shown."""
    pods = [
        (change.old, change.new)
        for change in other.log
        if isinstance(change.old, Pod) and isinstance(change.new, Pod)
    ]
    return sum(bool(new.spec.node_name and not old.spec.node_name) for old, new in pods)


@pytest.mark.parametrize(
    ("kind", "version"),
    # v1.13 has no spread constraints.
    [each for each in product(KINDS, VERSIONS) if each != ("spread", "v1.13")],
)
def test_a_scheduler_with_the_same_rules_agrees(kind: str, version: str) -> None:
    profile, behaviour = PROFILES[version]
    other = OtherScheduler(profile, behaviour, 1)
    burst(other, KINDS[kind], nodes=30, pods=150)

    found = judged(other)

    assert found.pods == placements(other) > 50
    assert [each.as_json() for each in found.differences if each.kind == DIFFERENT] == []
    assert found.undecided == 0
    if kind != "priorities and preemption":
        assert found.counts[OTHER_ORDER] == 0
        assert found.counts[SAME] + found.counts[AS_GOOD] == found.pods


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_history_ends_before_is_not_held_against_anyone(kind: str) -> None:
    """The end is cut off while pods are decided: where some of them went is not known."""
    other = OtherScheduler(*PROFILES["v1.37"], 1)
    burst(other, KINDS[kind], nodes=12, pods=60)
    whole, unknown = list(other.log), 0

    for end in range(30, len(whole), 23):
        other.log = whole[:end]
        found = judged(other)
        assert [each.as_json() for each in found.differences if each.kind == DIFFERENT] == []
        unknown += found.undecided

    assert unknown


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [2, 15])
def test_bindings_that_take_seconds_are_another_order(version: str, seed: int) -> None:
    """Pods are evicted before they are bound, and placed where the judge sees no reason yet."""
    profile, behaviour = PROFILES[version]
    other = OtherScheduler(profile, behaviour, seed, slowest=2.0)
    burst(other, ranked, nodes=30, pods=150)

    found = judged(other)

    assert found.pods == placements(other) > 50
    assert found.counts[DIFFERENT] == 0
    assert found.counts[OTHER_ORDER] > 0


def test_nominations_that_were_seen_later_do_not_count() -> None:
    """A pod that was never bound counted on a node, and a later nomination hid it."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(profile, behaviour, 19)
    burst(other, ranked, nodes=30, pods=150)

    found = judged(other)

    assert found.pods == placements(other) > 50
    assert found.counts[DIFFERENT] == 0


@pytest.mark.parametrize("kind", ["plain", "spread"])
def test_bindings_that_are_refused_are_another_order(kind: str) -> None:
    """Where such a pod counted before it was refused cannot be seen."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(profile, behaviour, 2, refused=0.01)
    burst(other, KINDS[kind], nodes=30, pods=150)

    found = judged(other)

    assert found.pods == placements(other)
    assert found.counts[DIFFERENT] == 0


def without_scores(profile: Profile) -> Profile:
    """Rules that place everything anywhere it fits."""
    return dataclasses.replace(profile, priorities=profile.priorities[:1])


def test_other_rules_are_recognised() -> None:
    """Of the placements that its own rules find best and Podium's do not, nearly all are named."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(without_scores(profile), behaviour, 4)
    burst(other, plain, nodes=30, pods=200)
    own = judged(other, without_scores(profile))

    found = judged(other, profile)

    assert own.counts[DIFFERENT] == 0
    assert found.pods == 200
    assert found.counts[OTHER_ORDER] <= found.counts[DIFFERENT] // 20
    assert found.counts[DIFFERENT] > 50
    assert found.details["lower"] == found.counts[DIFFERENT]


def delete_placed(other: OtherScheduler, key: str) -> None:
    known = other.pod(key)
    if known is not None and known.spec.node_name:
        other.delete("Pod", key)


@pytest.mark.parametrize("seed", [6, 8])
def test_nodes_and_pods_that_change_meanwhile_are_another_order(seed: int) -> None:
    """Eighty changes during a burst: nodes cordoned and uncordoned, placed pods deleted."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(profile, behaviour, seed)
    for number in range(40):
        at = other.now + 0.01 + number * 0.01
        name = f"n{other.dice.randrange(30)}"
        item = node(name, cpu=4, labels={ZONE: "z0", HOST: name}, unschedulable=number % 2 == 0)
        other.at(at, lambda item=item: other.put(item))  # type: ignore[misc]
        key = f"default/p{other.dice.randrange(100):04}"
        other.at(at + 0.15, lambda key=key: delete_placed(other, key))  # type: ignore[misc]
    burst(other, spread_out, nodes=30, pods=200)

    found = judged(other)

    assert found.pods == placements(other) > 150
    assert found.counts[DIFFERENT] == 0
    assert 0 < found.counts[OTHER_ORDER] < found.pods // 2


def by_name(items: list[Object]) -> None:
    items.sort(key=lambda item: item.key)


def started_late(kind: str, seed: int, listed: Callable[[list[Object]], None]) -> OtherScheduler:
    """A scheduler that starts long after the pods came; in which order they are listed is given."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(profile, behaviour, seed, started=False)
    other.at(other.now + 60, lambda: other.start(listed))
    numbers = list(range(150))
    other.dice.shuffle(numbers)

    def make(number: int, dice: Random) -> Pod:
        return KINDS[kind](numbers[number], dice)

    burst(other, make, nodes=30, pods=150)
    return other


@pytest.mark.parametrize("kind", ["plain", "spread"])
def test_pods_that_were_there_before_a_scheduler_started_are_taken_as_listed(kind: str) -> None:
    other = started_late(kind, 1, by_name)

    found = judged(other)

    assert found.pods == placements(other) == 150
    assert found.counts[DIFFERENT] == 0
    assert found.counts[OTHER_ORDER] > 100
    said = [each.why[0] for each in found.differences if each.kind == OTHER_ORDER]
    assert LISTED in said


def test_pods_that_were_listed_in_no_order_are_taken_as_they_are_bound() -> None:
    """API servers before v1.27 list pods in no order."""
    shuffle = Random(3).shuffle  # noqa: S311  a seed
    other = started_late("plain", 2, shuffle)

    found = judged(other)

    assert found.pods == placements(other) == 150
    assert found.counts[DIFFERENT] <= 1
    said = [each.why[0] for each in found.differences if each.kind == OTHER_ORDER]
    assert UNKNOWN in said


def test_a_pod_is_not_waited_for_while_more_and_more_changes_come() -> None:
    """One binding never comes: what waits behind it is bounded, and nobody is accused."""
    profile, behaviour = PROFILES["v1.37"]
    other = OtherScheduler(profile, behaviour, 3)
    burst(other, plain, nodes=10, pods=60)
    silent = [
        change for change in other.log if change.new is None or change.new.key != "default/p0005"
    ]
    first = next(change for change in other.log if change.new and change.new.key == "default/p0005")
    reports: list[Judgement] = []
    rules = Rules({profile.scheduler_name: profile}, behaviour)
    judge = Judge(rules, reports.append, most_ahead=8)

    most = 0
    for change in sorted([first, *silent], key=other.log.index):
        judge.feed(change)
        judge.advance()
        most = max(most, judge.ahead)

    assert most == 8
    judge.finish()
    assert len(reports) == 59
    assert all(each.comparison is None or each.comparison.kind != DIFFERENT for each in reports)
    assert judge.waiting == 1


@pytest.mark.parametrize("ties", ["round-robin", "random:1"])
def test_judging_leaves_the_rule_for_ties_where_it_is(ties: str) -> None:
    profile, behaviour = PROFILES["v1.37"]
    profile = dataclasses.replace(profile, ties=ties)
    other = OtherScheduler(profile, behaviour, 1)
    other.put(pod("p", uid="p"))
    for number in range(20):
        other.put(node(f"n{number}", cpu=4))
    judge = Judge(Rules({profile.scheduler_name: profile}, behaviour), lambda _: None)
    for change in other.log:
        judge.feed(change)
    judge.advance()

    found = {judge.cluster.decided(pod("q")).node for _ in range(10)}

    assert len(found) == 1
