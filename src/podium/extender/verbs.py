"""The verbs `filter`, `prioritize` and `preempt`, answered by the scheduling cycle.

The rules of a profile run in the same cycle as in Podium's own scheduler, with everything switched
off that is the asking scheduler's part: checks, gates, preemption, sampling, other extenders.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from podium.engine.cycle.extenders import EXTENDER_MAX_SCORE
from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.extender.cluster_state import ExtenderState
    from podium.objects.kinds.pod import Pod

UNKNOWN_NODE = "node(s) were unknown to the extender"


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The feasible nodes, and the reasons of the others by name."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)
    #: Failed nodes on which evicting pods cannot help.
    unresolvable: frozenset[str] = frozenset()
    error: str = ""


class ExtenderVerbs:
    """Answers the verbs with the rules of one profile on one state of the cluster."""

    def __init__(self, profile: Profile, state: ExtenderState) -> None:
        self._state = state
        # The asking scheduler itself checks that claims exist; the extender knows nodes and pods.
        rules = replace(
            profile,
            checks=(),
            extenders=(),
            gates=(),
            post_filters=(),
            percentage_of_nodes_to_score=100,
            nominated_first=False,
        )
        self.profile = profile
        self._filtering = replace(rules, priorities=())
        self._scoring = replace(rules, predicates=(), pre_filters=())

    def filter(self, pod: Pod, names: Sequence[str]) -> FilterResult:
        """Run the predicates on the named nodes."""
        known = [name for name in names if self._state.has_node(name)]
        failed = {name: UNKNOWN_NODE for name in names if not self._state.has_node(name)}
        if not known:
            return FilterResult((), failed)
        decision = self._state.look(pod, self._filtering, known)
        if decision.error:
            return FilterResult((), error=decision.error)
        if decision.refused is not None:
            failed.update(dict.fromkeys(known, decision.refused.reason))
            unresolvable = frozenset() if decision.refused.curable else frozenset(known)
            return FilterResult((), failed, unresolvable)
        failed |= {name: ", ".join(reasons) for name, reasons in decision.failed().items()}
        return FilterResult(tuple(decision.feasible), failed, _unresolvable(decision))

    def prioritize(self, pod: Pod, names: Sequence[str]) -> dict[str, int]:
        """The weighted sum of the priorities for each named node; one priority gives up to 10."""
        known = [name for name in names if self._state.has_node(name)]
        scores = dict.fromkeys(names, 0)
        if not known or not self._scoring.priorities:
            return scores
        decision = self._state.look(pod, self._scoring, known)
        if decision.error or decision.totals is None:
            raise AttemptError(decision.error or "nothing was scored")
        max_score = self.profile.max_score
        for name, total in zip(decision.feasible, decision.totals.tolist(), strict=True):
            scores[name] = total * EXTENDER_MAX_SCORE // max_score
        return scores

    def preempt(
        self, pod: Pod, candidates: Mapping[str, Sequence[str]]
    ) -> dict[str, Sequence[str]]:
        """Keep the candidates whose node passes the predicates without its victims.

        *candidates* maps the name of a node to the uids of its victims.
        """
        view = self._state.columns
        incoming = view.pods.incoming(pod)
        pre_filter = PreFilter(incoming, view, self._filtering)
        if pre_filter.refused is not None:
            return {}
        rules, kept = pre_filter.taking_part(), {}
        for name, uids in candidates.items():
            if not self._state.has_node(name):
                continue
            trial = TrialRow(view, view.nodes.row_of[name])
            for resident in list(trial.residents()):
                if resident.uid in uids:
                    trial.remove(resident)
            if run_filters_on_row(incoming, trial, rules)[0] == FITS:
                kept[name] = uids
        return kept


def _unresolvable(decision: Decision) -> frozenset[str]:
    pairs = zip(decision.examined, decision.codes.tolist(), strict=True)
    return frozenset(
        name for name, code in pairs if code > 0 and not decision.verdict(code).curable
    )
