"""Numbers that are equal for equal decisions, on every machine and in every process.

`digest` costs a few microseconds. It covers all that the scheduling loop computes for every pod:
the outcome, how many nodes were rejected for which reasons, ties, preemption. `matrix` covers the
verdict and the scores of each single node, and exists only where these were computed: deciding
skips them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.rule import Refused
    from podium.engine.state.verdicts import Verdict

_encode = msgspec.msgpack.Encoder().encode
_MASK = (1 << 64) - 1


def _number(*parts: bytes) -> int:
    """A positive number that fits into 63 bits, as every reader of msgpack and JSON has them."""
    return int.from_bytes(blake2b(b"".join(parts), digest_size=8).digest(), "little") >> 1


@lru_cache(maxsize=1 << 14)
def _verdict_number(verdict: Verdict) -> int:
    found = (verdict.predicate, verdict.reasons, verdict.curable, verdict.plugins)
    return _number(_encode(found))


def digest(decision: Decision) -> int:
    """A number for what the scheduling loop knows of a decision."""
    outcome = (
        decision.node,
        decision.error,
        decision.nodes,
        decision.feasible_count,
        decision.tied,
        decision.consumed,
        decision.dropped,
        decision.nominated,
    )
    if decision.node is not None and not decision.histogram and not decision.reservations:
        return _number(_encode(outcome))
    rejections = sum(
        count * _verdict_number(decision.verdict(code))
        for code, count in decision.histogram.items()
    )
    more = (
        rejections & _MASK,
        sorted(decision.reservations),
        [(name, permission.wait_seconds) for name, permission in decision.waits],
        _refused(decision.held),
        _refused(decision.refused),
        decision.post_code,
        decision.post_message,
        _preemption(decision.preemption),
    )
    return _number(_encode((outcome, more)))


def _refused(refused: Refused | None) -> Any:
    return None if refused is None else (refused.plugin, refused.reason)


def _preemption(found: Preemption | None) -> Any:
    if found is None:
        return None
    chosen = found.candidates[found.node].uids if found.node is not None else ()
    return (
        found.eligible,
        found.node,
        chosen,
        sorted(found.candidates),
        found.criterion,
        found.cleared,
        found.nomination,
        found.error,
    )


def group_digest(found: GroupDecision) -> int:
    """A number for what became of a cycle of a pod group, and for why."""
    members = [
        (each.pod.key, each.code, each.message, each.node, each.nomination)
        for each in found.members
    ]
    preemption = found.preemption
    evicted = None
    if preemption is not None:
        nominated = sorted(preemption.nominated.items())
        evicted = (preemption.uids, preemption.violations, nominated, preemption.ongoing)
    outcome = (found.group, found.code, found.queue_code, found.message, found.undone)
    return _number(_encode((outcome, members, evicted, len(found.searches))))


def matrix(decision: Decision) -> int | None:
    """A number for the verdicts and scores of all nodes; None where these were not kept."""
    if not decision.examined or decision.verdicts is None:
        return None
    numbers = np.array([_verdict_number(verdict) for verdict in decision.verdicts], np.int64)
    parts = [_names(decision.examined), numbers[decision.codes].tobytes()]
    parts.append(_names(decision.feasible))
    for column in decision.scores:
        parts.append(_encode((column.name, column.weight)))
        parts += [_column(column.raw), _column(column.score)]
    if decision.totals is not None:
        parts.append(_column(decision.totals))
    return _number(*parts)


def _names(names: Iterable[str]) -> bytes:
    return "\n".join(names).encode() + b"\0"


def _column(values: Any) -> bytes:
    found = np.asarray(values)
    kind = np.float64 if found.dtype.kind == "f" else np.int64
    return found.astype(kind).tobytes()
