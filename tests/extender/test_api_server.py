"""The extender follows an API server and binds there; how lists and watches go on is for `kube`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from podium.engine.framework.profile import Profile
from podium.engine.state.accounting import ContainerSums
from podium.errors import ConfigError
from podium.extender.cluster_state import ClusterFollower, ExtenderState
from podium.kube.access import access_by_flags
from podium.kube.reflector import Reflector
from waiting import eventually

Steps = Callable[["Api", ClusterFollower, ExtenderState], Awaitable[None]]


class Api:
    """Nodes and pods, listed and watched; tests say what watches see."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {"nodes": [], "pods": []}
        self.bound: list[tuple[str, Any]] = []
        self.binding: tuple[int, Any] = (201, {})
        self.tokens: set[str] = set()
        self._streams: dict[str, asyncio.Queue[bytes | None]] = {}
        self._ended = False

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1/{kind}", self._get)
        app.router.add_post("/api/v1/namespaces/{ns}/pods/{name}/binding", self._bind)
        return app

    async def _get(self, request: web.Request) -> web.StreamResponse:
        self.tokens.add(request.headers.get("Authorization", ""))
        kind = request.match_info["kind"]
        if "watch" in request.query:
            return await self._watch(request, kind)
        found = {"metadata": {"resourceVersion": "1"}, "items": self.lists[kind]}
        return web.json_response(found)

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        queue = self._streams[kind] = asyncio.Queue()
        while not self._ended and (text := await queue.get()) is not None:
            await stream.write(text)
        return stream

    async def _bind(self, request: web.Request) -> web.Response:
        self.bound.append((request.path, await request.json()))
        status, body = self.binding
        return web.json_response(body, status=status)

    async def tell(self, kind: str, event: str, thing: Any) -> None:
        await eventually(lambda: kind in self._streams)
        text = json.dumps({"type": event, "object": thing}).encode() + b"\n"
        self._streams[kind].put_nowait(text)

    def end(self) -> None:
        """All watches end, those as well that are only about to begin."""
        self._ended = True
        for queue in self._streams.values():
            queue.put_nowait(None)


def thing(name: str, version: int, **parts: Any) -> Any:
    metadata = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, **parts}


def follow(steps: Steps, api: Api | None = None) -> tuple[Api, list[str]]:
    """Run the steps while the extender follows the API server."""
    api, told = api or Api(), list[str]()

    async def run() -> None:
        runner = web.AppRunner(api.app(), shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        state = ExtenderState(Profile("own", (), (), ContainerSums()))
        access = access_by_flags(f"http://127.0.0.1:{port}/", token="secret")  # noqa: S106
        async with ClusterFollower(access, state, told.append, first_pause=0.01) as api_server:
            try:
                await steps(api, api_server, state)
            finally:
                api.end()
        await runner.cleanup()

    asyncio.run(run())
    return api, told


def residents(state: ExtenderState, node: str) -> list[str]:
    columns = state.columns
    return [pod.key for pod in columns.pods.residents[columns.nodes.row_of[node]]]


def test_lists_and_events_become_nodes_and_pods() -> None:
    async def steps(api: Api, api_server: ClusterFollower, state: ExtenderState) -> None:
        await eventually(lambda: api_server.synced)
        assert state.has_node("a")
        assert state.has_node("b")
        assert residents(state, "a") == ["d/p"]

        await api.tell("nodes", "ADDED", thing("c", 5))
        await eventually(lambda: state.has_node("c"))
        await api.tell("nodes", "DELETED", thing("c", 6))
        await eventually(lambda: not state.has_node("c"))
        await api.tell("pods", "ADDED", thing("q", 7, spec={"nodeName": "b"}))
        await eventually(lambda: residents(state, "b") == ["d/q"])
        await api.tell(
            "pods", "MODIFIED", thing("q", 8, spec={"nodeName": "b"}, status={"phase": "Failed"})
        )
        await eventually(lambda: residents(state, "b") == [])
        await api.tell("pods", "DELETED", thing("p", 9, spec={"nodeName": "a"}))
        await eventually(lambda: residents(state, "a") == [])

    api = Api()
    api.lists = {
        "nodes": [thing("a", 1), thing("b", 1)],
        "pods": [thing("p", 1, spec={"nodeName": "a"})],
    }
    _, told = follow(steps, api)
    assert told == []
    assert api.tokens == {"Bearer secret"}


def test_what_was_bound_counts_at_once() -> None:
    async def steps(api: Api, api_server: ClusterFollower, state: ExtenderState) -> None:
        await eventually(lambda: api_server.synced)
        assert await api_server.bind("d", "p", "u-p", "a") == ""
        assert residents(state, "a") == ["d/p"]
        # The old news that it has no node comes late and changes nothing.
        await api.tell("pods", "MODIFIED", thing("p", 3, spec={}))
        await api.tell("pods", "MODIFIED", thing("p", 4, spec={"nodeName": "a"}))
        await api.tell("nodes", "ADDED", thing("b", 5))
        await eventually(lambda: state.has_node("b"))
        assert residents(state, "a") == ["d/p"]

        api.binding = (409, {"message": "pod p is already assigned"})
        assert await api_server.bind("d", "p", "u-p", "b") == "pod p is already assigned"
        api.binding = (500, [])
        failed = await api_server.bind("d", "p", "u-p", "b")
        assert failed.endswith("binding: answered with code 500")

    api = Api()
    api.lists = {"nodes": [thing("a", 1)], "pods": [thing("p", 1)]}
    follow(steps, api)
    path, binding = api.bound[0]
    assert path == "/api/v1/namespaces/d/pods/p/binding"
    assert binding["target"] == {"kind": "Node", "name": "a"}
    assert binding["metadata"] == {"name": "p", "namespace": "d", "uid": "u-p"}


def test_a_watch_that_dies_ends_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`podium extender` waits for this, and ends with the error."""

    async def broken(_: Reflector[Any]) -> None:
        raise RuntimeError("a fault")

    async def steps(api: Api, api_server: ClusterFollower, state: ExtenderState) -> None:
        with pytest.raises(RuntimeError, match="a fault"):
            await asyncio.wait_for(api_server.until_dead(), 5)

    monkeypatch.setattr(Reflector, "run", broken)
    follow(steps)


def test_an_authority_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="--certificate-authority /missing"):
        access_by_flags("https://x", ca_file="/missing")
