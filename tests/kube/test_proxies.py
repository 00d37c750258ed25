"""Through an HTTP proxy, as kubeconfig files and the environment name them."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from control_plane.harness import ADMIN, ControlPlane
from extender.scripted import certificate
from kube.reflecting import PODS, connected, following
from kube.scripted import answer, run_uvloop, scripted
from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.api import BINARY_OR_JSON
from podium.kube.client import ApiClient
from podium.kube.errors import UnreachableError
from podium.kube.proxies import proxy_of
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
        host = "127.0.0.1" if host == "api.test" else host
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
async def tunnel(tls: ssl.SSLContext | None = None) -> AsyncIterator[Tunnel]:
    made = Tunnel()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    made.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("run", [asyncio.run, run_uvloop])
@pytest.mark.parametrize("by", ["kubeconfig", "environment", "https"])
async def test_everything_goes_through_the_proxy(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, run: Any
) -> None:
    tls = None
    if by == "https":
        pair = certificate(tmp_path, "proxy.test")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*pair)
        monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))

    async with tunnel(tls) as proxy:
        document = json.loads(control_plane.kubeconfig(ADMIN).read_text("utf-8"))
        where = control_plane.url.removeprefix("https://")
        if by == "environment":
            monkeypatch.delenv("HTTPS_PROXY", raising=False)
            monkeypatch.setenv("https_proxy", proxy.url)
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            # Only servers elsewhere are talked to through a proxy that the environment names.
            where = where.replace("127.0.0.1", "api.test")
            document["clusters"][0]["cluster"] |= {
                "server": f"https://{where}",
                "tls-server-name": "127.0.0.1",
            }
        else:
            document["clusters"][0]["cluster"]["proxy-url"] = proxy.url
        path = tmp_path / "config"
        path.write_text(json.dumps(document), "utf-8")
        async with connected(path) as client, following(client) as (known, _):
            await eventually(lambda: known.replaced)
            assert (await client.get(PODS))["kind"] == "PodList"
            reading = client.reading(PODS, {}, seconds=20, accept=BINARY_OR_JSON)
            async with reading as pieces:
                assert b"".join([piece async for piece in pieces]).startswith(MAGIC)
        assert {*proxy.asked} == {f"CONNECT {where} HTTP/1.1"}


@pytest.mark.parametrize(
    ("answered", "sentence"),
    [
        (b"HTTP/1.1 407 Who are you\r\n\r\n", "answered with 407 Who are you"),
        (b"", "the proxy closed the connection"),
        (b"x" * 70_000, "the proxy closed the connection"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel(answered: bytes, sentence: str) -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answered)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        access = Access("https://[::1]:6443", proxy=f"http://us:s%40cret@127.0.0.1:{port}")
        async with ApiClient(access) as client:
            with pytest.raises(UnreachableError, match=sentence):
                await client.get("/version")

    secret = base64.b64encode(b"us:s@cret").decode()
    asked = "CONNECT [::1]:6443 HTTP/1.1\r\nHost: [::1]:6443\r\n"
    assert heads == [f"{asked}Proxy-Authorization: Basic {secret}\r\n\r\n"]


@pytest.mark.parametrize(
    "url",
    [
        "socks5://us:secret@there:1",
        "http://there:x",
        "http://",
        "http://[::1",
        "http://a..b",
    ],
)
def test_a_proxy_that_is_not_supported(url: str) -> None:
    with pytest.raises(InputError, match="is not supported") as caught:
        ApiClient(Access("https://api.example.com", proxy=url))

    assert "secret" not in str(caught.value)


async def test_a_proxy_that_is_not_there_is_not_passed_by() -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())

    async with scripted(reply) as (direct, script):
        client = ApiClient(Access(direct.access.url, proxy="http://127.0.0.1:1"))
        with pytest.raises(UnreachableError, match="connection refused"):
            await client.request("GET", "/x")
        with pytest.raises(UnreachableError, match="connection refused"):
            async with client.stream("/x", {}, idle_seconds=1):
                pass
        assert script.asked == []


@pytest.mark.parametrize(
    ("url", "excluded", "is_used"),
    [
        ("https://api.example.com", "", True),
        ("https://localhost:6443", "", False),
        ("http://127.0.0.1:8480", "", False),
        ("https://[::1]:6443", "", False),
        ("https://10.0.0.1", "localhost, 10.0.0.0/8", False),
        ("https://11.0.0.1", "10.0.0.0/8", True),
        ("https://[fd00::1]", "fd00::/8", False),
        ("https://10.0.0.1", "10.0.0.1", False),
        ("https://10.0.0.1", "*", False),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://API.example.com", ".Example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://anexample.com", "example.com", True),
        ("https://api.example.com:6443", "example.com:6443", False),
        ("https://api.example.com:6443", "example.com:443", True),
    ],
)
def test_what_the_proxy_of_the_environment_is_not_for(
    monkeypatch: pytest.MonkeyPatch, url: str, excluded: str, is_used: bool
) -> None:
    """As kubectl decides it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", excluded)

    assert (proxy_of(Access(url)) is not None) is is_used


async def test_all_groups_of_whom_it_speaks_for_go_through_the_proxy() -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answer(b"{}"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        proxy = f"us:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        groups = [("Impersonate-Group", each) for each in ("readers", "writers")]
        access = Access(
            "http://api.example.com",
            proxy=proxy,
            extra_headers=[("Impersonate-User", "ann"), *groups],
        )
        async with ApiClient(access) as client:
            await client.get("/version")

    [head] = heads
    secret = base64.b64encode(b"us:secret").decode()
    assert head.startswith("GET http://api.example.com/version HTTP/1.1\r\n")
    assert "\r\nHost: api.example.com\r\n" in head
    assert f"Proxy-Authorization: Basic {secret}\r\n" in head
    assert head.count("Impersonate-Group: ") == 2
    assert "Impersonate-Group: readers\r\n" in head
    assert "Impersonate-Group: writers\r\n" in head
