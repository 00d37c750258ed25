"""Access to an extender: from schedulers alone, and from no web page.

A page of any site can make a browser send requests to a local port, or to a host in its network.
Browsers mark what they send with `Origin` or `Sec-Fetch-Site`, and schedulers never do; a form
cannot send JSON, and a host name that was rebound to a loopback address stays in `Host`. A token is
asked for as a bearer token or as the beginning of the path, since a kube-scheduler can send it only
in the `urlPrefix`: `http://HOST:PORT/token/TOKEN`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from podium.kube.http_rules import (
    bearer_of,
    is_of_page,
    is_secret,
    limited,
    token_in_path,
    wrong_host,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: A request with 5,000 whole nodes is about 100 MB.
LARGEST_BODY: Final = 256 * 1024 * 1024


class ExtenderGuard:
    """An ASGI application in front of an extender, which rejects requests without access."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: frozenset[str] | None = None,
        token: str = "",
        largest_body: int = LARGEST_BODY,
    ) -> None:
        """Guard *app*: *hosts* are the names it is asked by (None for any)."""
        self._app = app
        self._hosts = hosts
        self._token = token
        self._largest_body = largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the extender, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            try:
                self._check(scope, dict(scope["headers"]))
            except HTTPException as refusal:
                answer = PlainTextResponse(refusal.detail, refusal.status_code)
                await answer(scope, receive, send)
            else:
                await self._app(scope, limited(receive, self._largest_body, self._refuse), send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if is_of_page(headers):
            raise HTTPException(403, "requests of web pages are refused")
        if self._hosts is not None and (why := wrong_host(headers, self._hosts)):
            raise HTTPException(421, why)
        if scope["method"] != "POST":
            return  # a probe
        if self._token and not self._has_token(scope["path"], headers):
            raise HTTPException(401, "the token is missing or wrong")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise HTTPException(415, "the content type must be application/json")
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > self._largest_body:
            self._refuse()

    def _has_token(self, path: str, headers: dict[bytes, bytes]) -> bool:
        in_path = token_in_path(path)
        given = bearer_of(headers) or (in_path[0] if in_path else b"")
        return is_secret(given, self._token)

    def _refuse(self) -> NoReturn:
        raise HTTPException(413, f"the request is larger than {self._largest_body} bytes")
