"""The recorded past of a running scheduler: its chart, its map at any moment, what happened."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host.test_history import recorded
from host.test_scheduler_host import PODS, World, options
from manifests import node, pod
from podium.errors import ConfigError, InputError
from podium.serving.page_data.activity import ActivityObserver
from podium.serving.page_data.cluster_map import ClusterMap, cluster_at
from podium.serving.page_data.page_data import PageData
from waiting import eventually

Data = dict[str, Any]


def recording(folder: Path) -> World:
    chosen = options()
    return World(replace(chosen, host=replace(chosen.host, record=recorded(folder))))


def page_data(world: World) -> PageData:
    host = world.run.host
    assert host.scheduler is not None
    found = PageData(host.scheduler, ActivityObserver(), log=host.decisions)
    found.past = host.past
    return found


def shape(told: Data) -> tuple[object, ...]:
    """Nodes with their loads and workloads: what two maps of one moment have in common."""
    nodes, words = told["nodes"], told["words"]
    pods = [sorted(words["workloads"][each] for each in cells) for cells in nodes["pods"]]
    rows = zip(nodes["name"], nodes["flags"], zip(*nodes["load"], strict=True), pods, strict=True)
    return sorted(rows, key=str), told["totals"]


async def settled(world: World) -> float:
    """A time after everything that happened, on the clock of the history."""
    host = world.run.host
    assert host.scheduler is not None
    state = host.scheduler.state

    def seen() -> bool:
        known = {each.metadata.name: each.spec.node_name or None for each in state.pods()}
        return known == {name: each["spec"].get("nodeName") for name, each in world.pods().items()}

    await eventually(seen)
    assert host.history is not None
    host.history.flush()
    now = world.time.steady()
    await eventually(lambda: world.time.steady() > now)
    return now


def test_the_map_of_a_moment_is_what_was_shown_then(tmp_path: Path) -> None:
    world = recording(tmp_path)
    live: list[tuple[float, tuple[object, ...]]] = []
    past: list[tuple[object, ...]] = []
    pending: list[int] = []

    async def script(world: World) -> None:
        await eventually(lambda: world.run.host.scheduler is not None)
        scheduler = world.run.host.scheduler
        assert scheduler is not None
        await scheduler.synced.wait()
        for number in range(8):
            await world.api.create("/api/v1/nodes", node(f"more-{number}"))
            await world.api.create(PODS, pod(f"p{number}", cpu="3"))
            await eventually(lambda number=number: world.is_bound(f"p{number}"))  # type: ignore[misc]
            if number == 4:
                await world.api.create(PODS, pod("big", cpu="9"))
                until_told = lambda: bool(world.pods()["big"]["status"].get("conditions"))  # noqa: E731
                await eventually(until_told)
            at = await settled(world)
            live.append((at, shape(ClusterMap().since(scheduler.cache.columns))))
        data = page_data(world)
        # Forwards, then from moments in any order.
        for at, _ in [*live, *reversed(live), live[3]]:
            told = await data.cluster_at(at)
            past.append(shape(told))
            pending.append(told["pending"])
        details = await data.node_at(live[-1][0], "more-0")
        assert details is not None
        assert await data.node_at(live[0][0], "more-7") is None

    asyncio.run(world.play(script))

    expected = [shown for _, shown in live]
    assert past == [*expected, *reversed(expected), expected[3]]
    assert pending[:8] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(list(tmp_path.iterdir())) > 1, "the moments are in several segments"


def test_the_chart_counts_and_the_timeline_names_what_happened(tmp_path: Path) -> None:
    world = recording(tmp_path)
    found: list[Data] = []

    async def script(world: World) -> None:
        labelled = pod("a")
        labelled["metadata"]["labels"] = {"app": "web"}
        await world.api.create(PODS, labelled)
        await eventually(lambda: world.is_bound("a"))
        before = await settled(world)
        await world.api.create(PODS, pod("big", cpu="9"))
        await eventually(lambda: bool(world.pods()["big"]["status"].get("conditions")))
        after = await settled(world)
        data = page_data(world)
        chart = await data.past_chart()
        while not chart["complete"]:
            chart = await data.past_chart()
        found.append(chart)
        found.append(await data.timeline_at(before, "", "", "", ""))
        found.append(await data.timeline_at(after, "", "", "", "unschedulable"))
        found.append(await data.timeline_at(after, "", "", "app=web", "bound"))
        decision = await data.decision_at(before, "default", "a")
        assert decision is not None
        found.append(decision)
        assert await data.decision_at(before, "default", "big") is None
        with pytest.raises(ConfigError, match="labels"):
            await data.timeline_at(after, "", "", "a b c", "")

    asyncio.run(world.play(script))
    chart, until_then, unschedulable, bound, decision = found

    assert chart["recorded"] is True
    assert sum(chart["decisions"]) >= 2
    assert sum(chart["placed"]) == 1
    assert chart["pending"][-1] == 1
    assert chart["from"] <= chart["times"][0] + 1 <= chart["to"] + 1
    assert [each["what"] for each in until_then["entries"]] == ["bound", "placed", "created"]
    assert {each["pod"] for each in unschedulable["entries"]} == {"default/big"}
    assert unschedulable["entries"][0]["text"] == "0 of 1 nodes fit"
    assert [each["pod"] for each in bound["entries"]] == ["default/a"]
    assert decision["source"] == "history"
    assert decision["node"] == "n1"


def test_without_a_record_the_pages_say_so(tmp_path: Path) -> None:
    world = World(options())

    async def script(world: World) -> None:
        await eventually(lambda: world.run.host.scheduler is not None)
        data = page_data(world)
        assert await data.past_chart() == {"recorded": False}
        with pytest.raises(ConfigError, match="--record"):
            await data.cluster_at(1.0)

    asyncio.run(world.play(script))
    assert list(tmp_path.iterdir()) == []


def test_a_moment_before_everything_is_refused(tmp_path: Path) -> None:
    class Nothing:
        at, view, pending = 1.0, None, 0

    with pytest.raises(InputError, match="nothing was recorded"):
        cluster_at(Nothing())  # type: ignore[arg-type]
