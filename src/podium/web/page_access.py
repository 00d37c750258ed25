"""Pages of a live scheduler beside its endpoints, and tokens that come in a cookie.

A browser cannot send a bearer token by itself. It opens the address once with `?token=…`; then the
token is kept in a cookie that scripts cannot read, and is sent on as a bearer. `podium explain
--decided` sends such a cookie through the proxy of the API server, which keeps the bearer of the
request to itself.
The API server says what the token may do.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from podium.kube.http_rules import READING, cookie_of, is_of_other_site
from podium.kube.leader import COOKIE
from podium.web.app import serves


class PagesBeside:
    """The pages on their paths, and another application on all others."""

    def __init__(self, app: Any, pages: Any) -> None:
        self._app, self._pages = app, pages

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on to the one or the other; pages of other sites may only read."""
        if not serves(scope.get("path", "")):
            await self._app(scope, receive, send)
        elif scope.get("method") in READING or not is_of_other_site(dict(scope["headers"])):
            await self._pages(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"requests of other sites\n"})


class TokenCookie:
    """Turns the token in a cookie into a bearer, and a token in the address into a cookie."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on with its credentials, or answer with the cookie."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        token = query.pop("token", "")
        if token and scope["method"] == "GET" and serves(scope["path"]):
            await _redirect(send, token, query)
            return
        headers = dict(scope["headers"])
        kept = cookie_of(headers, COOKIE)
        if kept and b"authorization" not in headers and not is_of_other_site(headers):
            bearer = (b"authorization", f"Bearer {kept}".encode("latin-1", "ignore"))
            scope = {**scope, "headers": [*scope["headers"], bearer]}
        await self._app(scope, receive, send)


async def _redirect(send: Any, token: str, query: dict[str, str]) -> None:
    rest = f"?{urlencode(query)}" if query else ""
    safe = "".join(each for each in token if each.isalnum() or each in "._-~+/=")
    cookie = f"{COOKIE}={safe}; Path=/; HttpOnly; Secure; SameSite=Strict"
    headers = [
        (b"location", f"./{rest}".encode("ascii", "ignore")),
        (b"set-cookie", cookie.encode("ascii", "ignore")),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
