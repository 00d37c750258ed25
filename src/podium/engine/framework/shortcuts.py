"""What a rule may add so that it is asked less often, or about fewer rows.

With the defaults below every decision is the same, and takes longer. There is one exception: a
filter that answers `OWN_ROW` and reads more than the row must say so in `row_context`. Tests
compare the answers with and without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from podium.engine.framework.dependencies import Scope, Watched

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.rows.resource_block import BlockFilter, BlockScore
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.rows.rows import ManyRows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View


class BatchTrials(NamedTuple):
    """On which rows trials (pods added or removed) may be evaluated for many rows at a time."""

    rows: np.ndarray
    #: Whether the answers on these rows stay the same, whatever pods are removed or added again.
    constant: bool


class _Scoped(Protocol):
    def scope(self, cls: PodClass, /) -> Scope: ...


class RuleShortcuts:
    """Shortcuts of all rules."""

    #: Whether one row costs it about as much as many rows in one array.
    by_columns: bool = False
    #: Whether `row_key` is the same for all classes of one form that name no node.
    keyed_by_form: bool = False

    def row_key(self, cls: PodClass) -> Hashable:
        """What a rule of single rows reads of the class: with equal keys, equal answers.

        Asked where the scope is that of a row. By default no two classes get the same answers.
        """
        return cls.id

    def watched(self, cls: PodClass) -> Watched:  # noqa: ARG002 - the same for every class
        """What it looks at to say whether it has anything to say about pods of this class."""
        return Watched.ANYTHING


class FilterShortcuts:
    """Shortcuts of filters."""

    def may_refuse(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Whether `pre_filter` may refuse a pod of this class, name nodes or fail.

        Asked of rules that have a `pre_filter`, for the classes that concern them.
        """
        return True

    def row_context(self, pod: Incoming, view: View) -> Hashable:  # noqa: ARG002
        """What verdicts depend on besides the row, where its activity is `OWN_ROW`; None: nothing.

        In trials the verdict on a row may depend on more, where this is not None.
        """
        return None

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:  # noqa: ARG002
        """Label keys: rows with equal values of all of them get equal verdicts. Empty: no such."""
        return ()

    def of_block(self, pod: Incoming, view: View) -> BlockFilter | None:  # noqa: ARG002
        """The same answers from a block of resource numbers, where the scope is `RESOURCES`.

        It must hold for the class of the pod until the journal starts a new epoch, or the
        `answer_key` is another one. None where there is no such way.
        """
        return None

    def batch_trials(self: _Scoped, pod: Incoming, at: ManyRows) -> BatchTrials:
        """Where trials of many rows may be evaluated together."""
        scope = self.scope(pod.cls)
        together = scope.ignores_pods or scope is Scope.RESOURCES
        return BatchTrials(np.full(len(at), together), constant=scope.ignores_pods)


class ScoreShortcuts:
    """Shortcuts of scores."""

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:  # noqa: ARG002
        """Label keys: rows with equal values of all of them get equal scores. Empty: no groups."""
        return ()

    def group_tallies(self, pod: Incoming, view: View) -> tuple[Tally, ...]:  # noqa: ARG002
        """Tallies that must count equally many pods on rows, too, for these to get equal scores.

        Where there are any, `group_keys` may be empty, and only `of_few` scores such groups.
        """
        return ()

    def of_few(
        self,
        pod: Incoming,  # noqa: ARG002
        groups: RowGroups,  # noqa: ARG002
        count: int,  # noqa: ARG002
    ) -> list[int] | None:
        """The final scores of a few groups of rows in plain numbers; None: `score` must be asked.

        *count* is how many feasible rows the groups have.
        """
        return None

    def of_block(self, pod: Incoming, view: View) -> BlockScore | None:  # noqa: ARG002
        """The same scores from a block of resource numbers, as for `FilterRule.of_block`."""
        return None


def all_rows(at: ManyRows, *, constant: bool = False) -> BatchTrials:
    """Trials may be evaluated together on every row."""
    return BatchTrials(np.ones(len(at), np.bool_), constant)


def no_rows(at: ManyRows) -> BatchTrials:
    """Trials are evaluated row by row."""
    return BatchTrials(np.zeros(len(at), np.bool_), constant=False)
