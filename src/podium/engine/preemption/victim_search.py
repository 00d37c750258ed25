"""Which pods must leave which nodes for a pod to fit.

On every row all pods of lower priority are removed. If the pod fits then, they are put back one by
one, those protected by disruption budgets first and the most important first; a pod with which the
incoming pod does not fit any more is removed again and is a victim. What differs between the
generations is a `VictimPolicy`. Rows are tried in batches here; those that cannot be, and a few
rows where most victims are kept, one by one in `row_search`.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, compress, pairwise
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from podium.engine.framework.decision import Victims
from podium.engine.preemption.batch_filter import BatchTrial, batch_rows
from podium.engine.preemption.criteria import TabledCandidates, VictimTable
from podium.engine.preemption.kept_victims import KeptCandidates, KeptVictims, kept_for
from podium.engine.preemption.row_search import Reprieve, TriedRow
from podium.engine.preemption.victim_order import sorted_by_importance
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.state.pod_class import NOT_STARTED
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.criteria import Criterion
    from podium.engine.preemption.victim_policy import VictimPolicy
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View


#: So many rows more than twice the missing candidates are tried in the second portion.
MIN_SECOND_PORTION = 64
#: Where victims are kept, portions after the first end at a multiple of so many rows.
KEPT_STEP = 256


class EvictingPostFilter:
    """A post-filter that evicts pods of lower priority by this search."""

    victim_policy: VictimPolicy
    #: What chooses among the candidates, in order.
    criteria: Sequence[Criterion]


def victims_of(pods: Sequence[Resident], violations: int, earliest: float = 0.0) -> Victims:
    """Pods as victims, in this order."""
    return Victims(
        pods=tuple(pod.key for pod in pods),
        uids=tuple(pod.uid for pod in pods),
        priorities=tuple(pod.priority for pod in pods),
        violations=violations,
        earliest=earliest,
    )


class TriedRows:
    """Rows on which evicting pods of lower priority was tried, and the victims on them."""

    def __init__(
        self, rows: np.ndarray, pods: PodArrays, protected: np.ndarray, policy: VictimPolicy
    ) -> None:
        self.rows = rows
        #: The pods of lower priority, row after row, in the order in which they are put back.
        self.pods = pods
        #: Whether a budget protects each pod, and whether it is a victim.
        self.protected = protected
        self.victim = np.zeros(len(pods), np.bool_)
        #: Whether each row has pods of lower priority.
        self.has_lower = np.bincount(pods.position, minlength=len(rows)) > 0
        #: The verdict on each row without its pods of lower priority, and error texts by position.
        self.codes = np.zeros(len(rows), np.int32)
        self.errors: dict[int, str] = {}
        #: Positions of the candidates, in node order.
        self.candidates = np.zeros(0, np.int64)
        self._policy = policy

    def counts(self, flags: np.ndarray) -> np.ndarray:
        """The number of flagged pods on each candidate's row."""
        found = np.bincount(self.pods.position[flags], minlength=len(self.rows))
        return found[self.candidates]

    def violations(self) -> np.ndarray:
        """How many protected pods are victims, for each candidate."""
        return self.counts(self.victim & self.protected)

    def listed(self) -> np.ndarray:
        """Indices of the candidates' victims, candidate after candidate, in listed order.

        Victims of one node that have the same priority may be listed otherwise.
        """
        is_candidate = np.zeros(len(self.rows), np.bool_)
        is_candidate[self.candidates] = True
        found = np.flatnonzero(self.victim & is_candidate[self.pods.position])
        if self._policy.lists_by_importance and self.protected.any():
            position, priority = self.pods.position[found], self.pods.priority[found]
            found = found[np.lexsort((-priority, position))]
        return found

    def victims_at(self, position: int) -> Victims:
        """The victims on one row."""
        begin, end = np.searchsorted(self.pods.position, [position, position + 1]).tolist()
        chosen, protected = self.victim[begin:end], self.protected[begin:end]
        pods = list(compress(self.pods.pods[begin:end], chosen))
        # Pods of which budgets protect all or none are in order already. Sorting them again would
        # reverse pods without a start time.
        if self._policy.lists_by_importance and protected.any() and not protected.all():
            pods = sorted_by_importance(pods)
        return self._policy.victims(pods, int((protected & chosen).sum()))


