"""The work of all controllers: keys that wait to be looked at, each at most once.

A key says that something about an object may have to be done, not what. It can wait for a time to
come. One that failed waits longer every time; one that took long to look at rests for a multiple
of that, so that no object, however large, takes more than its share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final

#: How long a key waits after its first failure, and at most, in seconds.
FIRST_RETRY: Final = 0.005
LONGEST_RETRY: Final = 30.0
#: A look that takes longer than this is long, and is followed by a rest of so many times as much.
LONG: Final = 0.004
REST: Final = 9.0


class WorkQueue:
    """Keys that are ready, first come first served, and keys whose time has not come."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Times are read from *now*, in seconds."""
        self.now = now
        #: Called when there is something to do sooner than before.
        self.woken: Callable[[], None] = _nobody
        self._ready: dict[Hashable, None] = {}
        self._later: list[tuple[float, int, Hashable]] = []
        self._due: dict[Hashable, float] = {}
        self._failures: dict[Hashable, int] = {}
        self._resting: dict[Hashable, float] = {}
        self._numbers = count()

    def __len__(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    def add(self, key: Hashable) -> None:
        """Look at *key* as soon as possible."""
        if key in self._ready:
            return
        rests_until = self._resting.get(key)
        if rests_until is not None:
            wait = rests_until - self.now()
            if wait > 0:
                self.add_after(key, wait)
                return
            del self._resting[key]
        self._ready[key] = None
        if len(self._ready) == 1:
            self.woken()

    def add_after(self, key: Hashable, seconds: float) -> None:
        """Look at *key* after so many seconds, unless it is due sooner."""
        if seconds <= 0:
            self.add(key)
            return
        due = self.now() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heappush(self._later, (due, next(self._numbers), key))
        if self._later[0][2] == key:
            self.woken()

    def retry(self, key: Hashable) -> float:
        """Look at a key that failed again, later each time; the seconds until then."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        wait = min(FIRST_RETRY * 2.0 ** min(failures, 30), LONGEST_RETRY)
        self.add_after(key, wait)
        return wait

    def done(self, key: Hashable, took: float) -> None:
        """A look at *key* went well and took so many seconds."""
        self._failures.pop(key, None)
        if took > LONG:
            self._resting[key] = self.now() + took * REST

    def pop(self) -> Hashable | None:
        """The next key, or None if none is ready."""
        if self._later:
            self._mature()
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        return key

    def next_due(self) -> float | None:
        """When the next key is due; None if none waits for a time. Ready ones are due now."""
        if self._ready:
            return self.now()
        while self._later and self._due.get(self._later[0][2]) != self._later[0][0]:
            heappop(self._later)
        return self._later[0][0] if self._later else None

    def _mature(self) -> None:
        now = self.now()
        while self._later and self._later[0][0] <= now:
            due, _, key = heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self._resting.pop(key, None)
                self._ready[key] = None


def _nobody() -> None:
    """Nobody waits."""
