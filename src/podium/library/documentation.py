"""The texts that come with Podium: the pages about single reasons in `docs/`, and the course.

A chapter of the course about kube-scheduler is a folder with a page, a cluster and rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from podium.errors import InputError
from podium.profiles.similar_names import did_you_mean

#: The page with all reasons.
REASONS: Final = "reasons.md"
#: What stands for a name in the text of a reason.
_NAME: Final = re.compile(r"RESOURCE|NAMES?")
_TRY: Final = re.compile(r"^\*\*Try it\.\*\* `(.+)`$", re.MULTILINE)


@cache
def docs_folder() -> Path | None:
    """The documentation: installed beside the pages, or that of a source tree."""
    return _folder("web/docs", "docs")


@cache
def course_folder() -> Path | None:
    """The course: installed with the package, or that of a source tree."""
    return _folder("examples/kube-scheduler", "examples/kube-scheduler")


def _folder(installed: str, in_tree: str) -> Path | None:
    places = Path(str(files("podium")), installed), Path(__file__).parents[3] / in_tree
    return next((each for each in places if each.is_dir()), None)


def anchor(heading: str) -> str:
    """The id of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class ReasonPage:
    """What is known about one reason."""

    #: The text of the reason; words in capitals stand for names.
    text: str
    body: str

    @property
    def command(self) -> str:
        """The command that shows the reason; empty if there is none."""
        found = _TRY.search(self.body)
        return found[1] if found else ""

    @property
    def anchor(self) -> str:
        """Where the reason is on the page of all reasons."""
        return anchor(self.text)

    def about(self, text: str) -> bool:
        """Whether the page is about this text, as a decision says it."""
        parts = map(re.escape, _NAME.split(self.text))
        return re.fullmatch(".+".join(parts), text, re.IGNORECASE) is not None


@cache
def reason_pages() -> tuple[ReasonPage, ...]:
    """The pages about all reasons, in the order of the documentation."""
    folder = docs_folder()
    if folder is None:
        raise InputError("the documentation is not installed")
    _, *sections = re.split(r"^## ", (folder / REASONS).read_text("utf-8"), flags=re.MULTILINE)
    pages = (section.partition("\n") for section in sections)
    return tuple(ReasonPage(text.strip(), body.strip()) for text, _, body in pages)


def reason_page(text: str) -> ReasonPage:
    """The page about a reason; a part of its text is enough if it is in one reason only."""
    pages = reason_pages()
    found = next((page for page in pages if page.about(text)), None)
    if found is not None:
        return found
    partly = [page for page in pages if text.lower() in page.text.lower()]
    if len(partly) == 1:
        return partly[0]
    names = [page.text for page in partly] or [page.text for page in pages]
    hint = f"it is a part of: {'; '.join(names)}" if partly else did_you_mean(text, names)
    hint = hint or "`podium help reason` lists all"
    raise InputError(f"there is no reason {text!r}", hint=hint)


def reason_anchor(text: str) -> str | None:
    """Where a reason is on the page of all reasons; None if it is not there."""
    if docs_folder() is None:
        return None
    return next((page.anchor for page in reason_pages() if page.about(text)), None)


PAGE: Final = "README.md"
_CLUSTER: Final = "cluster.yaml"
_POLICY: Final = "policy.json"
_RULES: Final = "rules.py"
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_QUESTION: Final = re.compile(
    r"^\*\*The question\.\*\* (.+?)(?=\n\n|\n```)", re.MULTILINE | re.DOTALL
)
_ROW: Final = re.compile(r"^\| \[[^\]]+\]\(([\w-]+)/README\.md\) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chapter:
    """One mechanism: its folder, title and question."""

    name: str
    title: str
    #: What to look at, in one paragraph.
    question: str
    folder: Path

    @property
    def cluster(self) -> str:
        """The file with the objects."""
        return str(self.folder / _CLUSTER)

    @property
    def policy(self) -> str | None:
        """The file with the Policy, if the chapter has one."""
        return self._file(_POLICY)

    @property
    def rules(self) -> str | None:
        """The file with user rules, if the chapter has some."""
        return self._file(_RULES)

    def _file(self, name: str) -> str | None:
        path = self.folder / name
        return str(path) if path.exists() else None


def chapters() -> list[Chapter]:
    """All chapters, in the order of the index."""
    folder = course_folder()
    if folder is None:
        raise InputError("the course is not installed")
    index = (folder / PAGE).read_text("utf-8")
    return [_chapter(folder / name) for name in _ROW.findall(index)]


def chapter(name: str) -> Chapter:
    """The chapter of this name."""
    known = {each.name: each for each in chapters()}
    if name not in known:
        hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
        raise InputError(f"there is no chapter {name!r}", hint=hint)
    return known[name]


def _chapter(folder: Path) -> Chapter:
    text = (folder / PAGE).read_text("utf-8")
    title, question = _TITLE.search(text), _QUESTION.search(text)
    assert title is not None, folder
    asked = " ".join(question[1].split()) if question else ""
    return Chapter(folder.name, title[1], asked.replace("`", ""), folder)
