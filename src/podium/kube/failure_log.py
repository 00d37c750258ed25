"""Failures that are logged once: the same one again only after a success in between.

What fails is tried again with pauses, for hours if need be, and fails with the same words each
time. One line says what is wrong; a line per attempt would hide all others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

#: Of how many subjects failures are remembered, and how many texts of each. Beyond that the oldest
#: are forgotten, and logged again if they go on.
_MOST_SUBJECTS: Final = 10_000
_MOST_TEXTS: Final = 16


class FailureLog:
    """Passes texts about failures on, each once until what failed has succeeded."""

    def __init__(self, warn: Callable[[str], None], most_subjects: int = _MOST_SUBJECTS) -> None:
        """Call *warn* with each text that is logged."""
        self._warn = warn
        self._most = most_subjects
        self._told: OrderedDict[Hashable, list[str]] = OrderedDict()

    def __len__(self) -> int:
        """The number of subjects that are failing."""
        return len(self._told)

    def failed(self, subject: Hashable, text: str) -> None:
        """Log that something about *subject* failed, unless the same text was logged already."""
        told = self._told.setdefault(subject, [])
        self._told.move_to_end(subject)
        if text in told:
            return
        told.append(text)
        del told[:-_MOST_TEXTS]
        if len(self._told) > self._most:
            self._told.popitem(last=False)
        self._warn(text)

    def succeeded(self, subject: Hashable) -> None:
        """Forget the failures of *subject*: the next one is a new one."""
        if self._told:
            self._told.pop(subject, None)
