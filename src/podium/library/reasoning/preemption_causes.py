"""Why preemption has no candidate on a node, and why each victim was not reprieved.

Only explanations call this, after the decision. The search for victims is repeated on the nodes
that are explained, one pod after the other, and what the filters say is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.causes import (
    CandidateVictims,
    NoCandidate,
    NotReprieved,
    PreemptionCauses,
)
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.preemption.victim_search import EvictingPostFilter
from podium.engine.rows.pod_arrays import PodArrays
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS
from podium.library.reasoning.causes import causes_on_row, nominees_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.causes import RuleCause
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Positioned
    from podium.engine.preemption.victim_policy import VictimPolicy
    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.view import View

NOT_HELPFUL, NO_LOWER_PRIORITY = "notHelpful", "noLowerPriority"
STILL_REJECTED, NOT_TRIED = "stillRejected", "notTried"
#: On how many nodes with pods of lower priority the search is repeated.
_MOST_TRIED = 200


def find_preemption_causes(
    view: View,
    pod: Incoming,
    profile: Profile,
    decision: Decision,
    candidates: Sequence[str],
    *,
    asked: str | None = None,
) -> PreemptionCauses | None:
    """Why nodes are no candidates, and why the victims on some *candidates* are victims.

    None without preemption. The view is still that of the decision, made with recording. The search
    is repeated on some nodes, on *asked* before all others; the rest is named as not tried.
    """
    preemption = decision.preemption
    policies = (
        each.victim_policy for each in profile.post_filters if isinstance(each, EvictingPostFilter)
    )
    policy = next(policies, None)
    if preemption is None or policy is None or not preemption.eligible:
        return None
    search = PutBack(view, pod, profile, policy)
    others = [name for name in preemption.potential if name not in preemption.candidates]
    empty, tried = _by_lower_priority(view, pod, others)
    if asked in tried:
        tried = [asked, *(name for name in tried if name != asked)]
    groups: dict[tuple[str, tuple[str, ...], tuple[RuleCause, ...]], list[str]] = {}
    for name, code in zip(decision.examined, decision.codes.tolist(), strict=True):
        verdict = decision.verdict(code)
        if code > 0 and not verdict.curable:
            groups.setdefault((NOT_HELPFUL, verdict.reasons, ()), []).append(name)
    if empty:
        # Nothing can be evicted; what rejected the nodes is among the rejections.
        groups[NO_LOWER_PRIORITY, (), ()] = empty
    for name in tried[:_MOST_TRIED]:
        why = search.why_no_candidate(name)
        if why is not None:
            groups.setdefault(why, []).append(name)
    if tried[_MOST_TRIED:]:
        groups[NOT_TRIED, (), ()] = tried[_MOST_TRIED:]
    return PreemptionCauses(
        tuple(
            NoCandidate(why, reasons, tuple(nodes), causes)
            for (why, reasons, causes), nodes in groups.items()
        ),
        tuple(CandidateVictims(name, tuple(search.victims(name))) for name in candidates),
    )


def _by_lower_priority(
    view: View, pod: Incoming, names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The nodes without and with pods of lower priority."""
    pods = PodArrays.on(view, np.array([view.nodes.row_of[name] for name in names], np.int64))
    lower = np.bincount(pods.position[pods.priority < pod.priority], minlength=len(names))
    counts = list(zip(names, lower.tolist(), strict=True))
    return [name for name, count in counts if not count], [name for name, count in counts if count]


class Reprieved(NamedTuple):
    """A pod of lower priority that was put back: whether it may stay, and why not."""

    pod: Resident
    stays: bool
    reasons: tuple[str, ...] = ()
    causes: tuple[RuleCause, ...] = ()
    budgets: tuple[str, ...] = ()