class Candidates(TabledCandidates):
    """The nodes where evicting pods makes the incoming pod fit, in node order."""

    def __init__(self, view: View, tried: Sequence[TriedRows]) -> None:
        #: All rows that were tried, in node order.
        self.tried = tried
        rows = [each.rows[each.candidates] for each in tried]
        found = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        super().__init__(view.nodes.name_array(), found)
        #: How many candidates there are up to and including each of the tried portions.
        self._ends = list(accumulate(len(each.candidates) for each in tried))

    @override
    def _victims_at(self, place: int) -> Victims:
        portion = bisect_right(self._ends, place)
        tried = self.tried[portion]
        # The difference is negative: it counts from the end of the portion.
        return tried.victims_at(int(tried.candidates[place - self._ends[portion]]))

    @override
    def table(self) -> VictimTable:
        listed = [(each.pods, each.listed()) for each in self.tried]

        def earliest(table: VictimTable) -> np.ndarray:
            started = np.concatenate([pods.started[chosen] for pods, chosen in listed])
            less_important = table.priority < np.repeat(table.highest(), table.counts)
            started[less_important] = NOT_STARTED
            found: np.ndarray = np.minimum.reduceat(started, table.begin)
            return found

        return VictimTable(
            np.concatenate([each.counts(each.victim) for each in self.tried]),
            np.concatenate([each.violations() for each in self.tried]),
            np.concatenate([pods.priority[chosen] for pods, chosen in listed]),
            earliest,
        )


def find_candidates(
    failed: FailedSearch, policy: VictimPolicy, *, wanted: int | None = None
) -> Candidates | KeptCandidates:
    """The candidates among the potential rows of a failed search.

    The search ends at the row with which there are `wanted` candidates, one of them without a
    violated budget. Rows are tried in portions: first as many rows as candidates are wanted, then
    as many as are still missing. Where rows are filtered in batches, the second portion is twice as
    many as are missing, since some of them will be no candidates, and the third is all the rest.
    """
    rows = failed.potential
    wanted = len(rows) if wanted is None else wanted
    kept = kept_for(failed, policy)
    if kept is not None:
        known = _find_with_kept(failed, policy, wanted, kept)
        if known is not None:
            return known
    batch = batch_rows(
        failed.pod, failed.view, failed.rules, rows, min_batch_rows=failed.min_batch_rows
    )
    tried: list[TriedRows] = []
    begin = found = 0
    harmless = False
    while begin < len(rows):
        end = begin + max(wanted - found, 1)
        if batch.any() and tried:
            end = len(rows) if len(tried) > 1 else begin + 2 * (wanted - found) + MIN_SECOND_PORTION
        portion = _try_rows(failed, rows[begin:end], batch[begin:end], policy)
        tried.append(portion)
        violations = portion.violations()
        last = _last_needed(violations, wanted - found, harmless=harmless)
        if last is not None:
            portion.candidates = portion.candidates[: last + 1]
            break
        begin, found = end, found + len(portion.candidates)
        harmless = harmless or not violations.all()
    return Candidates(failed.view, tried)


def _find_with_kept(
    failed: FailedSearch, policy: VictimPolicy, wanted: int, kept: KeptVictims
) -> KeptCandidates | None:
    """The same candidates, with only those rows tried whose victims are not kept.

    None if an error is reported on a row: errors are not kept.
    """
    rows = failed.potential
    found: list[np.ndarray] = []
    begin = count = portions = 0
    harmless = False
    while begin < len(rows):
        end = begin + max(wanted - count, 1)
        if portions:
            end = len(rows) if portions > 1 else begin + 2 * (wanted - count) + MIN_SECOND_PORTION
            # In steps, so that a search now and then tries many rows, and most searches none.
            end += -end % KEPT_STEP
        portions += 1
        end = min(end, len(rows))
        unknown = kept.unknown(rows[begin:end])
        if 0 < len(unknown) < failed.min_batch_rows:
            for row in unknown.tolist():
                alone = TriedRow(failed, row, policy)
                if alone.error is not None:
                    return None
                kept.put_row(alone)
        elif len(unknown):
            batch = batch_rows(
                failed.pod,
                failed.view,
                failed.rules,
                unknown,
                min_batch_rows=failed.min_batch_rows,
            )
            tried = _try_rows(failed, unknown, batch, policy)
            if tried.errors:
                return None
            kept.put(tried, Candidates(failed.view, (tried,)).table)
        candidates, violations = kept.candidates_among(rows[begin:end])
        begin = end
        last = _last_needed(violations, wanted - count, harmless=harmless)
        if last is not None:
            found.append(candidates[: last + 1])
            break
        found.append(candidates)
        count += len(candidates)
        harmless = harmless or not violations.all()
    chosen = np.concatenate(found) if found else rows[:0]
    return kept.listed(rows[:begin], chosen)


