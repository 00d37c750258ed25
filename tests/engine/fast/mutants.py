"""Deliberate faults in what is kept between decisions, each of which long histories must find.

A mutant is a context in which one part of the program is replaced by a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from podium.engine.fast import class_answers, row_answers
from podium.engine.fast.answer_columns import AnswerColumns
from podium.engine.fast.class_answers import ClassAnswers, _Steady
from podium.engine.fast.row_answers import BlockRules, RowAnswers
from podium.engine.fast.score_index import UNFIT, ScoreIndex
from podium.engine.framework.plan import RulePlan
from podium.engine.preemption.kept_victims import KeptVictims
from podium.engine.rows.row_groups import GroupLayouts
from podium.engine.state.journal import Follower
from podium.engine.state.pod_class import KeptPerClass

Mutant = Callable[[], AbstractContextManager[None]]


@contextmanager
def forgotten_verdict() -> Iterator[None]:
    """The verdict of a row that was evaluated alone is not written."""
    written = AnswerColumns.write_row

    def write_row(self: Any, row: int, verdict: int, total: int) -> None:
        before = self.verdicts.item(row)
        written(self, row, verdict, total)
        self.verdicts[row] = before

    with patch.object(AnswerColumns, "write_row", write_row):
        yield


@contextmanager
def index_is_not_told() -> Iterator[None]:
    """Rows that are evaluated together are written, and their index is not told."""

    def write(self: Any, rows: Any, verdicts: Any, sums: Any) -> None:
        self.verdicts[rows], self.scores[rows] = verdicts, sums
        self._rejections = None
        self._feasible = (None, self.scores, {})

    with patch.object(AnswerColumns, "write", write):
        yield


@contextmanager
def index_keeps_unfit_rows() -> Iterator[None]:
    """A row that the pod does not fit on any more stays in the index."""
    put = ScoreIndex.put

    def only_fitting(self: ScoreIndex, row: int, total: int) -> None:
        if total != UNFIT:
            put(self, row, total)

    with patch.object(ScoreIndex, "put", only_fitting):
        yield


@contextmanager
def index_keeps_groups() -> Iterator[None]:
    """A node with another label stays in its group."""
    with patch.object(ScoreIndex, "note_nodes", lambda _self, _rows: True):
        yield


@contextmanager
def counts_stay() -> Iterator[None]:
    """How many nodes got which verdict is counted once."""
    with patch.object(AnswerColumns, "_add", lambda _self, _code, _number: None):
        yield


@contextmanager
def feasible_rows_stay() -> Iterator[None]:
    """The list of feasible rows is kept when some row stops or begins to fit."""

    def feasible(self: Any, order: Any) -> Any:
        known = getattr(self, "_first_feasible", None)
        if known is None or known[0] is not order:
            fits = self.scores[order] != UNFIT
            known = self._first_feasible = (order, order[fits])
        return known[1]

    with patch.object(AnswerColumns, "feasible", feasible):
        yield


@contextmanager
def deaf_to_nodes() -> Iterator[None]:
    """Changes of nodes are taken for changes of their pods."""
    news = Follower.news

    def heard(self: Any) -> Any:
        found = news(self)
        rows = found is not None and self._journal is not None
        return [entry if entry >= 0 else ~entry for entry in found or ()] if rows else found

    with patch.object(Follower, "news", heard):
        yield


@contextmanager
def misses_the_last_change() -> Iterator[None]:
    """Of several changes the last one is not seen."""
    news = Follower.news

    def heard(self: Any) -> Any:
        found = news(self)
        return found[:-1] if found is not None and len(found) > 1 else found

    with patch.object(Follower, "news", heard):
        yield


@contextmanager
def never_starts_over() -> Iterator[None]:
    """Entries that were dropped from the log are taken for none."""
    news = Follower.news

    def heard(self: Any) -> Any:
        epoch = self._epoch
        found = news(self)
        return [] if found is None and epoch == self._epoch != -1 else found

    with patch.object(Follower, "news", heard):
        yield


@contextmanager
def victims_stay() -> Iterator[None]:
    """The victims on a row are kept when its pods change."""
    with patch.object(KeptVictims, "refresh", lambda _self: None):
        yield


@contextmanager
def one_key_for_all() -> Iterator[None]:
    """Classes with other requests share their answers."""
    with patch.object(RulePlan, "row_key", lambda self, _cls: len(self.filters)):
        yield


@contextmanager
def layouts_stay() -> Iterator[None]:
    """Rows are in the groups in which they first were."""
    by = GroupLayouts.by

    def first(self: Any, order: Any, keys: Any, most: int) -> Any:
        journal = self._view.journal
        self._state = (journal.epoch, journal.node_changes)
        return by(self, order, keys, most)

    with patch.object(GroupLayouts, "by", first):
        yield


@contextmanager
def state_without_pods() -> Iterator[None]:
    """The state of a row is that of its node alone."""
    with patch.object(row_answers, "row_state", lambda view, row: view.nodes.sizes[row]):
        yield


@contextmanager
def facts_stay() -> Iterator[None]:
    """Facts of the feasible rows are kept when these are others."""

    def facts_of(self: Any, rows: Any) -> Any:
        return vars(self).setdefault("_facts", {}) if rows is self._feasible[1] else None

    with patch.object(AnswerColumns, "facts_of", facts_of):
        yield


@contextmanager
def outlook_stays() -> Iterator[None]:
    """Rules beyond single rows that were silent once are not asked again."""
    with patch.object(ClassAnswers, "_note_outlook", lambda _self: False):
        yield


@contextmanager
def keys_stay() -> Iterator[None]:
    """What answers depend on besides the row is not looked at, once a rule is kept per row."""

    def watch(self: Any, key: Any) -> None:
        self.kept = self.kept or key is not None

    def first(self: Any, pod: Any) -> Any:
        return [None for _ in self._keyed]

    with patch.object(_Steady, "watch", watch), patch.object(RowAnswers, "_ask_keys", first):
        yield


@contextmanager
def one_plan_for_all() -> Iterator[None]:
    """The rules that concern the first class of pods are taken for those of all classes."""
    plans: dict[object, RulePlan] = {}

    def first(cls: Any, profile: Any) -> RulePlan:
        return plans.setdefault(profile.token, RulePlan(cls, profile))

    with patch.object(class_answers, "plan_of", first):
        yield


@contextmanager
def rules_per_row_stay() -> Iterator[None]:
    """Rules beyond single rows that are kept per row are those that were so at first."""
    look = ClassAnswers._look_at_cluster

    def looked(self: Any, pod: Any) -> bool:
        found = look(self, pod)
        return found and not hasattr(self, "rows")

    with patch.object(ClassAnswers, "_look_at_cluster", looked):
        yield


@contextmanager
def scores_stay() -> Iterator[None]:
    """What every row gets from a score is asked once."""
    look = ClassAnswers._look_at_cluster

    def looked(self: Any, pod: Any) -> bool:
        joint = getattr(self, "_joint", None)
        found = look(self, pod)
        self._joint = joint
        return found

    with patch.object(ClassAnswers, "_look_at_cluster", looked):
        yield


@contextmanager
def half_of_the_pods_count() -> Iterator[None]:
    """Rows are grouped by half the number of pods on them."""
    counted = ScoreIndex._counted

    def fewer(self: Any, row: int) -> tuple[int, ...]:
        return tuple(number // 2 for number in counted(self, row))

    with patch.object(ScoreIndex, "_counted", fewer):
        yield


@contextmanager
def groups_stay() -> Iterator[None]:
    """The groups with feasible rows stay the same while the pods of a row change."""
    put = ScoreIndex.put

    def silent(self: ScoreIndex, row: int, total: int) -> None:
        before = self._at
        put(self, row, total)
        self._at = before

    with patch.object(ScoreIndex, "put", silent):
        yield


@contextmanager
def blocks_hold() -> Iterator[None]:
    """Whether blocks of numbers may be used is asked once."""
    holds = BlockRules._holds

    def first(self: BlockRules, view: Any) -> bool:
        if self._held[0] == (-1, -1):
            return holds(self, view)
        return self._held[1]

    with patch.object(BlockRules, "_holds", first):
        yield


@contextmanager
def values_of_classes_stay() -> Iterator[None]:
    """What a rule keeps for a class of pods is found once."""

    def of(self: Any, cls: Any, state: object, find: Callable[[], Any]) -> Any:
        return cls.memo.setdefault(self, (state, find()))[1]

    with patch.object(KeptPerClass, "of", of):
        yield


MUTANTS: tuple[Mutant, ...] = (
    forgotten_verdict,
    index_is_not_told,
    index_keeps_unfit_rows,
    index_keeps_groups,
    counts_stay,
    feasible_rows_stay,
    deaf_to_nodes,
    misses_the_last_change,
    never_starts_over,
    victims_stay,
    one_key_for_all,
    layouts_stay,
    state_without_pods,
    facts_stay,
    outlook_stays,
    keys_stay,
    one_plan_for_all,
    rules_per_row_stay,
    scores_stay,
    half_of_the_pods_count,
    groups_stay,
    blocks_hold,
    values_of_classes_stay,
)