class PutBack:
    """The search for victims on one node at a time."""

    def __init__(self, view: View, pod: Incoming, profile: Profile, policy: VictimPolicy) -> None:
        self._view, self._pod, self._profile, self._policy = view, pod, profile, policy
        self._rules: list[Positioned] = PreFilter(pod, view, profile).taking_part()

    def why_no_candidate(
        self, name: str
    ) -> tuple[str, tuple[str, ...], tuple[RuleCause, ...]] | None:
        """The kind, the reasons and their causes; None if the node would be a candidate."""
        code, at = self._verdict(self._emptied(name))
        if code <= FITS:
            return None
        verdict = self._view.verdicts[code]
        causes = causes_on_row(verdict, self._profile, self._pod, at)
        return STILL_REJECTED, verdict.reasons, causes

    def victims(self, name: str) -> Iterator[NotReprieved]:
        """The pods that cannot be put back, in the order in which that is tried."""
        for each in self.put_back(name):
            if not each.stays:
                owner = each.pod.cls.owner
                yield NotReprieved(
                    each.pod.key,
                    each.pod.priority,
                    each.reasons,
                    each.causes,
                    each.budgets,
                    "" if owner is None else f"{owner.kind} {owner.name}",
                )

    def without(self, name: str) -> tuple[str, ...]:
        """Why the pod does not fit without all pods of lower priority; empty if it does."""
        code, _ = self._verdict(self._emptied(name))
        return self._view.verdicts[code].reasons if code > FITS else ()

    def put_back(self, name: str) -> Iterator[Reprieved]:
        """All pods of lower priority, in the order in which they are put back."""
        trial, lower = self._emptied(name), self._lower(name)
        budgets = dict(self._budgets(lower))
        protected = [bool(budgets.get(pod.uid)) for pod in lower.pods]
        order = np.argsort(~np.array(protected, np.bool_), kind="stable").tolist()
        for pod in (lower.pods[index] for index in order):
            trial.add(pod)
            code, at = self._verdict(trial)
            covered = budgets.get(pod.uid, ())
            if code == FITS:
                yield Reprieved(pod, stays=True, budgets=covered)
                continue
            verdict = self._view.verdicts[code] if code > 0 else None
            reasons = () if verdict is None else verdict.reasons
            causes = () if verdict is None else causes_on_row(verdict, self._profile, self._pod, at)
            yield Reprieved(pod, stays=False, reasons=reasons, causes=causes, budgets=covered)
            trial.remove(pod)

    def lower(self, name: str) -> list[Resident]:
        """The pods of lower priority on a node, the most important first."""
        return list(self._lower(name).pods)

    def _emptied(self, name: str) -> TrialRow:
        """The row without its pods of lower priority."""
        trial = TrialRow(self._view, self._view.nodes.row_of[name])
        for pod in self._lower(name).pods:
            trial.remove(pod)
        return trial

    def _lower(self, name: str) -> PodArrays:
        """The pods of lower priority on a node, the most important first."""
        pods = PodArrays.on(self._view, np.array([self._view.nodes.row_of[name]]))
        pods = pods.only(np.flatnonzero(pods.priority < self._pod.priority))
        return pods.only(self._policy.order(pods))

    def _budgets(self, pods: PodArrays) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The uids of pods that budgets protect, with the names of these budgets."""
        found: dict[str, list[str]] = {}
        for budget in self._view.catalog.budgets:
            for index in np.flatnonzero(self._policy.protected(pods, [budget])).tolist():
                found.setdefault(pods.pods[index].uid, []).append(budget.key)
        yield from ((uid, tuple(names)) for uid, names in found.items())

    def _verdict(self, trial: TrialRow) -> tuple[int, TrialRow]:
        """The verdict with the pods nominated to the node, then without; and that row."""
        counted = nominees_of(self._view, trial.name, self._pod)
        if counted:
            crowded = trial.copy()
            for other in counted:
                crowded.add(other, nominated=not self._policy.nominees_count_for_affinity)
            code, _ = run_filters_on_row(self._pod, crowded, self._rules)
            if code != FITS:
                return code, crowded
        code, _ = run_filters_on_row(self._pod, trial, self._rules)
        trial.errors.clear()
        return code, trial
