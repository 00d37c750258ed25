"""The secure port: who asks and whether they may is what the API server says."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from podium.kube.errors import ApiError, UnreachableError
from podium.serving.access import delegated_access
from podium.serving.access.delegated_access import (
    ACCESS_REVIEWS,
    MOST_ANONYMOUS_REVIEWS,
    MOST_ANONYMOUS_WAITING,
    MOST_KEPT,
    MOST_REVIEWS,
    MOST_UNPROVEN_REVIEWS,
    MOST_UNPROVEN_WAITING,
    MOST_WAITING,
    TOKEN_REVIEWS,
    DelegatedAccess,
)

USERS = {"good": {"username": "ann", "uid": "7", "groups": ["readers"], "extra": {"a": ["b"]}}}


class Reviews:
    """An API server that knows one token, and lets its user read the metrics."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.error: ApiError | None = None

    async def create(self, path: str, obj: dict[str, Any]) -> Any:
        self.asked.append((path, obj["spec"]))
        if self.error is not None:
            raise self.error
        if path == TOKEN_REVIEWS:
            user = USERS.get(obj["spec"]["token"])
            return {"status": {"authenticated": user is not None, "user": user}}
        spec = obj["spec"]
        path = spec["nonResourceAttributes"]["path"]
        may = spec["user"] == "ann" and path in {"/metrics", "/denied"}
        return {"status": {"allowed": may, "denied": path == "/denied"}}


