"""The pages of Help: the files of `docs/` and of the course, their contents, order and search."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from podium.library.documentation import chapters, course_folder, docs_folder

if TYPE_CHECKING:
    from pathlib import Path

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


def anchor(heading: str) -> str:
    """The id of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@cache
def help_library() -> HelpLibrary | None:
    """The pages of the installed documentation; None without it."""
    folder = docs_folder()
    return None if folder is None else HelpLibrary(folder)
