"""Through an HTTP proxy, as kubeconfig files and the environment name them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from control_plane.harness import ADMIN, ControlPlane
from kube.reflecting import PODS, connected, following
from kube.scripted import answer, scripted
from podium.kube.access import Access
from podium.kube.api import BINARY_OR_JSON
from podium.kube.client import ApiClient
from podium.objects.protobuf.wire import MAGIC
from waiting import eventually


class Tunnel:
    """A proxy that does what CONNECT asks for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split("\r\n")[0])
        host, _, port = head.split(" ")[1].rpartition(":")
        upstream_reader, upstream = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(pump(reader, upstream), pump(upstream_reader, writer))
        finally:
            for each in (writer, upstream):
                each.transport.abort()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def tunnel() -> AsyncIterator[Tunnel]:
    made = Tunnel()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("by", ["kubeconfig", "environment"])
def test_everything_goes_through_the_proxy(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    async def run() -> None:
        async with tunnel() as proxy:
            document = json.loads(control_plane.kubeconfig(ADMIN).read_text("utf-8"))
            if by == "kubeconfig":
                document["clusters"][0]["cluster"]["proxy-url"] = proxy.url
            else:
                monkeypatch.setenv("https_proxy", proxy.url)
                monkeypatch.delenv("no_proxy", raising=False)
            path = tmp_path / "config"
            path.write_text(json.dumps(document), "utf-8")
            async with connected(path) as client, following(client) as (known, _):
                await eventually(lambda: known.replaced)
                assert (await client.get(PODS))["kind"] == "PodList"
                reading = client.reading(PODS, {}, seconds=20, accept=BINARY_OR_JSON)
                async with reading as pieces:
                    assert b"".join([piece async for piece in pieces]).startswith(MAGIC)
            where = control_plane.url.removeprefix("https://")
            assert {*proxy.asked} == {f"CONNECT {where} HTTP/1.1"}

    asyncio.run(run())


def test_a_client_that_is_closed_does_not_pass_the_proxy_by() -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())

    async def run() -> None:
        async with scripted(reply) as (direct, script):
            client = ApiClient(Access(direct.access.url, proxy="http://127.0.0.1:1"))
            with pytest.raises(AssertionError, match="async with"):
                await client.request("GET", "/x")
            with pytest.raises(AssertionError, match="async with"):
                async with client.stream("/x", {}, idle_seconds=1):
                    pass
            assert script.asked == []

    asyncio.run(run())


def test_all_groups_of_whom_it_speaks_for_go_through_the_proxy() -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer(b"{}"))
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            groups = [("Impersonate-Group", each) for each in ("readers", "writers")]
            access = Access(
                "http://api.example.com",
                proxy=proxy,
                extra_headers=[("Impersonate-User", "ann"), *groups],
            )
            async with ApiClient(access) as client:
                await client.get("/version")

    asyncio.run(run())

    [head] = heads
    assert head.count("Impersonate-Group: ") == 2
    assert "Impersonate-Group: readers\r\n" in head
    assert "Impersonate-Group: writers\r\n" in head
