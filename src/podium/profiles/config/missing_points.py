"""Rules of plugins whose preparation is turned off.

A profile can leave a plugin's filter on and its first look at the pod off, or its scores on and
their preparation off. Some plugins then do the preparation late, others fail every pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import (
    AttemptError,
    Everywhere,
    FilterRule,
    Refused,
    Scope,
    ScoreRule,
)
from podium.engine.rows.rows import K
from podium.engine.rules.volumes.conflicts.shared import pods_in_the_way
from podium.engine.rules.volumes.conflicts.v1_36 import DISK_CONFLICT
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    import numpy as np

    from podium.engine.rows.rows import Ints, ManyRows, Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class UnpreparedFilter(FilterRule):
    """Fails on every node."""

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self.error = f'running "{name}" filter plugin: {error}'

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Errors are never remembered."""
        return Scope.CLUSTER

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """The error, on every row."""
        return at.fail(self.error)


class UnpreparedRestrictions(UnpreparedFilter):
    """Disks are looked at first; where they do not conflict the rest fails."""

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A conflict, or the error."""
        taken = pods_in_the_way(pod.cls, at) > 0
        at.fail_where(taken ^ True, self.error)
        return at.codes(self.name, taken * 1, (DISK_CONFLICT,))


class LatePreparation(FilterRule):
    """Does on every node what should have been done once; a refusal counts for that node."""

    def __init__(self, rule: FilterRule) -> None:
        self.rule = rule
        self.name = rule.name

    def scope(self, cls: PodClass) -> Scope:
        """As the rule itself."""
        return self.rule.scope(cls)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The refusal of PreFilter, or what the rule says."""
        answer = self.rule.pre_filter(pod, at.view)
        if isinstance(answer, Refused):
            reason = Reason(answer.reason, curable=answer.curable)
            return at.codes(self.name, at.full(1), (reason,))
        return self.rule.filter(pod, at)


class UnpreparedScore(ScoreRule):
    """Fails as soon as it comes to scores."""

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


class UnskippedScore(ScoreRule):
    """Scores every pod, since nobody told it to leave itself out."""

    def __init__(self, rule: ScoreRule) -> None:
        self.rule = rule
        self.name = rule.name
        self.normalizes = rule.normalizes

    def scope(self, cls: PodClass) -> Scope:
        """As the rule itself."""
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
