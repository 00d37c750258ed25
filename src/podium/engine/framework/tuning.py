"""Numbers that decide how an answer is computed, never what it is."""

from __future__ import annotations

from dataclasses import dataclass

from podium.engine.state.journal import DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds between equivalent ways of computing. Tests make them small."""

    #: Up to this many changed rows are evaluated in plain numbers, more of them as arrays.
    one_by_one: int = 6
    #: For this many decisions the answers of a cluster-wide rule must have stayed the same before
    #: they are kept like those about nodes; twice as many each time that turned out wrong.
    steady_decisions: int = 8
    #: Score one row of each group only if there are this many times fewer groups than rows.
    min_reduction: int = 8
    #: Trials run in a batch only if at least this many rows take part.
    min_batch_rows: int = 8
    #: The journal of changed rows keeps up to this many entries; a class of pods that has missed
    #: some of them is evaluated on every row again.
    journal_limit: int = DEFAULT_LIMIT
    #: After so many rounds with few changed rows an index by score is made.
    steady_rounds: int = 3
    #: Up to this many changed rows the index by score is kept, with more of them it is dropped.
    few_changes: int = 24


DEFAULT_TUNING = Tuning()
