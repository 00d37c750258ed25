"""Which rows a pod fits on: predicates in order, over many rows or on one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import Scope
from podium.engine.rows.many import ManyRows, OneRow
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

#: In place of a verdict code: the row could not be judged.
ERROR = -1


class Fit:
    """Verdict codes of some rows, and the errors of those that could not be judged."""

    __slots__ = ("codes", "errors")

    def __init__(self, codes: np.ndarray, errors: dict[int, str]) -> None:
        self.codes = codes
        #: Position among the rows -> text.
        self.errors = errors


def judge(
    pod: Incoming, view: View, predicates: Sequence[Predicate], rows: np.ndarray, *, check_all: bool
) -> Fit:
    """Run the predicates in order over all rows, each over the rows still alive."""
    codes = np.zeros(len(rows), np.int32)
    errors: dict[int, str] = {}
    alive: np.ndarray | None = None  # all of them
    for predicate in predicates:
        if predicate.scope(pod.cls) is Scope.NONE or idle(predicate, pod, view):
            continue
        at = ManyRows(view, rows if alive is None else rows[alive])
        answers = predicate.reject(pod, at)
        if not at.errors and not np.any(answers):
            continue
        places = np.arange(len(rows)) if alive is None else alive
        answers = np.broadcast_to(answers, places.shape)
        codes[places] = merged(view, codes[places], answers) if check_all else answers
        if at.errors:
            failed = places[np.fromiter(at.errors, np.int64, len(at.errors))]
            errors.update(zip(failed.tolist(), at.errors.values(), strict=True))
            codes[failed] = ERROR
        alive = places[codes[places] != ERROR] if check_all else places[codes[places] == FITS]
        if not len(alive):
            break
    return Fit(codes, errors)


def idle(predicate: Predicate, pod: Incoming, view: View) -> bool:
    """Whether a cluster-wide predicate can reject nothing at all just now."""
    ask = getattr(predicate, "idle", None)
    return bool(ask is not None and ask(pod, view))


def merged(view: View, before: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Two verdicts of each row as one."""
    size = max(len(view.verdicts), 1)
    pairs, of_row = np.unique(before.astype(np.int64) * size + answers, return_inverse=True)
    merged = [view.verdicts.merge(*divmod(pair, size)) for pair in pairs.tolist()]
    return np.array(merged, np.int32)[of_row.ravel()]


def judge_one(
    pod: Incoming, row: OneRow, predicates: Sequence[Predicate], *, check_all: bool = False
) -> int:
    """The verdict code of one row; its error, if any, is in `row.errors`."""
    code = FITS
    for predicate in predicates:
        if predicate.scope(pod.cls) is Scope.NONE:
            continue
        code = row.view.verdicts.merge(code, int(predicate.reject(pod, row)))
        if row.errors:
            return ERROR
        if code and not check_all:
            break
    return code


def judge_with_nominated(
    pod: Incoming,
    trial: TrialRow,
    predicates: Sequence[Predicate],
    *,
    check_all: bool = False,
    nominees_count_for_affinity: bool = False,
) -> int:
    """First with the pods promised to the row, if there are any, then without them.

    `nominees_count_for_affinity`: whether the affinity of others counts the promised pods.
    """
    promised = trial.view.nominated.get(trial.name)
    if promised:
        crowded = trial.copy()
        for other in promised:
            if other.priority >= pod.priority and other.uid != pod.uid:
                crowded.add(other, nominated=not nominees_count_for_affinity)
        code = judge_one(pod, crowded, predicates, check_all=check_all)
        trial.errors.update(crowded.errors)
        if code:
            return code
    return judge_one(pod, trial, predicates, check_all=check_all)


def merged_errors(texts: Sequence[str]) -> str:
    """The errors of several rows as one text: equal ones once, several as a list."""
    parts = [f"{t} (repeated {n} times)" if n > 1 else t for t, n in sorted(Counter(texts).items())]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
