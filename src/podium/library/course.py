"""The chapters of the course about kube-scheduler: folders with a page, a cluster and rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from podium.errors import InputError
from podium.profiles.similar_names import did_you_mean

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


@cache
def course_folder() -> Path | None:
    """The course: installed with the package, or that of a source tree."""
    installed = Path(str(files("podium"))) / "examples" / "kube-scheduler"
    tree = Path(__file__).parents[3] / "examples" / "kube-scheduler"
    return next((each for each in (installed, tree) if each.is_dir()), None)


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
