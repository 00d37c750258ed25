"""The filter pipeline: which rows a pod fits on, and what rejects it on the others.

The only place that runs filter rules: over many rows as arrays, on one row as plain numbers, and
on rows with pods added or removed. Decisions, explanations, the answers kept per pod class, checks
with nominated pods and the search for victims all consume it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.rule import Activity
from podium.engine.rows.rows import as_int
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from podium.engine.framework.rule import FilterRule, Positioned
    from podium.engine.rows.rows import ManyRows, OneRow
    from podium.engine.rows.trial_one import TrialRow
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View

#: In place of a verdict code: an error was reported on the row.
ERROR = -1
#: The position of a row that no rule rejected: after every rule.
LAST = 1 << 14


class Fit:
    """The verdict of each row, which rule gave it, and the errors reported on rows."""

    __slots__ = ("codes", "errors", "positions", "rejections")

    def __init__(
        self,
        codes: np.ndarray,
        positions: np.ndarray,
        errors: dict[int, str],
        rejections: Mapping[int, int] | None = None,
    ) -> None:
        self.codes = codes
        #: How many nodes were rejected with which verdict, where that was counted already.
        self.rejections = rejections
        #: The position of the first rule that rejected the row, or `LAST`.
        self.positions = positions
        #: Position among the rows -> text.
        self.errors = errors


def active(pod: Incoming, view: View, rules: Iterable[Positioned]) -> list[Positioned]:
    """The rules that may reject some row, as the cluster is now."""
    return [each for each in rules if each.rule.activity(pod, view) > Activity.IDLE]


def run_filters(
    pod: Incoming, at: ManyRows, rules: Iterable[Positioned], *, check_all: bool = False
) -> Fit:
    """Run rules in order over many rows, each over the rows that no earlier one rejected.

    With `check_all` a row that was rejected is still given to the later rules, and its verdict
    holds the reasons of all of them.
    """
    codes = np.zeros(len(at), np.int32)
    positions = np.full(len(at), LAST, np.int16)
    errors: dict[int, str] = {}
    alive: np.ndarray | None = None  # all of them
    for position, rule in rules:
        rows = at if alive is None else at.only(alive)
        answers = rule.filter(pod, rows)
        if not rows.errors:
            if not rows.any(answers):
                continue
            if not check_all:
                alive = _took_over(answers, position, alive, codes, positions)
                if not len(alive):
                    break
                continue
        places = np.arange(len(at)) if alive is None else alive
        given: np.ndarray = np.broadcast_to(np.asarray(answers), places.shape)
        rejected = given != FITS
        first = places[rejected & (codes[places] == FITS)]
        positions[first] = position
        if check_all:
            codes[places] = _merged(at.view, codes[places], given)
        else:
            codes[places] = given
        if rows.errors:
            _check_may_fail(rule, pod)
            failed = places[np.fromiter(rows.errors, np.int64, len(rows.errors))]
            errors.update(zip(failed.tolist(), rows.errors.values(), strict=True))
            codes[failed] = ERROR
            positions[failed] = np.minimum(positions[failed], position)
        alive = places[codes[places] != ERROR] if check_all else places[codes[places] == FITS]
        if not len(alive):
            break
    return Fit(codes, positions, errors)


def _took_over(
    answers: Any, position: int, alive: np.ndarray | None, codes: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """Write the verdicts of a rule that rejects some rows; the rows that are left."""
    given = np.asarray(answers)
    if not given.ndim:
        given = np.broadcast_to(given, (len(codes) if alive is None else len(alive),))
    rejected = given != FITS
    places = rejected.nonzero()[0]
    gone = places if alive is None else alive[places]
    codes[gone], positions[gone] = given[places], position
    left: np.ndarray = (~rejected).nonzero()[0] if alive is None else alive[~rejected]
    return left


def run_filters_on_row(
    pod: Incoming, at: OneRow, rules: Iterable[Positioned], *, check_all: bool = False
) -> tuple[int, int]:
    """Run rules in order on one row: its verdict code, and the position of the first that rejects.

    An error reported on the row is in `at.errors`, and the code is `ERROR`.
    """
    code, first = FITS, LAST
    for position, rule in rules:
        answer = as_int(rule.filter(pod, at))
        if at.errors:
            _check_may_fail(rule, pod)
            return ERROR, min(first, position)
        if answer:
            first = min(first, position)
            if not check_all:
                return answer, first
            code = at.view.verdicts.merge(code, answer)
    return code, first


def run_filters_with_nominated(
    pod: Incoming,
    trial: TrialRow,
    rules: Sequence[Positioned],
    *,
    check_all: bool = False,
    nominees_count_for_affinity: bool = False,
) -> int:
    """The verdict code of a row: with the pods nominated to it, if there are any, then without.

    Pods nominated to the node count if their priority is not lower than that of the pod. An error
    is in `trial.errors`. `nominees_count_for_affinity`: a nominated pod counts for everything, also
    for the affinity of other pods.
    """
    others = [
        each
        for each in trial.view.pods.nominated.get(trial.name, ())
        if each.priority >= pod.priority and each.uid != pod.uid
    ]
    if others:
        crowded = trial.copy()
        for other in others:
            crowded.add(other, nominated=not nominees_count_for_affinity)
        code, _ = run_filters_on_row(pod, crowded, rules, check_all=check_all)
        trial.errors.update(crowded.errors)
        if code != FITS:
            return code
    return run_filters_on_row(pod, trial, rules, check_all=check_all)[0]


def merged_errors(texts: Sequence[str]) -> str:
    """The errors of several rows as one text: equal ones once, several as a list."""
    parts = [f"{t} (repeated {n} times)" if n > 1 else t for t, n in sorted(Counter(texts).items())]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _merged(view: View, before: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Two verdicts of each row as one."""
    size = max(len(view.verdicts), 1)
    pairs, of_row = np.unique(before.astype(np.int64) * size + answers, return_inverse=True)
    merged = [view.verdicts.merge(*divmod(pair, size)) for pair in pairs.tolist()]
    return np.array(merged, np.int32)[of_row.ravel()]


def _check_may_fail(rule: FilterRule, pod: Incoming) -> None:
    """Refuse an error of a rule whose answers are kept per row: an error must never be kept."""
    scope = rule.scope(pod.cls)
    if scope.of_row:
        raise RuntimeError(
            f"{rule.name} reported an error on a row, but states scope {scope.name}; "
            "a rule that may fail must have scope CLUSTER or OBJECTS"
        )
