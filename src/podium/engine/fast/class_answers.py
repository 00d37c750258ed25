"""What a class of pods has been told about every row, kept true as rows change.

A pod of a class seen before does not ask all rules about all rows again. Its `Ranking` holds, per
row, the first verdict and the sum of the scores that depend on that row alone; the journal says
which rows changed since, and only those are asked again. What depends on other rows (affinity,
spreading, services, volumes) is asked afresh at every decision, and often answers "nothing to
say". If everything left depends on single rows, totals are indexed by score and nothing is
scanned at all.

This is the equivalence cache of the old documents, in columns; `docs/equivalence.md` maps the two.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.cycle.filtering import ERROR, Fit, idle
from podium.engine.fast.resource_memo import NEVER, Rooms, first_verdict
from podium.engine.fast.row_groups import told_apart
from podium.engine.fast.score_index import ScoreIndex
from podium.engine.framework.rule import AttemptError, Reach, Scope
from podium.engine.rows.many import ManyRows, OneRow
from podium.engine.state.verdicts import FITS, histogram

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Hashable

    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

#: Up to this many changed rows are asked one by one, more of them as arrays.
ONE_BY_ONE = 24
#: So many decisions long the answers of a cluster-wide predicate must have stayed the same before
#: they are kept like those about nodes; twice as long each time that turned out wrong.
PATIENCE = 8
BYTES_PER_ROW = 36


class Ranking:
    """The answers of the rules for one class of pods, per row."""

    def __init__(self, pod: Incoming, view: View, profile: Profile) -> None:
        self.view = view
        self.cls: PodClass = pod.cls
        self.profile = profile
        scopes = [predicate.scope(pod.cls) for predicate in profile.predicates]
        numbered = list(enumerate(profile.predicates))
        self._by_node = [p for p, s in zip(numbered, scopes, strict=True) if s is Scope.NODE]
        self._on_row = [p for p, s in zip(numbered, scopes, strict=True) if s is Scope.PODS]
        self._anywhere = [p for p, s in zip(numbered, scopes, strict=True) if s is Scope.CLUSTER]
        local = [w for w in profile.priorities if w.priority.scope(pod.cls) is not Scope.CLUSTER]
        self.flat = [w for w in local if not w.priority.reduces]
        self.reducing = [w for w in profile.priorities if w not in self.flat]
        self.index: ScoreIndex | None = None
        self._rejections: Counter[int] | None = None
        #: Asked for the index, and used for the totals of the same pod.
        self._uniforms: list[int | None] = []
        self._asked = [getattr(predicate, "reach", None) for _, predicate in self._anywhere]
        self._steady = {place: _Steady() for place, p in self._anywhere if hasattr(p, "state")}
        self._allocate()
        self.rebuild(pod)

    def _allocate(self) -> None:
        size = self.view.capacity
        self._node_codes = np.zeros(size, np.int32)
        self._node_at = np.zeros(size, np.int16)
        self._codes = np.zeros(size, np.int32)
        self._at = np.zeros(size, np.int16)
        self._node_scores = np.zeros(size, np.int64)
        self._scores = np.zeros(size, np.int64)

    # Keeping up -------------------------------------------------------------------------------

    def rebuild(self, pod: Incoming) -> None:
        """Ask about every row."""
        view = self.view
        if len(self._codes) != view.capacity:
            self._allocate()
        self.epoch = view.epoch
        self.namespaces = view.catalog.namespaces.version
        self.seen = view.journal_start + len(view.journal)
        self.index = self._rejections = None
        rows = view.order
        self._reaches = self._reach(pod)
        reaching = list(zip(self._anywhere, self._reaches, strict=True))
        close = [p for p, reach in reaching if reach is Reach.ROW]
        far = [p for p, reach in reaching if reach is Reach.ANYWHERE]
        kept = [p for p in far if self._is_kept(p[0])]
        self.of_node = sorted([*self._by_node, *kept], key=lambda numbered: numbered[0])
        self.of_pods = sorted([*self._on_row, *close], key=lambda numbered: numbered[0])
        self.afar = [p for p in far if p not in kept]
        #: Those whose answers may come to stay the same.
        self._far = [p for p in far if p[0] in self._steady]
        self._feasible: tuple[np.ndarray | None, np.ndarray] = (None, rows)
        self._memo: dict[Hashable, Any] = {}
        self._plan(pod)
        self._rooms = Rooms(self.cls, self.of_pods, self.scoring_pods)
        self._ask_nodes(pod, rows)
        self._ask_pods(pod, rows)

    def _plan(self, pod: Incoming) -> None:
        """Which flat priorities tell rows apart, and what the others give to all."""
        known = [(w, w.priority.uniform(pod, self.view)) for w in self.flat]
        self.uniform = sum(w.weight * u for w, u in known if u is not None)
        telling = [w for w, u in known if u is None]
        self.scoring_nodes = [w for w in telling if w.priority.scope(self.cls) is Scope.NODE]
        self.scoring_pods = [w for w in telling if w.priority.scope(self.cls) is Scope.PODS]
        states = [_state(each, pod, self.view) for each in self.scoring_nodes]
        self._planned = (self.uniform, self.scoring_nodes, self.scoring_pods, states)

    def _reach(self, pod: Incoming) -> list[Reach]:
        """How far the cluster-wide predicates look, as things are now."""
        view = self.view
        return [Reach.ANYWHERE if ask is None else ask(pod, view) for ask in self._asked]

    def _is_kept(self, place: int) -> bool:
        return place in self._steady and self._steady[place].kept

    def _is_unsteady(self, pod: Incoming) -> bool:
        """Whether answers of a cluster-wide predicate are to be kept from now on, or no more."""
        changed = False
        for place, predicate in self._far:
            steady = self._steady[place]
            if steady.kept or not idle(predicate, pod, self.view):
                state = predicate.state(pod, self.view)  # type: ignore[attr-defined]
                changed = steady.watch(state) or changed
        return changed

    def refresh(self, pod: Incoming) -> None:
        """Ask again about the rows that changed since the last pod of this class."""
        view = self.view
        self._uniforms = []
        behind = self.seen - view.journal_start
        stale = self.epoch != view.epoch or behind < 0
        stale = stale or self.namespaces != view.catalog.namespaces.version
        # Watched at every decision, or a state that comes back would pass for one that stayed.
        unsteady = bool(self._far) and self._is_unsteady(pod)
        if stale or unsteady or self._reaches != self._reach(pod):
            self.rebuild(pod)
            return
        news = view.journal[behind:]
        if not news:
            return
        self.seen = view.journal_start + len(view.journal)
        if min(news) < 0:
            # A node changed: what was the same for every row may not be so any more.
            before = self._planned
            self._plan(pod)
            if before != self._planned:
                self.rebuild(pod)
                return
            self._memo = {}
        rows = {entry if entry >= 0 else ~entry for entry in news}
        nodes = {~entry for entry in news if entry < 0}
        if len(rows) > ONE_BY_ONE:
            self._ask_many(pod, rows, nodes)
        else:
            for row in rows:
                self._ask_one(pod, row, node_changed=row in nodes)

    def _ask_many(self, pod: Incoming, rows: set[int], nodes: set[int]) -> None:
        if nodes:
            self._ask_nodes(pod, np.fromiter(nodes, np.int64, len(nodes)))
        self._ask_pods(pod, np.fromiter(rows, np.int64, len(rows)))
        self.index = self._rejections = None
        self._feasible = (None, self._codes)

    def _ask_nodes(self, pod: Incoming, rows: np.ndarray) -> None:
        self._node_codes[rows], self._node_at[rows] = self._first(pod, rows, self.of_node)
        self._node_scores[rows] = self.uniform + self._sum(pod, rows, self.scoring_nodes)

    def _ask_pods(self, pod: Incoming, rows: np.ndarray) -> None:
        codes, at = self._first(pod, rows, self.of_pods)
        earlier = self._node_at[rows] < at
        self._codes[rows] = np.where(earlier, self._node_codes[rows], codes)
        self._at[rows] = np.minimum(self._node_at[rows], at)
        self._scores[rows] = self._node_scores[rows] + self._sum(pod, rows, self.scoring_pods)

    def _first(
        self, pod: Incoming, rows: np.ndarray, predicates: list[tuple[int, Predicate]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first verdict of each row, and the place of the predicate that gave it."""
        codes = np.zeros(len(rows), np.int32)
        places = np.full(len(rows), NEVER, np.int16)
        for place, predicate in predicates:
            answers = predicate.reject(pod, ManyRows(self.view, rows))
            new = (codes == FITS) & (answers != FITS)
            codes[new] = np.broadcast_to(answers, new.shape)[new]
            places[new] = place
        return codes, places

    def _sum(self, pod: Incoming, rows: np.ndarray, weighted: list[Weighted]) -> np.ndarray:
        total = np.zeros(len(rows), np.int64)
        for each in weighted:
            total += each.priority.score(pod, ManyRows(self.view, rows)) * each.weight
        return total

    def _ask_one(self, pod: Incoming, row: int, *, node_changed: bool) -> None:
        at = OneRow(self.view, row)
        if node_changed:
            code, place = first_verdict(pod, at, self.of_node)
            self._node_codes[row], self._node_at[row] = code, place
            self._node_scores[row] = self.uniform + sum(
                each.priority.score(pod, at) * each.weight for each in self.scoring_nodes
            )
        code, place, total = self._rooms.ask(pod, at)
        earlier = self._node_at.item(row)
        if earlier < place:
            code, place = self._node_codes.item(row), earlier
        total += self._node_scores.item(row)
        before = self._codes.item(row)
        if code != before:
            self._recount(row, before, code)
            if not code or not before:
                self._feasible = (None, self._codes)
        self._codes[row], self._at[row] = code, place
        self._scores[row] = total
        if self.index is not None:
            self.index.put(row, None if code else total)

    def _recount(self, row: int, before: int, now: int) -> None:
        counts = self._rejections
        if counts is None or not self.view.known[row]:
            return
        if now:
            counts[now] += 1
        if before:
            counts[before] -= 1
            if not counts[before]:
                del counts[before]

    # Answering --------------------------------------------------------------------------------

    def indexed(self, pod: Incoming, order: np.ndarray) -> ScoreIndex | None:
        """The index by score, if single rows are all that counts for this pod now."""
        view = self.view
        if any(not idle(predicate, pod, view) for _, predicate in self.afar):
            return None
        self._uniforms = self._ask_uniform(pod)
        if any(uniform is None for uniform in self._uniforms):
            return None
        if self.index is None or self.index.order is not order:
            if len(order) != len(view.order):
                return None
            self.index = ScoreIndex(order, self._codes, self._scores)
            if len(self.index.position_of) != len(order):
                # Some row is named twice.
                self.index = None
        return self.index

    def rejections(self) -> Counter[int]:
        """How many nodes single rows were turned down with which verdict; kept up to date."""
        if self._rejections is None:
            self._rejections = histogram(self._codes[self.view.order])
        return self._rejections

    def feasible(self, pod: Incoming, order: np.ndarray) -> np.ndarray | None:
        """The rows that fit, in order, if single rows decide that; kept while none changes."""
        if any(not idle(predicate, pod, self.view) for _, predicate in self.afar):
            return None
        if self._feasible[0] is not order:
            self._feasible = (order, order[self._codes[order] == FITS])
            self._memo = {}
        return self._feasible[1]

    def fit(self, pod: Incoming, order: np.ndarray) -> Fit:
        """Verdict codes in the given order, cluster-wide predicates asked afresh."""
        codes, places = self._codes[order], self._at[order]
        errors: dict[int, str] = {}
        for place, predicate in self.afar:
            if idle(predicate, pod, self.view):
                continue
            alive = np.flatnonzero(places > place)
            at = ManyRows(self.view, order[alive])
            answers = np.broadcast_to(predicate.reject(pod, at), alive.shape)
            new = alive[answers != FITS]
            codes[new], places[new] = answers[answers != FITS], place
            if at.errors:
                failed = alive[np.fromiter(at.errors, np.int64, len(at.errors))]
                errors.update(zip(failed.tolist(), at.errors.values(), strict=True))
                codes[failed], places[failed] = ERROR, place
        return Fit(codes, errors)

    def totals(self, pod: Incoming, rows: np.ndarray) -> np.ndarray:
        """The weighted sums of these feasible rows."""
        totals: np.ndarray = self._scores[rows]
        memo = self._memo if rows is self._feasible[1] else None
        errors: list[str] = []
        shift = 0
        uniforms, self._uniforms = self._uniforms or self._ask_uniform(pod), []
        everywhere = ManyRows(self.view, rows, memo)
        for each, uniform in zip(self.reducing, uniforms, strict=True):
            if uniform is not None:
                shift += uniform * each.weight
                continue
            try:
                at, of_row = told_apart(each.priority, pod, everywhere)
                raw = each.priority.score(pod, at)
                final = each.priority.reduce(pod, at, raw) if each.priority.reduces else raw
                weighted = final * each.weight if each.weight != 1 else final
                totals += weighted if of_row is None else weighted[of_row]
            except AttemptError as error:
                errors += error.args
        if errors:
            raise AttemptError(*errors)
        totals += shift
        return totals

    def _ask_uniform(self, pod: Incoming) -> list[int | None]:
        """What each reducing priority gives to all rows alike; None where it must be asked."""
        found: list[int | None] = []
        for each in self.reducing:
            try:
                found.append(each.priority.uniform(pod, self.view))
            except AttemptError:
                found.append(None)  # an error only if it comes to scoring
        return found


