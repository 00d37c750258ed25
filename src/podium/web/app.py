"""The pages and their data, to be mounted beside other things on one port.

Everything is under `/podium/`, but for the page itself at `/`. Who may ask is decided by whoever
mounts it; what the pages may load is decided here: nothing that is not theirs.
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

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from podium.web.page_data import PageData


def pages(page_data: PageData) -> Starlette:
    """The application: serves `/` and everything under `/podium/`."""
    return Starlette(
        routes=[
            Route("/", index),
            Route("/podium", _home),
            Route("/podium/", _home),
            Route("/podium/static/{path:path}", static_file),
            Mount("/podium/v1", routes=data_routes(page_data)),
        ],
        middleware=[Middleware(SafeHeaders)],
    )


def serves(path: str) -> bool:
    """Whether a path belongs to the pages."""
    return path in {"/", "/podium"} or path.startswith("/podium/")


async def _home(_: Request) -> Response:
    return RedirectResponse("/")
