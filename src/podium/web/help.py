"""The documentation as pages: rendered from Markdown, with contents, neighbours and a search."""

from __future__ import annotations

import html
import mimetypes
import posixpath
import re
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.web.help_library import INDEX, HelpLibrary, HelpPage, anchor, help_library

if TYPE_CHECKING:
    from starlette.requests import Request

_HEADING: Final = re.compile(r"<h([1-4])>(.*?)</h\1>")
_LINK: Final = re.compile(r'<a href="([^":#]+)(#[^"]*)?">(.*?)</a>', re.DOTALL)
#: Styles in the document are forbidden; the style sheet has them.
_ALIGNED: Final = re.compile(r' style="text-align:(left|center|right)"')
#: Up to so many headings of a page are listed in the contents.
_HEADINGS: Final = 30
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Podium</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{base}static/podium.svg" type="image/svg+xml">
<link rel="stylesheet" href="{base}static/css/tokens.css">
<link rel="stylesheet" href="{base}static/css/shell.css">
<link rel="stylesheet" href="{base}static/css/forms.css">
<link rel="stylesheet" href="{base}static/css/help.css">
<script src="{base}static/js/theme_first.js"></script>
<script type="module" src="{base}static/js/help.js"></script></head>
<body class="documentation" data-root="{base}../">
<a class="skip" href="#main">Skip to content</a>
<div id="top"><header class="top"><a class="brand" href="{base}../"><span>Podium</span></a></header></div>
<div class="help-page">
<form class="help-search" role="search" action="{base}help/">
<label class="hidden" for="help-query">Search the documentation</label>
<input type="search" id="help-query" name="q" value="{query}" placeholder="Search the documentation ( / )">
<button type="submit">Search</button> <a class="to-contents" href="#contents">Contents</a></form>
<main id="main" tabindex="-1"><article>{body}</article>{around}</main>
<nav class="contents" id="contents" aria-label="Contents">{contents}</nav>
</div></body></html>
"""  # noqa: E501  lines of HTML


async def help_page(request: Request) -> Response:
    """One page of the documentation, an image of it, the results of a search, or the index."""
    path = request.path_params.get("path")
    if path is None:
        return RedirectResponse("help/")
    library = help_library()
    if library is None:
        raise HTTPException(404, "the documentation is not installed")
    query = request.query_params.get("q", "").strip()
    if not path and query:
        return HTMLResponse(_results(library, query))
    page = library.pages.get(path or INDEX)
    if page is not None:
        body = _rendered(library, page)
        return HTMLResponse(_whole(library, page.title, body, path=path, page=page))
    found = library.file(path)
    if found is None:
        raise HTTPException(404)
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Response(found.read_bytes(), media_type=media_type)


def _rendered(library: HelpLibrary, page: HelpPage) -> str:
    from markdown_it import MarkdownIt  # noqa: PLC0415  brings its parser

    made = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(page.markdown))
    folder = posixpath.dirname(page.path)

    def linked(found: re.Match[str]) -> str:
        """A link to what Help has; of a file that only a source tree has, the words."""
        to = posixpath.normpath(posixpath.join(folder, html.unescape(found[1])))
        known = to in library.pages or library.file(to) is not None
        return found[0] if known else found[3]

    made = _ALIGNED.sub(r' class="\1"', made)
    return _LINK.sub(linked, _HEADING.sub(_with_anchor, made))


def _with_anchor(found: re.Match[str]) -> str:
    name = anchor(html.unescape(re.sub(r"<[^>]+>", "", found[2])))
    return f'<h{found[1]} id="{html.escape(name)}">{found[2]}</h{found[1]}>'


def _results(library: HelpLibrary, query: str) -> str:
    found = library.search(query)
    words = (re.escape(html.escape(word)) for word in query.split())
    marked = re.compile("|".join(words), re.IGNORECASE)

    def text(plain: str) -> str:
        return marked.sub(r"<mark>\g<0></mark>", html.escape(plain))

    rows = "".join(
        f'<li><a href="{html.escape(each.page.path)}#{html.escape(each.section.anchor)}">'
        f"{text(': '.join(dict.fromkeys([each.page.title, each.section.heading])))}</a>"
        f"<p>{text(each.text)}</p></li>"
        for each in found
    )
    title = f"{len(found)} places with “{query}”" if found else f"Nothing has “{query}”"
    hint = "" if found else "<p>Every word has to be there; fewer of them find more.</p>"
    body = f'<h1>{html.escape(title)}</h1>{hint}<ol class="results">{rows}</ol>'
    return _whole(library, title, body, query=query)


def _whole(
    library: HelpLibrary,
    title: str,
    body: str,
    *,
    path: str = "",
    page: HelpPage | None = None,
    query: str = "",
) -> str:
    """A page in its frame; *path* is that of the request, from which links lead elsewhere."""
    base = "../" * (path.count("/") + 1)
    return _PAGE.format(
        title=html.escape(title),
        body=body,
        base=base,
        query=html.escape(query),
        around="" if page is None else _around(library, page, base),
        contents=_contents(library, page, base),
    )


def _around(library: HelpLibrary, page: HelpPage, base: str) -> str:
    """Links to the pages before and after this one."""
    before, after = library.neighbours(page.path)
    links = [
        f'<a rel="{rel}" aria-keyshortcuts="{key}" href="{base}help/{html.escape(each.path)}">'
        f'<span class="quiet">{words}</span> {html.escape(each.title)}</a>'
        for rel, key, words, each in (("prev", "p", "Before", before), ("next", "n", "Next", after))
        if each is not None
    ]
    return f'<nav class="around" aria-label="Pages before and after">{"".join(links)}</nav>'


def _contents(library: HelpLibrary, page: HelpPage | None, base: str) -> str:
    """All pages by question; the group of this page is open, and has its headings."""
    groups = []
    for heading, entries in library.contents.items():
        here = page is not None and any(entry.path == page.path for entry in entries)
        rows = []
        for entry in entries:
            current = page is not None and entry.path == page.path
            mark = ' aria-current="page"' if current else ""
            own = _headings(page) if current and page is not None else ""
            to = f"{base}help/{html.escape(entry.path)}"
            rows.append(f'<li><a href="{to}"{mark}>{html.escape(entry.words)}</a>{own}</li>')
        state = " open" if here or page is None or page.path == INDEX else ""
        summary = f"<summary>{html.escape(heading)}</summary>"
        groups.append(f"<details{state}>{summary}<ul>{''.join(rows)}</ul></details>")
    return f"<h2>Contents</h2>{''.join(groups)}"


def _headings(page: HelpPage) -> str:
    """The headings of a page that has several."""
    found = page.sections[1 : _HEADINGS + 1]
    if len(found) < 2 or page.path == INDEX:
        return ""
    rows = (
        f'<li><a href="#{html.escape(each.anchor)}">{html.escape(each.heading)}</a></li>'
        for each in found
    )
    return f"<ul>{''.join(rows)}</ul>"
