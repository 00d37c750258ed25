"""PodTopologySpread: pods spread evenly over the domains of a topology key.

Hard constraints reject domains that would get too far ahead of the emptiest; soft ones score.
A pod without constraints of its own gets the profile's defaults, with a selector made from its
services and its controller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    BatchTrials,
    Everywhere,
    FilterRule,
    Scope,
    ScoreRule,
    all_rows,
)
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, Rows, as_array
from podium.engine.rules.spreading.v1_36_constraints import (
    HARD,
    HOST,
    SOFT,
    Constraint,
    SpreadDefaults,
    constraints_of,
    counted_rows,
)
from podium.engine.rules.v1_36 import MAX_SCORE
from podium.engine.state.tallies import ABSENT
from podium.engine.state.verdicts import FITS, Reason
from podium.objects.selectors.faults import label_selector_fault

if TYPE_CHECKING:
    from collections.abc import Hashable

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import LabelSet
    from podium.engine.state.view import View
    from podium.objects.selectors.selectors import Selector

SKEWED = Reason("node(s) didn't match pod topology spread constraints")
NO_LABEL = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)", curable=False
)
#: More pods than any domain has.
MANY = 1 << 62


@dataclass(slots=True)
class _Ground:
    """The rows one hard constraint counts on, and their domains; kept until nodes change."""

    rows: np.ndarray
    ids: np.ndarray
    domains: np.ndarray
    #: Whether these are all the rows that have the key: then sums per domain are at hand.
    complete: bool
    #: Whether every row has the key.
    everywhere: bool


class PodTopologySpread(FilterRule):
    """No domain may get ahead of the emptiest one by more than the allowed skew."""

    name = "PodTopologySpread"

    def __init__(self, defaults: SpreadDefaults | None = None) -> None:
        self.defaults = defaults or SpreadDefaults()

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with constraints, or with defaults that reject."""
        own = cls.spec.topology_spread_constraints
        listed = own or self.defaults.constraints
        hard = any(each.when_unsatisfiable == HARD for each in listed)
        return Scope.CLUSTER if hard else Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """A selector of the pod that cannot be compiled fails the attempt."""
        own = cls.spec.topology_spread_constraints or ()
        return any(label_selector_fault(each.label_selector) for each in own)

    def pre_filter(self, pod: Incoming, view: View) -> None:
        """Its demands must be understood."""
        try:
            constraints_of(pod, view, HARD, self.defaults)
        except AttemptError as error:
            raise AttemptError(f"get constraints from pod: {error}") from error

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped without hard constraints; idle while every domain meets all of them."""
        constraints = constraints_of(pod, view, HARD, self.defaults)
        if not constraints:
            return Activity.SKIPPED
        met = all(
            ground.everywhere and not self._skewed_domains(pod, each, ground, view).any()
            for each, ground in self._grounds(pod.cls, constraints, view)
        )
        return Activity.IDLE if met else Activity.ACTIVE

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """As long as this and the nodes stay the same, so do the answers."""
        constraints = constraints_of(pod, view, HARD, self.defaults)
        grounds = self._grounds(pod.cls, constraints, view)
        return (
            constraints,
            *(self._skewed_domains(pod, each, ground, view).tobytes() for each, ground in grounds),
        )

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
        """Everywhere: only counts are read."""
        return all_rows(at)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The first constraint that is not met, in order."""
        verdicts = at.view.verdicts
        missing = verdicts.of(self.name, (NO_LABEL,))
        skewed = verdicts.of(self.name, (SKEWED,))
        constraints = constraints_of(pod, at.view, HARD, self.defaults)
        codes = at.full(FITS)
        for constraint, ground in reversed(self._grounds(pod.cls, constraints, at.view)):
            too_many = self._skewed(pod, constraint, ground, at, constraints)
            codes = at.where(too_many, skewed, codes)
            codes = at.where(at.has_label(constraint.key), codes, missing)
        return codes

    def _skewed(
        self,
        pod: Incoming,
        constraint: Constraint,
        ground: _Ground,
        at: Rows[K],
        constraints: tuple[Constraint, ...],
    ) -> Flags[K]:
        if not at.modified:
            domains = self._skewed_domains(pod, constraint, ground, at.view)
            return at.label_flag(domains, constraint.key)
        counts = self._counts(pod.cls, constraint, ground, at.view)
        change = self._change(pod.cls, constraint, constraints, at)
        here = at.label_entry(counts, constraint.key) + change
        enough = len(ground.domains) >= max(constraint.min_domains, 1)
        most = self._most(pod, constraint)
        if not enough:
            return here > most
        return here > lowest_with(ground.domains, counts, constraint.key, at, here) + most

    def _most(self, pod: Incoming, constraint: Constraint) -> int:
        """How many pods more than the emptiest domain one may have before the pod comes."""
        return constraint.max_skew - int(constraint.selector.matches(pod.cls.labels.labels))

    def _skewed_domains(
        self, pod: Incoming, constraint: Constraint, ground: _Ground, view: View
    ) -> np.ndarray:
        """Which domains would get too far ahead."""
        counts = self._counts(pod.cls, constraint, ground, view)
        lowest = 0
        if len(ground.domains) and len(ground.domains) >= constraint.min_domains:
            lowest = int(counts[ground.domains].min())
        return counts > self._most(pod, constraint) + lowest

    def _counts(
        self, cls: PodClass, constraint: Constraint, ground: _Ground, view: View
    ) -> np.ndarray:
        """Matching pods per domain id, on the rows that count."""
        tally = constraint.tally(cls, view)
        if ground.complete:
            return tally.by_domain(constraint.key)
        size = len(view.label_column(constraint.key).values)
        weights = tally.rows[ground.rows]
        return np.bincount(ground.ids, weights=weights, minlength=size).astype(np.int64)

    def _change(
        self,
        cls: PodClass,
        constraint: Constraint,
        constraints: tuple[Constraint, ...],
        at: Rows[K],
    ) -> Ints[K]:
        """What a trial changed on rows that count."""
        counted = counted_rows(cls, constraint, at)
        for each in constraints:
            counted = counted & at.has_label(each.key)
        return at.where(counted, gained(cls.namespace, constraint.selector, at), 0)

    def _grounds(
        self, cls: PodClass, constraints: tuple[Constraint, ...], view: View
    ) -> list[tuple[Constraint, _Ground]]:
        now = (view.epoch, view.node_changes)
        known = cls.memo.get("spread ground")
        if known is None or known[0] != now or known[1] != constraints:
            made = [(each, self._ground(cls, each, constraints, view)) for each in constraints]
            known = cls.memo["spread ground"] = (now, constraints, made)
        return known[2]

    def _ground(
        self, cls: PodClass, constraint: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> _Ground:
        at = ManyRows(view, view.order)
        flags = counted_rows(cls, constraint, at)
        for each in constraints:
            flags = flags & at.has_label(each.key)
        rows = view.order[as_array(flags)]
        ids = view.label_column(constraint.key).ids[rows]
        holders = int(at.has_label(constraint.key).sum())
        everywhere = holders == len(view.order)
        return _Ground(rows, ids, np.unique(ids), len(rows) == holders, everywhere)


def gained(namespace: str, selector: Selector, at: Rows[K]) -> Ints[K] | int:
    """How many pods the trial added. Those being deleted count; an empty selector means all."""
    return at.gained_labels((namespace, selector), partial(_is_meant, namespace, selector))


def _is_meant(namespace: str, selector: Selector, labels: LabelSet) -> bool:
    return labels.namespace == namespace and selector.matches(labels.labels)


def lowest_with(
    domains: np.ndarray, counts: np.ndarray, key: str, at: Rows[K], here: Ints[K]
) -> Ints[K]:
    """The fewest pods of any of the domains, when the row's own one has `here`."""
    inside = np.zeros(len(counts), np.bool_)
    inside[domains] = True
    numbers = counts[domains]
    first = int(np.argmin(numbers))
    fewest, others = int(numbers[first]), int(np.delete(numbers, first).min(initial=MANY))
    elsewhere = at.where(at.label_ids(key) == int(domains[first]), others, at.full(fewest))
    least = at.where(here < elsewhere, here, elsewhere)
    return at.where(at.label_flag(inside, key), least, fewest)


class PodTopologySpreadScore(ScoreRule):
    """Prefers domains with few matching pods, weighing keys by their number of domains."""

    name = "PodTopologySpread"
    always = Scope.CLUSTER
    normalizes = True

    def __init__(self, defaults: SpreadDefaults | None = None) -> None:
        self.defaults = defaults or SpreadDefaults()

    def pre_score(self, pod: Incoming, view: View) -> str:
        """Its wishes must be understood."""
        try:
            constraints_of(pod, view, SOFT, self.defaults)
        except AttemptError as error:
            return f"calculating preScoreState: {error}"
        return ""

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped without soft constraints."""
        return None if constraints_of(pod, view, SOFT, self.defaults) else SKIPPED

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """Rows of the same domains score alike, unless every row counts for itself."""
        keys = tuple(each.key for each in constraints_of(pod, view, SOFT, self.defaults))
        return () if HOST in keys else keys

    def _needs_all(self, cls: PodClass) -> bool:
        return bool(cls.spec.topology_spread_constraints) or self.defaults.kind == "List"

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A sum over the constraints of matching pods times weight; the fewer the better."""
        return at.either(
            lambda rows: self._column(pod, rows),
            lambda row: self._column(pod, ManyRows(row.view, np.array([row.row])))[0],
        )

    def _column(self, pod: Incoming, at: ManyRows) -> np.ndarray:
        view, cls = at.view, pod.cls
        constraints = constraints_of(pod, view, SOFT, self.defaults)
        ignored = self._ignored(cls, constraints, at)
        total = np.zeros(len(at))
        for each in constraints:
            ids = at.label_ids(each.key)
            tally = each.tally(cls, view)
            extra = float(each.max_skew - 1)
            if each.key == HOST:
                kept = len(at) - (0 if ignored is None else int(ignored.sum()))
                part = at.on_row(tally) * math.log(kept + 2) + extra
            else:
                weight = math.log(self._domains(each.key, ignored, at) + 2)
                part = (self._counts(cls, each, constraints, view) * weight + extra)[ids]
            absent = at.remembered(("absent", each.key), partial(_equal, ids, ABSENT))
            total += part if absent is None else np.where(absent, 0.0, part)
        rounded = np.floor(total + 0.5).astype(np.int64)
        return rounded if ignored is None else np.where(ignored, 0, rounded)

    def _domains(self, key: str, ignored: np.ndarray | None, at: ManyRows) -> int:
        """How many domains the feasible rows have; no value and an empty one are the same."""

        def distinct() -> int:
            ids = at.label_ids(key)
            present = np.bincount(ids if ignored is None else ids[~ignored], minlength=1) > 0
            empty = at.view.label_column(key).index.get("", ABSENT)
            both = empty != ABSENT and empty < len(present) and present[ABSENT] and present[empty]
            return int(present.sum()) - int(both)

        return at.remembered(("domains", key), distinct)

    def _counts(
        self, cls: PodClass, each: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> np.ndarray:
        """Matching pods per domain id, on the rows that count."""
        now = (view.epoch, view.node_changes, constraints, self._needs_all(cls))
        known = cls.memo.get(("soft ground", each))
        if known is None or known[0] != now:
            everywhere = ManyRows(view, view.order)
            counted = as_array(counted_rows(cls, each, everywhere))
            outside = self._ignored(cls, constraints, everywhere)
            counted = counted if outside is None else counted & ~outside
            rows = None if counted.all() else view.order[counted]
            known = cls.memo["soft ground", each] = (now, rows)
        tally, rows = each.tally(cls, view), known[1]
        if rows is None:
            return tally.by_domain(each.key)
        column = view.label_column(each.key)
        size = len(column.values)
        return np.bincount(column.ids[rows], weights=tally.rows[rows], minlength=size)

    def _ignored(
        self, cls: PodClass, constraints: tuple[Constraint, ...], at: ManyRows
    ) -> np.ndarray | None:
        """Rows that lack a key they would need; None when there are none."""
        if not self._needs_all(cls):
            return None

        def lacking() -> np.ndarray | None:
            found = np.zeros(len(at), np.bool_)
            for each in constraints:
                found |= ~at.has_label(each.key)
            return _some(found)

        return at.remembered(("ignored", *(each.key for each in constraints)), lacking)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """The node with the fewest gets 100; ignored ones get 0."""
        constraints = constraints_of(pod, at.view, SOFT, self.defaults)
        ignored = self._ignored(pod.cls, constraints, at)
        counted = raw if ignored is None else raw[~ignored]
        most, least = int(counted.max(initial=0)), int(counted.min()) if len(counted) else 0
        if most == 0:
            scores = np.full(len(raw), MAX_SCORE)
        else:
            scores = at.divide(MAX_SCORE * (most + least - raw), most)
        return scores if ignored is None else np.where(ignored, 0, scores)


def _equal(ids: np.ndarray, value: int) -> np.ndarray | None:
    return _some(ids == value)


def _some(flags: np.ndarray) -> np.ndarray | None:
    return flags if flags.any() else None
