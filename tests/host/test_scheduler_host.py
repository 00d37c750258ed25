"""The host in one process with an API server, on clocks that the test passes in."""

from __future__ import annotations

import asyncio
import gc
import io
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from builders_v1_36 import PACK
from manifests import node, pod
from podium.errors import ConfigError
from podium.host import cluster_program
from podium.host.cluster_run import LEADERSHIP_LOST, ClusterRun, Lease, RunOptions
from podium.host.scheduler_host import HostOptions
from podium.host.supervisor import TaskDiedError
from podium.kube.connections import Answer
from podium.kube.errors import ApiError, UnreachableError
from podium.kube.lease import LeaseTimes
from podium.library.profile_source import ProfileSource
from podium.scheduler.state.clock import Clocks
from podium.scheduler.state.options import SchedulerOptions
from podium.scheduler.telemetry.logs import Log
from podium.virtual_cluster.in_process_api import InProcessApi
from waiting import eventually

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = Lease("kube-system", "podium", LeaseTimes())


class Time:
    """Clocks that differ from the machine's, and a count of the calls to sleep."""

    def __init__(self) -> None:
        self.sleeps = 0

    def wall(self) -> float:
        return 1_000_000_000.0

    def steady(self) -> float:
        return 1_000_000_000.0 + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        await asyncio.sleep(min(seconds, 0.01))

    def clocks(self) -> Clocks:
        return Clocks(self.wall, self.steady, self.steady, self.sleep)


def options(*, lease: Lease | None = None, shadow: bool = False) -> RunOptions:
    scheduler = SchedulerOptions(waits_to_lead=lease is not None)
    host = HostOptions(scheduler=scheduler, shadow=shadow)
    return RunOptions(host=host, lease=lease, bind_address="127.0.0.1", port=0)


class RecordingApi(InProcessApi):
    """Keeps what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, str]] = []
        #: How many more requests get no answer.
        self.refuses = 0

    async def exchange(self, method: str, path: str, *rest: Any) -> Answer:
        self.requests.append((method, path))
        if self.refuses:
            self.refuses -= 1
            raise UnreachableError("connection refused")
        return await super().exchange(method, path, *rest)


class World:
    """An API server with one node, and one replica of a scheduler."""

    def __init__(self, run_options: RunOptions, source: ProfileSource | None = None) -> None:
        self.api, self.time, self.log = RecordingApi(), Time(), io.StringIO()
        self.run = ClusterRun(
            self.api,
            (source or ProfileSource()).choose(),
            Log(stream=self.log),
            run_options,
            clocks=self.time.clocks(),
            rng=random.Random(1),  # noqa: S311
            identity="replica-1",
        )

    def pods(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.api.registry.list("Pod")}

    def is_bound(self, name: str) -> bool:
        return bool(self.pods()[name]["spec"].get("nodeName"))

    async def play(self, script: Callable[[World], Awaitable[None]]) -> int:
        """Run the scheduler while a script goes on, then stop it; its exit code."""
        await self.api.create("/api/v1/nodes", node("n1"))
        running = asyncio.ensure_future(self.run.run())
        playing = asyncio.ensure_future(script(self))
        await asyncio.wait({running, playing}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await playing
            self.run.stop()
        playing.cancel()
        return await running


def test_pods_are_bound_and_told() -> None:
    world = World(options())

    async def script(world: World) -> None:
        await world.api.create(PODS, pod("a"))
        await world.api.create(PODS, pod("big", cpu="9"))
        await eventually(lambda: world.is_bound("a"))
        await eventually(lambda: bool(world.pods()["big"]["status"].get("conditions")))

    code = asyncio.run(world.play(script))

    assert code == 0
    [condition] = world.pods()["big"]["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2001-09-09T01:46:40Z"
    events = {each["reason"] for each in world.api.registry.list("Event")}
    assert events == {"Scheduled", "FailedScheduling"}
    assert world.time.sleeps > 0


def test_an_api_server_that_restarts_is_waited_for() -> None:
    world = World(options(lease=LEASE))

    async def script(world: World) -> None:
        world.api.refuses = 20
        await eventually(lambda: not world.api.refuses)
        await world.api.create(PODS, pod("a"))
        await eventually(lambda: world.is_bound("a"))

    assert asyncio.run(world.play(script)) == 0
    assert world.log.getvalue().count("discovery: connection refused; trying again") == 1


def test_an_api_server_that_stays_away_is_an_error() -> None:
    world = World(options())

    async def script(world: World) -> None:
        world.api.refuses = 10_000
        await asyncio.Event().wait()

    with pytest.raises(UnreachableError, match="connection refused"):
        asyncio.run(world.play(script))


def test_whoever_waits_for_the_api_server_can_be_stopped() -> None:
    world = World(options())

    async def script(world: World) -> None:
        world.api.refuses = 10_000
        await eventually(lambda: world.api.refuses < 9_995)

    assert asyncio.run(world.play(script)) == 0
    assert world.api.refuses > 9_980
    assert world.run.host.scheduler is None


def test_the_program_is_told_once_the_whole_cluster_is_known() -> None:
    """With the pods that are there already; also one that is stopped before ends well."""
    world = World(options())
    known: list[int] = []

    def synced() -> None:
        scheduler = world.run.host.scheduler
        assert scheduler is not None
        known.append(len(scheduler.cache.columns.nodes.order))

    world.run._on_synced = synced

    async def script(world: World) -> None:
        await eventually(lambda: bool(known))

    assert asyncio.run(world.play(script)) == 0
    assert known == [1]


def test_garbage_is_collected_once_the_cluster_is_known() -> None:
    """What is there by then is not looked at any more; what comes later is."""
    enabled, threshold = gc.isenabled(), gc.get_threshold()
    try:
        collected = [each["collections"] for each in gc.get_stats()]
        cluster_program._stop_collection()
        assert not gc.isenabled()
        assert [each["collections"] for each in gc.get_stats()] == collected
        before = gc.get_freeze_count()
        kept: list[list[int]] = [[] for _ in range(1000)]
        cluster_program._start_collection()
        assert gc.isenabled()
        frozen = gc.get_freeze_count()
        assert frozen >= before + len(kept)

        more: list[list[int]] = [[] for _ in range(1000)]
        cluster_program._start_collection()
        assert gc.get_freeze_count() < frozen + len(more)
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        (gc.enable if enabled else gc.disable)()


BINDS_ONLY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://127.0.0.1:9/extender
  bindVerb: bind
  enableHTTPS: true
  tlsConfig: {caFile: /nowhere/ca.crt}
"""


