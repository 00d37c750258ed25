"""The pages and their data as one application, which shares a port with other applications.

All paths begin with `/podium/`, except that of the page itself, `/`. The application in front of
this one decides which requests have access. The headers of all responses forbid other origins,
frames and inline scripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from podium.web.data import data_routes
from podium.web.files import index, static_file
from podium.web.help import help_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from podium.web.page_data import PageSource

POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeHeaders:
    """Adds the headers to every response, and lets browsers cache only what they revalidate."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back with the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)


def pages(page_data: PageSource, *, read_only: bool = False) -> Starlette:
    """The application of `/` and all paths under `/podium/`; *read_only* pages change nothing."""
    return Starlette(
        routes=[
            Route("/", index),
            Route("/podium", _redirect_home),
            Route("/podium/", _redirect_home),
            Route("/podium/static/{path:path}", static_file),
            Route("/podium/help", help_page),
            Route("/podium/help/{path:path}", help_page),
            Mount("/podium/v1", routes=data_routes(page_data, read_only=read_only)),
        ],
        middleware=[Middleware(SafeHeaders)],
    )


def serves(path: str) -> bool:
    """Whether the application of the pages serves a path."""
    return path in {"/", "/podium"} or path.startswith("/podium/")


async def _redirect_home(_: Request) -> Response:
    return RedirectResponse("../")
