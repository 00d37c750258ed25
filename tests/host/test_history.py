"""Schedulers and clusters recorded by the host, and what is derived from it while they run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host.test_scheduler_host import PODS, World, options
from manifests import node, pod
from podium.host.history_rules import record_options, recorded_rules
from podium.host.record_run import record_cluster
from podium.library.profile_source import ProfileSource
from podium.past.format.reading import History, ObjectChange
from podium.past.format.writing import Limits
from podium.past.replay.past_decisions import Derived, derive_all
from podium.scheduler.telemetry.logs import Log
from podium.virtual_cluster.in_process_api import InProcessApi
from small_disk import fill, small_disk
from waiting import eventually

SOURCE = ProfileSource()
LIMITS = Limits(segment_records=20)


def recorded(folder: Path) -> Any:
    return record_options(str(folder), LIMITS, SOURCE, SOURCE.choose())


def replayed(folder: Path) -> list[Derived]:
    found = list(derive_all(History(folder), recorded_rules(SOURCE)))
    assert all(isinstance(each, Derived) for each in found)
    return [each for each in found if isinstance(each, Derived)]


def recording_world(folder: Path) -> World:
    chosen = options()
    return World(replace(chosen, host=replace(chosen.host, record=recorded(folder))))


def test_a_scheduler_is_recorded_and_its_decisions_follow_again(tmp_path: Path) -> None:
    world = recording_world(tmp_path)

    async def script(world: World) -> None:
        await world.api.create("/api/v1/nodes", node("n2"))
        for number in range(7):
            await world.api.create(PODS, pod(f"p{number}"))
            await eventually(lambda number=number: world.is_bound(f"p{number}"))  # type: ignore[misc]
        await world.api.create(PODS, pod("big", cpu="9"))
        await eventually(lambda: bool(world.pods()["big"]["status"].get("conditions")))

    code = asyncio.run(world.play(script))
    found = replayed(tmp_path)

    assert code == 0
    assert [each.difference for each in found] == [None] * len(found)
    assert {each.entry.pod: each.entry.node for each in found} == {
        f"default/{name}": each["spec"].get("nodeName") for name, each in world.pods().items()
    }
    assert len(History(tmp_path).segments) > 1


def test_a_decision_without_its_matrix_is_told_whole_from_the_history(tmp_path: Path) -> None:
    world = recording_world(tmp_path)
    told: list[Derived | None] = []

    async def script(world: World) -> None:
        await world.api.create("/api/v1/nodes", node("n2"))
        await world.api.create("/api/v1/nodes", node("n3"))
        await world.api.create(PODS, pod("large", cpu="4"))
        await eventually(lambda: world.is_bound("large"))
        await world.api.create(PODS, pod("a"))
        await eventually(lambda: world.is_bound("a"))
        past = world.run.host.past
        assert past is not None
        told.append(await past.decision("default/a", attempt=1))
        told.append(await past.decision("default/a"))
        told.append(await past.decision("default/unknown"))

    asyncio.run(world.play(script))

    first, again, unknown = told
    assert first is not None
    assert again is not None
    assert unknown is None
    assert list(first.decision.examined) == ["n1", "n2", "n3"]
    [cause] = first.decision.causes
    assert cause.cause.reason == "Insufficient cpu"
    assert all(each.formula for each in first.decision.score_causes)
    assert len(first.decision.scores) > 1
    assert first.as_json()["fromHistory"] is True


def test_other_profiles_begin_another_segment(tmp_path: Path) -> None:
    world = recording_world(tmp_path)
    policy = '{"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}'
    configuration = (
        '{"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"}'
    )

    async def script(world: World) -> None:
        await world.api.create(PODS, pod("a"))
        await eventually(lambda: world.is_bound("a"))
        world.run.host.record_profiles("Policy", policy)
        world.run.host.record_profiles("KubeSchedulerConfiguration", configuration)

    asyncio.run(world.play(script))
    history = History(tmp_path)
    first, second, last = (
        each.header["profile"] for each in history.records() if hasattr(each, "header")
    )

    assert "policy" not in first
    assert second["policy"]["predicates"] == []
    assert "profile" not in second
    assert last == {**first, "config": json.loads(configuration)}


def test_a_cluster_is_recorded_by_list_and_watch(tmp_path: Path) -> None:
    api = InProcessApi()
    folder = tmp_path / "history"

    async def run() -> None:
        await api.create("/api/v1/nodes", node("n1"))
        await api.create(PODS, pod("before"))
        stopping, listed = asyncio.Event(), asyncio.Event()
        recording = asyncio.ensure_future(
            record_cluster(
                api, recorded(folder), Log(), stopping, ready=lambda _counts: listed.set()
            )
        )
        await asyncio.wait_for(listed.wait(), 30)
        await api.create(PODS, pod("after"))
        await eventually(lambda: any(each.key == "default/after" for each in changes(folder)))
        stopping.set()
        done = await recording
        assert done.objects["Pod"] == 2

    asyncio.run(run())
    keys = [each.key for each in changes(folder) if each.kind == "Pod"]

    assert keys == ["default/before", "default/after"]


def test_a_cluster_is_recorded_on_after_the_disk_was_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path) as disk:
        folder = disk / "h"

        async def run() -> None:
            api = InProcessApi()
            stopping, listed = asyncio.Event(), asyncio.Event()
            recording = asyncio.ensure_future(
                record_cluster(
                    api, recorded(folder), Log(), stopping, ready=lambda _counts: listed.set()
                )
            )
            await asyncio.wait_for(listed.wait(), 30)
            filler = fill(disk)
            for number in range(200):
                await api.create(PODS, pod(f"p{number}"))
            await eventually(lambda: "nothing is recorded" in caplog.text)
            assert not recording.done(), "it goes on"
            filler.unlink()
            await eventually(lambda: len(History(folder).segments) > 1)
            await api.create(PODS, pod("after"))
            await eventually(lambda: any(each.key == "default/after" for each in changes(folder)))
            stopping.set()
            assert (await recording).objects["Pod"] == 201

        asyncio.run(run())
        known = {each.key for each in changes(folder) if each.kind == "Pod"}

    assert len(known) == 201


def changes(folder: Path) -> list[ObjectChange]:
    return [each for each in History(folder).entries() if isinstance(each, ObjectChange)]
