"""Short requests over kept connections, when servers and networks misbehave."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cases
from kube.scripted import Reply, Scripted, answer, run_uvloop, scripted
from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.credentials import Credentials
from podium.kube.errors import ApiError, UnreachableError
from waiting import eventually

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_uvloop if request.param == "uvloop" else asyncio.run


def says(*replies: bytes) -> Reply:
    """Each in turn, the last for ever."""
    left = list(replies)

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return reply


async def test_one_connection_serves_many_requests(run: Run) -> None:
    async with scripted(says(answer(b'{"a": 1}'))) as (client, script):
        for _ in range(20):
            assert await client.request("POST", "/x", body=b"{}") == b'{"a": 1}'
        assert script.connections == 1
        head = script.heads[0].split("\r\n")
        assert head[0] == "POST /x HTTP/1.1"
        assert {"Accept: application/json", "Content-Type: application/json"} <= {*head}


async def test_a_server_that_closes_each_time(run: Run) -> None:
    async with scripted(says(answer(Connection="close"))) as (client, script):
        for _ in range(5):
            await client.request("POST", "/x", body=b"{}")
        assert script.connections == 5


async def test_an_idle_connection_that_the_server_closed_is_not_used(run: Run) -> None:
    async with scripted(says(answer())) as (client, script):
        await client.request("POST", "/x", body=b"{}")
        [kept] = client._pool._all
        script.writers[0].close()
        await eventually(lambda: kept._transport is None)
        await client.request("POST", "/x", body=b"{}")
        assert script.connections == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_connection_that_ends_instead_of_an_answer(run: Run, method: str) -> None:
    """Reading is tried again. Whether a write was carried out is not known: the caller decides."""
    asked = []

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(writer)
        if len(asked) == 2:
            writer.transport.abort()
            raise ConnectionError
        writer.write(answer())

    async with scripted(reply) as (client, script):
        await client.request(method, "/x")
        if method == "GET":
            await client.request(method, "/x")
        else:
            with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:\d+: "):
                await client.request(method, "/x")
        assert script.asked == [(method, "/x")] * (3 if method == "GET" else 2)
        await client.request(method, "/x")


async def test_answers_in_pieces_of_any_form(run: Run) -> None:
    body = b'{"kind": "Status"}'
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%b\r\nd\r\n%b\r\n0\r\n\r\n"
    )
    whole = chunked % (body[:5], body[5:])
    early = b"HTTP/1.1 100 Continue\r\n\r\n"

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        text = {"/chunked": whole, "/early": early + answer(body)}.get(target, answer(body))
        for byte in text:
            writer.write(bytes([byte]))
            await writer.drain()
            if target == "/slow":
                await asyncio.sleep(0)

    async with scripted(reply) as (client, script):
        for path in ("/chunked", "/early", "/slow", "/chunked"):
            assert await client.request("GET", path) == body
        assert script.connections == 1


async def test_an_answer_that_lasts_until_the_server_hangs_up(run: Run) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall there is")
        await writer.drain()
        writer.close()
        raise ConnectionError

    async with scripted(reply) as (client, _):
        assert await client.request("GET", "/x") == b"all there is"


async def test_half_an_answer_is_none(run: Run) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"complete")[:-3])
        await writer.drain()
        writer.close()
        raise ConnectionError

    async with scripted(reply) as (client, script):
        with pytest.raises(UnreachableError, match="closed before the answer was complete"):
            await client.request("GET", "/x")
        assert script.connections == 1


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",
    ],
    ids=["another protocol", "a change to another protocol"],
)
async def test_what_is_not_http(run: Run, text: bytes) -> None:
    async with scripted(says(text)) as (client, _):
        with pytest.raises(UnreachableError, match="not HTTP"):
            await client.request("GET", "/x")


async def test_silence_ends_in_time_and_its_connection_is_not_used_again(run: Run) -> None:
    given_up = asyncio.Event()

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if target == "/late":
            await given_up.wait()
        writer.write(answer(target.encode()))

    async with scripted(reply) as (client, script):
        with pytest.raises(UnreachableError, match="no answer in time"):
            await client.request("POST", "/late", timeout=0.05)
        given_up.set()
        assert await client.request("POST", "/next") == b"/next"
        assert script.connections == 2


@cases(
    ("before", "limit", "pause", "answered"),
    {
        "shorter than that of the request before": (30.0, 0.1, 60.0, False),
        "longer, and the answer comes after the first": (0.5, 60.0, 1.0, True),
        "longer, and no answer comes": (0.5, 0.8, 60.0, False),
    },
)
async def test_each_request_on_a_connection_has_its_own_time(
    run: Run, before: float, limit: float, pause: float, *, answered: bool
) -> None:
    """Though one timer serves all requests of the connection."""

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if target == "/late":
            await asyncio.sleep(pause)
        writer.write(answer(target.encode()))

    loop = asyncio.get_running_loop()
    async with scripted(reply, connections=1) as (client, script):
        for _ in range(3):
            assert await client.request("POST", "/at-once", timeout=before) == b"/at-once"
        begun = loop.time()
        asked = client.request("POST", "/late", timeout=limit)
        if answered:
            assert await asked == b"/late"
        else:
            with pytest.raises(UnreachableError, match="no answer in time"):
                await asked
            assert limit - 0.01 < loop.time() - begun < 30
        assert script.connections == 1
        assert await client.request("POST", "/next") == b"/next"
        kept = [*client._pool._all]
    assert all(each._alarm is None for each in kept)


async def test_a_request_that_is_given_up_leaves_no_answer_to_the_next(run: Run) -> None:
    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.02)
        writer.write(answer(target.encode()))

    async with scripted(reply, connections=1) as (client, _):
        for number in range(10):
            task = asyncio.create_task(client.request("POST", f"/given-up-{number}"))
            await asyncio.sleep(0.002 * number)
            task.cancel()
            assert await client.request("POST", f"/{number}") == f"/{number}".encode()
            await asyncio.gather(task, return_exceptions=True)


async def test_there_are_never_more_connections_than_wanted(run: Run) -> None:
    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.001)
        writer.write(answer(target.encode()))

    async with scripted(reply, connections=3) as (client, script):
        paths = [f"/{number}" for number in range(50)]
        answers = await asyncio.gather(*(client.request("POST", path) for path in paths))
        assert answers == [path.encode() for path in paths]
        assert script.most_open == script.connections == 3


async def test_waiting_for_a_connection_counts_as_time(run: Run) -> None:
    async def reply(*_: Any) -> None:
        await asyncio.sleep(60)

    async with scripted(reply, connections=1) as (client, script):
        first = asyncio.create_task(client.request("POST", "/first", timeout=0.2))
        await eventually(lambda: script.asked)
        with pytest.raises(UnreachableError, match="no answer in time"):
            await client.request("POST", "/second", timeout=0.05)
        assert script.asked == [("POST", "/first")]
        with pytest.raises(UnreachableError):
            await first


async def test_nobody_is_there(run: Run) -> None:
    async with scripted(says(answer()), lambda _: Access("http://127.0.0.1:1")) as (client, _):
        with pytest.raises(UnreachableError, match=r"^http://127\.0\.0\.1:1: .*refused"):
            await client.request("GET", "/x")


class _Renewed(Credentials):
    """A token that gets better each time it is turned down."""

    def __init__(self) -> None:
        super().__init__("Bearer 0")

    async def renew(self, *, rejected: bool = False) -> bool:
        self.authorization = f"Bearer {int(self.authorization[7:]) + 1}"
        return True


@pytest.mark.parametrize("wanted", [1, 2])
async def test_who_is_not_known_tries_once_more(run: Run, wanted: int) -> None:
    scripts: list[Scripted] = []

    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        known = f"Authorization: Bearer {wanted}\r\n" in scripts[0].heads[-1]
        text = b'{"message": "Unauthorized"}'
        writer.write(answer() if known else answer(text, "401 Unauthorized"))

    async with scripted(reply, lambda url: Access(url, _Renewed())) as (client, script):
        scripts.append(script)
        if wanted == 1:
            await client.request("POST", "/x", body=b"{}")
        else:
            with pytest.raises(ApiError, match="credentials are not accepted") as caught:
                await client.request("POST", "/x", body=b"{}")
            assert caught.value.status == 401
        assert len(script.asked) == 2


@cases(
    ("reply", "retry_after", "message"),
    {
        "in a header": (
            answer(b"Too many requests", "429 Too Many Requests", Retry_After="3"),
            3.0,
            "Too many requests",
        ),
        "in the status": (
            answer(b'{"message": "wait", "details": {"retryAfterSeconds": 7}}', "503 Unavailable"),
            7.0,
            "wait",
        ),
        "not at all": (answer(b"<html>", "502 Bad Gateway"), None, "answered with code 502"),
    },
)
async def test_how_long_to_wait_is_said(
    run: Run, reply: bytes, retry_after: float | None, message: str
) -> None:
    slept: list[float] = []

    async with scripted(says(reply, reply), sleep=noting(slept)) as (client, server):
        with pytest.raises(ApiError, match=message) as caught:
            await client.request("POST", "/x", body=b"{}")
        assert caught.value.retry_after == retry_after
        assert slept == ([] if retry_after is None else [retry_after])
        assert len(server.asked) == 1 + len(slept)


def noting(slept: list[float]) -> Callable[[float], Awaitable[None]]:
    """A sleep that takes no time, and notes how long it should have been."""

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return sleep


TOO_MANY = answer(b"Too many requests", "429 Too Many Requests", Retry_After="3")


@pytest.mark.parametrize("method", ["GET", "PATCH", "POST", "DELETE"])
async def test_a_request_is_sent_again_after_the_pause_that_was_asked_for(
    run: Run, method: str
) -> None:
    slept: list[float] = []

    async with scripted(says(TOO_MANY, answer(b"done")), sleep=noting(slept)) as (client, _):
        assert await client.request(method, "/x") == b"done"
        assert slept == [3.0]


@pytest.mark.parametrize(
    ("seconds", "limit"), [("11", 30.0), ("3", 2.0)], ids=["too long", "beyond the timeout"]
)
async def test_a_longer_pause_is_left_to_the_caller(run: Run, seconds: str, limit: float) -> None:
    slept: list[float] = []
    reply = answer(b"", "429 Too Many Requests", Retry_After=seconds)

    async with scripted(says(reply), sleep=noting(slept)) as (client, server):
        with pytest.raises(ApiError) as caught:
            await client.request("GET", "/x", timeout=limit)
        assert caught.value.retry_after == float(seconds)
        assert (slept, len(server.asked)) == ([], 1)


@pytest.mark.parametrize("text", [b"<html>", b"[]", b""], ids=["a page", "a list", "nothing"])
@cases(
    "ask",
    {
        "get": lambda client: client.get("/x"),
        "create": lambda client: client.create("/x", {}),
        "put": lambda client: client.put("/x", {}),
        "patch": lambda client: client.patch("/x", {}),
        "delete": lambda client: client.delete("/x"),
    },
)
async def test_an_answer_that_is_no_object_is_none(text: bytes, ask: Callable[[Any], Any]) -> None:
    """A proxy answers in place of the API server: what became of the request is not known."""
    async with scripted(says(answer(text))) as (client, _):
        with pytest.raises(UnreachableError, match="/x: the answer cannot be read: "):
            await ask(client)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nHost: evil", "/ü", "a"])
async def test_a_path_cannot_smuggle_anything_in(path: str) -> None:
    async with scripted(says(answer())) as (client, script):
        with pytest.raises(InputError, match="no path of a request"):
            await client.request("GET", path)
        assert script.asked == []


_DEEDS = ("answer", "answer", "answer", "late", "cut", "half", "close", "never", "garbage")


def misbehaving(deeds: list[str], rng: random.Random) -> Reply:
    """Does one deed after the other, and behaves when none is left."""

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        deed = deeds.pop() if deeds else "answer"
        text = answer(target.encode())
        texts = {
            "cut": b"",
            "garbage": b"\x00nothing of sense\r\n\r\n",
            "half": text[: rng.randrange(len(text))],
        }
        await asyncio.sleep({"never": 60.0, "late": rng.random() * 0.06}.get(deed, 0.0))
        writer.write(texts.get(deed, text))
        await writer.drain()
        if deed in {"cut", "half", "close"}:
            writer.close()
            raise ConnectionError

    return reply


@settings(max_examples=40)
@given(
    deeds=st.lists(st.sampled_from(_DEEDS), min_size=1, max_size=40),
    at_once=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_whatever_happens_nobody_gets_the_answer_of_another(
    deeds: list[str], at_once: int, seed: int
) -> None:
    """Each request is answered with its own path, or fails; and none waits for ever."""
    paths, left = [f"/{number}" for number in range(len(deeds))], list(deeds)

    async def main() -> None:
        reply = misbehaving(left, random.Random(seed))  # noqa: S311
        async with scripted(reply, connections=at_once) as (client, _):

            async def ask(path: str, seconds: float = 0.05) -> bool:
                try:
                    got = await client.request("POST", path, body=b"{}", timeout=seconds)
                except UnreachableError:
                    return False
                assert got == path.encode()
                return True

            await asyncio.gather(*map(ask, paths))
            left.clear()
            # Afterwards it works as on the first day, once connections that were closed just now
            # have been noticed.
            assert any([await ask("/again", 10) for _ in range(at_once + 1)])
            assert all([await ask(path, 10) for path in paths])
            pool = client._pool
            assert len(pool._all) <= at_once
            assert sorted(pool._idle, key=id) == sorted(pool._all, key=id)
            assert pool._opening == len(pool._waiting) == 0

    asyncio.run(main())


def test_a_server_that_asks_for_hours_is_asked_again_sooner_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"", "429 Too Many Requests", Retry_After="3600"))

    async def run() -> list[float | None]:
        found = []
        async with scripted(reply) as (client, _):
            for _ in range(3):
                with pytest.raises(ApiError) as caught:
                    await client.get("/version")
                found.append(caught.value.retry_after)
        return found

    assert asyncio.run(run()) == [30.0] * 3
    assert caplog.text.count("Retry-After 3600 s; it is asked again after 30 s") == 1
