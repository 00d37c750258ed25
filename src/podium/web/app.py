"""The pages and their data as one application, which shares a port with other applications.

All paths begin with `/podium/`, except that of the page itself, `/`. The application in front of
this one decides which requests have access. The headers of all responses forbid other origins,
frames and inline scripts. Static files are read into memory once: threads that read a file from
disk for each request would wait for the scheduler, which shares the process.
"""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from podium.web.data import data_routes
from podium.web.help import help_page

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from podium.serving.page_data.page_data import PageData

_INDEX = "index.html"
#: Files that the self-contained page of an explanation has as well.
_SHARED = {
    "js/decision/player.js": "player.js",
    "js/decision/node_table.js": "node_table.js",
    "css/tokens.css": "tokens.css",
    "css/node_table.css": "node_table.css",
    "css/player.css": "player.css",
}


class _File(NamedTuple):
    body: bytes
    media_type: str
    etag: str


@cache
def _static_files() -> dict[str, _File]:
    found = dict(_files_in(files("podium.web").joinpath("static"), ""))
    shared = dict(_files_in(files("podium.render.decision").joinpath("assets"), ""))
    return found | {path: shared[name] for path, name in _SHARED.items()}


def _files_in(folder: Traversable, path: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    for each in folder.iterdir():
        name = f"{path}{each.name}"
        if each.is_dir():
            found += _files_in(each, f"{name}/")
        else:
            body = each.read_bytes()
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found.append((name, _File(body, media_type, etag)))
    return found


async def index(request: Request) -> Response:
    """The page, which loads all other files."""
    return _file_response(_INDEX, request)


async def static_file(request: Request) -> Response:
    """The static file at the path of the request."""
    return _file_response(request.path_params["path"], request)


def _file_response(path: str, request: Request) -> Response:
    file = _static_files().get(path)
    if file is None:
        raise HTTPException(404)
    headers = {"ETag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)


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


def pages(page_data: PageData, *, read_only: bool = False) -> Starlette:
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
