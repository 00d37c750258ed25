"""v1.13 SelectorSpreadPriority: spreads the pods of one service or controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from podium.engine.framework.causes import ScoreNumber
from podium.engine.framework.declaration import PriorityDeclaration, plain
from podium.engine.framework.rule import Everywhere, Scope, ScoreRule, Watched
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows, Scalar, as_int
from podium.engine.rows.written import quotient, written
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.rules.spreading.shared import tally_live_pods
from podium.engine.state.catalog import selectors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

ZONE_WEIGHT = 2.0 / 3.0


class SelectorSpreadPriority(ScoreRule):
    """Prefers nodes, and with two thirds of the weight zones, with few pods of the same owner.

    Owners are services and controllers. Zone totals cover the feasible nodes only.
    """

    kinds: tuple[str, ...] = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    name = "SelectorSpreadPriority"
    formula = "fewer pods of the same owner on the node (1/3) and in its zone (2/3) are better"
    always = Scope.CLUSTER
    normalizes = True

    def watched(self, cls: PodClass) -> Watched:
        """Services and controllers that select the pod."""
        return Watched.SELECTORS

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """The highest score if no service or controller selects the pod."""
        return None if selectors_of(pod.cls, view.catalog) else Everywhere(HIGHEST_PRIORITY)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """How many pods of the same owner the node holds."""
        selectors = selectors_of(pod.cls, at.view.catalog)
        if not selectors:
            return at.full(0)
        return at.on_row(tally_live_pods(at.view, pod.cls.namespace, selectors))

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The pods of the same owner on the node, and on the nodes of its zone that fit."""
        selectors = selectors_of(pod.cls, at.view.catalog)
        if not selectors:
            return
        tally = tally_live_pods(at.view, pod.cls.namespace, selectors)
        yield ScoreNumber("pods of the same owner on the node", as_int(at.on_row(tally)))
        zones = at.view.nodes.facts.zone
        if zone := zones.ids.item(at.row):
            there = among.index[among.ids(zones) == zone]
            count = int(tally.rows[there].sum())
            yield ScoreNumber("on the nodes of its zone that fit", count)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """Fewer pods score higher; in floating point, truncated at the end."""
        zones = at.ids(at.view.nodes.facts.zone)
        by_zone = _by_zone(zones, raw)
        most = int(raw.max(initial=0))
        if (most + 1) * len(by_zone) > len(raw):
            return _spread(raw, most, by_zone, zones)
        # Few distinct pairs of count and zone: rate each pair once.
        counts = np.tile(np.arange(most + 1), len(by_zone))
        pairs = np.repeat(np.arange(len(by_zone)), most + 1)
        table = _spread(counts, most, by_zone, pairs)
        found: np.ndarray = table[zones * (most + 1) + raw]
        return found

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The same for one row."""
        zones = at.view.nodes.facts.zone
        by_zone = _by_zone(among.ids(zones), raw)
        spread = fewer_is_better(own, written(int(raw.max(initial=0))))
        zone = zones.ids.item(at.row)
        if not zone:
            return at.truncate(spread)
        there = written(int(by_zone[zone]))
        zoned = fewer_is_better(there, written(int(by_zone.max())))
        return at.truncate(_mixed(spread, zoned, quotient(2, 3)))


def _by_zone(zones: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The pods in each zone; none in zone 0, which stands for rows without a zone."""
    by_zone = np.bincount(zones, weights=raw, minlength=1)
    by_zone[0] = 0
    return by_zone


def _spread(counts: np.ndarray, most: int, by_zone: np.ndarray, zones: np.ndarray) -> np.ndarray:
    """Scores of nodes with these counts in these zones; zone 0 means no zone."""
    spread = fewer_is_better(counts, most)
    zoned = fewer_is_better(by_zone, int(by_zone.max()))[zones]
    mixed: np.ndarray = np.where(zones > 0, _mixed(spread, zoned, ZONE_WEIGHT), spread)
    return mixed.astype(np.int64, copy=False)


def _mixed(spread: Any, zoned: Any, weight: float) -> Any:
    """The score by node, and with this weight that by zone."""
    return spread * (1.0 - weight) + weight * zoned


def fewer_is_better(counts: Any, most: int) -> Any:
    """Scores from the highest, for no pods, down to 0, for the most."""
    if most <= 0:
        return counts * 0 + float(HIGHEST_PRIORITY)
    return float(HIGHEST_PRIORITY) * ((most - counts) / most)


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The older name of SelectorSpreadPriority; upstream gives it the same inputs."""

    name = "ServiceSpreadingPriority"


SELECTOR_SPREAD_PRIORITY: Final = PriorityDeclaration(
    "SelectorSpreadPriority",
    "few pods of the same service or controller on the node and in its zone",
    plain(SelectorSpreadPriority),
    providers=BOTH_PROVIDERS,
)

SERVICE_SPREADING_PRIORITY: Final = PriorityDeclaration(
    "ServiceSpreadingPriority",
    "an old name of SelectorSpreadPriority",
    plain(ServiceSpreadingPriority),
)