async def asked(port: Port, path: str, token: str) -> int:
    """The code of the answer to a request with a token."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "path": path, "method": "GET", "headers": headers}
    await port.app(scope, None, send)
    return int(sent[0]["status"])


class Port:
    """A secure port before an application that answers every path."""

    def __init__(self) -> None:
        self.reviews, self.now = Reviews(), 0.0

        async def answer(request: Request) -> PlainTextResponse:
            return PlainTextResponse("served")

        app = Starlette(routes=[Route("/{path:path}", answer)])
        self.app: Any = DelegatedAccess(app, self.reviews, lambda: self.now)

    def get(self, path: str, authorization: str = "") -> tuple[int, str]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        headers = [(b"authorization", authorization.encode())] if authorization else []
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "root_path": "",
            "query_string": b"",
            "headers": headers,
        }
        asyncio.run(self.app(scope, receive, send))
        return sent[0]["status"], sent[1]["body"].decode()


@pytest.fixture
def port() -> Port:
    return Port()


def test_who_may_is_served(port: Port) -> None:
    assert port.get("/metrics", "Bearer good") == (200, "served")

    (_, token), (path, access) = port.reviews.asked
    assert token == {"token": "good"}
    assert path == ACCESS_REVIEWS
    assert access == {
        "user": "ann",
        "uid": "7",
        "groups": ["readers"],
        "extra": {"a": ["b"]},
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }


@pytest.mark.parametrize(
    ("path", "authorization", "code"),
    [
        ("/decisions", "Bearer good", 403),
        ("/denied", "Bearer good", 403),
        ("/metrics", "Bearer bad", 401),
        ("/metrics", "Basic good", 401),
        ("/metrics", "Bearer ", 401),
        ("/metrics", "", 403),
        ("/healthzz", "", 403),
    ],
)
def test_all_others_are_refused(port: Port, path: str, authorization: str, code: int) -> None:
    status, text = port.get(path, authorization)

    assert status == code
    assert msgspec.json.decode(text)["kind"] == "Status"


def test_who_gives_no_token_is_anonymous(port: Port) -> None:
    port.get("/metrics")

    [(path, access)] = port.reviews.asked
    assert path == ACCESS_REVIEWS
    assert (access["user"], access["groups"]) == ("system:anonymous", ["system:unauthenticated"])


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_probes_need_no_token(port: Port, path: str) -> None:
    assert port.get(path) == (200, "served")
    assert port.reviews.asked == []


@pytest.mark.parametrize("token", ["good", "bad"])
def test_answers_are_kept_for_ten_seconds(port: Port, token: str) -> None:
    first = port.get("/metrics", f"Bearer {token}")
    asked = len(port.reviews.asked)
    port.now += 9
    assert port.get("/metrics", f"Bearer {token}") == first
    assert len(port.reviews.asked) == asked
    port.now += 2
    assert port.get("/metrics", f"Bearer {token}") == first
    assert len(port.reviews.asked) == 2 * asked


def test_the_answer_for_one_user_is_not_given_to_another(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(USERS, "other", {"username": "bob", "groups": ["readers"]})
    assert port.get("/metrics", "Bearer good")[0] == 200
    assert port.get("/metrics", "Bearer other")[0] == 403
    assert port.get("/metrics")[0] == 403


@pytest.mark.parametrize("error", [UnreachableError("no answer"), ApiError("no", status=403)])
def test_nobody_is_served_while_the_api_server_cannot_be_asked(port: Port, error: ApiError) -> None:
    port.reviews.error = error
    assert port.get("/metrics", "Bearer good")[0] == 500
    port.reviews.error = None
    assert port.get("/metrics", "Bearer good") == (200, "served")


def test_long_paths_that_strangers_ask_for_are_not_kept(port: Port) -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            assert port.get(f"/{'x' * 60_000}{number}")[0] == 403
            port.reviews.asked.clear()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize(
    ("asks", "at_a_time", "waiting"),
    [
        pytest.param("unknown", MOST_UNPROVEN_REVIEWS, MOST_UNPROVEN_WAITING, id="new tokens"),
        pytest.param("known", MOST_REVIEWS, MOST_WAITING, id="a reader who asks for new paths"),
    ],
)
def test_few_reviews_are_asked_for_at_a_time_and_few_requests_wait(
    asks: str, at_a_time: int, waiting: int
) -> None:
    """Nobody takes the connections that bindings need."""
    port = Port()
    assert port.get("/metrics", "Bearer good")[0] == 200
    under_way = most = 0
    answered = asyncio.Event()
    create = port.reviews.create

    async def slowly(path: str, obj: dict[str, Any]) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await answered.wait()
        under_way -= 1
        return await create(path, obj)

    port.reviews.create = slowly  # type: ignore[method-assign]

    async def run() -> list[int]:
        asking = [
            asyncio.ensure_future(
                asked(port, f"/{number}", "good")
                if asks == "known"
                else asked(port, "/metrics", str(number))
            )
            for number in range(200)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        answered.set()
        return await asyncio.gather(*asking)

    codes = asyncio.run(run())

    assert most == at_a_time
    assert codes.count(429) == 200 - waiting
    assert codes.count(401) + codes.count(403) == waiting


def test_invented_tokens_leave_room_for_readers_whose_token_was_accepted() -> None:
    port = Port()
    assert port.get("/metrics", "Bearer good")[0] == 200
    port.now += 11.0
    create = port.reviews.create
    answered = asyncio.Event()

    async def hangs_for_strangers(path: str, obj: dict[str, Any]) -> Any:
        if path == TOKEN_REVIEWS and obj["spec"]["token"] not in USERS:
            await answered.wait()
        return await create(path, obj)

    port.reviews.create = hangs_for_strangers  # type: ignore[method-assign]

    async def run() -> int:
        strangers = [
            asyncio.ensure_future(asked(port, "/metrics", f"invented-{number}"))
            for number in range(MOST_KEPT + MOST_WAITING)
        ]
        await asyncio.sleep(0)
        reader = await asyncio.wait_for(asked(port, "/metrics", "good"), 5)
        answered.set()
        await asyncio.gather(*strangers)
        return reader

    assert asyncio.run(run()) == 200


def test_a_token_that_is_accepted_no_more_is_as_one_that_never_was(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert port.get("/metrics", "Bearer good")[0] == 200
    monkeypatch.delitem(USERS, "good")
    port.now += 11.0
    assert port.get("/metrics", "Bearer good")[0] == 401
    monkeypatch.setitem(USERS, "good", {"username": "ann", "groups": ["readers"]})
    assert port.get("/metrics", "Bearer good")[0] == 401, "for ten seconds"
    port.now += 11.0
    assert port.get("/metrics", "Bearer good")[0] == 200


def test_requests_without_credentials_leave_room_for_those_with_a_token() -> None:
    """Nobody needs a token to ask for ever new paths; readers are served beside them."""
    port = Port()
    create = port.reviews.create
    under_way = most = 0

    async def hangs_for_strangers(path: str, obj: dict[str, Any]) -> Any:
        nonlocal under_way, most
        if obj["spec"].get("user") == "system:anonymous":
            under_way += 1
            most = max(most, under_way)
            await answered.wait()
            under_way -= 1
        return await create(path, obj)

    port.reviews.create = hangs_for_strangers  # type: ignore[method-assign]
    answered = asyncio.Event()

    async def ask(path: str, *headers: tuple[bytes, bytes]) -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "path": path, "method": "GET", "headers": headers}
        await port.app(scope, None, send)
        return int(sent[0]["status"])

    async def run() -> tuple[int, list[int]]:
        strangers = [asyncio.ensure_future(ask(f"/{number}")) for number in range(2 * MOST_WAITING)]
        await asyncio.sleep(0)
        reader = await asyncio.wait_for(ask("/metrics", (b"authorization", b"Bearer good")), 5)
        answered.set()
        return reader, await asyncio.gather(*strangers)

    reader, codes = asyncio.run(run())

    assert reader == 200
    assert most == MOST_ANONYMOUS_REVIEWS
    assert codes.count(403) == MOST_ANONYMOUS_WAITING
    assert codes.count(429) == 2 * MOST_WAITING - MOST_ANONYMOUS_WAITING


def test_paths_that_strangers_ask_for_do_not_push_out_the_answers_for_others(port: Port) -> None:
    assert port.get("/metrics", "Bearer good")[0] == 200
    for number in range(MOST_KEPT + 1):
        port.get(f"/{number}")
    port.reviews.asked.clear()

    assert port.get("/metrics", "Bearer good")[0] == 200
    assert port.reviews.asked == []


def test_a_review_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegated_access, "REVIEW_SECONDS", 0.01)
    port = Port()

    async def never(path: str, obj: dict[str, Any]) -> Any:
        await asyncio.sleep(3600)

    monkeypatch.setattr(port.reviews, "create", never)

    code, _ = port.get("/metrics", "Bearer good")

    assert code == 503
