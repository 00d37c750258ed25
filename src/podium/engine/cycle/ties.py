"""Which of several equally good nodes is taken.

The state is the caller's: it carries over from pod to pod, and only moves when a choice was made.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, Protocol

from podium.releases import KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    Positions = Sequence[int] | np.ndarray
    #: Gives the places of the best among the feasible nodes, in the order these were found.
    Places = Callable[[Positions], Positions]

#: Where the counter of kube-scheduler begins anew.
WRAPS: Final = 1 << 64
KNOWN: Final = f"{KUBE_SCHEDULER}, first, round-robin, random:SEED"


class Ties(Protocol):
    """Chooses among equals."""

    cursor: int

    def choose(self, best: Positions, places: Places | None) -> int:
        """The index of one of the best; without *places*, their positions are their places."""

    def skip(self, count: int) -> None:
        """Move on as after a choice among *count* nodes."""

    def position(self) -> list[Any]:
        """The state as plain values, from which `restore` continues."""

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a position."""


class RoundRobin:
    """Chooses each in turn, by a counter that is never reset."""

    def __init__(self, cursor: int = 0) -> None:
        self.cursor = cursor

    def choose(self, best: Positions, places: Places | None) -> int:  # noqa: ARG002
        """The next in turn."""
        cursor = self.cursor
        self.cursor = (cursor + 1) % WRAPS
        return cursor % len(best)

    def skip(self, count: int) -> None:  # noqa: ARG002 - by one, for any number
        """Move the counter on."""
        self.cursor = (self.cursor + 1) % WRAPS

    def position(self) -> list[Any]:
        """The counter."""
        return [self.cursor]

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a counter."""
        (self.cursor,) = position


class First:
    """Chooses the first in node order."""

    cursor = 0

    def choose(self, best: Positions, places: Places | None) -> int:  # noqa: ARG002
        """Always 0."""
        return 0

    def skip(self, count: int) -> None:
        """Nothing is kept."""

    def position(self) -> list[Any]:
        """Nothing is kept."""
        return []

    def restore(self, position: Sequence[Any]) -> None:
        """Nothing is kept."""


class HeapRoot(First):
    """Chooses the root of the heap that kube-scheduler makes of the feasible nodes.

    Go's `heap.Init` lets a node rise only above one with a lower total, and of two equal children
    it compares the parent with the left one. So the root is the first of the best nodes if the heap
    is read parent first, then the left branch, then the right one.
    """

    def choose(self, best: Positions, places: Places | None) -> int:
        """The index of the root."""
        if len(best) == 1:
            return 0
        return heap_root(best if places is None else places(best))


class Seeded:
    """Chooses at random, equally for equal seeds."""

    cursor = 0

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def choose(self, best: Positions, places: Places | None) -> int:  # noqa: ARG002
        """A random index, the same for the same seed."""
        return self._random.randrange(len(best))

    def skip(self, count: int) -> None:
        """Draw a number."""
        self._random.randrange(count)

    def position(self) -> list[Any]:
        """The state of the generator."""
        version, numbers, spare = self._random.getstate()
        return [version, list(numbers), spare]

    def restore(self, position: Sequence[Any]) -> None:
        """Continue from a state of the generator."""
        version, numbers, spare = position
        self._random.setstate((version, tuple(numbers), spare))


def heap_root(places: Positions) -> int:
    """Which of the best nodes, given by their places in the list, ends up at the root of the heap.

    The path from the root to a place is the binary form of the place plus one, without its first
    digit. Places are compared by these digits; a shorter path comes before its continuations, and
    none before one that only goes left. They ascend: only the first of each level can be the one.
    """
    chosen, least, at = 0, 1.0, 0
    while at < len(places) and least > 0.5:
        number = int(places[at]) + 1
        above = 1 << number.bit_length()
        if number < least * above:
            chosen, least = at, number / above
        at = bisect_left(places, above - 1, at)
    return chosen


def ties(rule: str) -> RoundRobin | First | Seeded:
    """From its name; `kube-scheduler` is the root of its heap."""
    if rule == KUBE_SCHEDULER:
        return HeapRoot()
    if rule == "round-robin":
        return RoundRobin()
    if rule == "first":
        return First()
    kind, _, seed = rule.partition(":")
    if kind == "random" and seed.lstrip("-").isdigit():
        return Seeded(int(seed))
    raise ValueError(f"unknown tie rule {rule!r}; known: {KNOWN}")
