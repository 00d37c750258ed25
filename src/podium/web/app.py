"""The pages and their data as one application, which shares a port with other applications.

All paths begin with `/podium/`, except that of the page itself, `/`. The application in front of
this one decides which requests have access. The headers of all responses forbid the pages to load
anything from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from podium.web.data import data_routes
from podium.web.files import index, static_file
from podium.web.headers import SafeHeaders
from podium.web.help import help_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from podium.web.page_data import PageSource


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
