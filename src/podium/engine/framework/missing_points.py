"""Rules of plugins that a profile enables without the extension point that prepares them.

A profile can enable a plugin at filter and not at preFilter, or at score and not at preScore. In
kube-scheduler some plugins then prepare on every node, and others fail every pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import RefusedEverywhere
from podium.engine.framework.rule import (
    AttemptError,
    Everywhere,
    FilterRule,
    Refused,
    Scope,
    ScoreRule,
)
from podium.engine.rows.rows import K
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from podium.engine.framework.causes import Cause, ScoreNumber
    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import Ints, ManyRows, OneRow, Rows, Scalar
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class FailingFilter(FilterRule):
    """The filter of a plugin that needs its PreFilter and does not have it: it always fails."""

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self.error = f'running "{name}" filter plugin: {error}'

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """The widest scope, since errors are never cached."""
        return Scope.CLUSTER

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """The error, on every row."""
        return at.fail(self.error)


class PreFilterPerNode(FilterRule):
    """A filter that runs its PreFilter on every node; a refusal counts for that node."""

    def __init__(self, rule: FilterRule) -> None:
        self.rule = rule
        self.name = rule.name
        self.kinds = rule.kinds

    def scope(self, cls: PodClass) -> Scope:
        """The scope of the filter itself."""
        return self.rule.scope(cls)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The refusal of PreFilter, or the verdicts of the filter."""
        answer = self.rule.pre_filter(pod, at.view)
        if isinstance(answer, Refused):
            reason = Reason(answer.reason, curable=answer.curable)
            return at.codes(self.name, at.full(1), (reason,))
        return self.rule.filter(pod, at)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterable[Cause]:
        """Those of the filter; a refusal of PreFilter is the same on every node."""
        answer = self.rule.pre_filter(pod, at.view)
        if isinstance(answer, Refused):
            return (RefusedEverywhere(answer.reason),)
        return self.rule.causes(pod, at, memo)


class FailingScore(ScoreRule):
    """The score of a plugin that needs its PreScore and does not have it: it always fails."""

    always = Scope.CLUSTER
    normalizes = True

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self.error = f'running Score plugins: plugin "{name}" failed with: {error}'

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Fails the attempt."""
        raise AttemptError(self.error)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """Fails the attempt."""
        raise AttemptError(self.error)


class NeverSkippedScore(ScoreRule):
    """A score without PreScore, which could have skipped the pod: every pod is scored."""

    def __init__(self, rule: ScoreRule) -> None:
        self.rule = rule
        self.name = rule.name
        self.kinds = rule.kinds
        self.normalizes = rule.normalizes
        self.formula = rule.formula

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterable[ScoreNumber]:
        """The numbers of the rule."""
        return self.rule.numbers(pod, at, among)

    def scope(self, cls: PodClass) -> Scope:
        """The scope of the score itself."""
        return self.rule.scope(cls)

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """What the rule gives to every row; shown even where the rule would skip the pod."""
        same = self.rule.everywhere(pod, view)
        return None if same is None else Everywhere(same.score)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The scores of the rule."""
        return self.rule.score(pod, at)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """The final scores of the rule."""
        return self.rule.normalize(pod, at, raw)

    def score_among(self, pod: Incoming, at: OneRow, among: ManyRows) -> Ints[Scalar] | None:
        """The score of the rule."""
        return self.rule.score_among(pod, at, among)

    def normalize_one(
        self, pod: Incoming, at: OneRow, among: ManyRows, raw: np.ndarray, own: Ints[Scalar]
    ) -> Ints[Scalar] | None:
        """The final score of the rule."""
        return self.rule.normalize_one(pod, at, among, raw, own)
