"""The history that a running scheduler records, read while it runs: decisions and moments.

The cluster at a moment is that of a replay: it begins with the checkpoint of a segment and follows
everything up to the moment. Going on to a later moment of the same segment follows only what lies
between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from podium.errors import InputError, PodiumError
from podium.past.format.frames import SegmentReader
from podium.past.format.reading import History, ObjectChange, SegmentFollower, SegmentStart, Torn
from podium.past.format.records import Bound, Checkpoint, Decided, Evicting
from podium.past.replay.history_chart import HistoryChart, PendingPods
from podium.past.replay.past_decisions import decisions_about, derive
from podium.past.replay.replay import HistoryReplay

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from podium.engine.state.view import View
    from podium.past.format.reading import Entry
    from podium.past.recorder.recorder import HistoryRecorder
    from podium.past.replay.past_decisions import Derived
    from podium.past.replay.replay import RulesOf

Data = dict[str, Any]
T = TypeVar("T")

#: How many entries of the past are listed.
LISTED: Final = 500
#: How many derived decisions are kept; a page asks for the same ones again and again.
_KEPT: Final = 4


class Moment:
    """The state at a moment, which can go on to later moments of the same segment."""

    def __init__(
        self, path: Path, rules_of: RulesOf, schedulers: Callable[[], Collection[str]]
    ) -> None:
        self.path = path
        self._follower = SegmentFollower(path)
        self._replay = HistoryReplay(rules_of)
        self._pending = PendingPods(schedulers)
        #: An entry that lies after the moment.
        self._next: Entry | None = None
        self.at = 0.0

    @property
    def view(self) -> View | None:
        """Nodes and placed pods; None before the segment says anything."""
        state = getattr(self._replay, "state", None)
        return None if state is None else state.cache.columns

    @property
    def pending(self) -> int:
        """How many pods wait for a node."""
        return len(self._pending.keys)

    def go_to(self, at: float) -> None:
        """Follow everything up to a time, which is not before the last one."""
        self.at = at
        if self._next is not None:
            if entry_time(self._next) > at:
                return
            entry, self._next = self._next, None
            self._follow(entry)
        for entry in self._follower.entries():
            if entry_time(entry) > at:
                self._next = entry
                return
            self._follow(entry)

    def close(self) -> None:
        """Close the segment."""
        self._follower.close()

    def _follow(self, entry: Entry) -> None:
        self._replay.apply(entry)
        self._pending.follow(entry)


def entry_time(entry: Entry) -> float:
    """When an entry happened; the begin of a segment and its checkpoint lie before everything."""
    if isinstance(entry, SegmentStart | Torn | Checkpoint):
        return 0.0
    return entry.time


class RecordedPast:
    """Reads the history of a scheduler beside it, one question at a time."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        folder: str | Path,
        rules_of: RulesOf,
        schedulers: Callable[[], Collection[str]],
    ) -> None:
        """Pods of these *schedulers* count as pending."""
        self._recorder, self._folder, self._rules_of = recorder, folder, rules_of
        self._schedulers = schedulers
        #: Held while a replay runs.
        self._reading = asyncio.Lock()
        #: The last decisions that were derived, the newest last.
        self._kept: dict[tuple[str, str, int | None], Derived] = {}
        self._chart = HistoryChart(schedulers)
        self._moment: Moment | None = None
        #: Segment -> when it began.
        self._begins: dict[Path, float] = {}

    def close(self) -> None:
        """Close the files."""
        self._chart.close()
        if self._moment is not None:
            self._moment.close()

    async def decision(self, pod: str, uid: str = "", attempt: int | None = None) -> Derived | None:
        """An attempt at a pod, or the last one, with all verdicts and scores.

        None if it is not recorded, took answers of extenders, or follows otherwise: then what is
        derived is not what was decided.
        """
        asked = (pod, uid, attempt)
        if attempt is not None and asked in self._kept:
            return self._kept[asked]
        found = await self._ask(lambda: self._derived(pod, uid, attempt, inf))
        if found is not None:
            self._kept[asked] = found
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    async def decision_at(self, pod: str, at: float) -> Derived | None:
        """The last attempt at a pod up to a time; None under the same conditions."""
        return await self._ask(lambda: self._derived(pod, "", None, at))

    async def chart(self) -> Data:
        """Queue length, decisions and evictions over time, as far as the history has been read."""
        return await self._ask(self._charted)

    async def at(self, at: float, answer: Callable[[Moment], T]) -> T:
        """The answer of a function about a moment, computed in another thread."""
        return await self._ask(lambda: answer(self._seek(at)))

    async def happened(
        self, at: float, chosen: Callable[[str, Mapping[str, str], str, str], bool]
    ) -> Data:
        """The last entries up to a time that are *chosen* by pod, labels, kind and text."""
        return await self._ask(lambda: self._happened(at, chosen))

    async def _ask(self, answer: Callable[[], T]) -> T:
        async with self._reading:
            self._recorder.flush()
            return await asyncio.to_thread(answer)

    def _derived(self, pod: str, uid: str, attempt: int | None, until: float) -> Derived | None:
        try:
            history = History(self._folder)
            places = [
                place
                for place in decisions_about(history, pod, attempt)
                if uid in ("", place.entry.uid) and place.entry.time <= until
            ]
            if not places:
                return None
            found = derive(history, places[-1], self._rules_of)
        except PodiumError:
            return None
        return found if found.difference is None else None

    def _charted(self) -> Data:
        complete = self._chart.read(History(self._folder))
        return self._chart.as_data(complete=complete)

    def _segments_until(self, at: float) -> list[Path]:
        """The segments that began before a time, in order; the first one in any case."""
        history = History(self._folder)
        begins: dict[Path, float] = {}
        for path in history.segments:
            known = self._begins.get(path)
            if known is None:
                with SegmentReader(path) as reader:
                    if not reader.header:
                        continue
                    known = float(reader.header.get("started", 0.0))
            begins[path] = known
        self._begins = begins
        if not begins:
            raise InputError("has no history in it yet", where=str(self._folder))
        before = [path for path, begin in begins.items() if begin <= at]
        return before or [next(iter(begins))]

    def _seek(self, at: float) -> Moment:
        path = self._segments_until(at)[-1]
        moment = self._moment
        if moment is None or moment.path != path or at < moment.at:
            if moment is not None:
                moment.close()
            moment = self._moment = Moment(path, self._rules_of, self._schedulers)
        moment.go_to(at)
        return moment

    def _happened(
        self, at: float, chosen: Callable[[str, Mapping[str, str], str, str], bool]
    ) -> Data:
        found: list[Data] = []
        namespaces: set[str] = set()
        matching = 0
        for path in reversed(self._segments_until(at)):
            told = deque[Data](maxlen=LISTED - len(found))
            for pod, labels, each in _told_until(path, at):
                namespaces.add(pod.partition("/")[0])
                if chosen(pod, labels, each["what"], each["text"]):
                    matching += 1
                    told.append(each)
            found += reversed(told)
            if len(found) >= LISTED:
                break
        return {"entries": found, "matching": matching, "namespaces": sorted(namespaces)}