def _last_needed(violations: np.ndarray, missing: int, *, harmless: bool) -> int | None:
    """The place of the candidate with which there are enough; None if there are not yet.

    So many are missing, and one of all candidates must not violate a budget. *harmless*: there is
    such a one already.
    """
    last = max(missing, 1) - 1
    if last >= len(violations):
        return None
    if not harmless:
        first = int(np.argmin(violations != 0))
        if violations[first]:
            return None
        last = max(last, first)
    return last


def _try_rows(
    failed: FailedSearch, rows: np.ndarray, batch: np.ndarray, policy: VictimPolicy
) -> TriedRows:
    """Look for victims on some rows, in a batch on those that are flagged."""
    pod, view = failed.pod, failed.view
    pods = PodArrays.on(view, rows)
    pods = pods.only(np.flatnonzero(pods.priority < pod.priority))
    pods = pods.only(policy.order(pods))
    protected = policy.protected(pods, view.catalog.budgets)
    if protected.any():
        order = np.lexsort((~protected, pods.position))
        pods, protected = pods.only(order), protected[order]
    tried = TriedRows(rows, pods, protected, policy)
    worth_trying = tried.has_lower | policy.accepts_no_victims
    positions = np.flatnonzero(worth_trying & batch)
    if len(positions):
        trial = BatchTrial(
            pod,
            view,
            failed.rules,
            rows,
            pods,
            nominees_count_for_affinity=policy.nominees_count_for_affinity,
        )
        _reprieve(trial, tried, positions)
    positions = np.flatnonzero(worth_trying & ~batch)
    if len(positions):
        _reprieve_one_by_one(failed, tried, positions, policy)
    is_candidate = worth_trying & (tried.codes == FITS)
    if not policy.accepts_no_victims:
        victims = np.bincount(pods.position[tried.victim], minlength=len(rows))
        is_candidate &= victims > 0
    tried.candidates = np.flatnonzero(is_candidate)
    return tried


def _reprieve(trial: BatchTrial, tried: TriedRows, positions: np.ndarray) -> None:
    """Find the victims on rows of a trial, from which all pods of lower priority are removed.

    Where the incoming pod fits, they are put back in their order, one on each row at a time. A pod
    with which it does not fit any more is removed again and is a victim.
    """
    fit = trial.filter(positions)
    tried.codes[positions] = fit.codes
    failed = positions[list(fit.errors)].tolist()
    tried.errors.update(zip(failed, fit.errors.values(), strict=True))
    fits = np.zeros(len(tried.rows), np.bool_)
    fits[positions] = fit.codes == FITS
    position = tried.pods.position
    rank = tried.pods.running_sum(np.ones(len(position), np.int64))
    removed = np.flatnonzero(fits[position])
    removed = removed[np.argsort(rank[removed], kind="stable")]
    ranks = np.arange(1, rank.max(initial=0) + 2)
    for begin, end in pairwise(np.searchsorted(rank[removed], ranks).tolist()):
        pods = removed[begin:end]
        trial.put_back(pods)
        victims = pods[~trial.fits(position[pods])]
        trial.remove(victims)
        tried.victim[victims] = True


def _reprieve_one_by_one(
    failed: FailedSearch, tried: TriedRows, positions: np.ndarray, policy: VictimPolicy
) -> None:
    """Find the victims on rows that are not tried in a batch."""
    begins = np.searchsorted(tried.pods.position, positions).tolist()
    ends = np.searchsorted(tried.pods.position, positions, side="right").tolist()
    rows = tried.rows[positions].tolist()
    for position, row, begin, end in zip(positions.tolist(), rows, begins, ends, strict=True):
        found = Reprieve(failed, row, tried.pods.pods[begin:end], policy)
        tried.codes[position] = found.code
        if found.error is not None:
            tried.errors[position] = found.error
        tried.victim[begin:end] = found.victim
