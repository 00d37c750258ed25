"""Which of several equally good nodes is taken.

The state is the caller's: it carries over from pod to pod, and only moves when a choice was made.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ties(Protocol):
    """Chooses among equals."""

    cursor: int

    def choose(self, count: int) -> int:
        """An index below `count`."""

    def position(self) -> list[Any]:
        """The state as plain values, from which `restore` continues."""

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a position."""


class RoundRobin:
    """Chooses each in turn, by a counter that is never reset."""

    def __init__(self, cursor: int = 0) -> None:
        self.cursor = cursor

    def choose(self, count: int) -> int:
        """The next in turn."""
        index = self.cursor % count
        self.cursor = (self.cursor + 1) % (1 << 64)
        return index

    def position(self) -> list[Any]:
        """The counter."""
        return [self.cursor]

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a counter."""
        (self.cursor,) = position


class First:
    """Chooses the first in node order."""

    cursor = 0

    def choose(self, count: int) -> int:  # noqa: ARG002 - the same for any number
        """Always 0."""
        return 0

    def position(self) -> list[Any]:
        """Nothing is kept."""
        return []

    def restore(self, position: Sequence[Any]) -> None:
        """Nothing is kept."""


class Seeded:
    """Chooses at random, equally for equal seeds."""

    cursor = 0

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def choose(self, count: int) -> int:
        """A random index, the same for the same seed."""
        return self._random.randrange(count)

    def position(self) -> list[Any]:
        """The state of the generator."""
        version, numbers, spare = self._random.getstate()
        return [version, list(numbers), spare]

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a state of the generator."""
        version, numbers, spare = position
        self._random.setstate((version, tuple(numbers), spare))


def ties(rule: str) -> RoundRobin | First | Seeded:
    """From its name: `round-robin`, `first` or `random:SEED`."""
    if rule == "round-robin":
        return RoundRobin()
    if rule == "first":
        return First()
    kind, _, seed = rule.partition(":")
    if kind == "random" and seed.lstrip("-").isdigit():
        return Seeded(int(seed))
    raise ValueError(f"unknown tie rule {rule!r}; known: round-robin, first, random:SEED")
