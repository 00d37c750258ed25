"""The verbs of an extender, answered by the same cycle that schedules pods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from podium.engine.cycle.cycle import Attempt, decide
from podium.engine.cycle.filtering import judge_one
from podium.engine.cycle.first_look import FirstLook
from podium.engine.cycle.ties import First
from podium.engine.framework.extenders import EXTENDER_MAX_SCORE
from podium.engine.framework.rule import AttemptError
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.extender.knowledge import Knowledge
    from podium.objects.kinds.pod import Pod

STRANGER = "node(s) were unknown to the extender"


@dataclass(frozen=True, slots=True)
class Left:
    """The nodes left, and why the others are not."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)
    #: Those of them that evicting pods cannot help.
    hopeless: frozenset[str] = frozenset()
    error: str = ""


class Judge:
    """A profile's rules as filter, prioritize and preempt."""

    def __init__(self, profile: Profile, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        # Only the rules count here. Whether claims exist is for the scheduler to say: what the
        # extender is told of the cluster are nodes and pods.
        rules = replace(
            profile,
            checks=(),
            extenders=(),
            gates=(),
            post_filters=(),
            preemption=False,
            percentage_of_nodes_to_score=100,
            nominated_first=False,
        )
        self.profile = profile
        self._filtering = replace(rules, priorities=())
        self._scoring = replace(rules, predicates=(), pre_filters=())

    def filter(self, pod: Pod, names: Sequence[str]) -> Left:
        """Which of these nodes are left."""
        known = [name for name in names if self._knowledge.knows(name)]
        failed = {name: STRANGER for name in names if not self._knowledge.knows(name)}
        if not known:
            return Left((), failed)
        decision = self._decide(pod, known, self._filtering)
        if decision.error:
            return Left((), error=decision.error)
        if decision.refused is not None:
            failed.update(dict.fromkeys(known, decision.refused.reason))
            return Left((), failed, frozenset() if decision.refused.curable else frozenset(known))
        failed |= {name: ", ".join(reasons) for name, reasons in decision.failed().items()}
        return Left(tuple(decision.feasible), failed, _hopeless(decision))

    def scores(self, pod: Pod, names: Sequence[str]) -> dict[str, int]:
        """What each of these nodes gets: the weighted sum, one priority counting up to 10."""
        known = [name for name in names if self._knowledge.knows(name)]
        found = dict.fromkeys(names, 0)
        if not known or not self._scoring.priorities:
            return found
        decision = self._decide(pod, known, self._scoring)
        if decision.error or decision.totals is None:
            raise AttemptError(decision.error or "nothing was scored")
        most = self.profile.max_score
        for name, total in zip(decision.feasible, decision.totals.tolist(), strict=True):
            found[name] = total * EXTENDER_MAX_SCORE // most
        return found

    def victims(
        self, pod: Pod, candidates: Mapping[str, Sequence[str]]
    ) -> dict[str, Sequence[str]]:
        """The nodes where the rules let the pod in once these pods (by uid) are gone."""
        view = self._knowledge.columns
        incoming = view.incoming(pod)
        look = FirstLook(incoming, view, self._filtering)
        if look.refused is not None:
            return {}
        active, kept = look.active(), {}
        for name, uids in candidates.items():
            if not self._knowledge.knows(name):
                continue
            trial = TrialRow(view, view.row_of[name])
            for resident in list(trial.residents()):
                if resident.uid in uids:
                    trial.remove(resident)
            if judge_one(incoming, trial, active) == FITS:
                kept[name] = uids
        return kept

    def _decide(self, pod: Pod, names: Sequence[str], profile: Profile) -> Decision:
        view = self._knowledge.columns
        attempt = Attempt(
            view.incoming(pod),
            profile,
            view.rows_named(names),
            First(),
            recording=True,
            score_single=True,
        )
        return decide(view, attempt)


def _hopeless(decision: Decision) -> frozenset[str]:
    pairs = zip(decision.examined, decision.codes.tolist(), strict=True)
    return frozenset(
        name for name, code in pairs if code > 0 and not decision.verdict(code).curable
    )
