"""A running scheduler goes on with another profile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from control_plane.bulk import create_many, nodes, pods, revision
from control_plane.checker import assert_sound
from control_plane.harness import ADMIN, PODS, ControlPlane
from podium.kube.access import load_access
from podium.kube.client import ApiClient
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.behaviour import OF_CONFIGURATIONS, OF_POLICIES
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.scheduler.state.options import SchedulerOptions
from waiting import eventually

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first


class Profiles(Observer):
    """By which profile each pod was decided."""

    def __init__(self) -> None:
        self.by_pod: dict[str, str] = {}

    def attempted(self, attempted: AttemptResult) -> None:
        self.by_pod[attempted.pod.name] = attempted.decision.profile


async def test_profiles_are_swapped_while_pods_come(plane: ControlPlane) -> None:
    since = revision(plane)
    await asyncio.to_thread(create_many, plane, "/api/v1/nodes", nodes(10, cpu="1"))
    await asyncio.to_thread(create_many, plane, PODS, pods(30, prefix="early"))
    seen = Profiles()
    classic = from_provider("DefaultProvider", Options(scheduler_name="podium"))
    [current] = from_config(default_config(), Options())
    current = replace(current, scheduler_name="podium")

    async with ApiClient(load_access(plane.kubeconfig(ADMIN))) as client:
        options = SchedulerOptions(behaviour=OF_POLICIES)
        scheduler = Scheduler(
            client, [classic], recorder=NoEvents(), observers=[seen], options=options
        )
        working = asyncio.create_task(scheduler.run())
        await eventually(lambda: len(seen.by_pod) >= 30)
        await scheduler.reconfigure([current], replace(options, behaviour=OF_CONFIGURATIONS))
        for made in pods(30, prefix="late"):
            await client.create(PODS, made)
        await eventually(lambda: len(seen.by_pod) >= 60)
        await eventually(lambda: not scheduler.binding)
        scheduler.stop()
        await working

    assert_sound(plane, since)
    by_generation = {name.split("-")[0]: told.split()[0] for name, told in seen.by_pod.items()}
    assert by_generation == {"early": "v1.13", "late": "v1.37"}
