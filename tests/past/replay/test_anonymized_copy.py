"""Copies of histories under other names: nothing of the old ones is left, and decisions follow."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from past.judge.driver import Driver
from past.replay.test_replay import replayed, step
from podium.past.format.frames import SegmentReader
from podium.past.format.reading import History
from podium.past.format.writing import Limits
from podium.past.replay.anonymized_copy import Copied, write_anonymized
from podium.past.replay.replay import Rules
from scheduler.fakes import PROFILES, VERSIONS


def copied(folder: Path, target: Path, driver: Driver) -> Copied:
    rules = Rules({driver.profile.scheduler_name: driver.profile}, driver.behaviour)
    return write_anonymized(History(folder), target, lambda _: rules)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("recorded", [0, 100], ids=["only outcomes", "whole matrices"])
def test_the_decisions_of_a_copy_follow_again(tmp_path: Path, version: str, recorded: int) -> None:
    profile, behaviour = PROFILES[version]
    decisions = evictions = 0
    for seed in range(2):
        dice, folder = Random(seed), tmp_path / str(seed)  # noqa: S311  a seed
        limits = Limits(segment_records=40, batch_records=3)
        driver = Driver(folder, profile, behaviour, limits=limits, recorded_nodes=recorded)
        for number in range(200):
            step(driver, dice, number)
            if dice.random() < 0.1:
                driver.recorder.flush()
        driver.recorder.close()
        target = tmp_path / f"copy-{seed}"

        found = copied(folder, target, driver)
        before, after = replayed(folder, driver), replayed(target, driver)

        assert [difference for _, _, difference in after if difference] == []
        assert (found.decisions, found.equal, found.lost) == (len(before), len(before), 0)
        assert found.segments == len(History(folder).segments) > 1
        for (old, _, _), (new, _, _) in zip(before, after, strict=True):
            assert (old.time, old.attempt, old.nodes, old.feasible, old.tied) == (
                new.time,
                new.attempt,
                new.nodes,
                new.feasible,
                new.tied,
            )
            assert (old.node is None, old.matrix is None) == (new.node is None, new.matrix is None)
            evictions += len(new.victims)
        decisions += len(after)
    assert decisions > 60
    assert evictions > 0


def test_nothing_tells_whose_cluster_it_was(tmp_path: Path) -> None:
    profile, behaviour = PROFILES["v1.37"]
    folder, target = tmp_path / "history", tmp_path / "copy"
    driver = Driver(folder, profile, behaviour, limits=Limits(segment_records=8, batch_records=1))
    images = {"acme.example/acme-image:acme-tag": 300_000_000}
    for number in range(3):
        made: dict[str, Any] = {"images": images, "annotations": {"acme.example/note": "acme"}}
        labels = {"acme.example/rack": f"acme-rack-{number}", "topology.kubernetes.io/zone": "acme"}
        driver.put(node(f"acme-node-{number}", cpu=2, labels=labels, **made))
    for number in range(8):
        made = {"namespace": "acme-shop", "uid": f"acme-uid-{number}", "labels": {"acme": "acme"}}
        made["image"] = "acme.example/acme-image:acme-tag"
        item = pod(f"acme-pod-{number}", requests={"cpu": 1}, priority=number, **made)
        metadata = replace(
            item.metadata, generate_name="acme-pod-", annotations={"acme.example/owner": "acme"}
        )
        driver.put(replace(item, metadata=metadata))
        driver.turn()
        driver.recorder.flush()
    driver.recorder.close()

    found = copied(folder, target, driver)

    assert found.equal == found.decisions == 8
    assert len(History(target).segments) > 1
    assert b"acme" in content(folder)
    assert b"acme" not in content(target)
    assert [difference for _, _, difference in replayed(target, driver) if difference] == []


def content(folder: Path) -> bytes:
    """Everything that is written in a history: headers, and records without compression."""
    found = []
    for path in History(folder).segments:
        with SegmentReader(path) as reader:
            found += [repr(reader.header).encode(), *reader.parts()]
    return b"".join(found)


def test_a_decision_that_does_not_follow_is_none_that_follows_in_the_copy(tmp_path: Path) -> None:
    profile, behaviour = PROFILES["v1.37"]
    folder, target = tmp_path / "history", tmp_path / "copy"
    driver = Driver(folder, profile, behaviour)
    driver.put(node("small", cpu=1))
    driver.put(pod("p", requests={"cpu": 2}))
    driver.turn()
    driver.recorder.close()
    [old] = History(folder).decisions()
    driver.profile = dataclasses.replace(profile, predicates=())

    found = copied(folder, target, driver)

    [new] = History(target).decisions()
    assert old.digest
    assert new.digest == 0
    assert (found.decisions, found.equal, found.lost) == (1, 0, 0)
    assert [difference is not None for _, _, difference in replayed(target, driver)] == [True]
