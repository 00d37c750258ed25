"""Queue length, decisions, placements and evictions over the time of a history.

A segment is read once, and the one that is being written goes on where it ended, so that asking
again costs only what was appended. Segments do not depend on each other: the newest are read first,
and a long history is told in several answers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from podium.errors import PodiumError
from podium.past.format.reading import ObjectChange, SegmentFollower, SegmentStart, Torn
from podium.past.format.records import Checkpoint, Decided, Evicting, Forgotten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from podium.past.format.reading import Entry, History

Data = dict[str, Any]

#: How many points a chart has at most.
POINTS: Final = 600
#: After so many seconds of reading an answer is given, and the rest is read for the next one.
READING_SECONDS: Final = 1.0


class SegmentCounts:
    """What one segment says, second by second."""

    def __init__(self, path: Path, schedulers: Callable[[], Collection[str]]) -> None:
        self._follower = SegmentFollower(path)
        self._closed = False
        self._pending = PendingPods(schedulers)
        #: Second -> decisions, placed pods, evicted pods, pending pods at its end.
        self.seconds: dict[int, list[int]] = {}
        self.started = float(self._follower.header.get("started", 0.0))
        #: The time of the last entry.
        self.ended = self.started

    def read(self, *, last: bool) -> None:
        """Count what was appended since the last time; the *last* time, the file is closed."""
        if not self._closed:
            for entry in self._follower.entries():
                self._count(entry)
            if last:
                self.close()

    def close(self) -> None:
        """Close the file; what was counted stays."""
        self._closed = True
        self._follower.close()

    def _count(self, entry: Entry) -> None:
        if isinstance(entry, SegmentStart | Torn):
            return
        at = entry.time
        self.ended = max(self.ended, at)
        numbers = self.seconds.setdefault(int(at), [0, 0, 0, 0])
        numbers[1] += self._pending.follow(entry)
        if isinstance(entry, Decided):
            numbers[0] += 1
        elif isinstance(entry, Evicting):
            numbers[2] += len(entry.victims)
        numbers[3] = len(self._pending.keys)


class PendingPods:
    """The pods that wait for a node from some schedulers, as entries tell it.

    A pod does not wait any more once it counts on a node, be it bound there or not yet.
    """

    def __init__(self, schedulers: Callable[[], Collection[str]]) -> None:
        self._schedulers = schedulers
        self.keys: set[str] = set()
        #: Pods that count on a node and are not known to be bound.
        self._assumed: set[str] = set()

    def follow(self, entry: Entry) -> bool:
        """Follow an entry; whether a pod that waited has a node now."""
        if isinstance(entry, ObjectChange):
            return entry.kind == "Pod" and self._follow_pod(entry.key, entry.new)
        if isinstance(entry, Decided) and entry.node is not None:
            self._assumed.add(entry.pod)
            return self._leaves(entry.pod)
        if isinstance(entry, Checkpoint):
            self._assumed.update(entry.assumed)
            self.keys -= self._assumed
        elif isinstance(entry, Forgotten) and entry.pod in self._assumed:
            self._assumed.discard(entry.pod)
            self.keys.add(entry.pod)
        return False

    def _follow_pod(self, key: str, new: Any) -> bool:
        """*new* is the pod, None if it is gone."""
        if new is None or new.spec.node_name or new.finished or new.terminating:
            self._assumed.discard(key)
            return self._leaves(key) and new is not None and bool(new.spec.node_name)
        if key not in self._assumed and new.spec.scheduler_name in self._schedulers():
            self.keys.add(key)
        return False

    def _leaves(self, key: str) -> bool:
        waited = key in self.keys
        self.keys.discard(key)
        return waited


class HistoryChart:
    """The counts of all segments of a history that is being recorded."""

    def __init__(
        self,
        schedulers: Callable[[], Collection[str]],
        *,
        points: int = POINTS,
        reading_seconds: float = READING_SECONDS,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Count pods of these *schedulers* as pending; a chart has at most so many *points*."""
        self._schedulers, self._points = schedulers, points
        self._reading_seconds, self._timer = reading_seconds, timer
        self._segments: dict[Path, SegmentCounts] = {}

    def read(self, history: History) -> bool:
        """Read what is new, then older segments; whether everything has been read."""
        end = self._timer() + self._reading_seconds
        for path in [each for each in self._segments if each not in history.segments]:
            self._segments.pop(path).close()
        for path in reversed(history.segments):
            if path not in self._segments:
                if self._segments and self._timer() > end:
                    return False
                try:
                    self._segments[path] = SegmentCounts(path, self._schedulers)
                except PodiumError:
                    continue  # deleted meanwhile
            self._segments[path].read(last=path != history.segments[-1])
        return True

    def close(self) -> None:
        """Close all files."""
        for counts in self._segments.values():
            counts.close()

    def as_data(self, *, complete: bool) -> Data:
        """Times, and for each the counts since the time before; the length of the queue then."""
        seconds: dict[int, list[int]] = {}
        for counts in sorted(self._segments.values(), key=lambda each: each.started):
            for second, numbers in counts.seconds.items():
                known = seconds.get(second)
                sums = [a + b for a, b in zip(known or (0, 0, 0), numbers, strict=False)]
                seconds[second] = [*sums[:3], numbers[3]]
        times = sorted(seconds)
        first = min((each.started for each in self._segments.values()), default=0.0)
        last = max((each.ended for each in self._segments.values()), default=0.0)
        step = max(1, -(-int(last - first + 1) // self._points))
        found: dict[int, list[int]] = {}
        for second in times:
            point = found.setdefault(second - second % step, [0, 0, 0, 0])
            numbers = seconds[second]
            for column in range(3):
                point[column] += numbers[column]
            point[3] = max(point[3], numbers[3]) if step > 1 else numbers[3]
        decisions, placed, evicted, pending = (
            zip(*found.values(), strict=True) if found else ((), (), (), ())
        )
        return {
            "from": first,
            "to": last,
            "step": step,
            "times": list(found),
            "decisions": decisions,
            "placed": placed,
            "evicted": evicted,
            "pending": pending,
            "complete": complete,
        }
