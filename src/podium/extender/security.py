"""Access to an extender: from schedulers alone, and from no web page.

A page of any site can make a browser send requests to a local port, or to a host in its network.
Browsers mark what they send with `Origin` or `Sec-Fetch-Site`, and schedulers never do; a form
cannot send JSON, and a host name that was rebound to a loopback address stays in `Host`. A token is
asked for as a bearer token or as the beginning of the path, since a kube-scheduler can send it only
in the `urlPrefix`: `http://HOST:PORT/token/TOKEN`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from podium.kube.http_rules import TOKEN_PATH, bearer_of, host_name, is_of_page, is_secret

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
                await self._app(scope, self._limited(receive), send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if is_of_page(headers):
            raise HTTPException(403, "requests of web pages are refused")
        if self._hosts is not None and host_name(headers) not in self._hosts:
            host = headers.get(b"host", b"").decode("latin-1")
            raise HTTPException(421, f"this is not {host or 'a host without a name'}")
        if scope["method"] != "POST":
            return  # a probe
        if self._token and not self._has_token(scope["path"], headers):
            raise HTTPException(401, "the token is missing or wrong")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise HTTPException(415, "the content type must be application/json")
        size = headers.get(b"content-length", b"0")
        if not size.isdigit() or int(size) > self._largest_body:
            raise self._too_large()

    def _has_token(self, path: str, headers: dict[bytes, bytes]) -> bool:
        given = bearer_of(headers)
        if not given and path.startswith(TOKEN_PATH):
            given = path.removeprefix(TOKEN_PATH).partition("/")[0].encode()
        return is_secret(given, self._token)

    def _limited(self, receive: Receive) -> Receive:
        """*receive* for a body of unknown length, which is refused where it becomes too large."""
        size = 0

        async def received() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._largest_body:
                raise self._too_large()
            return message

        return received

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the request is larger than {self._largest_body} bytes")
