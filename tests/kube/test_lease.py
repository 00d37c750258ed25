"""One leader at a time, whatever happens to clocks, replicas and the API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from control_plane.bulk import history, revision
from control_plane.harness import ADMIN, ControlPlane
from control_plane.proxy import Proxy
from kube.reflecting import connected
from podium.errors import ConfigError
from podium.kube.client import ApiClient
from podium.kube.errors import ApiError
from podium.kube.lease import LeaderElector, LeaseTimes
from podium.virtual_cluster.event_loop import VirtualEventLoop
from waiting import eventually

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#: Much faster than usual.
QUICK = LeaseTimes(lease_seconds=2, renew_deadline_seconds=1.5, retry_seconds=0.2)


class Replica:
    """An elector and what it was told."""

    def __init__(self, client: ApiClient, identity: str, **options: Any) -> None:
        self.log: list[str] = []
        self.told: list[str] = []
        self.elector = LeaderElector(
            client,
            "kube-system",
            "podium",
            identity,
            times=options.pop("times", QUICK),
            on_started=lambda: self.log.append("started"),
            on_stopped=lambda: self.log.append("stopped"),
            on_new_leader=lambda who: self.log.append(f"leader {who}"),
            warn=self.told.append,
            rng=random.Random(identity),  # noqa: S311
            **options,
        )
        self.task = asyncio.create_task(self.elector.run())

    @property
    def leading(self) -> bool:
        return self.elector.leading

    async def die(self) -> None:
        """Gone without a word: nothing is handed back."""
        self.elector._release = False
        await self.end()

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.call("DELETE", LEASES)
    yield control_plane
    control_plane.call("DELETE", LEASES)


@asynccontextmanager
async def replicas(
    plane: ControlPlane, *names: str, **options: Any
) -> AsyncIterator[tuple[Replica, ...]]:
    async with connected(plane.kubeconfig(ADMIN)) as client:
        made = tuple(Replica(client, name, **options) for name in names)
        try:
            yield made
        finally:
            for replica in made:
                await replica.end()


async def test_the_first_leads_and_the_other_takes_over_when_it_dies(plane: ControlPlane) -> None:
    before = revision(plane)

    async with replicas(plane, "one", "two") as both:
        await eventually(lambda: any(each.leading for each in both))
        first, second = sorted(both, key=lambda each: not each.leading)
        await eventually(lambda: second.elector.holder == first.elector.identity)
        began = asyncio.get_running_loop().time()
        await first.die()
        assert not first.leading
        await eventually(lambda: second.leading)
        waited = asyncio.get_running_loop().time() - began
        assert waited > QUICK.lease_seconds - 2 * QUICK.retry_seconds  # not a moment too early
        assert first.log[-1] == "stopped"
        assert second.log[-2:] == [f"leader {second.elector.identity}", "started"]
    # What etcd saw: each holder in one piece, and a count of the changes.
    kept = [
        (change.stored["spec"]["holderIdentity"], change.stored["spec"]["leaseTransitions"])
        for change in history(plane, "leases/kube-system", before)
        if change.key == "podium" and change.stored
    ]
    runs = [pair for index, pair in enumerate(kept) if index == 0 or pair != kept[index - 1]]
    assert [count for _, count in runs][:2] == [0, 1]
    assert len({holder for holder, _ in runs if holder}) == 2


async def test_a_lease_that_is_handed_back_is_free_at_once(plane: ControlPlane) -> None:
    slow = LeaseTimes(lease_seconds=30, renew_deadline_seconds=20, retry_seconds=0.2)

    async with replicas(plane, "one", times=slow) as (one,):
        await eventually(lambda: one.leading)
        async with replicas(plane, "two", times=slow) as (two,):
            await asyncio.sleep(0.5)
            assert not two.leading
            await one.end()
            await eventually(lambda: two.leading, 20)  # less than the lease lasts


async def test_the_lease_has_the_fields_of_kube_scheduler(plane: ControlPlane) -> None:
    async with replicas(plane, "one") as (one,):
        await eventually(lambda: one.leading)
        spec = (await asyncio.to_thread(plane.get, f"{LEASES}/podium"))["spec"]
        assert spec.keys() == {
            "holderIdentity",
            "leaseDurationSeconds",
            "acquireTime",
            "renewTime",
            "leaseTransitions",
        }
        assert spec["leaseDurationSeconds"] == 2
        renewed = spec["renewTime"]

        def later() -> Any:
            now = plane.get(f"{LEASES}/podium")["spec"]
            return now["renewTime"] > renewed and now["acquireTime"] == spec["acquireTime"]

        await eventually(later)


async def test_who_cannot_renew_steps_down_before_anybody_else_steps_up(
    plane: ControlPlane,
) -> None:
    with Proxy(plane) as proxy:
        async with (
            connected(plane.kubeconfig(ADMIN, url=proxy.url)) as cut_off,
            connected(plane.kubeconfig(ADMIN)) as client,
        ):
            one = Replica(cut_off, "one")
            await eventually(lambda: one.leading)
            two = Replica(client, "two")
            await eventually(lambda: two.elector.holder == "one")
            together = []

            async def look() -> None:
                while True:
                    together.append(one.leading and two.leading)
                    await asyncio.sleep(0.005)

            looking = asyncio.create_task(look())
            await asyncio.to_thread(proxy.refuse)
            await eventually(lambda: two.leading)
            looking.cancel()
            assert one.task.done()
            assert "stopped" in one.log
            assert not any(together)
            assert one.told
            assert len(set(one.told)) == len(one.told), "each failure is told once"
            await one.end()
            await two.end()


async def test_a_leader_survives_a_restart_of_the_api_server(plane: ControlPlane) -> None:
    patient = LeaseTimes(lease_seconds=60, renew_deadline_seconds=50, retry_seconds=0.2)

    async with replicas(plane, "one", times=patient) as (one,):
        await eventually(lambda: one.leading)
        with plane.api_server_away():
            await eventually(lambda: one.told)
        count = len(one.told)
        await asyncio.sleep(1)
        assert one.leading
        assert len(one.told) <= count + 1
        assert "stopped" not in one.log


async def test_a_wall_clock_that_jumps_does_no_harm(plane: ControlPlane) -> None:
    """Times in the lease are decoration: a lease from the year 2001 that is renewed, holds."""
    async with connected(plane.kubeconfig(ADMIN)) as client:
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 1}
        lease = {"metadata": {"name": "podium"}, "spec": spec}
        await client.create(LEASES, lease)
        one = Replica(client, "one")
        for second in range(15):
            moment = f"2001-01-01T00:00:{second:02d}.000000Z"
            await client.patch(f"{LEASES}/podium", {"spec": {"renewTime": moment}})
            assert not one.leading
            await asyncio.sleep(0.2)
        await eventually(lambda: one.leading)
        await one.end()


async def test_a_lease_that_somebody_takes_away_is_lost_at_once(plane: ControlPlane) -> None:
    async with replicas(plane, "one") as (one,):
        await eventually(lambda: one.leading)
        path, theirs = f"{LEASES}/podium", {"spec": {"holderIdentity": "usurper"}}
        await asyncio.to_thread(plane.call, "PATCH", path, theirs, "merge-patch+json")
        await eventually(one.task.done)
        assert one.log == ["leader one", "started", "leader usurper", "stopped"]
        assert not one.leading


async def test_a_missing_right_is_named(plane: ControlPlane) -> None:
    async with connected(plane.kubeconfig_of("stranger")) as client:
        one = Replica(client, "one")
        await eventually(lambda: one.told)
        assert one.told[0] == (
            "leader election: lease kube-system/podium: leases.coordination.k8s.io "
            '"podium" is forbidden: User "stranger" cannot get resource "leases" in API '
            'group "coordination.k8s.io" in the namespace "kube-system"'
        )
        await one.end()


class Shelf:
    """A lease that forgets nothing: an API server's part, without one, on any clock."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    async def get(self, _: str) -> Any:
        if self.lease is None:
            raise ApiError("none", status=404)
        return self.lease

    async def create(self, _: str, lease: Any) -> Any:
        if self.lease is not None:
            raise ApiError("exists", status=409)
        return self._kept(lease)

    async def put(self, _: str, lease: Any) -> Any:
        if lease["metadata"].get("resourceVersion") != str(self.version):
            raise ApiError("conflict", status=409)
        return self._kept(lease)

    def _kept(self, lease: Any) -> Any:
        self.version += 1
        metadata = {**lease["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**lease, "metadata": metadata}
        return self.lease


@pytest.mark.parametrize("seed", range(20))
async def test_there_are_never_two_leaders(seed: int) -> None:
    """Five replicas on a clock that is turned by hand; they fall asleep, wake up and die."""
    rng, now, shelf = random.Random(seed), [0.0], Shelf()  # noqa: S311

    async def sleep(seconds: float) -> None:
        ends = now[0] + seconds
        while now[0] < ends:  # noqa: ASYNC110 - the clock is turned by hand
            await asyncio.sleep(0)

    names = [f"replica-{number}" for number in range(5)]

    def new(name: str) -> Replica:
        options = {"times": LeaseTimes(), "clock": lambda: now[0], "sleep": sleep}
        return Replica(shelf, name, **options)  # type: ignore[arg-type]

    made, led = {name: new(name) for name in names}, set()
    for _ in range(400):
        now[0] += rng.random() * 2
        for _ in range(20):
            await asyncio.sleep(0)
        leaders = [name for name, each in made.items() if each.leading]
        assert len(leaders) <= 1
        led.update(leaders)
        if rng.random() < 0.05:
            name = rng.choice(leaders or names)
            await (made[name].die() if rng.random() < 0.5 else made[name].end())
            made[name] = new(name)
    assert len(led) > 1
    for each in made.values():
        await each.end()


class SilentShelf(Shelf):
    """A lease whose API server answers no write any more once it is silent."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = False
        self.last_write = 0.0

    async def put(self, path: str, lease: Any) -> Any:
        if self.silent:
            await asyncio.sleep(3600)
        self.last_write = asyncio.get_running_loop().time()
        return await super().put(path, lease)


@pytest.mark.parametrize(
    "times",
    [
        LeaseTimes(3, 2, 0.4),
        pytest.param(LeaseTimes(15, 14.9, 2), id="a deadline that ends after the lease"),
        pytest.param(LeaseTimes(15, 14.9, 12), id="hardly time for a second attempt"),
    ],
    ids=str,
)
def test_a_leader_that_cannot_renew_stops_before_its_lease_is_over(times: LeaseTimes) -> None:
    shelf = SilentShelf()

    async def run() -> None:
        one = Replica(shelf, "one", times=times, clock=asyncio.get_running_loop().time)  # type: ignore[arg-type]
        await asyncio.sleep(60)
        assert one.leading
        shelf.silent = True
        await one.task
        assert asyncio.get_running_loop().time() - shelf.last_write < times.lease_seconds
        assert one.log[-1] == "stopped"
        assert one.elector.holder == "one"  # not released: its work may not have stopped yet

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        runner.run(run())


async def test_a_lost_lease_is_released_after_the_work_has_stopped() -> None:
    shelf = SilentShelf()
    times = LeaseTimes(lease_seconds=2, renew_deadline_seconds=0.5, retry_seconds=0.1)

    one = Replica(shelf, "one", times=times)  # type: ignore[arg-type]
    await eventually(lambda: shelf.last_write)
    shelf.silent = True
    await one.task
    shelf.silent = False
    await one.elector.hand_back()
    assert shelf.lease is not None
    assert shelf.lease["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (2.5, 2.2, 0.1)])
def test_times_that_make_no_sense(times: tuple[float, float, float]) -> None:
    with pytest.raises(ConfigError, match=r"leaseDuration|renewDeadline"):
        LeaseTimes(*times)


class _SlowAnswers:
    """An API server that carries out writes and answers late, after the first one."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {}
        self.version = 0

    async def get(self, path: str) -> Any:
        if not self.lease:
            raise ApiError("not there", status=404)
        return self.lease

    async def create(self, path: str, body: dict[str, Any]) -> Any:
        return self._keep(body)

    async def put(self, path: str, body: dict[str, Any]) -> Any:
        if body["metadata"].get("resourceVersion") != str(self.version):
            raise ApiError("changed meanwhile", status=409)
        kept = self._keep(body)
        if kept["spec"]["holderIdentity"]:
            await asyncio.sleep(10)
        return kept

    def _keep(self, body: dict[str, Any]) -> Any:
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**body, "metadata": metadata}
        return self.lease


async def test_a_lease_whose_renewal_was_cut_off_is_released() -> None:
    server = _SlowAnswers()

    client: Any = server
    replica = Replica(client, "one")
    await eventually(lambda: server.version == 2)  # created, and renewed at once
    await replica.end()
    assert server.lease["spec"]["holderIdentity"] == ""
