"""The last decisions in memory, by pod, within a limit of bytes that is measured.

Decisions are kept packed and are unpacked one by one when they are read. The oldest are dropped
when there are too many or they take too many bytes.

A file has decisions as JSON lines. It is rotated when it is full: `FILE` is written to, `FILE.1` is
the one before it, up to the number that is kept. A full disk ends the writing, not the scheduler.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from sys import getsizeof
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from podium.errors import InputError
from podium.library.decision_json import to_json
from podium.past.decisions.packed_decision import NodeNames, pack, unpack
from podium.render.decision.analysis import outcome
from podium.render.documents import to_json_line
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.state.verdicts import Verdicts
    from podium.past.decisions.causes_now import Causes
    from podium.scheduler.state.observers import AttemptResult

    Vocabularies = tuple[Verdicts | None, NodeNames]


BUDGET_BYTES: Final = 32 << 20
MOST: Final = 10_000
#: Bytes that the log itself needs per entry: a place in a queue and in a dictionary, links, and
#: the size of the entry.
_ENTRY_BYTES: Final = 352
#: Bytes of a step: its name, which all entries share, and its duration.
_STEP_BYTES: Final = getsizeof(("", 0.0)) + getsizeof(0.0)
#: A decision that alone would take more than this part of the limit is kept without its matrix.
_SHARE: Final = 8
#: The names of deleted nodes are dropped once there are so many of them.
_STALE_NAMES: Final = 4096


class LoggedAttempt:
    """One scheduling attempt at one pod, packed."""

    __slots__ = (
        "_packed",
        "_profile",
        "_vocabularies",
        "began",
        "binding",
        "key",
        "newer",
        "number",
        "older",
        "outcome",
        "queued_at",
        "seconds",
        "sequence",
        "size",
        "steps",
        "ties",
        "uid",
    )

    def __init__(
        self, result: AttemptResult, sequence: int, packed: bytes, vocabularies: Vocabularies
    ) -> None:
        decision = result.decision
        self.key, self.uid = decision.pod, decision.uid
        self.sequence, self.number = sequence, result.number
        self.began, self.seconds = result.began, result.seconds
        self.queued_at = result.queued_at
        self.steps = tuple(result.steps)
        self.outcome = outcome(decision)
        self.ties = result.profile.ties
        #: The result of the binding: None before it ended, its seconds, or its error.
        self.binding: float | str | None = None
        #: The attempts at the same pod before and after this one, while they are kept.
        self.older: LoggedAttempt | None = None
        self.newer: LoggedAttempt | None = None
        self._profile = decision.profile
        self._packed = packed
        self._vocabularies = vocabularies
        #: The memory it takes, in bytes, apart from the result of the binding.
        self.size = (
            _ENTRY_BYTES
            + getsizeof(self)
            + getsizeof(self.key)
            + getsizeof(self.uid)
            + getsizeof(packed)
            + getsizeof(self.steps)
            + _STEP_BYTES * len(self.steps)
        )

    @property
    def names(self) -> NodeNames:
        """The vocabulary that the node numbers of the entry refer to."""
        return self._vocabularies[1]

    def decision(self) -> Decision:
        """Unpack the decision; it has its matrix if it was made with recording."""
        return unpack(self._packed, self.key, self.uid, self._profile, self._vocabularies)

    def as_json(self, *, whole: bool = True, causes: Causes | None = None) -> dict[str, Any]:
        """The JSON of `podium explain`, with the time of the attempt and the result of the binding.

        Unless *whole*, lists of nodes and scores are left out. *causes* were found since.
        """
        decision = self.decision()
        if causes is not None:
            causes.add_to(decision)
        if not whole:
            decision.examined, decision.feasible, decision.best = (), (), ()
            decision.totals, decision.scores = None, ()
        found = to_json(decision, attempt=self.number)
        found["time"] = _time(self.began)
        found["seconds"] = round(self.seconds, 6)
        found["queued"] = _time(self.queued_at)
        if isinstance(self.binding, str):
            found["binding"] = {"error": self.binding}
        elif self.binding is not None:
            found["binding"] = {"seconds": round(self.binding, 6)}
        if self.steps:
            found["timings"] = [{"step": s, "seconds": round(t, 6)} for s, t in self.steps]
        return found


class DecisionLog(Observer):
    """Keeps the newest attempts."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES, most: int = MOST) -> None:
        self._budget_bytes, self._most = budget_bytes, most
        self._entries: deque[LoggedAttempt] = deque()
        self._newest: dict[str, LoggedAttempt] = {}
        self._names = NodeNames()
        self._vocabularies: list[NodeNames] = [self._names]
        #: What the newest entries refer to.
        self._current: Vocabularies = (None, self._names)
        self._bytes = 0
        #: The number of attempts since the start.
        self.sequence = 0
        self._listeners: list[Callable[[LoggedAttempt], None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The memory it takes, in bytes."""
        if len(self._vocabularies) == 1:
            return self._bytes + self._names.size
        return self._bytes + sum(names.size for names in self._vocabularies)

    def listen(self, listener: Callable[[LoggedAttempt], None]) -> Callable[[], None]:
        """Call *listener* with every new entry, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # Reports of the scheduler ---------------------------------------------------------------

    def attempted(self, result: AttemptResult) -> None:
        """Keep the attempt, and drop the oldest ones if there are too many."""
        self.sequence += 1
        decision = result.decision
        self._renew_names(decision.nodes)
        packed = pack(decision, self._names)
        if len(packed) > self._budget_bytes // _SHARE:
            packed = pack(decision, self._names, whole=False)
        verdicts, names = self._current
        if verdicts is not decision.verdicts or names is not self._names:
            self._current = (decision.verdicts, self._names)
        entry = LoggedAttempt(result, self.sequence, packed, self._current)
        self._names.users += 1
        before = self._newest.get(entry.key)
        if before is not None:
            entry.older, before.newer = before, entry
        self._newest[entry.key] = entry
        entries = self._entries
        entries.append(entry)
        self._bytes += entry.size
        while len(entries) > self._most or (self.size > self._budget_bytes and len(entries) > 1):
            self._drop()
        for listener in self._listeners:
            listener(entry)

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:  # noqa: ARG002
        """Note in the entry of the attempt how long its binding took."""
        self._settle(result, seconds)

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:  # noqa: ARG002
        """Note in the entry of the attempt why its binding failed."""
        self._settle(result, error)

    def _settle(self, result: AttemptResult, binding: float | str) -> None:
        entry = self._newest.get(result.decision.pod)
        uid, number = result.decision.uid, result.number
        while entry is not None and (entry.number != number or entry.uid != uid):
            entry = entry.older
        if entry is not None:
            entry.binding = binding
            if isinstance(binding, str):
                self._bytes += getsizeof(binding)

    def _renew_names(self, nodes: int) -> None:
        """Begin a new vocabulary when most names of the old one are of deleted nodes."""
        if len(self._names.names) > 2 * nodes + _STALE_NAMES:
            self._names = NodeNames()
            self._vocabularies.append(self._names)

    def _drop(self) -> None:
        oldest = self._entries.popleft()
        if self._newest[oldest.key] is oldest:
            del self._newest[oldest.key]
        if oldest.newer is not None:
            oldest.newer.older = None
        oldest.newer = None
        self._bytes -= oldest.size
        if isinstance(oldest.binding, str):
            self._bytes -= getsizeof(oldest.binding)
        names = oldest.names
        names.users -= 1
        if not names.users and names is not self._names:
            self._vocabularies.remove(names)

    # Reading --------------------------------------------------------------------------------

    def of(self, namespace: str, name: str) -> list[LoggedAttempt]:
        """The attempts at one pod, the newest first."""
        found, entry = [], self._newest.get(f"{namespace}/{name}")
        while entry is not None:
            found.append(entry)
            entry = entry.older
        return found

    def recent(
        self, *, namespace: str = "", outcomes: Sequence[str] = (), limit: int = 100
    ) -> list[LoggedAttempt]:
        """The newest attempts, the newest first: of one namespace, of some outcomes, if asked."""
        found: list[LoggedAttempt] = []
        if limit <= 0:
            return found
        for entry in self._backwards():
            if namespace and not entry.key.startswith(f"{namespace}/"):
                continue
            if outcomes and entry.outcome not in outcomes:
                continue
            found.append(entry)
            if len(found) == limit:
                break
        return found

    def _backwards(self) -> Iterator[LoggedAttempt]:
        return reversed(self._entries)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


MOST_BYTES: Final = 64 << 20
KEPT: Final = 3


class DecisionFile:
    """Appends entries of the decision log, one per line, without lists of nodes."""

    def __init__(
        self,
        path: str,
        warn: Callable[[str], None],
        *,
        most_bytes: int = MOST_BYTES,
        kept: int = KEPT,
    ) -> None:
        self._path, self._warn = Path(path), warn
        self._most_bytes, self._kept = most_bytes, kept
        self._file: BinaryIO | None = None
        try:
            self._open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot be written: {reason}", where=path) from None

    def _open(self) -> None:
        from podium.past.format.frames import private  # noqa: PLC0415  only with a file

        self._file = open(self._path, "ab", opener=private)  # noqa: SIM115
        self._written = self._file.tell()

    def write(self, entry: LoggedAttempt) -> None:
        """Append one entry, rotating the file first if it would grow too large."""
        if self._file is None:
            return
        line = to_json_line(entry.as_json(whole=False)).encode()
        try:
            if self._written and self._written + len(line) > self._most_bytes:
                self._rotate()
            self._file.write(line)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(line)

    def _rotate(self) -> None:
        assert self._file is not None
        self._file.close()
        for number in range(self._kept, 0, -1):
            older = self._numbered(number)
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(older)
        if not self._kept:
            self._path.unlink()
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _give_up(self, error: OSError) -> None:
        reason = (error.strerror or str(error)).lower()
        self._warn(f"decisions are not written to {self._path} any more: {reason}")
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def flush(self) -> None:
        """Write what is buffered."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Write what is buffered, and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
