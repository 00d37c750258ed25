"""What is kept between decisions about devices: the pools of each row, and answers per row.

Which pools a row sees follows from the slices and from the node. Whether some claims can be
allocated on a row follows from these pools, from the devices in use in them, from the requests, and
from the limit of search steps of the profile.
Each is kept until something that it follows from changes: claims made from one template are decided
without looking at devices of rows where nothing changed.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.rules.devices.allocator import CounterCache
from podium.engine.rules.devices.features import DEFAULT_FEATURES, DeviceFeatures
from podium.engine.rules.devices.pools import DevicePool, PoolBuilder, PoolError
from podium.engine.state.devices import is_local
from podium.engine.state.journal import Follower
from podium.engine.state.view import KeptInView

if TYPE_CHECKING:
    from podium.engine.state.devices import PoolId
    from podium.engine.state.view import View

#: Answers are kept for this many different sets of requests.
KEPT_ANSWERS: Final = 64


class RowAnswer:
    """Whether claims can be allocated on a row: a verdict code and a score, or an error."""

    __slots__ = ("code", "error", "score")

    def __init__(self, code: int, score: int = 0, error: str = "") -> None:
        self.code = code
        self.score = score
        self.error = error


class RequestAnswers:
    """The answers for one set of requests, per row; errors are never kept."""

    __slots__ = ("codes", "scores", "seen")

    def __init__(self, rows: int) -> None:
        #: The state of the row that the answer is about; -1 without an answer.
        self.seen = np.full(rows, -1, np.int64)
        self.codes = np.zeros(rows, np.int32)
        self.scores = np.zeros(rows, np.int64)


class DeviceLedger:
    """The pools that rows see, and the answers that follow from them."""

    def __init__(self, view: View, features: DeviceFeatures = DEFAULT_FEATURES) -> None:
        self._view = view
        catalog = view.catalog
        self._slices, self._claims = catalog.resource_slices, catalog.resource_claims
        self._classes = catalog.device_classes
        self._taint_rules = catalog.device_taint_rules
        self.builder = PoolBuilder(self._slices, features, self._taint_rules)
        self.counters = CounterCache(self._claims)
        self._tick = 0
        self._rows = Follower(view.journal.rows, view.journal)
        self._slice_pools = Follower(self._slices.pools)
        self._claim_pools = Follower(self._claims.pools)
        self._start_over()

    def _start_over(self) -> None:
        view = self._view
        rows = view.nodes.capacity
        for follower in (self._rows, self._slice_pools, self._claim_pools):
            follower.start_over()
        self._classes_version = self._classes.version
        self._rules_version = self._taint_rules.version
        #: Changes whenever something changed that the answers for a row follow from.
        self._tick += 1
        self.states = np.full(rows, self._tick, np.int64)
        self._pools: list[list[DevicePool] | None] = [None] * rows
        self._labels: list[Mapping[str, str] | None] = [None] * rows
        self._rows_of: defaultdict[PoolId, set[int]] = defaultdict(set)
        self._answers: OrderedDict[Hashable, RequestAnswers] = OrderedDict()
        self.builder.forget(None)
        self.counters.forget()

    def refresh(self) -> None:
        """Take note of everything that changed since the last decision."""
        view = self._view
        news, slices, claims = (
            self._rows.news(),
            self._slice_pools.news(),
            self._claim_pools.news(),
        )
        if self._rules_version != self._taint_rules.version:
            self.builder.forget_taints()
            self._start_over()
            return
        resized = len(self.states) != view.nodes.capacity
        if resized or news is None or slices is None or claims is None:
            self._start_over()
            return
        if self._classes_version != self._classes.version:
            self._classes_version = self._classes.version
            self._answers.clear()
        changed = {~entry for entry in news if entry < 0}
        for row in changed:
            if self._labels[row] != self._labels_of(row):
                self._forget_pools(row)
        if slices:
            self._slices_changed(set(slices))
        if claims:
            self.counters.forget()
            self._tick += 1
            for pool in set(claims):
                for row in self._rows_of.get(pool, ()):
                    self.states[row] = self._tick

    def _slices_changed(self, pools: set[PoolId]) -> None:
        view = self._view
        self.builder.forget(pools)
        self.counters.forget()
        rows = {row for pool in pools for row in self._rows_of.pop(pool, ())}
        for pool in pools:
            for each in self._slices.in_pool(pool):
                if not is_local(each):
                    rows.update(view.nodes.order.tolist())
                    break
                row = view.nodes.row_of.get(each.spec.node_name or "")
                if row is not None:
                    rows.add(row)
        for row in rows:
            self._forget_pools(row)

    def _forget_pools(self, row: int) -> None:
        self._pools[row] = None
        self._tick += 1
        self.states[row] = self._tick

    def _labels_of(self, row: int) -> Mapping[str, str]:
        node = self._view.nodes.objects[row]
        return node.labels if node is not None else {}

    def pools_of(self, row: int) -> list[DevicePool]:
        """The pools that a row sees, in the order in which they are tried."""
        found = self._pools[row]
        if found is None:
            labels = self._labels[row] = self._labels_of(row)
            found = self.builder.seen_from(self._view.nodes.names[row], labels)
            self._pools[row] = found
            for pool in found:
                self._rows_of[pool.id].add(row)
        return found

    def answers(
        self,
        key: Hashable,
        rows: np.ndarray,
        compute: Callable[[int], RowAnswer],
        errors: dict[int, str],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Codes and scores of some rows; only rows that changed are computed again.

        *errors* gets the errors, by the position of the row.
        """
        kept = self._answers.get(key)
        if kept is None:
            kept = self._answers[key] = RequestAnswers(len(self.states))
            if len(self._answers) > KEPT_ANSWERS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        stale = np.flatnonzero(kept.seen[rows] != self.states[rows])
        same: dict[Hashable, RowAnswer] = {}
        for place in stale.tolist():
            row = int(rows[place])
            answer = self._alike(row, same, compute)
            if answer.error:
                errors[place] = answer.error
                continue
            kept.seen[row] = self.states[row]
            kept.codes[row], kept.scores[row] = answer.code, answer.score
        return kept.codes[rows], kept.scores[rows]

    def _alike(
        self, row: int, same: dict[Hashable, RowAnswer], compute: Callable[[int], RowAnswer]
    ) -> RowAnswer:
        """The answer for a row; rows that see the very same pools get the same answer.

        Unless devices select their nodes themselves, or errors name the node.
        """
        try:
            pools = self.pools_of(row)
        except PoolError:
            return compute(row)  # which reports it
        key = tuple(pools)
        found = same.get(key)
        if found is not None:
            return found
        answer = compute(row)
        if not answer.error and not any(map(_selects_nodes, pools)):
            same[key] = answer
        return answer


def _selects_nodes(pool: DevicePool) -> bool:
    return any(each.slice.spec.per_device_node_selection for each in pool.devices)


_LEDGERS: KeptInView[DeviceLedger] = KeptInView()


def ledger_of(view: View, features: DeviceFeatures = DEFAULT_FEATURES) -> DeviceLedger:
    """The ledger of a view for some features, up to date."""
    found = _LEDGERS.of(view, features, lambda: DeviceLedger(view, features))
    found.refresh()
    return found