def _told_until(path: Path, at: float) -> Iterator[tuple[str, Mapping[str, str], Data]]:
    """What a segment says about pods up to a time: the pod, its labels, and what happened."""
    follower = SegmentFollower(path)
    labels: dict[str, Mapping[str, str]] = {}
    listing = False
    try:
        for entry in follower.entries():
            if isinstance(entry, SegmentStart):
                listing = not entry.empty
            elif isinstance(entry, Checkpoint):
                listing = False
            if entry_time(entry) > at:
                return
            for found in happenings(entry, labels):
                if not listing:
                    yield found["pod"], labels.get(found["pod"], {}), found
    finally:
        follower.close()


def happenings(entry: Entry, labels: dict[str, Mapping[str, str]]) -> Iterator[Data]:
    """What an entry says about pods, in the words of the timeline; *labels* by pod follow it."""
    if isinstance(entry, Decided):
        nominated = entry.preempts and not entry.node
        what = "placed" if entry.node else "nominated" if nominated else "unschedulable"
        text = f"{entry.feasible} of {entry.nodes} nodes fit"
        if entry.group and entry.feasible and not entry.node:
            text += f", but pod group {entry.group} does not"
        yield _happening(entry.time, what, entry.pod, text, entry.node or entry.preempts)
    elif isinstance(entry, Evicting):
        for victim in entry.victims:
            favoured = f"pod group {entry.group}" if entry.group else entry.pod
            yield _happening(entry.time, "evicted", victim, f"in favour of {favoured}", "")
    elif isinstance(entry, Bound):
        text = f"binding to {entry.node} failed: {entry.error}"
        yield _happening(entry.time, "error", entry.pod, text, entry.node)
    elif isinstance(entry, ObjectChange) and entry.kind == "Pod":
        yield from _pod_change(entry, labels)


def _pod_change(entry: ObjectChange, labels: dict[str, Mapping[str, str]]) -> Iterator[Data]:
    old: Any = entry.old
    new: Any = entry.new
    if new is None:
        node = old.spec.node_name or "" if old is not None else ""
        yield _happening(entry.time, "deleted", entry.key, "", node)
        return
    labels[entry.key] = new.metadata.labels or {}
    if old is None and not new.spec.node_name:
        yield _happening(entry.time, "created", entry.key, "", "")
    elif old is not None and new.spec.node_name and not old.spec.node_name:
        yield _happening(entry.time, "bound", entry.key, "", new.spec.node_name)


def _happening(at: float, what: str, pod: str, text: str, node: str) -> Data:
    return {"at": at, "what": what, "pod": pod, "text": text, "node": node}
