"""The documentation as pages: the files of `docs/` and of the course, rendered from Markdown."""

from __future__ import annotations

import html
import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.library.course import course_folder
from podium.library.documentation import docs_folder

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

#: The pages that the index lists first, in this order.
_FIRST: Final = (
    "README.md", "tour.md", "pending.md", "lab.md", "pages.md", "running.md", "cli.md",
    "config.md", "policy.md",
)  # fmt: skip
#: Where the course is among the pages, and links from it to the documentation.
_COURSE: Final = "course/"
_TO_DOCS: Final = re.compile(r"((?:\.\./)+)\.\./docs/")
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADING: Final = re.compile(r"<h([2-4])>(.*?)</h\1>")
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Podium</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{base}static/podium.svg" type="image/svg+xml">
<link rel="stylesheet" href="{base}static/css/tokens.css">
<link rel="stylesheet" href="{base}static/css/shell.css">
<link rel="stylesheet" href="{base}static/css/help.css">
<script src="{base}static/js/theme_first.js"></script></head>
<body class="documentation"><header class="top">
<a class="brand" href="{base}../"><span>Podium</span></a>
<nav aria-label="Pages"><a href="{base}../">Cluster</a>
<a href="{base}help/" aria-current="page">Help</a></nav></header>
<main id="main"><article>{body}</article></main></body></html>
"""


async def help_page(request: Request) -> Response:
    """One page of the documentation, an image of it, or the index."""
    path = request.path_params.get("path")
    if path is None:
        return RedirectResponse("help/")
    folder = docs_folder()
    if folder is None:
        raise HTTPException(404, "the documentation is not installed")
    base = "../" * (path.count("/") + 1)
    if not path:
        return HTMLResponse(_index(folder, base))
    course = course_folder()
    of_course = path.startswith(_COURSE) and course is not None
    found = _find(course, path.removeprefix(_COURSE)) if of_course else _find(folder, path)
    if found is None:
        raise HTTPException(404)
    if not path.endswith(".md"):
        media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
        return Response(found.read_bytes(), media_type=media_type)
    text = found.read_text("utf-8")
    if of_course:
        text = _TO_DOCS.sub(r"\1", text)
    return HTMLResponse(_page(_title(text, path), _rendered(text), base))


def _find(folder: Traversable | Path | None, path: str) -> Traversable | None:
    """The file at a path below the folder; None if there is none, or if it is elsewhere."""
    parts = path.split("/")
    if folder is None or any(part in {"", ".", ".."} for part in parts):
        return None
    found: Traversable = folder
    for part in parts:
        found = found.joinpath(part)
    return found if found.is_file() else None


def _rendered(text: str) -> str:
    from markdown_it import MarkdownIt  # noqa: PLC0415  brings its parser

    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
    return _HEADING.sub(_with_anchor, made)


def _with_anchor(found: re.Match[str]) -> str:
    plain = re.sub(r"<[^>]+>", "", found[2])
    anchor = re.sub(r"[^\w -]", "", html.unescape(plain).lower()).replace(" ", "-")
    return f'<h{found[1]} id="{html.escape(anchor)}">{found[2]}</h{found[1]}>'


def _index(folder: Traversable, base: str) -> str:
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".md"))
    names.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    rows = [
        f'<li><a href="{html.escape(name)}">'
        f"{html.escape(_title(folder.joinpath(name).read_text('utf-8'), name))}</a></li>"
        for name in names
    ]
    course = f'<p><a href="{_COURSE}README.md">A course: kube-scheduler, watched</a></p>'
    return _page("Help", f"<h1>Help</h1>{course}<ul>{''.join(rows)}</ul>", base)


def _title(text: str, path: str) -> str:
    found = _TITLE.search(text)
    return found[1].replace("`", "") if found else path


def _page(title: str, body: str, base: str) -> str:
    return _PAGE.format(title=html.escape(title), body=body, base=base)
