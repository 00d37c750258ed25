"""The scheduler itself, without an API server: what it counts, and what it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from manifests import node, pod
from podium.cluster.queue.entities import Pool
from podium.scheduler.decider import LiveDecider
from podium.scheduler.placing.pre_bind import PreBind
from podium.scheduler.scheduler import Scheduler
from podium.virtual_cluster.cluster import SimulatedCluster
from scheduler.fakes import PROFILES, Events, cluster


async def test_tasks_of_a_former_configuration_are_counted_and_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []

    async def bind_slowly(*_: object, **__: object) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")

    monkeypatch.setattr(PreBind, "_pre_bind", bind_slowly)
    profile, _ = PROFILES["v1.37"]
    _, result = cluster().attempt(node="n1")

    client: Any = None
    scheduler = Scheduler(client, [profile], recorder=Events())
    scheduler._actions.pre_bind.start(result, lambda *_: None)
    await asyncio.sleep(0)

    await scheduler.reconfigure([profile])
    await scheduler.reconfigure([profile])

    assert scheduler.binding == 1
    await scheduler._drain()
    assert scheduler.binding == 0
    assert ended == ["cancelled"]
    scheduler._trim()
    assert scheduler._former_actions == []


def test_an_exception_about_one_pod_is_an_error_of_that_pod_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decide = LiveDecider.decide

    async def decide_badly(self: LiveDecider, pod: Any, *rest: Any) -> Any:
        if pod.name == "hostile":
            raise ZeroDivisionError("x" * 10_000)
        return await decide(self, pod, *rest)

    monkeypatch.setattr(LiveDecider, "decide", decide_badly)
    with SimulatedCluster(controllers=False) as cluster, caplog.at_level(logging.ERROR):
        cluster.load([node("n1"), pod("hostile"), pod("plain")])
        replica = cluster.add_scheduler()
        cluster.run_for(20)
        text = replica.run.host.metrics.exposition()[0].decode()
        pods = {each["metadata"]["name"]: each for each in cluster.registry.list("Pod")}

    assert pods["plain"]["spec"]["nodeName"] == "n1"
    assert "nodeName" not in pods["hostile"]["spec"]
    [condition] = pods["hostile"]["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert condition["message"].startswith("ZeroDivisionError: xxx")
    assert len(condition["message"]) < 600
    # It waits one second, then two, four, eight.
    assert "podium_decision_crashes_total 5.0" in text
    assert 'attempts_total{profile="default-scheduler",result="error"} 5.0' in text
    [record] = [each for each in caplog.records if each.exc_info]
    assert "default/hostile" in record.getMessage()


def test_a_replica_whose_lease_is_not_sure_decides_nothing() -> None:
    leads = True
    with SimulatedCluster(controllers=False) as cluster:
        cluster.load([node("n1"), pod("first")])
        replica = cluster.add_scheduler()
        cluster.run_for(5)
        scheduler = replica.run.host.scheduler
        assert scheduler is not None
        scheduler._leads = lambda: leads
        leads = False
        cluster.load([pod("second"), pod("large", requests={"cpu": "64"})])
        cluster.run_for(20)
        pods = {each["metadata"]["name"]: each for each in cluster.registry.list("Pod")}
        assert pods["first"]["spec"]["nodeName"] == "n1"
        assert "nodeName" not in pods["second"]["spec"]
        assert "conditions" not in pods["large"]["status"]
        assert scheduler.queue.counts()[Pool.ACTIVE] == 2

        leads = True
        cluster.run_for(5)
        pods = {each["metadata"]["name"]: each for each in cluster.registry.list("Pod")}
        assert pods["second"]["spec"]["nodeName"] == "n1"
        assert pods["large"]["status"]["conditions"]