def test_pods_of_an_extender_that_cannot_bind_are_told_and_not_left_in_flight(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(options(), ProfileSource(config="file", texts={"file": BINDS_ONLY}))
    left: list[int] = []

    def told() -> set[str]:
        events = world.api.registry.list("Event")
        return {each["involvedObject"]["name"] for each in events if "caFile" in each["message"]}

    async def script(world: World) -> None:
        names = [f"p{number}" for number in range(20)]
        for name in names:
            await world.api.create(PODS, pod(name, cpu="1m"))
        await eventually(lambda: told() == set(names))
        scheduler = world.run.host.scheduler
        assert scheduler is not None
        for name in names:
            await world.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        await eventually(lambda: not scheduler.queue.in_flight and not scheduler.binding)
        left.append(scheduler.cache.assumed_total)

    assert asyncio.run(world.play(script)) == 0
    assert left == [0]
    assert not caplog.records, "a traceback for a file that is missing"


def test_the_pages_show_the_configuration_as_it_was_given() -> None:
    source = ProfileSource(config="file", texts={"file": PACK})
    world = World(replace(options(), pages=True), source)
    shown = []

    async def script(world: World) -> None:
        await eventually(lambda: world.run.host.scheduler is not None)
        shown.append(world.run.page_data().profile())

    asyncio.run(world.play(script))

    assert yaml.safe_load(shown[0]["text"]) == yaml.safe_load(PACK)


def test_only_the_holder_of_the_lease_schedules_and_it_releases_it() -> None:
    world = World(options(lease=LEASE))
    held = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
    name = {"name": "podium", "namespace": "kube-system"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": name}
    asyncio.run(world.api.create(LEASES, lease | {"spec": held}))

    async def script(world: World) -> None:
        await world.api.create(PODS, pod("a"))
        await eventually(lambda: "standing by" in world.log.getvalue())
        assert not world.is_bound("a")
        await world.api.patch(f"{LEASES}/podium", {"spec": {"holderIdentity": ""}})
        await eventually(lambda: world.is_bound("a"))
        found = await world.api.get(f"{LEASES}/podium")
        assert found["spec"]["holderIdentity"] == "replica-1"

    code = asyncio.run(world.play(script))

    assert code == 0
    found = asyncio.run(world.api.get(f"{LEASES}/podium"))
    assert found["spec"]["holderIdentity"] == ""


def test_a_replica_that_loses_the_lease_ends_with_a_code() -> None:
    world = World(options(lease=LEASE))

    async def script(world: World) -> None:
        await eventually(lambda: "leading" in world.log.getvalue())
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 3600}
        await world.api.patch(f"{LEASES}/podium", {"spec": thief})
        await asyncio.Event().wait()

    code = asyncio.run(world.play(script))

    assert code == LEADERSHIP_LOST
    assert "leader election lost" in world.log.getvalue()


def test_a_replica_that_cannot_renew_stops_before_it_hands_the_lease_back() -> None:
    times = LeaseTimes(lease_seconds=2, renew_deadline_seconds=0.5, retry_seconds=0.1)
    world = World(options(lease=Lease("kube-system", "podium", times)))
    states: list[bool] = []
    put = world.api.put

    async def put_or_fail(path: str, obj: Mapping[str, Any]) -> Any:
        if obj["spec"].get("holderIdentity") == "":
            scheduler = world.run.host.scheduler
            assert scheduler is not None
            states.append(scheduler._stopping and not scheduler.binding)
            return await put(path, obj)
        raise ApiError("not now", status=500)

    async def script(world: World) -> None:
        await eventually(lambda: "leading" in world.log.getvalue())
        world.api.put = put_or_fail  # type: ignore[method-assign]
        await asyncio.Event().wait()

    code = asyncio.run(world.play(script))

    assert code == LEADERSHIP_LOST
    assert states == [True]
    found = asyncio.run(world.api.get(f"{LEASES}/podium"))
    assert found["spec"]["holderIdentity"] == ""


def slow_events(world: World) -> None:
    """Let every event take a second to be written."""
    exchange = world.api.exchange

    async def slow(method: str, path: str, *rest: Any) -> Answer:
        if path.endswith("/events"):
            await asyncio.sleep(0.2)
        return await exchange(method, path, *rest)

    world.api.exchange = slow  # type: ignore[method-assign]


def test_events_that_wait_are_not_written_once_the_lease_is_lost() -> None:
    world = World(options(lease=LEASE))
    slow_events(world)
    written: list[str] = []

    async def script(world: World) -> None:
        for number in range(40):
            await world.api.create(PODS, pod(f"p{number}", cpu="1m"))
        await eventually(lambda: all(world.is_bound(name) for name in world.pods()))
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 3600}
        await world.api.patch(f"{LEASES}/podium", {"spec": thief})
        await eventually(lambda: "leader election lost" in world.log.getvalue())
        written.append(str(len(world.api.registry.list("Event"))))
        await asyncio.Event().wait()

    assert asyncio.run(world.play(script)) == LEADERSHIP_LOST
    assert int(written[0]) < 40
    assert len(world.api.registry.list("Event")) == int(written[0])