def _state(weighted: Weighted, pod: Incoming, view: View) -> Hashable:
    """What the scores of a priority depend on besides the row's own node, if anything."""
    ask = getattr(weighted.priority, "state", None)
    return ask(pod, view) if ask is not None else None


class _Steady:
    """Whether the answers of a predicate are the same from decision to decision."""

    __slots__ = ("kept", "patience", "state", "streak")

    def __init__(self) -> None:
        self.kept = False
        self.patience = PATIENCE
        self.streak = 0
        self.state: Hashable = None

    def watch(self, state: Hashable) -> bool:
        """Note the state of one more decision; whether to keep the answers changed."""
        same = state is not None and state == self.state
        self.state = state
        if self.kept and not same:
            self.kept, self.streak, self.patience = False, 0, self.patience * 2
            return True
        self.streak = self.streak + 1 if same else 0
        if not self.kept and self.streak >= self.patience:
            self.kept = True
            return True
        return False


class Rankings:
    """The rankings of the classes seen lately, within a budget of memory.

    A class is given a ranking when it is seen for the second time: one that never comes again
    costs nothing to keep.
    """

    def __init__(self, view: View, profile: Profile, budget_bytes: int = 1 << 28) -> None:
        self._view = view
        self._profile = profile
        self._budget_bytes = budget_bytes
        self._kept: OrderedDict[int, Ranking | None] = OrderedDict()

    def of(self, pod: Incoming) -> Ranking | None:
        """The ranking of the pod's class, brought up to date; None when it has none yet."""
        if self._profile.always_check_all:
            return None
        key = pod.cls.id
        if key not in self._kept:
            self._kept[key] = None
            self._trim()
            return None
        ranking = self._kept[key]
        if ranking is None:
            ranking = self._kept[key] = Ranking(pod, self._view, self._profile)
            self._trim()
        else:
            ranking.refresh(pod)
        self._kept.move_to_end(key)
        return ranking

    def _trim(self) -> None:
        limit = max(4, self._budget_bytes // (BYTES_PER_ROW * self._view.capacity))
        while len(self._kept) > limit:
            self._kept.popitem(last=False)
