"""The search for victims on one row, in plain values: where few rows are tried, or none in a batch.

`victim_search` does the same over many rows in arrays. Property tests hold both equal to a plain
search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.pipelines.filtering import run_filters_with_nominated
from podium.engine.preemption.victim_order import sorted_by_importance
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.post_filter import FailedSearch
    from podium.engine.preemption.victim_policy import VictimPolicy
    from podium.engine.state.pod_class import Resident


class Reprieve:
    """What was found on one row from which all pods of lower priority were removed.

    If the incoming pod fits then, they are put back in their order. A pod with which it does not
    fit any more is removed again and is a victim.
    """

    __slots__ = ("code", "error", "victim")

    def __init__(
        self, failed: FailedSearch, row: int, pods: Sequence[Resident], policy: VictimPolicy
    ) -> None:
        #: The verdict without the pods, and the error in its place.
        self.code = FITS
        self.error: str | None = None
        #: Whether each of the pods is a victim.
        self.victim = [False] * len(pods)
        trial = TrialRow(failed.view, row)
        for pod in pods:
            trial.remove(pod)
        self.code = self._verdict(failed, trial, policy)
        if trial.errors:
            self.error = trial.errors[0]
        if self.code != FITS:
            return
        for index, pod in enumerate(pods):
            trial.add(pod)
            if self._verdict(failed, trial, policy) != FITS:
                trial.remove(pod)
                self.victim[index] = True
            trial.errors.clear()

    def _verdict(self, failed: FailedSearch, trial: TrialRow, policy: VictimPolicy) -> int:
        return run_filters_with_nominated(
            failed.pod,
            trial,
            failed.rules,
            nominees_count_for_affinity=policy.nominees_count_for_affinity,
        )


class TriedRow:
    """One row on which evicting pods of lower priority was tried, and the victims on it."""

    __slots__ = (
        "_policy",
        "_resort",
        "code",
        "error",
        "has_lower",
        "is_candidate",
        "row",
        "victims",
        "violations",
    )

    def __init__(self, failed: FailedSearch, row: int, policy: VictimPolicy) -> None:
        self.row = row
        self._policy = policy
        priority = failed.pod.priority
        lower = [pod for pod in failed.view.pods.residents[row] if pod.priority < priority]
        pods = policy.sorted_pods(lower)
        protected = [False] * len(pods)
        budgets = failed.view.catalog.budgets
        if len(budgets) and pods:
            arrays = PodArrays(pods, np.zeros(len(pods), np.int64))
            protected = policy.protected(arrays, budgets).tolist()
        first = [pod for pod, is_protected in zip(pods, protected, strict=True) if is_protected]
        if first:
            pods = first + [pod for pod, kept in zip(pods, protected, strict=True) if not kept]
        #: Whether the pods that were put back first are not the most important ones.
        self._resort = policy.lists_by_importance and 0 < len(first) < len(pods)
        self.has_lower = bool(pods)
        self.code, self.error = FITS, None
        #: The victims in the order in which they were put back.
        self.victims: list[Resident] = []
        #: How many of them budgets protect.
        self.violations = 0
        self.is_candidate = False
        if not pods and not policy.accepts_no_victims:
            return
        found = Reprieve(failed, row, pods, policy)
        self.code, self.error = found.code, found.error
        self.victims = [pod for pod, gone in zip(pods, found.victim, strict=True) if gone]
        self.violations = sum(found.victim[: len(first)])
        evicting = policy.accepts_no_victims or bool(self.victims)
        self.is_candidate = found.code == FITS and evicting

    def listed(self) -> list[Resident]:
        """The victims in listed order."""
        return sorted_by_importance(self.victims) if self._resort else self.victims

    def victims_at(self, position: int) -> Victims:  # noqa: ARG002 - there is one row
        """The victims on the row."""
        return self._policy.victims(self.listed(), self.violations)
