"""Packs a decision into few bytes, and unpacks it.

What every decision has (outcome, node, histogram of verdicts) takes some dozens of bytes. The
matrix of a recorded one has a row per node and a column per priority. It is stored in the smallest
integers that hold it, compressed: about 20 KB for 5,000 nodes and ten priorities. Node names are
numbers of a vocabulary that decisions share.
"""

from __future__ import annotations

import zlib
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.engine.framework.decision import NO_CODES, Decision, Preemption, ScoreColumn
from podium.engine.framework.rule import Refused
from podium.engine.rules.devices.plugin import NAME as DEVICES
from podium.engine.state.reservation import DevicePlan, VolumePlan
from podium.objects.kinds.devices import ClaimMeta, ResourceClaimStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from podium.engine.state.verdicts import Verdicts

    Vocabularies = tuple[Verdicts | None, "NodeNames"]

#: The level of zlib that is fast enough between two decisions.
_LEVEL: Final = 1
#: Fewer bytes than this are not compressed.
_MIN_COMPRESSED: Final = 512
#: The bytes that CPython needs for a dictionary entry, on average.
_DICT_ENTRY_BYTES: Final = 120


class NodeNames:
    """A vocabulary of node names: each name has a number."""

    __slots__ = ("_numbers", "names", "size", "users")

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        #: The memory it takes in bytes, about.
        self.size = 0
        #: The number of decisions that refer to it.
        self.users = 0

    def numbers(self, names: Iterable[str]) -> np.ndarray:
        """The number of each name; a new name gets the next number."""
        known = self._numbers
        return np.fromiter((known.get(name) or self._number(name) for name in names), np.int64)

    def _number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
            self.size += getsizeof(name) + _DICT_ENTRY_BYTES
        return found

    def named(self, numbers: np.ndarray) -> list[str]:
        """The names of these numbers."""
        return [self.names[number] for number in numbers.tolist()]


class _Columns:
    """Appends integer columns to a buffer."""

    __slots__ = ("parts", "shapes")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        #: Type and length of each column.
        self.shapes: list[tuple[str, int]] = []

    def put(self, values: np.ndarray) -> None:
        """Append a column, in the smallest integers that hold it."""
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        kind = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
        kind = kind if kind.kind in "iu" else np.dtype(np.int64)
        self.shapes.append((kind.char, len(values)))
        self.parts.append(values.astype(kind).tobytes())

    def put_numbers(self, numbers: np.ndarray) -> None:
        """Append node numbers as differences, since most are one more than the one before."""
        self.put(np.diff(numbers, prepend=0))


class _Reader:
    """Reads the columns of a buffer in order."""

    def __init__(self, data: bytes, shapes: Sequence[tuple[str, int]]) -> None:
        self._data, self._shapes = data, iter(shapes)
        self._at = 0

    def take(self) -> np.ndarray:
        """The next column."""
        kind, length = next(self._shapes)
        found = np.frombuffer(self._data, np.dtype(kind), length, self._at)
        self._at += found.nbytes
        return found.astype(np.int64)

    def take_numbers(self) -> np.ndarray:
        """The next column of node numbers."""
        found: np.ndarray = np.cumsum(self.take())
        return found


