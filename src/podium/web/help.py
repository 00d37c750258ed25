"""The documentation as pages: its sections, a search, and Markdown as HTML with contents."""

from __future__ import annotations

import html
import mimetypes
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.library.documentation import anchor, chapters, course_folder, docs_folder

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

#: The page that names the others by question, and where the course is among the pages.
INDEX: Final = "README.md"
COURSE: Final = "course/"
#: Links from the documentation to the course, and back, as they are in a source tree.
_TO_COURSE: Final = re.compile(r"((?:\.\./)*)\.\./examples/kube-scheduler/")
_TO_DOCS: Final = re.compile(r"((?:\.\./)+)\.\./docs/")
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)[^)]*\)")
_HEADING: Final = re.compile(r"^(#{1,4}) (.+)$")
_MARKS: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)|[`*|]+")
#: How many results a search lists, how long the text of each is, and what a word counts where.
_MOST: Final = 40
_AROUND: Final = 90
_TITLE_COUNTS, _HEADING_COUNTS, _TEXT_COUNTS = 10, 30, 5


class HelpSection(NamedTuple):
    """A heading of a page, and the text below it without marks."""

    heading: str
    anchor: str
    text: str


class HelpPage(NamedTuple):
    """A page: its path below Help, title, Markdown and sections."""

    path: str
    title: str
    markdown: str
    sections: list[HelpSection]


class ContentsLine(NamedTuple):
    """A line of the table of contents: the question, and the page that answers it."""

    words: str
    path: str


class HelpMatch(NamedTuple):
    """A section that a search found, with the text around the first word."""

    page: HelpPage
    section: HelpSection
    text: str


class HelpLibrary:
    """All pages, read once."""

    def __init__(self, docs: Path) -> None:
        self._roots = {"": docs}
        course = course_folder()
        if course is not None:
            self._roots[COURSE] = course
        self.pages: dict[str, HelpPage] = {}
        for prefix, folder in self._roots.items():
            for file in sorted(folder.rglob("*.md")):
                path = prefix + file.relative_to(folder).as_posix()
                self.pages[path] = _page(path, file.read_text("utf-8"))
        #: Heading -> lines, by question.
        self.contents = self._contents()
        entries = (entry.path for lines in self.contents.values() for entry in lines)
        #: The paths in the order of the contents.
        self.order = list(dict.fromkeys([INDEX, *entries]))

    def file(self, path: str) -> Path | None:
        """The file at a path below Help; None if there is none, or if it is elsewhere."""
        if any(part in {"", ".", ".."} for part in path.split("/")):
            return None
        prefix = COURSE if path.startswith(COURSE) and COURSE in self._roots else ""
        found = self._roots[prefix] / path.removeprefix(prefix)
        return found if found.is_file() else None

    def _contents(self) -> dict[str, list[ContentsLine]]:
        """What the index names, the chapters of the course, and the pages that nothing names."""
        current = [ContentsLine(self.pages[INDEX].title, INDEX)]
        found = {"First": current}
        for line in self.pages[INDEX].markdown.splitlines():
            if line.startswith("## "):
                current = found.setdefault(line.removeprefix("## "), [])
            links = [(text, posixpath.normpath(to)) for text, to in _LINK.findall(line)]
            known = [(text, to) for text, to in links if to in self.pages]
            for number, (text, to) in enumerate(known):
                question = line.split("|")[1].strip() if line.startswith("|") else ""
                title = self.pages[to].title if text.endswith(".md") else text
                current.append(ContentsLine(question if question and not number else title, to))
        if COURSE in self._roots:
            found["The course, chapter by chapter"] = [
                ContentsLine(each.title, f"{COURSE}{each.name}/README.md") for each in chapters()
            ]
        named = {entry.path for lines in found.values() for entry in lines}
        rest = [
            ContentsLine(page.title, path) for path, page in self.pages.items() if path not in named
        ]
        return found | {"More": rest}

    def neighbours(self, path: str) -> tuple[HelpPage | None, HelpPage | None]:
        """The pages before and after one, in the order of the contents."""
        at = self.order.index(path)
        before = self.pages[self.order[at - 1]] if at else None
        after = self.pages[self.order[at + 1]] if at + 1 < len(self.order) else None
        return before, after

    def search(self, query: str) -> list[HelpMatch]:
        """The sections that have all words, the best first."""
        words = query.lower().split()
        if not words:
            return []
        found = [
            (_score(page, section, words), HelpMatch(page, section, _around(section, words)))
            for page, section in self._sections()
            if _has(page, section, words)
        ]
        found.sort(key=lambda each: -each[0])
        return [match for _, match in found[:_MOST]]

    def _sections(self) -> Iterator[tuple[HelpPage, HelpSection]]:
        for path in self.order:
            page = self.pages[path]
            for section in page.sections:
                yield page, section


def _has(page: HelpPage, section: HelpSection, words: list[str]) -> bool:
    text = f"{page.title}\n{section.heading}\n{section.text}".lower()
    own = f"{section.heading}\n{section.text}".lower()
    return all(word in text for word in words) and any(word in own for word in words)


def _score(page: HelpPage, section: HelpSection, words: list[str]) -> int:
    title, heading, text = page.title.lower(), section.heading.lower(), section.text.lower()
    return sum(
        _TITLE_COUNTS * (word in title)
        + _HEADING_COUNTS * (word in heading)
        + min(text.count(word), _TEXT_COUNTS)
        for word in words
    )


def _around(section: HelpSection, words: list[str]) -> str:
    """The text of a section around the first of the words that it has."""
    lower = section.text.lower()
    at = min((found for word in words if (found := lower.find(word)) >= 0), default=0)
    start, end = max(0, at - _AROUND), at + 2 * _AROUND
    before, after = "…" if start else "", "…" if end < len(section.text) else ""
    return f"{before}{section.text[start:end].strip()}{after}"


def _page(path: str, text: str) -> HelpPage:
    """A page with its links as they are below Help."""
    pattern = _TO_DOCS if path.startswith(COURSE) else _TO_COURSE
    text = pattern.sub(r"\1" if path.startswith(COURSE) else rf"\1{COURSE}", text)
    parts: list[tuple[str, list[str]]] = [("", [])]
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            continue
        heading = None if fenced else _HEADING.match(line)
        if heading:
            parts.append((_plain(heading[2]), []))
        else:
            parts[-1][1].append(line if fenced else _plain(line))
    sections = [HelpSection(name, anchor(name), " ".join(lines)) for name, lines in parts if name]
    title = sections[0].heading if sections else path
    return HelpPage(path, title, text, sections)


def _plain(line: str) -> str:
    return _MARKS.sub(r"\1", line).strip()


@cache
def help_library() -> HelpLibrary | None:
    """The pages of the installed documentation; None without it."""
    folder = docs_folder()
    return None if folder is None else HelpLibrary(folder)


_HEADING_TAG: Final = re.compile(r"<h([1-4])>(.*?)</h\1>")
_LINK_TAG: Final = re.compile(r'<a href="([^":#]+)(#[^"]*)?">(.*?)</a>', re.DOTALL)
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
    return _LINK_TAG.sub(linked, _HEADING_TAG.sub(_with_anchor, made))


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
        around="" if page is None else _neighbour_links(library, page, base),
        contents=_contents(library, page, base),
    )


def _neighbour_links(library: HelpLibrary, page: HelpPage, base: str) -> str:
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
