"""Packs a decision into few bytes, and unpacks it.

What every decision has (outcome, node, histogram of verdicts) takes some dozens of bytes. The
matrix of a recorded one, with a row per node and a column per priority, is stored in the smallest
integers that hold it, compressed: about 20 KB for 5,000 nodes and ten priorities. Node names are
numbers of a vocabulary that decisions share.
"""

from __future__ import annotations

import zlib
from collections import Counter
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from podium.engine.framework.decision import NO_CODES, Decision, Preemption, ScoreColumn, Victims
from podium.engine.framework.rule import Refused
from podium.engine.rules.devices.plugin import NAME as DEVICES
from podium.engine.state.reservation import ClaimPlan, DevicePlan, VolumePlan
from podium.objects.kinds.devices import (
    Allocation,
    ClaimMeta,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from podium.objects.kinds.pod import ContainerExtendedResource

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
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


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
    preemption, held, refused = decision.preemption, decision.held, decision.refused
    volumes, devices = decision.volumes, decision.devices
    head = (
        decision.node,
        decision.error,
        decision.nodes,
        list(decision.histogram.items()),
        decision.feasible_count,
        decision.tied,
        decision.cursor,
        # The number of verdicts, or what it was before the verdicts were left out.
        len(decision.codes) or decision.consumed,
        decision.dropped,
        decision.nominated,
        None if held is None else _packed_refusal(held),
        None if refused is None else _packed_refusal(refused),
        decision.post_code,
        decision.post_message,
        None if volumes is None else (dict(volumes.bind), list(volumes.provision)),
        decision.extender_failed or None,
        None if preemption is None else _packed_preemption(preemption, names, columns, whole=whole),
        scores,
        columns.shapes,
        matrix,
        None if devices is None else _packed_devices(devices),
        decision.group_message,
    )
    packed = _encode(head)
    body = len(packed).to_bytes(4, "little") + packed
    if columns.parts:
        body = b"".join((body, *columns.parts))
    return b"\1" + zlib.compress(body, _LEVEL) if len(body) > _MIN_COMPRESSED else b"\0" + body


def unpack(data: bytes, pod: str, uid: str, profile: str, vocabularies: Vocabularies) -> Decision:
    """The decision, with the vocabularies of verdicts and node names that it was packed with."""
    verdicts, names = vocabularies
    body = zlib.decompress(memoryview(data)[1:]) if data[0] else data[1:]
    end = 4 + int.from_bytes(body[:4], "little")
    head = _decode(body[4:end])
    made = Decision(pod, uid, profile, nodes=head[2], node=head[0], error=head[1])
    made.verdicts = verdicts
    made.histogram = Counter(dict(head[3]))
    made.feasible_count, made.tied, made.cursor, made.consumed = head[4:8]
    made.dropped, made.nominated = head[8], head[9]
    made.held, made.refused = _refusal(head[10]), _refusal(head[11])
    made.post_code, made.post_message = head[12], head[13]
    if head[14] is not None:
        made.reservations = {"volumes": VolumePlan(head[14][0], tuple(head[14][1]))}
    if head[20] is not None:
        made.reservations = {**made.reservations, DEVICES: _devices(head[20])}
    made.extender_failed = head[15] or {}
    made.group_message = head[21]
    reader = _Reader(body[end:], head[18])
    if head[19]:
        _fill_matrix(made, reader, names, head[17])
    if head[16] is not None:
        made.preemption = _preemption(head[16], names, reader)
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


def _packed_devices(plan: DevicePlan) -> Any:
    """The claims of a pod and what they get, with the parts of claims that pages show."""
    claims = [
        (
            each.claim.metadata.name,
            each.claim.metadata.namespace,
            each.claim.metadata.uid,
            msgspec.to_builtins(each.claim.spec),
            msgspec.to_builtins(each.claim.status.allocation),
            msgspec.to_builtins(each.allocation),
            each.special,
        )
        for each in plan.claims
    ]
    return claims, [msgspec.to_builtins(each) for each in plan.mappings]


def _devices(packed: Any) -> DevicePlan:
    claims, mappings = packed
    plans = []
    for name, namespace, uid, spec, held, given, special in claims:
        claim = ResourceClaim(
            kind="ResourceClaim",
            metadata=ClaimMeta(name=name, namespace=namespace, uid=uid),
            spec=msgspec.convert(spec, ResourceClaimSpec),
            status=ResourceClaimStatus(allocation=msgspec.convert(held, Allocation | None)),
        )
        plans.append(ClaimPlan(claim, msgspec.convert(given, Allocation | None), special))
    made = tuple(msgspec.convert(each, ContainerExtendedResource) for each in mappings)
    return DevicePlan(tuple(plans), made)


def _packed_refusal(refused: Refused) -> tuple[str, str, bool, tuple[str, ...]]:
    return (refused.plugin, refused.reason, refused.curable, refused.plugins)


def _refusal(packed: Any) -> Refused | None:
    if packed is None:
        return None
    plugin, reason, curable, plugins = packed
    return Refused(plugin, reason, curable, tuple(plugins))


def _packed_preemption(
    preemption: Preemption, names: NodeNames, columns: _Columns, *, whole: bool
) -> Any:
    columns.put_numbers(names.numbers(preemption.potential))
    candidates = [
        (node, each.pods, each.uids, each.priorities, each.violations, each.earliest)
        for node, each in preemption.candidates.items()
        if whole or node == preemption.node
    ]
    return (
        preemption.eligible,
        candidates,
        preemption.node,
        preemption.tie if whole else (),
        preemption.criterion,
        preemption.cleared,
        preemption.error,
        preemption.nomination,
    )


def _preemption(packed: Any, names: NodeNames, reader: _Reader) -> Preemption:
    eligible, candidates, node, tie, criterion, cleared, error, nomination = packed
    return Preemption(
        eligible,
        tuple(names.named(reader.take_numbers())),
        {
            at: Victims(tuple(pods), tuple(uids), tuple(priorities), violations, earliest)
            for at, pods, uids, priorities, violations, earliest in candidates
        },
        node,
        tuple(tie),
        criterion,
        tuple((uid, key) for uid, key in cleared),
        error,
        nomination,
    )
