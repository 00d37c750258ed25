"""The search for victims of one pod where pods of groups are on nodes, row after row.

A group that is evicted as a whole is one victim on each row that holds a pod of it, with its pods
on other rows. Filters see the row itself without the victim; other rows stay as they are.

Upstream: SelectVictimsOnNode of plugins/defaultpreemption, Kubernetes v1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from podium.engine.pipelines.filtering import run_filters_with_nominated
from podium.engine.preemption.criteria import TabledCandidates, VictimTable
from podium.engine.preemption.group_victims import by_importance, victims_on, violations_of
from podium.engine.preemption.kept_victims import RowVerdicts
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.group_victims import Victim
    from podium.engine.preemption.victim_policy import VictimPolicy
    from podium.engine.state.view import View


class _TriedRow:
    """One row from which everything of lower priority was removed, and the victims on it."""

    __slots__ = ("code", "error", "has_lower", "row", "victims", "violations")

    def __init__(self, failed: FailedSearch, row: int) -> None:
        self.row = row
        priority = failed.pod.priority
        lower = [each for each in victims_on(failed.view, (row,)) if each.priority < priority]
        self.has_lower = bool(lower)
        self.code, self.error = FITS, ""
        self.victims: list[Victim] = []
        self.violations = 0
        if lower:
            self._search(failed, lower)

    @property
    def is_candidate(self) -> bool:
        """Whether evicting pods makes the pod fit."""
        return self.code == FITS and bool(self.victims)

    def _search(self, failed: FailedSearch, lower: Sequence[Victim]) -> None:
        trial = TrialRow(failed.view, self.row)
        for victim in lower:
            self._remove(trial, victim)
        self.code = self._verdict(failed, trial)
        if trial.errors:
            self.error = trial.errors[0]
        if self.code != FITS:
            return
        charged = list(violations_of(by_importance(lower), failed.view.catalog.budgets))
        violating = [each for each in charged if each[1]]
        others = [each for each in charged if not each[1]]
        for victim, violations in (*violating, *others):
            for pod in victim.pods:
                if pod.row == self.row:
                    trial.add(pod)
            if self._verdict(failed, trial) != FITS:
                self._remove(trial, victim)
                self.victims.append(victim)
                self.violations += violations
            trial.errors.clear()
        if violating and others:
            self.victims = by_importance(self.victims)

    def _remove(self, trial: TrialRow, victim: Victim) -> None:
        for pod in victim.pods:
            if pod.row == self.row:
                trial.remove(pod)

    def _verdict(self, failed: FailedSearch, trial: TrialRow) -> int:
        return run_filters_with_nominated(
            failed.pod, trial, failed.rules, nominees_count_for_affinity=True
        )


class GroupCandidates(TabledCandidates):
    """The nodes where evicting pods and groups makes the incoming pod fit, in node order."""

    def __init__(self, view: View, tried: Sequence[_TriedRow], policy: VictimPolicy) -> None:
        found = [each for each in tried if each.is_candidate]
        super().__init__(view.nodes.name_array(), np.array([t.row for t in found], np.int64))
        self._listed = [
            policy.victims([pod for victim in each.victims for pod in victim.pods], each.violations)
            for each in found
        ]
        rows = np.array([each.row for each in tried], np.int64)
        places = [place for place, each in enumerate(tried) if each.is_candidate]
        #: All rows that were tried, in node order.
        self.tried = (
            RowVerdicts(
                rows,
                np.array([each.has_lower for each in tried], np.bool_),
                np.array([each.code for each in tried], np.int32),
                {place: each.error for place, each in enumerate(tried) if each.error},
                np.array(places, np.int64),
            ),
        )

    @override
    def table(self) -> VictimTable:
        return VictimTable.of(self._listed)

    @override
    def _victims_at(self, place: int) -> Victims:
        return self._listed[place]


def find_with_groups(failed: FailedSearch, policy: VictimPolicy, *, wanted: int) -> GroupCandidates:
    """The candidates among the potential rows, up to the row with which there are *wanted*."""
    tried: list[_TriedRow] = []
    found, harmless = 0, False
    for row in failed.potential.tolist():
        each = _TriedRow(failed, row)
        tried.append(each)
        if each.is_candidate:
            found += 1
            harmless = harmless or not each.violations
            if harmless and found >= wanted:
                break
    return GroupCandidates(failed.view, tried, policy)