class _Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What every decision has; the first fields are attributes of it."""

    node: str | None
    error: str
    histogram: dict[int, int]
    feasible_count: int
    tied: int
    cursor: int
    dropped: bool
    nominated: str | None
    held: Refused | None
    refused: Refused | None
    post_code: str
    post_message: str
    group_message: str
    extender_failed: dict[str, list[str]]
    nodes: int
    #: The number of verdicts, or what it was before the verdicts were left out.
    consumed: int
    volumes: VolumePlan | None
    devices: DevicePlan | None
    #: Without the nodes that were looked at, which are a column.
    preemption: Preemption | None
    #: Name, weight and uniformity of each column of scores.
    scores: list[tuple[str, int, bool]] | None
    #: Type and length of each column.
    shapes: list[tuple[str, int]]
    has_matrix: bool


_ATTRIBUTES: Final = _Head.__struct_fields__[:14]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


def pack(decision: Decision, names: NodeNames, *, whole: bool = True) -> bytes:
    """Pack a decision without its pod; unless *whole*, without matrix and most candidates."""
    columns = _Columns()
    scores = None
    matrix = whole and bool(decision.examined)
    if matrix:
        columns.put_numbers(names.numbers(decision.examined))
        columns.put(decision.codes)
        columns.put_numbers(names.numbers(decision.feasible))
        columns.put_numbers(names.numbers(decision.best))
        if decision.totals is not None:
            columns.put(decision.totals)
            scores = []
            for column in decision.scores:
                columns.put(column.raw)
                columns.put(column.score)
                scores.append((column.name, column.weight, column.uniform))
    preemption, devices = decision.preemption, decision.devices
    if preemption is not None:
        columns.put_numbers(names.numbers(preemption.potential))
        preemption = _shortened(preemption, whole=whole)
    head = _Head(
        decision.node,
        decision.error,
        dict(decision.histogram),
        decision.feasible_count,
        decision.tied,
        decision.cursor,
        decision.dropped,
        decision.nominated,
        decision.held,
        decision.refused,
        decision.post_code,
        decision.post_message,
        decision.group_message,
        dict(decision.extender_failed),
        decision.nodes,
        len(decision.codes) or decision.consumed,
        decision.volumes,
        None if devices is None else _shown(devices),
        preemption,
        scores,
        columns.shapes,
        matrix,
    )
    packed = _encode(head)
    body = len(packed).to_bytes(4, "little") + packed
    if columns.parts:
        body = b"".join((body, *columns.parts))
    return b"\1" + zlib.compress(body, _LEVEL) if len(body) > _MIN_COMPRESSED else b"\0" + body


def _shortened(preemption: Preemption, *, whole: bool) -> Preemption:
    """A preemption without the nodes looked at; unless *whole*, with the chosen candidate alone."""
    candidates = preemption.candidates.items()
    kept = {node: found for node, found in candidates if whole or node == preemption.node}
    tie = preemption.tie if whole else ()
    return replace(preemption, potential=(), candidates=kept, tie=tie)


def _shown(plan: DevicePlan) -> DevicePlan:
    """A plan for devices with the parts of its claims that pages show."""
    claims = []
    for each in plan.claims:
        about, status = each.claim.metadata, each.claim.status
        metadata = ClaimMeta(name=about.name, namespace=about.namespace, uid=about.uid)
        shown = ResourceClaimStatus(allocation=status.allocation)
        claims.append(replace(each, claim=replace(each.claim, metadata=metadata, status=shown)))
    return replace(plan, claims=tuple(claims))


def unpack(data: bytes, pod: str, uid: str, profile: str, vocabularies: Vocabularies) -> Decision:
    """The decision, with the vocabularies of verdicts and node names that it was packed with."""
    verdicts, names = vocabularies
    body = zlib.decompress(memoryview(data)[1:]) if data[0] else data[1:]
    end = 4 + int.from_bytes(body[:4], "little")
    head = _decode(body[4:end])
    made = Decision(pod, uid, profile, nodes=head.nodes)
    for name in _ATTRIBUTES:
        setattr(made, name, getattr(head, name))
    made.verdicts = verdicts
    made.histogram = head.histogram
    made.consumed = head.consumed
    plans = {"volumes": head.volumes, DEVICES: head.devices}
    made.reservations = {name: plan for name, plan in plans.items() if plan is not None}
    reader = _Reader(body[end:], head.shapes)
    if head.has_matrix:
        _fill_matrix(made, reader, names, head.scores)
    if head.preemption is not None:
        potential = tuple(names.named(reader.take_numbers()))
        made.preemption = replace(head.preemption, potential=potential)
    return made


def _fill_matrix(made: Decision, reader: _Reader, names: NodeNames, scores: Any) -> None:
    made.examined = names.named(reader.take_numbers())
    made.codes = reader.take().astype(NO_CODES.dtype)
    made.feasible = names.named(reader.take_numbers())
    made.best = names.named(reader.take_numbers())
    if scores is not None:
        made.totals = reader.take()
        made.scores = tuple(
            ScoreColumn(name, weight, reader.take(), reader.take(), uniform=uniform)
            for name, weight, uniform in scores
        )
