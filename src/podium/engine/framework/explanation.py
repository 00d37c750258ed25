"""What a rule tells about its answers, for explanations only; no decision reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy as np

    from podium.engine.framework.causes import Cause, ScoreNumber
    from podium.engine.framework.trace import Prepared
    from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, Scalar
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

#: What rules keep while the causes of one explanation are looked for; each has its own keys.
Memo = dict["Hashable", Any]


class ExplainedFilter:
    """How a filter explains the rows that it rejects. The defaults tell nothing."""

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterable[Cause]:  # noqa: ARG002
        """What led to the reasons that `filter` gives on a row which it rejects.

        Called only when an explanation is asked for, after the decision; it changes nothing. `memo`
        is empty at first and shared by all rows of one explanation. Causes whose reason is not in
        the verdict of the row are dropped, so a rule may give all that it finds.
        """
        return ()

    def cause_parts(self, cls: PodClass) -> Sequence[ExplainedFilter]:  # noqa: ARG002
        """The rules that are asked for the causes; a rule that combines others names these."""
        return (self,)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> Sequence[Hashable] | None:  # noqa: ARG002
        """What the causes on each row depend on: rows with equal keys have equal causes.

        Then `causes` is asked about one of them. None: it is asked about every row.
        """
        return None

    def prepared(self, pod: Incoming, view: View) -> Iterable[Prepared]:  # noqa: ARG002
        """What it finds out about the pod once, for all nodes; called for explanations only."""
        return ()


class _Scores(Protocol):
    normalizes: bool

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]: ...


class ExplainedScore:
    """How a score explains its numbers. The defaults tell the raw score alone."""

    #: How the score is computed, in one line of words; for explanations.
    formula: str = ""

    def numbers(
        self,
        pod: Incoming,  # noqa: ARG002
        at: OneRow,  # noqa: ARG002
        among: ManyRows,  # noqa: ARG002
    ) -> Iterable[ScoreNumber]:
        """The numbers behind the score of a row among all that fit; for explanations only."""
        return ()

    def score_among(
        self: _Scores,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,  # noqa: ARG002
    ) -> Ints[Scalar] | None:
        """The raw score of one of the rows that fit; for explanations only.

        *at* is written (`WrittenRow`), so that the score has its arithmetic as a text. None where
        the rule must not be asked again.
        """
        return self.score(pod, at)

    def normalize_one(
        self: _Scores,
        pod: Incoming,  # noqa: ARG002
        at: OneRow,  # noqa: ARG002
        among: ManyRows,  # noqa: ARG002
        raw: np.ndarray,  # noqa: ARG002
        own: Ints[Scalar],
    ) -> Ints[Scalar] | None:
        """The final score of one row by what `normalize` computes; for explanations only.

        *raw* are the scores of all rows that fit, *own* is that of this one, written. None where
        that is not known.
        """
        return None if self.normalizes else own
