"""The static files of the pages, read into memory once.

Threads that read a file from disk for each request would wait for the scheduler, which shares the
process; from memory the files are served at once.
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
