"""Answers of bounded length: a page of the most important, and a handle for the next page."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of one page; about three of them are a token.
PAGE_CHARACTERS: Final = 9_000
#: So many answers are kept for those who ask for the next page.
MOST_KEPT: Final = 64


class PagedAnswers:
    """Cuts long answers into pages, and keeps the rest of each under a handle."""

    def __init__(self, page_characters: int = PAGE_CHARACTERS, most_kept: int = MOST_KEPT) -> None:
        self._page_characters, self._most_kept = page_characters, most_kept
        self._rest: OrderedDict[str, list[str]] = OrderedDict()
        self._handles = 0

    def first_page(self, lines: Iterable[str]) -> str:
        """The beginning of an answer; its last line tells how to get the rest."""
        return self._page([line.rstrip() for line in lines])

    def next_page(self, handle: str) -> str:
        """The next page of the answer with this handle. A handle is good for one call."""
        rest = self._rest.pop(handle, None)
        if rest is None:
            hint = "ask the question again"
            raise InputError(f"there is no further page {handle!r}", hint=hint)
        return self._page(rest)

    def _page(self, lines: list[str]) -> str:
        length = taken = 0
        for line in lines:
            length += min(len(line), self._page_characters) + 1
            if taken and length > self._page_characters:
                break
            taken += 1
        shown = [_shortened(line, self._page_characters) for line in lines[:taken]]
        rest = lines[taken:]
        if rest:
            self._handles += 1
            handle = f"page-{self._handles}"
            self._rest[handle] = rest
            while len(self._rest) > self._most_kept:
                self._rest.popitem(last=False)
            shown.append(f'… {len(rest)} more lines: call more with handle "{handle}"')
        return "\n".join(shown)


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"
