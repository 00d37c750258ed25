"""The connection of a watch, when servers, networks and readers misbehave."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.reflecting import following
from kube.scripted import Reply, Scripted, answer, run_uvloop, scripted
from kube.test_answers import chunked
from podium.kube import watch_stream
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.credentials import Credentials
from podium.kube.errors import ApiError, UnreachableError
from podium.objects.kinds.meta import Object
from podium.serving.access.serving_certificate import serving_certificate
from waiting import eventually

Run = Callable[[Coroutine[Any, Any, None]], None]
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = "closed before the answer was complete"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_uvloop if request.param == "uvloop" else asyncio.run


def sends(*pieces: bytes, closes: bool = False, then: float = 0) -> Reply:
    """Send the pieces, each in a turn of its own; then wait; then close the connection."""

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.sleep(then)
        if closes:
            writer.close()
            raise ConnectionError

    return reply


class _Way:
    """How the tests of this module read the pieces of a watch."""

    handed = False


@pytest.fixture(autouse=True, scope="module", params=["iterated", "handed on"])
def way(request: pytest.FixtureRequest) -> None:
    """Run every test twice: pieces are iterated over, or handed to a function."""
    _Way.handed = request.param == "handed on"


async def read(
    client: ApiClient,
    idle_seconds: float = 20,
    taken: Callable[[bytes], Awaitable[None]] | None = None,
) -> bytes:
    """The whole body of a watch; *taken* is called after each piece, which is then iterated."""
    got: list[bytes] = []
    if _Way.handed and taken is None:
        accepted: list[bool] = []
        await client.watch(
            "/w",
            {"watch": "1"},
            got.append,
            idle_seconds=idle_seconds,
            opened=partial(accepted.append, True),
        )
        assert accepted == [True]
        return b"".join(got)
    async with client.stream("/w", {"watch": "1"}, idle_seconds=idle_seconds) as pieces:
        async for piece in pieces:
            got.append(piece)
            if taken is not None:
                await taken(piece)
    return b"".join(got)


def whole_and_cut(text: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[start:end] for start, end in pairwise(places)]


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "chunks": lambda body: HEAD + chunked(body, [1, 4], b"", b""),
    "chunk extension": lambda body: HEAD + chunked(body, [2], b";a=b", b""),
    "trailers": lambda body: HEAD + chunked(body, [3], b"", b"Retry-After: 3\r\n"),
    "length": answer,
    "length, closed": lambda body: answer(body, Connection="close"),
    "no length": lambda body: b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body,
    "1.0": lambda body: b"HTTP/1.0 200 OK\r\n\r\n" + body,
    "1.0, length": lambda body: b"HTTP/1.0 200 OK\r\ncontent-LENGTH: %d\r\n\r\n" % len(body) + body,
    "early": lambda body: (
        b"HTTP/1.1 103 Early\r\nLink: x\r\nContent-Length: 0\r\n\r\n" * 2
        + b"HTTP/1.1 200 OK\r\n\r\n"
        + body
    ),
}


@settings(max_examples=100)
@given(
    form=st.sampled_from(sorted(FORMS)),
    body=st.sampled_from((b"", b"{}\n", '{"ü": "\U0001f600"}\n{}\n'.encode(), b"\r\n\r\n")),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_a_watch_is_the_same_however_its_answer_is_cut(
    form: str, body: bytes, cuts: list[int]
) -> None:
    """Also inside the line with the length of a chunk, and inside a character."""
    pieces = whole_and_cut(FORMS[form](body), cuts)

    async def main() -> None:
        async with scripted(sends(*pieces, closes=True)) as (client, _):
            assert await read(client) == body

    asyncio.run(main())


@pytest.mark.parametrize("form", FORMS)
async def test_a_watch_in_single_bytes(run: Run, form: str) -> None:
    body = '{"ü": 1}\n'.encode()
    pieces = [bytes([byte]) for byte in FORMS[form](body)]

    async with scripted(sends(*pieces, closes=True)) as (client, _):
        assert await read(client) == body


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="before the answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Enc", id="in the headers"),
        pytest.param(b"HTTP/1.1 103 Early\r\n\r\n", id="after an informational answer"),
        pytest.param(HEAD, id="before the first chunk"),
        pytest.param(HEAD + b"5\r\n{}\n", id="in a chunk"),
        pytest.param(HEAD + b"3\r\n{}\n\r", id="at the end of a chunk"),
        pytest.param(HEAD + b"3\r\n{}\n\r\n", id="between chunks"),
        pytest.param(HEAD + b"3\r\n{}\n\r\n1", id="in the length of a chunk"),
        pytest.param(HEAD + b"3\r\n{}\n\r\n0\r\n", id="before the end of the last chunk"),
        pytest.param(HEAD + b"3\r\n{}\n\r\n0\r\nT: ", id="in a trailer"),
        pytest.param(answer(b"{}\n")[:-1], id="in a body of known length"),
    ],
)
async def test_a_watch_that_is_cut_off_is_no_end(run: Run, text: bytes) -> None:
    async with scripted(sends(text, closes=True)) as (client, _):
        with pytest.raises(UnreachableError, match=CUT):
            await read(client)


async def test_a_reflector_continues_a_watch_that_was_cut_in_a_chunk() -> None:
    """From the last event that came whole, without a new list."""
    item = b'{"metadata":{"name":"a","resourceVersion":"%d","uid":"\xc3\xbc"}}'
    first = b'{"type":"ADDED","object":%b}\n' % (item % 5)
    second = b'{"type":"MODIFIED","object":%b}\n' % (item % 6)

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if "watch=1" not in target:
            writer.write(answer(b'{"metadata":{"resourceVersion":"1"},"items":[]}'))
            return
        text = first + second
        whole = HEAD + b"%x\r\n" % len(text) + text
        writer.write(whole[: -(4 if "resourceVersion=1&" in target else 0) or None])
        await writer.drain()
        if "resourceVersion=1&" in target:
            writer.close()
            raise ConnectionError
        await asyncio.sleep(60)

    async with scripted(reply) as (client, script), following(client, "/x", Object) as got:
        known, reflector = got
        await eventually(lambda: reflector.version == "6", seconds=10)
        assert known.replaced == 1
        assert [CUT in line for line in known.told] == [True]
        asked = [target for _, target in script.asked]
        assert len(asked) == 3
        assert "resourceVersion=5&" in asked[2]


@pytest.mark.parametrize("behind", [answer(b"other"), b"rubbish", answer(b"other")[:5]])
async def test_what_follows_the_end_is_not_read(run: Run, behind: bytes) -> None:
    for text in (answer(b"{}\n"), HEAD + chunked(b"{}\n", [], b"", b"")):
        async with scripted(sends(text + behind, then=60)) as (client, _):
            assert await read(client) == b"{}\n"


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n",
        HEAD + b"zz\r\n{}\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",
    ],
    ids=["another protocol", "two lengths", "a length that is none", "an upgrade"],
)
async def test_what_is_not_http(run: Run, text: bytes) -> None:
    async with scripted(sends(text, then=60)) as (client, _):
        with pytest.raises(UnreachableError, match="not HTTP"):
            await read(client)


@pytest.mark.parametrize(
    "text",
    [
        answer(b'{"message": "too old"}', "410 Gone", Retry_After="3"),
        answer(b'{"message": "too old"}', "410 Gone", RETRY_after="3", Connection="close"),
        b"HTTP/1.1 410 Gone\r\nretry-AFTER: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunked(b'{"message": "too old"}', [4, 9], b"", b"Retry-After: 9\r\n"),
        b'HTTP/1.0 410 Gone\r\nRetry-After: 3\r\n\r\n{"message": "too old"}',
    ],
    ids=["length", "closed", "chunked", "1.0"],
)
async def test_a_watch_that_is_refused(run: Run, text: bytes) -> None:
    for pieces in ([text], whole_and_cut(text, [*range(len(text))])):
        async with scripted(sends(*pieces, closes=True)) as (client, _):
            with pytest.raises(ApiError, match="too old") as caught:
                await read(client)
            assert (caught.value.status, caught.value.retry_after) == (410, 3.0)


@pytest.mark.parametrize(
    "text",
    [b"", HEAD, HEAD + b"3\r\n{}\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{}\n"],
    ids=["no answer", "no piece", "one piece", "one piece without length"],
)
async def test_silence_is_no_end(run: Run, text: bytes) -> None:
    async with scripted(sends(text, then=60)) as (client, _):
        with pytest.raises(UnreachableError, match="no answer in time"):
            await read(client, idle_seconds=0.1)


async def test_silence_is_no_end_for_a_reader_that_was_busy_either(run: Run) -> None:
    """An answer without a length ends with its connection, unless that was ended from here."""
    text = b"HTTP/1.1 200 OK\r\n\r\n{}\n"
    async with scripted(sends(text, then=60)) as (client, _):

        async def busy(piece: bytes) -> None:
            assert piece == b"{}\n"
            [watch] = client._watches
            await eventually(lambda: watch._error is not None)

        with pytest.raises(UnreachableError, match="no answer in time"):
            await read(client, 0.05, busy)


async def test_pieces_that_come_slowly_are_no_silence(run: Run) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for _number in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"3\r\n{}\n\r\n")
        writer.write(b"0\r\n\r\n")

    async with scripted(reply) as (client, _):
        assert await read(client, idle_seconds=0.4) == b"{}\n" * 8


@pytest.mark.parametrize("text", [b"", HEAD, HEAD + b"3\r\n{}\n\r\n"], ids=len)
def test_a_watch_that_is_cancelled_closes_its_connection(run: Run, text: bytes) -> None:
    async def main() -> None:
        async with scripted(sends(text, then=60)) as (client, script):
            reader = asyncio.create_task(read(client))
            await received(client, script, text)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert await asyncio.wait_for(hung_up(script), 60)
            assert not client._watches

    checked(run, main)


async def received(client: ApiClient, script: Scripted, text: bytes) -> None:
    """Wait until the request was sent, and the head of the answer has come if it has one."""
    await eventually(lambda: script.asked)
    await eventually(lambda: not text or all(each.status.done() for each in client._watches))


async def hung_up(script: Scripted) -> bool:
    """Wait until the client has closed its connections; the server notices as it sends."""
    while not all(writer.transport.is_closing() for writer in script.writers):
        for writer in script.writers:
            if not writer.transport.is_closing():
                writer.write(b"1\r\n\n\r\n")
        await asyncio.sleep(0.01)
    return True


def checked(run: Run, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it; a socket or task that it leaves open is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main())
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


@pytest.mark.parametrize("turns", range(12))
def test_a_watch_may_be_cancelled_at_any_moment(
    run: Run, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with scripted(sends(HEAD, b"3\r\n{}\n\r\n", then=60)) as (client, script):
            reader = asyncio.create_task(read(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert not client._watches
            assert await asyncio.wait_for(hung_up(script), 60)

    checked(run, main)
    assert caplog.messages == [], "an error of the connection was logged"


@pytest.mark.parametrize(
    "text",
    [b"", HEAD, b"HTTP/1.1 200 OK\r\n\r\n{}\n"],
    ids=["no answer", "chunks", "without length"],
)
def test_the_end_of_the_client_cuts_its_watches(run: Run, text: bytes) -> None:
    async def main() -> None:
        async with scripted(sends(text, then=60)) as (client, script):
            reader = asyncio.create_task(read(client))
            await received(client, script, text)
            await client.__aexit__()
            with pytest.raises(UnreachableError, match="closed"):
                await asyncio.wait_for(reader, 60)
            assert await asyncio.wait_for(hung_up(script), 60)

    checked(run, main)


class _Broken(Credentials):
    """Credentials whose renewal fails."""

    async def renew(self, *, rejected: bool = False) -> bool:
        raise UnreachableError(f"no token, rejected: {rejected}")


def test_credentials_that_cannot_be_renewed_leave_no_connection(run: Run) -> None:
    async def main() -> None:
        reply = sends(answer(b"{}", "401 Unauthorized"), then=60)
        access = lambda url: Access(url, _Broken("Bearer old"))  # noqa: E731
        async with scripted(reply, access) as (client, script):
            with pytest.raises(ApiError, match="no token"):
                await read(client)
            assert not client._watches
            assert await asyncio.wait_for(hung_up(script), 60)

    checked(run, main)


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_a_slow_reader_lets_the_server_wait(run: Run, *, secure: bool) -> None:
    chunk, count = b"x" * 65536, 600
    sent = 0

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD)
        for _number in range(count):
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    with serving_certificate("", "") as made:
        server, trust = contexts(made) if secure else (None, None)
        access = lambda url: Access(url, tls=trust)  # noqa: E731
        async with scripted(reply, access, tls=server) as (client, _):
            size = most = 0
            async with client.stream("/w", {}, idle_seconds=0.3) as pieces:
                async for piece in pieces:
                    if not size:
                        await asyncio.sleep(1)  # longer than silence may last
                        assert sent < count / 2, "the server never waited"
                    size += len(piece)
                    [watch] = client._watches
                    most = max(most, sum(map(len, watch._pieces)))
            assert size == count * len(chunk)
            assert watch_stream._MOST_BYTES // 2 < most < 2 * watch_stream._MOST_BYTES


def contexts(made: Any) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.certificate, made.key)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return server, trust


def test_a_slow_reader_may_stop_while_the_server_waits(run: Run) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async def main() -> None:
        async with scripted(reply) as (client, _):

            async def stop(_: bytes) -> None:
                """End the watch while the server waits, and read on."""
                for watch in [*client._watches]:
                    await eventually(partial(getattr, watch, "_paused"), seconds=10)
                    client._watches.discard(watch)
                    watch.abort()

            with pytest.raises(UnreachableError, match="closed"):
                await read(client, 20, stop)

    checked(run, main)


@pytest.mark.parametrize("then", ["ends", "is cut", "is cancelled", "is silent"])
def test_watches_over_tls(run: Run, then: str) -> None:
    body = '{"ü": 1}\n'.encode() * 3
    text = HEAD + chunked(body, [4, 5, 11], b"", b"")
    pieces = whole_and_cut(text if then == "ends" else text[:-9], [*range(0, 99, 7)])

    async def main() -> None:
        with serving_certificate("", "") as made:
            server, trust = contexts(made)
            reply = sends(*pieces, closes=then == "is cut", then=0 if then == "is cut" else 60)
            access = lambda url: Access(url, tls=trust)  # noqa: E731
            async with scripted(reply, access, tls=server) as (client, script):
                reader = asyncio.create_task(read(client, 0.3 if then == "is silent" else 20))
                if then == "ends":
                    assert await reader == body
                elif then == "is cancelled":
                    await received(client, script, text)
                    reader.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await reader
                else:
                    words = CUT if then == "is cut" else "no answer in time"
                    with pytest.raises(UnreachableError, match=words):
                        await reader
                assert not client._watches

    checked(run, main)


async def turns_beside(pieces: int, *, busy_seconds: float, slow_seconds: float) -> int:
    """How many turns a task gets that is busy in each, while pieces that have come are read."""
    now = 0.0
    connection = watch_stream.WatchConnection(clock=lambda: now)
    connection.data_received(HEAD + b"3\r\n{}\n\r\n" * pieces + b"0\r\n\r\n")
    turns, ended = 0, False

    async def others() -> None:
        nonlocal turns, now
        while not ended:
            turns += 1
            now += busy_seconds  # as a decision
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    read = 0
    async for piece in connection.pieces():
        now += slow_seconds  # as what follows from a change
        read += len(piece)
    ended = True
    await beside
    assert read == 3 * pieces
    return turns


async def test_a_loop_that_is_always_busy_does_not_fall_behind_a_watch(run: Run) -> None:
    """A scheduler with thousands of pods to decide about sees changes of its cluster in time."""
    busy = watch_stream.SLICE_SECONDS
    assert await turns_beside(2_000, busy_seconds=busy, slow_seconds=busy / 1000) <= 3


async def test_other_tasks_run_while_many_changes_are_read(run: Run) -> None:
    slow = watch_stream.SLICE_SECONDS / 2
    assert await turns_beside(30, busy_seconds=0.0, slow_seconds=slow) >= 10


def test_an_error_of_the_reader_ends_the_watch(run: Run) -> None:
    """It is raised as it is, no later piece is handed on, and the connection is closed."""
    got: list[bytes] = []

    def take(piece: bytes) -> None:
        got.append(piece)
        if piece == b"2\n":
            raise ApiError("no longer", status=410)

    async def main() -> None:
        for together in (False, True):
            got.clear()
            chunks = [b"2\r\n%d\n\r\n" % number for number in range(1, 5)]
            pieces = [HEAD + b"".join(chunks)] if together else [HEAD, *chunks]
            async with scripted(sends(*pieces, then=60)) as (client, script):
                with pytest.raises(ApiError, match="no longer"):
                    await client.watch("/w", {}, take, idle_seconds=20, opened=lambda: None)
                assert not client._watches
                assert await asyncio.wait_for(hung_up(script), 60)
            assert got == [b"1\n", b"2\n"]

    checked(run, main)


async def test_pieces_that_come_alone_and_in_bursts_are_handed_on_in_order(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are handed on as they are received, or wait for the task behind a burst."""
    monkeypatch.setattr(watch_stream, "_BURST_BYTES", 64)
    monkeypatch.setattr(watch_stream, "SLICE_SECONDS", 0.0)
    numbers = b"".join(b"%d\n" % number for number in range(2000))
    cuts = (3, 200, 1, 90, 30, 500) * 12
    pieces = [HEAD]
    start = 0
    for cut in cuts:
        part = numbers[start : start + cut]
        pieces.append(b"".join(b"1\r\n%c\r\n" % byte for byte in part))
        start += len(part)
    body = numbers[:start]

    async with scripted(sends(*pieces, b"0\r\n\r\n", then=60)) as (client, _):
        assert await read(client) == body


async def test_a_burst_lets_other_tasks_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long burst is handed on for 5 ms at a time, also to a function."""
    monkeypatch.setattr(watch_stream, "SLICE_SECONDS", 0.002)
    text = HEAD + b"3\r\n{}\n\r\n" * 40_000
    longest, last = 0.0, 0.0

    async def others() -> None:
        nonlocal longest, last
        last = time.process_time()  # what other programs do is not counted
        while True:
            await asyncio.sleep(0)
            now = time.process_time()
            longest, last = max(longest, now - last), now

    def take(_: bytes) -> None:
        until = time.process_time() + 0.00002
        while time.process_time() < until:
            pass

    async with scripted(sends(text + b"0\r\n\r\n", then=60)) as (client, _):
        beside = asyncio.create_task(others())
        await client.watch("/w", {}, take, idle_seconds=20, opened=lambda: None)
        beside.cancel()
    assert longest < 0.3  # 40,000 pieces take 0.8 s together
