"""Compiled expressions that are kept for the next time, within a limit of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

V = TypeVar("V")

#: A compiled expression takes about this many bytes for each character of its text.
_BYTES_PER_CHARACTER: Final = 200
_MOST_BYTES: Final = 32 << 20


class KeptExpressions(Generic[V]):
    """What was made of texts. When it takes too much memory, the longest unused go first."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[str, V] = OrderedDict()
        self.bytes = 0

    def get(self, text: str, make: Callable[[], V]) -> V:
        """What was made of a text, or what *make* makes of it."""
        if text in self._kept:
            self._kept.move_to_end(text)
            return self._kept[text]
        made = make()
        self._kept[text] = made
        self.bytes += _bytes_of(text)
        while self.bytes > self._most and len(self._kept) > 1:
            self.bytes -= _bytes_of(self._kept.popitem(last=False)[0])
        return made

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of(text: str) -> int:
    return 1024 + _BYTES_PER_CHARACTER * len(text)
