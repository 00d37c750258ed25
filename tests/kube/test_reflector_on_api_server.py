"""Reflectors follow a real API server through everything that may happen to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from control_plane.bulk import compact, create_many, delete_all, pods
from control_plane.harness import ADMIN, ControlPlane
from control_plane.proxy import Proxy
from kube.reflecting import CONFIG_MAPS, PODS, connected, following
from podium.kube.access import load_access
from podium.kube.client import ApiClient
from podium.objects.kinds.meta import Object
from waiting import eventually

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    delete_all(control_plane)
    yield control_plane
    delete_all(control_plane)


def named(name: str) -> dict[str, Any]:
    return next(pods(1, prefix=name)) | {"metadata": {"name": name}}


async def test_long_lists_come_in_chunks(plane: ControlPlane) -> None:
    await asyncio.to_thread(create_many, plane, PODS, pods(1203))

    with Proxy(plane) as proxy:
        url = proxy.url
        async with (
            connected(plane.kubeconfig(ADMIN, url=url)) as client,
            following(client, from_memory=False) as (known, reflector),
        ):
            await asyncio.wait_for(reflector.synced.wait(), 30)
            assert len(known.objects) == 1203
            assert known.replaced == 1
        lists = [target for _, target in proxy.requests if "limit=500" in target]
        assert len(lists) == 3
        assert not any("resourceVersion=0" in target for target in lists)


async def test_the_first_list_is_one_that_the_api_server_has_in_memory(plane: ControlPlane) -> None:
    """A later one must not be older than what is known, and comes in pages."""
    await asyncio.to_thread(create_many, plane, PODS, pods(1203))

    with Proxy(plane) as proxy:
        async with (
            connected(plane.kubeconfig(ADMIN, url=proxy.url)) as client,
            following(client) as (known, reflector),
        ):
            await eventually(lambda: len(known.objects) == 1203)
            lists = [target for _, target in proxy.requests if "limit=500" in target]
            assert len(lists) == 1
            assert "resourceVersion=0" in lists[0]

            reflector.list_again()
            patch = {"metadata": {"labels": {"changed": "yes"}}}
            await client.patch(f"{PODS}/{next(iter(known.objects))}", patch)
            await eventually(lambda: known.replaced == 2)
            lists = [target for _, target in proxy.requests if "limit=500" in target]
            assert ["resourceVersion=0" in target for target in lists] == [True] + [False] * 3


async def test_what_happens_after_the_list_is_told(plane: ControlPlane) -> None:
    async with connected(plane.kubeconfig(ADMIN)) as client, following(client) as (known, _):
        await eventually(lambda: known.replaced)
        await client.create(PODS, named("a"))
        await eventually(lambda: "a" in known.objects)
        uid = known.objects["a"].uid
        await client.bind("default", "a", uid, "n1")
        await eventually(lambda: known.objects["a"].spec.node_name == "n1")
        await client.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
        await eventually(lambda: "a" not in known.objects)
        assert known.dropped == ["a"]
        assert known.told == []


async def test_a_watch_that_is_cut_goes_on_where_it_was(plane: ControlPlane) -> None:
    with Proxy(plane) as proxy:
        async with (
            connected(plane.kubeconfig(ADMIN, url=proxy.url)) as client,
            following(client) as (known, _),
        ):
            await eventually(lambda: known.replaced)
            for number in range(10):
                name = f"cut-{number}"
                await client.create(PODS, named(name))
                await eventually(lambda: name in known.objects)  # noqa: B023
                if number % 2:
                    await asyncio.to_thread(proxy.cut, "watch=")
            assert known.replaced == 1  # never listed again
            assert any("trying again" in line for line in known.told)


async def test_nothing_is_missed_while_the_api_server_is_away(plane: ControlPlane) -> None:
    kubeconfig = plane.kubeconfig(ADMIN)
    async with connected(kubeconfig) as client, following(client) as (known, reflector):
        await eventually(lambda: known.replaced)
        for name in ("stays", "goes"):
            await client.create(PODS, named(name))
        await eventually(lambda: len(known.objects) == 2)
        version = reflector.version
        with plane.api_server_away():
            await eventually(lambda: known.told)
            assert known.told[0].endswith(
                "the connection was closed before the answer was complete; trying again"
            )
            await eventually(lambda: "connection refused" in known.told[-1])
            assert reflector.version == version

        # What comes and goes while it cannot look is known once it can.
        await client.delete(f"{PODS}/goes", {"gracePeriodSeconds": 0})
        await client.create(PODS, named("comes"))
        await eventually(lambda: sorted(known.objects) == ["comes", "stays"])


async def test_a_watch_that_fell_behind_begins_again(plane: ControlPlane) -> None:
    """A new API server knows nothing older than its start, and etcd has forgotten: 410."""
    with Proxy(plane) as proxy:
        async with (
            connected(plane.kubeconfig(ADMIN)) as direct,
            connected(plane.kubeconfig(ADMIN, url=proxy.url)) as client,
            following(client) as (known, _),
        ):
            await direct.create(PODS, named("old"))
            await eventually(lambda: "old" in known.objects)
            await asyncio.to_thread(proxy.refuse)
            for number in range(5):
                await direct.create(PODS, named(f"unseen-{number}"))
            await direct.delete(f"{PODS}/old", {"gracePeriodSeconds": 0})
            await asyncio.to_thread(compact, plane)
            await asyncio.to_thread(plane.restart_api_server)
            proxy.heal()
            await eventually(lambda: known.replaced == 2)
            assert sorted(known.objects) == [f"unseen-{number}" for number in range(5)]
            await direct.create(PODS, named("new"))
            await eventually(lambda: "new" in known.objects)


class _Interrupted(ApiClient):
    """Something happens between the pages of a list."""

    def __init__(self, *arguments: Any, plane: ControlPlane) -> None:
        super().__init__(*arguments)
        self._between = plane
        self.pages = 0

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, **rest: Any
    ) -> bytes:
        answer = await super().request(method, path, params=params, **rest)
        if params is not None and "watch" not in params:
            self.pages += 1
            if self.pages == 1:
                await super().request(
                    "POST", CONFIG_MAPS, body=b'{"metadata": {"name": "one-more"}}'
                )
                await asyncio.to_thread(compact, self._between)
        return answer


async def test_a_list_that_etcd_forgets_halfway_begins_again(plane: ControlPlane) -> None:
    maps = [{"metadata": {"name": f"map-{number}"}} for number in range(25)]
    await asyncio.to_thread(create_many, plane, CONFIG_MAPS, maps)

    access = load_access(plane.kubeconfig(ADMIN))
    async with (
        _Interrupted(access, plane=plane) as client,
        following(client, CONFIG_MAPS, Object, page=10, from_memory=False) as (known, _),
    ):
        await eventually(lambda: known.replaced)
        assert client.pages == 2  # one that came to nothing, and then all of it at once
        assert {"one-more", "map-0", "map-24"} <= known.objects.keys()
        await client.request("DELETE", CONFIG_MAPS)


async def test_bookmarks_carry_the_watch_past_what_others_do(plane: ControlPlane) -> None:
    """Nobody touches the one config map that is watched; still the version moves on."""
    async with connected(plane.kubeconfig(ADMIN)) as client:
        only = {"fieldSelector": "metadata.name=watched"}
        options = {"params": only, "watch_seconds": 4}
        async with following(client, CONFIG_MAPS, Object, **options) as (known, reflector):
            await eventually(lambda: known.replaced)
            before = reflector.version
            for number in range(3):
                await client.create(CONFIG_MAPS, {"metadata": {"name": f"other-{number}"}})
            # It comes when a watch is about to end.
            await eventually(lambda: reflector.version != before)
            assert int(reflector.version) > int(before)
            assert known.objects == {}
        await client.request("DELETE", CONFIG_MAPS)


async def test_a_missing_right_is_named(plane: ControlPlane) -> None:
    async with (
        connected(plane.kubeconfig_of("stranger")) as client,
        following(client, "/api/v1/pods") as (known, _),
    ):
        await eventually(lambda: known.told)
        assert known.told[0] == (
            '/api/v1/pods: pods is forbidden: User "stranger" cannot list resource "pods" '
            'in API group "" at the cluster scope; trying again'
        )


async def test_an_object_that_cannot_be_read_is_named_and_left_out(plane: ControlPlane) -> None:
    class Odd(Object, frozen=True):
        data: dict[str, int] | None = None

    maps = [{"metadata": {"name": "fine"}}, {"metadata": {"name": "odd"}, "data": {"a": "b"}}]
    await asyncio.to_thread(create_many, plane, CONFIG_MAPS, maps)

    async with (
        connected(plane.kubeconfig(ADMIN)) as client,
        following(client, CONFIG_MAPS, Odd) as (known, _),
    ):
        await eventually(lambda: known.replaced)
        assert "fine" in known.objects
        assert "odd" not in known.objects
        assert [line for line in known.told if "default/odd: Expected `int`" in line]
        await client.request("DELETE", CONFIG_MAPS)
        await eventually(lambda: not known.objects)


async def test_a_sink_that_fails_gets_everything_again(plane: ControlPlane) -> None:
    async with connected(plane.kubeconfig(ADMIN)) as client, following(client) as (known, _):
        await eventually(lambda: known.replaced)
        put = known.put
        known.put = lambda item: 1 / 0  # type: ignore[method-assign,assignment]
        await client.create(PODS, named("lost"))
        await eventually(lambda: known.replaced > 1)
        known.put = put  # type: ignore[method-assign]
        assert "lost" in known.objects
        assert known.told[0] == f"{PODS}: division by zero; listing again"
