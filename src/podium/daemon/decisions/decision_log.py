"""The last decisions, to be looked up by pod: within a budget of memory that is kept honestly.

Decisions are kept packed and unpacked one by one when somebody asks. The oldest go first, when
there are too many or they take too much room.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from podium.daemon.decisions.decision_packing import NodeNames, pack, unpack
from podium.daemon.observers import Observer
from podium.render.decision.as_json import outcome, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.daemon.observers import Attempted
    from podium.engine.framework.decision import Decision
    from podium.engine.state.verdicts import Verdicts

BUDGET_BYTES: Final = 32 << 20
MOST: Final = 10_000
#: Where the log finds an entry: its places in a queue and in a dictionary, two numbers, a link.
_PLACES: Final = 320
#: A decision that alone would take more than this share of the budget is kept without its matrix.
_SHARE: Final = 8
#: Names of nodes that are gone are given up once there are so many of them.
_STALE_NAMES: Final = 4096


class Entry:
    """One attempt at one pod, packed."""

    __slots__ = (
        "_packed",
        "_profile",
        "_told",
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
        "steps",
        "ties",
        "uid",
    )

    def __init__(
        self, attempted: Attempted, sequence: int, packed: bytes, names: NodeNames
    ) -> None:
        decision = attempted.decision
        self.key, self.uid = decision.pod, decision.uid
        self.sequence, self.number = sequence, attempted.number
        self.began, self.seconds = attempted.began, attempted.seconds
        self.queued_at = attempted.queued_at
        self.steps = tuple(attempted.steps)
        self.outcome = outcome(decision)
        self.ties = attempted.profile.ties
        #: What came of binding: nothing yet, seconds, or an error.
        self.binding: float | str | None = None
        #: The attempts at the same pod before and after this one, as long as they are kept.
        self.older: Entry | None = None
        self.newer: Entry | None = None
        self._profile = decision.profile
        self._packed = packed
        self._told: tuple[Verdicts | None, NodeNames] = (decision.verdicts, names)

    @property
    def names(self) -> NodeNames:
        """The vocabulary that its node numbers are of."""
        return self._told[1]

    @property
    def size(self) -> int:
        """What it takes, in bytes."""
        steps = sum(map(getsizeof, self.steps)) + 24 * len(self.steps) + getsizeof(self.steps)
        texts = getsizeof(self.key) + getsizeof(self.uid) + getsizeof(self._packed)
        return _PLACES + getsizeof(self) + getsizeof(self._told) + texts + steps

    def decision(self) -> Decision:
        """The decision; with its matrix if it was made with recording."""
        return unpack(self._packed, self.key, self.uid, self._profile, self._told)

    def as_json(self, *, whole: bool = True) -> dict[str, Any]:
        """As `podium explain` shows a decision, with when it was made and what came of it.

        Unless *whole*, lists of nodes and scores are left out.
        """
        decision = self.decision()
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
    """Remembers attempts, the newest longest."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES, most: int = MOST) -> None:
        self._budget_bytes, self._most = budget_bytes, most
        self._entries: deque[Entry] = deque()
        self._newest: dict[str, Entry] = {}
        self._names = NodeNames()
        self._vocabularies: list[NodeNames] = [self._names]
        self._bytes = 0
        #: How many attempts there ever were.
        self.sequence = 0
        self._listeners: list[Callable[[Entry], None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """What it takes, in bytes."""
        return self._bytes + sum(names.size for names in self._vocabularies)

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Be told of every new entry; call the result to be told no more."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # What happens ---------------------------------------------------------------------------

    def attempted(self, attempted: Attempted) -> None:
        """Remember it."""
        self.sequence += 1
        decision = attempted.decision
        self._renew_names(decision.nodes)
        packed = pack(decision, self._names)
        if len(packed) > self._budget_bytes // _SHARE:
            packed = pack(decision, self._names, whole=False)
        entry = Entry(attempted, self.sequence, packed, self._names)
        self._names.users += 1
        before = self._newest.get(entry.key)
        if before is not None:
            entry.older, before.newer = before, entry
        self._newest[entry.key] = entry
        self._entries.append(entry)
        self._bytes += entry.size
        while len(self._entries) > self._most or (
            self.size > self._budget_bytes and len(self._entries) > 1
        ):
            self._drop()
        for listener in self._listeners:
            listener(entry)

    def bound(self, attempted: Attempted, node: str, seconds: float) -> None:  # noqa: ARG002
        """Note that the attempt came to its end."""
        self._settle(attempted, seconds)

    def bind_failed(self, attempted: Attempted, node: str, error: str) -> None:  # noqa: ARG002
        """Note that it was in vain."""
        self._settle(attempted, error)

    def _settle(self, attempted: Attempted, binding: float | str) -> None:
        entry = self._newest.get(attempted.decision.pod)
        while entry is not None and (entry.uid, entry.number) != (
            attempted.decision.uid,
            attempted.number,
        ):
            entry = entry.older
        if entry is not None:
            entry.binding = binding
            if isinstance(binding, str):
                self._bytes += getsizeof(binding)

    def _renew_names(self, nodes: int) -> None:
        """Begin a new vocabulary when most of the old one is about nodes that are gone."""
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

    # What is known --------------------------------------------------------------------------

    def of(self, namespace: str, name: str) -> list[Entry]:
        """The attempts at one pod, the newest first."""
        found, entry = [], self._newest.get(f"{namespace}/{name}")
        while entry is not None:
            found.append(entry)
            entry = entry.older
        return found

    def recent(
        self, *, namespace: str = "", outcomes: Sequence[str] = (), limit: int = 100
    ) -> list[Entry]:
        """The newest attempts, the newest first: of one namespace, of some outcomes, if asked."""
        found: list[Entry] = []
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

    def _backwards(self) -> Iterator[Entry]:
        return reversed(self._entries)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
