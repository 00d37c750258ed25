"""The files of the pages, kept in memory: they are small, and a busy lab answers them at once.

Read from disk by threads, each of them would wait several times for the scheduler beside it.
"""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

INDEX = "index.html"


class _File(NamedTuple):
    body: bytes
    media_type: str
    etag: str


@cache
def _kept() -> dict[str, _File]:
    return dict(_below(files("podium.web").joinpath("static"), ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, _File]]:
    found: list[tuple[str, _File]] = []
    for each in folder.iterdir():
        name = f"{path}{each.name}"
        if each.is_dir():
            found += _below(each, f"{name}/")
        else:
            body = each.read_bytes()
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found.append((name, _File(body, media_type, etag)))
    return found


async def index(request: Request) -> Response:
    """The page."""
    return _answer(INDEX, request)


async def static_file(request: Request) -> Response:
    """One of the files that the page asks for."""
    return _answer(request.path_params["path"], request)


def _answer(path: str, request: Request) -> Response:
    file = _kept().get(path)
    if file is None:
        raise HTTPException(404)
    headers = {"ETag": file.etag}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)
