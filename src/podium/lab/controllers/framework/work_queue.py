"""The work queue of all controllers: keys to be synced, each queued at most once.

A key names an object that may need work, not the work itself. It is ready now or at a later time.
A key whose sync failed waits twice as long each time. A key whose sync took long pauses for a
multiple of that time. A single large object therefore does not take up all of the time.

A key may also wait for a clock: for the next tick of a cron job, the next sync of an autoscaler, or
the next retry of a sync that keeps failing. The clock alone decides when these keys are due. A
queue without other keys is idle.

Upstream: client-go/util/workqueue (delaying_queue.go, default_rate_limiters.go).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final

#: Seconds that a key waits after its first failure, and at most.
FIRST_RETRY_SECONDS: Final = 0.005
MAX_RETRY_SECONDS: Final = 30.0
#: A sync that takes longer than this holds its key back for `PAUSE_FACTOR` times as long.
SLOW_SYNC_SECONDS: Final = 0.004
PAUSE_FACTOR: Final = 9.0
#: A key that failed so often that it waits longer than this many seconds waits for a clock.
FAILING_RETRY_SECONDS: Final = 1.0
#: So many pauses are kept without looking for those that are over.
_FEW_PAUSES: Final = 64


class WorkQueue:
    """Keys that are ready, in the order they were added, and keys that become ready later."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Read the time in seconds from *now*."""
        self.now = now
        #: Called when a key becomes ready, or due sooner than all others.
        self.on_wake: Callable[[], None] = _ignore
        #: Finding the first key of a plain dict takes longer with each key that was removed.
        self._ready: OrderedDict[Hashable, None] = OrderedDict()
        self._delayed: list[tuple[float, int, Hashable]] = []
        self._due: dict[Hashable, float] = {}
        #: The keys in `_due` that wait for a clock.
        self._clocks: set[Hashable] = set()
        self._failures: dict[Hashable, int] = {}
        self._paused_until: dict[Hashable, float] = {}
        #: From how many pauses on those that are over are looked for.
        self._most_pauses = _FEW_PAUSES
        self._sequence = count()

    def __len__(self) -> int:
        """The number of keys that are ready."""
        return len(self._ready)

    def add(self, key: Hashable) -> None:
        """Make *key* ready now, or at the end of its pause after a slow sync."""
        if key in self._ready:
            return
        paused_until = self._paused_until.get(key)
        if paused_until is not None:
            wait = paused_until - self.now()
            if wait > 0:
                self.add_after(key, wait)
                return
            del self._paused_until[key]
        self._ready[key] = None
        if len(self._ready) == 1:
            self.on_wake()

    def add_after(self, key: Hashable, seconds: float, *, clock: bool = False) -> None:
        """Make *key* ready in so many seconds, unless it is due sooner.

        With *clock* the time alone decides, and the queue counts as idle meanwhile.
        """
        if seconds <= 0:
            self.add(key)
            return
        if not clock:
            self._clocks.discard(key)
        elif key not in self._due:
            self._clocks.add(key)
        due = self.now() + seconds
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heappush(self._delayed, (due, next(self._sequence), key))
        if self._delayed[0][2] == key:
            self.on_wake()

    def retry(self, key: Hashable) -> float:
        """Delay a key whose sync failed, twice as long each time; the seconds until it is due."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        wait = min(FIRST_RETRY_SECONDS * 2.0 ** min(failures, 30), MAX_RETRY_SECONDS)
        self.add_after(key, wait, clock=wait > FAILING_RETRY_SECONDS)
        return wait

    def done(self, key: Hashable, took: float) -> None:
        """Forget the failures of a key whose sync succeeded and took so many seconds."""
        self._failures.pop(key, None)
        if took > SLOW_SYNC_SECONDS:
            now = self.now()
            self._forget_pauses(now)
            self._paused_until[key] = now + took * PAUSE_FACTOR

    def _forget_pauses(self, now: float) -> None:
        """Drop the pauses that are over, of keys that may never come again."""
        if len(self._paused_until) >= self._most_pauses:
            self._paused_until = {key: at for key, at in self._paused_until.items() if at > now}
            self._most_pauses = 2 * len(self._paused_until) + _FEW_PAUSES

    def pop(self) -> Hashable | None:
        """Remove and return the next ready key; None if there is none."""
        if self._delayed:
            self._move_due_keys()
        if not self._ready:
            return None
        return self._ready.popitem(last=False)[0]

    def next_due(self) -> float | None:
        """The time at which the next key is due: now if one is ready, None if there is no key."""
        if self._ready:
            return self.now()
        while self._delayed and self._due.get(self._delayed[0][2]) != self._delayed[0][0]:
            heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    @property
    def is_idle(self) -> bool:
        """Whether no key is ready, and all that are due later wait for a clock."""
        return not self._ready and len(self._due) == len(self._clocks)

    def leave_to_clocks(self) -> None:
        """Take everything that is due later as a matter of time: the queue is idle meanwhile."""
        self._clocks.update(self._due)

    def _move_due_keys(self) -> None:
        now = self.now()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self._clocks.discard(key)
                self._paused_until.pop(key, None)
                self._ready[key] = None


def _ignore() -> None:
    """Stand in for `on_wake` while no task waits for the queue."""
