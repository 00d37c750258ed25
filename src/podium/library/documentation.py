"""The documentation: the files of `docs/`, and the pages about single reasons in one of them."""

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
    installed = Path(str(files("podium"))) / "web" / "docs"
    tree = Path(__file__).parents[3] / "docs"
    return next((each for each in (installed, tree) if each.is_dir()), None)


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
        return re.sub(r"[^\w -]", "", self.text.lower()).replace(" ", "-")

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