def test_the_lease_is_released_after_the_last_event() -> None:
    world = World(options(lease=LEASE))
    slow_events(world)

    async def script(world: World) -> None:
        for number in range(8):
            await world.api.create(PODS, pod(f"p{number}", cpu="1m"))
        await eventually(lambda: all(world.is_bound(name) for name in world.pods()))

    assert asyncio.run(world.play(script)) == 0
    assert len(world.api.registry.list("Event")) == 8
    writes = [path for method, path in world.api.requests if method != "GET"]
    assert writes[-1] == f"{LEASES}/podium"


def test_in_shadow_mode_nothing_is_written() -> None:
    world = World(options(shadow=True))

    async def script(world: World) -> None:
        await world.api.create(PODS, pod("a"))
        shadow = world.run.host.shadow
        assert shadow is not None
        await eventually(lambda: shadow.waiting() == 1)

    code = asyncio.run(world.play(script))

    assert code == 0
    assert not world.is_bound("a")
    methods = [method for method, path in world.api.requests if method != "GET"]
    assert methods == ["POST", "POST"]  # those of this test


def test_a_scheduler_that_dies_ends_the_run() -> None:
    world = World(options())

    async def script(world: World) -> None:
        await eventually(lambda: world.run.host.scheduler is not None)
        scheduler = world.run.host.scheduler
        assert scheduler is not None

        async def broken(*_: Any) -> None:
            raise ConfigError("no certificate authority")

        scheduler._decider.decide = broken  # type: ignore[method-assign, assignment]
        await world.api.create(PODS, pod("a"))
        await asyncio.Event().wait()

    with pytest.raises(TaskDiedError) as died:
        asyncio.run(world.play(script))

    assert str(died.value) == "the scheduler stopped: no certificate authority"


def test_an_api_server_that_does_not_answer_is_an_error_before_anything_starts() -> None:
    world = World(options())

    async def refuse(*_: Any, **__: Any) -> bytes:
        raise ApiError("not allowed", status=403)

    world.api.request = refuse  # type: ignore[method-assign]

    with pytest.raises(ApiError, match="not allowed"):
        asyncio.run(world.run.run())

    assert world.run.host.scheduler is None


def test_a_run_that_is_stopped_before_it_starts_ends_at_once() -> None:
    world = World(replace(options(), lease=LEASE))
    world.run.stop()

    assert asyncio.run(world.run.run()) == 0
    assert not any("leases" in path for _, path in world.api.requests)
