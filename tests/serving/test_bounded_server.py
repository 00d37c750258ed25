"""What strangers cannot do to a port: take its connections, its time, or its descriptors."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from kube.scripted import run_uvloop
from podium.kube.connections import CONNECT_SECONDS, IDLE_SECONDS
from podium.serving.access.client_certificates import ServerTls
from podium.serving.access.serving_certificate import serving_certificate
from podium.serving.endpoints.bounded_server import PortLimits
from podium.serving.endpoints.http_server import listening, serve_on

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
REQUEST = b"GET / HTTP/1.1\r\nHost: it\r\n\r\n"
ANSWER_END = b"ok\r\n0\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers when the body has come; on /slow, later; on /large, with more than is buffered."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(0.3)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(100 if scope["path"] == "/large" else 0):
        await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
    await send({"type": "http.response.body", "body": b"ok"})


class Port:
    """A server with limits."""

    def __init__(self, port: int) -> None:
        self.number = port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"", tls: ssl.SSLContext | None = None) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number, ssl=tls)
        self._writers.append(writer)
        writer.write(sent)
        return reader, writer

    def send_last(self, sent: bytes) -> None:
        self._writers[-1].write(sent)

    async def get(self, tls: ssl.SSLContext | None = None) -> bytes:
        reader, writer = await self.connect(REQUEST, tls)
        line = await asyncio.wait_for(reader.readline(), 60)
        writer.transport.abort()
        return line

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def served(limits: PortLimits, tls: ssl.SSLContext | None = None) -> AsyncIterator[Port]:
    listener = listening("127.0.0.1", 0)
    port = Port(listener.getsockname()[1])
    task = asyncio.create_task(serve_on(app, listener, limits=limits, tls=tls))
    try:
        yield port
    finally:
        port.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ended(stream: Stream) -> bytes:
    """What comes until the server closes the connection."""
    try:
        return await asyncio.wait_for(stream[0].read(), 60)
    except ConnectionResetError:
        return b""


UVLOOP = pytest.mark.parametrize("run", [run_uvloop])
LOOPS = pytest.mark.parametrize("run", [asyncio.run, run_uvloop])


@LOOPS
@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: it\r\n"])
async def test_a_head_that_does_not_come_ends_the_connection(run: Any, sent: bytes) -> None:
    async with served(PortLimits(head_seconds=0.1)) as port:
        assert await ended(await port.connect(sent)) == b""
        assert (await port.get()).startswith(b"HTTP/1.1 200")


@UVLOOP
async def test_a_second_request_has_a_limit_as_well(run: Any) -> None:
    async with served(PortLimits(head_seconds=0.2)) as port:
        reader, writer = await port.connect(REQUEST)
        await reader.readuntil(ANSWER_END)
        writer.write(b"GET / HT")
        assert await ended((reader, writer)) == b""


@UVLOOP
async def test_a_body_that_does_not_come_ends_the_connection_and_a_slow_answer_does_not(
    run: Any,
) -> None:
    async with served(PortLimits(head_seconds=0.1, body_seconds=0.1)) as port:
        head = b"POST / HTTP/1.1\r\nHost: it\r\nContent-Length: 10\r\n\r\nhalf"
        assert await ended(await port.connect(head)) == b""
        reader, _ = await port.connect(REQUEST.replace(b"GET /", b"GET /slow"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@LOOPS
@pytest.mark.parametrize("secure", [False, True])
async def test_answers_that_nobody_reads_end_their_connections(run: Any, secure: bool) -> None:
    with serving_certificate("", "") as made:
        tls = ServerTls(made.certificate, made.key).context if secure else None
        trusting = ssl._create_unverified_context() if secure else None  # noqa: S323
        async with served(PortLimits(connections=8, unread_seconds=0.5), tls) as port:
            large = REQUEST.replace(b"GET /", b"GET /large")
            for _ in range(8):
                reader, _ = await port.connect(tls=trusting)
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                port.send_last(large)
            await asyncio.sleep(1.5)
            assert (await port.get(trusting)).startswith(b"HTTP/1.1 200")


@LOOPS
@pytest.mark.parametrize("first", [b"/", b"/slow", b"/large"])
async def test_a_request_before_the_last_answer_ends_the_connection(run: Any, first: bytes) -> None:
    """Thousands of them would be kept, with all that belongs to each, until they are answered."""
    async with served(PortLimits()) as port:
        gc.collect()
        before = len(cycles())
        held = [
            await port.connect(REQUEST.replace(b"GET /", b"GET " + first) + REQUEST * 5000)
            for _ in range(4)
        ]
        await asyncio.sleep(0.1)
        assert len(cycles()) - before <= 8
        for each in held:
            assert (await ended(each)).count(b"HTTP/1.1") <= 1
        assert (await port.get()).startswith(b"HTTP/1.1 200")


def cycles() -> list[Any]:
    """The requests that the server keeps."""
    return [each for each in gc.get_objects() if isinstance(each, RequestResponseCycle)]


@UVLOOP
async def test_a_head_without_end_is_not_kept(run: Any) -> None:
    async with served(PortLimits(head_bytes=10_000)) as port:
        stream = await port.connect(b"GET / HTTP/1.1\r\n")
        try:
            for _ in range(100):
                stream[1].write(b"X: " + b"x" * 1000 + b"\r\n")
                await stream[1].drain()
        except ConnectionError:
            return
        assert await ended(stream) == b""


@LOOPS
@pytest.mark.parametrize("secure", [False, True])
async def test_half_open_connections_make_room_for_requests(run: Any, secure: bool) -> None:
    with serving_certificate("", "") as made:
        tls = ServerTls(made.certificate, made.key).context if secure else None
        trusting = ssl._create_unverified_context() if secure else None  # noqa: S323
        async with served(PortLimits(connections=20), tls) as port:
            for _ in range(100):
                await port.connect(b"\x16" if secure else b"GET")
            for _ in range(5):
                assert (await port.get(trusting)).startswith(b"HTTP/1.1 200")


@UVLOOP
async def test_those_give_way_that_have_waited_longest_since_their_last_answer(run: Any) -> None:
    async with served(PortLimits(connections=8)) as port:
        reader, writer = await port.connect(REQUEST)
        await reader.readuntil(ANSWER_END)
        for _ in range(7):
            await port.connect()
        writer.write(REQUEST)
        await reader.readuntil(ANSWER_END)
        assert (await port.get()).startswith(b"HTTP/1.1 200")  # a stranger gave way
        writer.write(REQUEST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@UVLOOP
async def test_a_connection_is_kept_longer_than_clients_wait_to_use_it_again(run: Any) -> None:
    """A binding that meets the end of its connection is not known to be carried out or not."""
    async with served(PortLimits(idle_seconds=1)) as port:
        stream = await port.connect(REQUEST)
        await stream[0].readuntil(ANSWER_END)
        began = time.monotonic()
        assert await ended(stream) == b""
        assert time.monotonic() - began > 0.5
    assert PortLimits().idle_seconds > IDLE_SECONDS + CONNECT_SECONDS


@UVLOOP
async def test_requests_under_way_are_not_ended_by_new_connections(run: Any) -> None:
    async with served(PortLimits(connections=8)) as port:
        slow = REQUEST.replace(b"GET /", b"GET /slow")
        streams = [await port.connect(slow) for _ in range(8)]
        await asyncio.sleep(0.05)
        refused = [await port.connect(REQUEST) for _ in range(10)]
        for each in streams:
            assert (await each[0].readline()).startswith(b"HTTP/1.1 200")
        for each in refused:
            assert await ended(each) == b""


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(1_048_576, 256), (256, 78), (128, 14), (20, 8)]
)
def test_descriptors_are_left_for_the_api_server(descriptors: int, connections: int) -> None:
    assert PortLimits().connections_within(descriptors) == connections


def _peer(port: Port) -> Any:
    async def certificate() -> bytes:
        context = ssl._create_unverified_context()  # noqa: S323
        _, writer = await port.connect(tls=context)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return bytes(found)

    return certificate


@pytest.mark.slow
@UVLOOP
async def test_a_renewed_certificate_is_served_without_a_restart(run: Any, tmp_path: Path) -> None:
    now = [0.0]
    told: list[str] = []
    with serving_certificate("", "") as first, serving_certificate("", "") as second:
        files = tmp_path / "tls.crt", tmp_path / "tls.key"
        for source, target in zip((first.certificate, first.key), files, strict=True):
            shutil.copy(source, target)
        tls = ServerTls(*files, warn=told.append, clock=lambda: now[0])
        async with served(PortLimits(), tls.context) as port:
            certificate = _peer(port)
            before = await certificate()
            shutil.copy(second.certificate, files[0])
            now[0] += 2
            assert await certificate() == before, "its key is still the old one"
            assert len(told) == 1
            assert "cannot be used: key values mismatch" in told[0]
            shutil.copy(second.key, files[1])
            now[0] += 2
            after = await certificate()
            assert after == ssl.PEM_cert_to_DER_cert(second.certificate.read_text())
            assert after != before


_CROWD = """
import socket, sys
them = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) for _ in range(120)]
sys.stdin.read()
"""


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@LOOPS
@pytest.mark.parametrize("over_tls", [False, True])
async def test_a_crowd_takes_no_more_descriptors_than_its_port_may(
    run: Any, *, over_tls: bool
) -> None:
    """They come faster than the event loop ends connections, and wait in the backlog."""
    most: list[int] = []

    with serving_certificate("", "") as made:
        tls = ServerTls(made.certificate, made.key, warn=print).context if over_tls else None
        async with served(PortLimits(connections=8), tls) as port:
            before = descriptors()
            crowd = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _CROWD, str(port.number)), stdin=subprocess.PIPE
            )
            await asyncio.sleep(0)
            time.sleep(1)  # noqa: ASYNC251  all of them come while nothing is accepted
            while len(most) < 300:
                most.append(descriptors() - before)
                await asyncio.sleep(0)
            crowd.kill()
            await crowd.wait()

    # Eight connections, one that is just accepted, and those of the subprocess.
    assert max(most) <= 8 + 1 + 4
