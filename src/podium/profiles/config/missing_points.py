"""Rules of plugins whose preparation is turned off.

A profile can leave a plugin's filter on and its first look at the pod off, or its scores on and
their preparation off. Some plugins then do the preparation late, others fail every pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import AttemptError, Scope
from podium.engine.rules.plugins import FilterPlugin, Refused, ScorePlugin
from podium.engine.rules.volumes.conflicts.shared import pods_in_the_way
from podium.engine.rules.volumes.conflicts.v1_36 import DISK_CONFLICT
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View


class UnpreparedFilter(FilterPlugin):
    """Fails on every node."""

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self.error = f'running "{name}" filter plugin: {error}'

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Errors are never remembered."""
        return Scope.CLUSTER

    def reject(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """The error, wherever it is asked."""
        return at.fail(self.error)


class UnpreparedRestrictions(UnpreparedFilter):
    """Disks are looked at first; where they do not conflict the rest fails."""

    def reject(self, pod: Incoming, at: Rows) -> Ints:
        """A conflict, or the error."""
        taken = pods_in_the_way(pod.cls, at) > 0
        at.fail_where(taken ^ True, self.error)
        return at.codes(self.name, taken * 1, (DISK_CONFLICT,))


class LatePreparation(FilterPlugin):
    """Does on every node what should have been done once; a refusal counts for that node."""

    def __init__(self, rule: FilterPlugin) -> None:
        self.rule = rule
        self.name = rule.name

    def scope(self, cls: PodClass) -> Scope:
        """As the rule itself."""
        return self.rule.scope(cls)

    def reject(self, pod: Incoming, at: Rows) -> Ints:
        """The refusal of the first look, or what the rule says."""
        answer = self.rule.prepare(pod, at.view)
        if isinstance(answer, Refused):
            reason = Reason(answer.reason, curable=answer.curable)
            return at.codes(self.name, at.full(1), (reason,))
        return self.rule.reject(pod, at)


class UnpreparedScore(ScorePlugin):
    """Fails as soon as it comes to scores."""

    always = Scope.CLUSTER
    reduces = True

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self.error = f'running Score plugins: plugin "{name}" failed with: {error}'

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """The error."""
        raise AttemptError(self.error)

    def score(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """The error."""
        raise AttemptError(self.error)


class UnskippedScore(ScorePlugin):
    """Scores every pod, since nobody told it to leave itself out."""

    def __init__(self, rule: ScorePlugin) -> None:
        self.rule = rule
        self.name = rule.name
        self.reduces = rule.reduces

    def scope(self, cls: PodClass) -> Scope:
        """As the rule itself."""
        return self.rule.scope(cls)

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """As the rule itself."""
        return self.rule.uniform(pod, view)

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """As the rule itself."""
        return self.rule.score(pod, at)

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:
        """As the rule itself."""
        return self.rule.reduce(pod, at, raw)
