"""Replays of recorded schedulers: every decision follows again, wherever a replay begins."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from past.judge.driver import NOON, Driver
from podium.engine.framework.decision import Decision
from podium.engine.state.reservation import Reservation
from podium.objects.kinds.devices import (
    AllocatedDevice,
    Allocation,
    ClaimMeta,
    DeviceAllocation,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from podium.objects.kinds.pod import Pod, PodResourceClaim
from podium.past.format.reading import History, SegmentStart
from podium.past.format.records import Checkpoint, Decided, Evicting, Nominated
from podium.past.format.writing import Limits
from podium.past.replay.replay import HistoryReplay, ReplayDifference, Rules, compare
from podium.scheduler.state.clock import written
from random_clusters import NODE_NAMES, OTHERS, Extremes, body_kind, node_kind, tie_kind, wish_kind
from scheduler.fakes import PROFILES, VERSIONS

#: Volumes are reserved, and a checkpoint waits for that; selectors that are broken fail attempts.
USUAL = Extremes(huge=False, broken=False, odd_volumes=False)
MANY = 1 << 30
#: How long devices may take to be prepared.
BINDING_SECONDS = 600
ACTS = [
    "node",
    "pod",
    "pod",
    "pod",
    "turn",
    "turn",
    "turn",
    "turn",
    "bind",
    "bind",
    "drop",
    "change",
    "other",
]


def random_pod(dice: Random, name: str) -> Pod:
    made: dict[str, Any] = {"requests": {"cpu": dice.choice(["100m", 1, 2])}}
    if dice.random() < 0.4:
        made = body_kind(dice.randrange(250), USUAL) | tie_kind(dice.randrange(250), USUAL)
        made |= wish_kind(dice.randrange(250))
        made["namespace"] = "default"
    made["labels"] = {"app": dice.choice("xy")}
    made["priority"] = dice.choice([0, 0, 5, 10])
    return pod(name, uid=f"{name}-{dice.randrange(MANY)}", **made)


def step(driver: Driver, dice: Random, number: int) -> None:  # noqa: C901  a list of choices
    """One random thing that happens to a scheduler."""
    pods = list(driver.state.pods())
    act = dice.choice(ACTS)
    if act == "node":
        name = dice.choice(NODE_NAMES)
        known = driver.state.node(name)
        if known is not None and dice.random() < 0.3:
            driver.drop(known)
        else:
            made: dict[str, Any] = {"cpu": 4, "labels": {"zone": dice.choice("12")}}
            if dice.random() < 0.5:
                made = node_kind(dice.randrange(250), USUAL)
            driver.put(node(name, **made))
    elif act == "pod":
        driver.put(random_pod(dice, f"p{number}"))
    elif act == "turn":
        driver.turn()
    elif act == "other":
        driver.put(dice.choice(OTHERS))
    elif pods:
        found = dice.choice(pods)
        if act == "bind":
            driver.bind(found, dice)
        elif act == "drop":
            driver.drop(found)
        elif driver.state.cache.is_assumed(found.uid) and dice.random() < 0.5:
            driver.state.forget(found)
        else:
            labels = {**found.labels, "app": dice.choice("xy")}
            driver.put(replace(found, metadata=replace(found.metadata, labels=labels)))


def replayed(
    folder: Path, driver: Driver, *, recording: bool = False
) -> list[tuple[Decided, Decision, ReplayDifference | None]]:
    """Every decision of a history, made again."""
    rules = Rules({driver.profile.scheduler_name: driver.profile}, driver.behaviour)
    replay = HistoryReplay(lambda _: rules)
    found = []
    for entry in History(folder).entries():
        if isinstance(entry, Decided):
            decision = replay.derive(entry, recording=recording or entry.matrix is not None)
            found.append((entry, decision, compare(entry, decision)))
        else:
            replay.apply(entry)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_the_same_whenever_they_are_made(tmp_path: Path, version: str) -> None:
    profile, behaviour = PROFILES[version]
    for seed in range(4):
        found = []
        for batch in (1, 7, MANY):
            dice, folder = Random(seed), tmp_path / f"{seed}-{batch}"  # noqa: S311  a seed
            limits = Limits(batch_records=batch)
            driver = Driver(folder, profile, behaviour, limits=limits, recorded_nodes=100)
            for number in range(220):
                step(driver, dice, number)
            driver.recorder.close()
            found.append(list(History(folder).records())[1:])

        assert sum(isinstance(each, Decided) for each in found[0]) > 20
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ties", ["round-robin", "random:7"])
@pytest.mark.parametrize("recorded", [0, 100], ids=["only outcomes", "whole matrices"])
def test_every_decision_follows_again(
    tmp_path: Path, version: str, ties: str, recorded: int
) -> None:
    profile, behaviour = PROFILES[version]
    profile = dataclasses.replace(profile, ties=ties)
    decisions = placed = segments = nominations = evictions = 0
    for seed in range(6):
        dice, folder = Random(seed), tmp_path / str(seed)  # noqa: S311  a seed
        limits = Limits(segment_records=dice.choice([20, 60, 1000]), batch_records=3)
        driver = Driver(folder, profile, behaviour, limits=limits, recorded_nodes=recorded)
        for number in range(220):
            step(driver, dice, number)
            if dice.random() < 0.1:
                driver.recorder.flush()
        driver.recorder.close()

        found = replayed(folder, driver, recording=recorded > 0)

        assert [difference for _, _, difference in found if difference] == []
        assert [entry.node for entry, _, _ in found] == [d.node for _, d in driver.decisions]
        decisions += len(found)
        placed += sum(entry.node is not None for entry, _, _ in found)
        entries = list(History(folder).entries())
        segments += sum(isinstance(each, SegmentStart) for each in entries)
        nominations += sum(isinstance(each, Nominated) for each in entries)
        evictions += sum(isinstance(each, Evicting) for each in entries)
    assert placed > 50
    assert decisions - placed > 50
    assert segments > 8
    assert nominations > 5
    assert evictions > 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replay_may_begin_at_any_segment(tmp_path: Path, version: str) -> None:
    profile, behaviour = PROFILES[version]
    dice = Random(5)  # noqa: S311  a seed
    limits = Limits(segment_records=25, batch_records=3)
    driver = Driver(tmp_path, profile, behaviour, limits=limits)
    for number in range(300):
        step(driver, dice, number)
        driver.recorder.flush()
    driver.recorder.close()
    whole = [(entry, decision.node) for entry, decision, _ in replayed(tmp_path, driver)]
    history = History(tmp_path)

    assert len(history.segments) > 3
    for path in history.segments:
        found = replayed(path, driver)
        assert found
        assert [difference for _, _, difference in found if difference] == []
        first = whole.index((found[0][0], found[0][1].node))
        assert [(entry, decision.node) for entry, decision, _ in found] == whole[
            first : first + len(found)
        ]


@pytest.mark.parametrize(
    ("steps", "decisions"), [(400, 80), pytest.param(6000, 1000, marks=pytest.mark.soak)]
)
def test_a_matrix_made_again_is_the_one_that_was_recorded(
    tmp_path: Path, steps: int, decisions: int
) -> None:
    """All verdicts and scores, compared one by one and not by their hash."""
    profile, behaviour = PROFILES["v1.37"]
    dice = Random(3)  # noqa: S311  a seed
    driver = Driver(tmp_path, profile, behaviour, recorded_nodes=100)
    for number in range(steps):
        step(driver, dice, number)
    driver.recorder.close()

    found = replayed(tmp_path, driver, recording=True)

    assert len(found) > decisions
    for (_, live), (_, again, _) in zip(driver.decisions, found, strict=True):
        assert again.examined == live.examined
        assert again.failed() == live.failed()
        assert again.feasible == live.feasible
        assert [c.name for c in again.scores] == [c.name for c in live.scores]
        for ours, theirs in zip(again.scores, live.scores, strict=True):
            assert ours.raw.tolist() == theirs.raw.tolist()
            assert ours.score.tolist() == theirs.score.tolist()
        assert again.message == live.message
        assert again.preemption == live.preemption


def late_claim(*, prepared_by: float) -> ResourceClaim:
    """A claim that was allocated some time ago, and whose device is not prepared yet."""
    device = AllocatedDevice("r", "gpu.example.com", "pool", "d", binding_conditions=["Attached"])
    allocation = Allocation(
        DeviceAllocation([device]), allocation_timestamp=written(prepared_by - BINDING_SECONDS)
    )
    return ResourceClaim(
        kind="ResourceClaim",
        metadata=ClaimMeta(name="gpu", namespace="default", uid="gpu"),
        spec=ResourceClaimSpec(DeviceClaim([DeviceRequest("r", exactly=ExactDeviceRequest("c"))])),
        status=ResourceClaimStatus(allocation),
    )


def with_claim(name: str) -> Pod:
    made = pod(name)
    claims = [PodResourceClaim("gpu", resource_claim_name="gpu")]
    return replace(made, spec=replace(made.spec, resource_claims=claims))


def test_the_time_of_a_decision_is_part_of_it(tmp_path: Path) -> None:
    """Devices that are prepared too late make a claim unusable, from some moment on."""
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(tmp_path, profile, behaviour)
    driver.put(node("n"))
    driver.put(late_claim(prepared_by=NOON + 60))
    for name, now in (("early", NOON), ("late", NOON + 120)):
        driver.now = now
        driver.put(with_claim(name))
        driver.turn()
    driver.recorder.close()

    found = replayed(tmp_path, driver)

    assert [decision.node for _, decision in driver.decisions] == ["n", None]
    assert [difference for _, _, difference in found if difference] == []
    assert [entry.made_at for entry, _, _ in found] == [NOON + 0.001, NOON + 120.001]


def test_another_rule_is_noticed(tmp_path: Path) -> None:
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(tmp_path, profile, behaviour)
    driver.put(node("small", cpu=1))
    driver.put(node("large", cpu=4))
    driver.put(pod("p", requests={"cpu": 2}))
    driver.turn()
    driver.recorder.close()
    driver.profile = dataclasses.replace(profile, predicates=())

    ((entry, _, difference),) = replayed(tmp_path, driver)

    assert entry.node == "large"
    assert difference is not None


def test_a_checkpoint_waits_for_reservations(tmp_path: Path) -> None:
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(tmp_path, profile, behaviour, limits=Limits(segment_records=1, batch_records=1))
    driver.put(node("n"))
    driver.put(pod("p"))
    taken = driver.state.pod_named("default/p")
    assert taken is not None
    driver.state.cache.assume(taken, "n", {"volumes": Reservation()})
    driver.recorder.flush()
    before = len(History(tmp_path).segments)
    driver.state.forget(taken)
    driver.recorder.flush()
    driver.recorder.close()

    assert before == 1
    assert len(History(tmp_path).segments) == 2
    entries = list(History(tmp_path).entries())
    assert any(isinstance(each, Checkpoint) for each in entries)


@pytest.mark.parametrize("pods", [1_000, pytest.param(50_000, marks=pytest.mark.soak)])
def test_a_burst_follows_again(tmp_path: Path, pods: int) -> None:
    """Pods that come at once, bound late and in another order, in several segments."""
    profile, behaviour = PROFILES["v1.37"]
    dice = Random(9)  # noqa: S311  a seed
    limits = Limits(segment_records=pods, batch_records=256)
    driver = Driver(tmp_path, profile, behaviour, limits=limits)
    for number in range(max(20, pods // 50)):
        driver.put(node(f"n{number}", cpu=16, labels={"zone": f"z{number % 3}"}))
    for number in range(pods):
        driver.put(pod(f"p{number}", labels={"app": f"a{number % 20}"}, requests={"cpu": "200m"}))
    placed = []
    while (taken := driver.turn()) is not None:
        placed.append(taken[0].pod)
        if len(placed) > 50:
            driver.bind(placed.pop(dice.randrange(50)), dice)
        if dice.random() < 0.01:
            driver.recorder.flush()
    driver.recorder.close()

    found = replayed(tmp_path, driver)

    assert len(found) == pods
    assert [difference for _, _, difference in found if difference] == []
    assert len(History(tmp_path).segments) > 1
