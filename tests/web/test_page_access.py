"""The pages of a live scheduler share a port with its endpoints: who may send what to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.kube.leader import COOKIE
from podium.web.page_access import PagesBeside, TokenCookie

RULES = "/podium/api/rules"


def answered(app: Any, method: str, path: str, **headers: str) -> tuple[int, dict[bytes, bytes]]:
    """The code and the headers of the answer to a request."""
    said: list[dict[str, Any]] = []
    given = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    target, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": target, "query_string": query.encode()}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    asyncio.run(app({**scope, "headers": given}, None, send))
    return said[0]["status"], dict(said[0]["headers"])


def says(code: int) -> Any:
    """An application that answers with a code, and with the credentials that it was given."""

    async def app(scope: Any, _: Any, send: Any) -> None:
        found = [each for each in scope["headers"] if each[0] == b"authorization"]
        await send({"type": "http.response.start", "status": code, "headers": found})

    return app


@pytest.mark.parametrize(
    ("method", "headers", "code"),
    [
        ("POST", {}, 200),
        ("POST", {"origin": "http://here", "host": "here"}, 200),
        ("POST", {"sec_fetch_site": "same-origin"}, 200),
        ("POST", {"origin": "http://evil.example", "host": "here"}, 403),
        ("PUT", {"sec_fetch_site": "cross-site", "host": "here"}, 403),
        ("POST", {"origin": "null", "host": "here"}, 403),
        ("GET", {"sec_fetch_site": "cross-site"}, 200),
    ],
)
def test_pages_of_other_sites_change_nothing(
    method: str, headers: dict[str, str], code: int
) -> None:
    app = PagesBeside(says(404), says(200))

    assert answered(app, method, RULES, **headers)[0] == code
    assert answered(app, method, "/metrics", **headers)[0] == 404


def test_a_cookie_is_of_no_use_to_pages_of_other_sites() -> None:
    app = TokenCookie(says(200))
    cookie = f"{COOKIE}=secret"

    own = answered(app, "GET", RULES, cookie=cookie, sec_fetch_site="same-origin")
    other = answered(app, "GET", RULES, cookie=cookie, sec_fetch_site="cross-site")

    assert own == (200, {b"authorization": b"Bearer secret"})
    assert other == (200, {})


@pytest.mark.parametrize("path", ["/?token=a%0d%0aX:%20y", "/?token=%22;Domain=evil.example"])
def test_a_token_in_the_address_adds_nothing_to_the_cookie(path: str) -> None:
    code, headers = answered(TokenCookie(says(200)), "GET", path)

    assert code == 303
    kept = headers[b"set-cookie"].decode().removeprefix(f"{COOKIE}=")
    assert kept.count(";") == 4
    assert "\r" not in kept
    assert headers[b"location"] == b"./"
