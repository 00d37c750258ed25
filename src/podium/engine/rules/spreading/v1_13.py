"""Priorities that keep pods of one service or controller apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.framework.rule import Scope
from podium.engine.rules.priorities import MAX_SCORE, NodePriority
from podium.engine.state.owner_selectors import selectors_of, services_of
from podium.engine.state.selector_index import anchor_of_any
from podium.objects.selectors.selectors import Selector, from_map

if TYPE_CHECKING:
    from podium.engine.rows.many import ManyRows, Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints, LabelSet, Tally
    from podium.engine.state.view import View

ZONE_WEIGHT = 2.0 / 3.0


def living(view: View, namespace: str, selectors: tuple[Selector, ...]) -> Tally:
    """Pods of a namespace, not being deleted, that at least one selector matches."""
    return view.tally(
        ("living", namespace, selectors),
        lambda labels: _lives(labels, namespace, selectors),
        lambda: anchor_of_any(selectors),
    )


def _lives(labels: LabelSet, namespace: str, selectors: tuple[Selector, ...]) -> bool:
    return (
        labels.namespace == namespace
        and not labels.terminating
        and any(selector.matches(labels.labels) for selector in selectors)
    )


class SelectorSpreadPriority(NodePriority):
    """Prefers nodes, and two thirds of it zones, with few pods of the same service or controller.

    Zone totals cover the feasible nodes only.
    """

    name = "SelectorSpreadPriority"
    always = Scope.CLUSTER
    reduces = True

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """Nothing selects the pod: all nodes are as good."""
        return None if selectors_of(pod.cls, view.catalog) else MAX_SCORE

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """How many such pods the node holds."""
        selectors = selectors_of(pod.cls, at.view.catalog)
        if not selectors:
            return at.full(0)
        return at.on_row(living(at.view, pod.cls.namespace, selectors))

    def reduce(self, pod: Incoming, at: ManyRows, raw: Ints) -> Ints:  # noqa: ARG002
        """The fewer the better; in doubles, truncated at the end."""
        zones = at.ids(at.view.facts.zone)
        by_zone = np.bincount(zones, weights=raw, minlength=1)
        by_zone[0] = 0  # rows without a zone
        most = int(raw.max(initial=0))
        if (most + 1) * len(by_zone) > len(raw):
            return _spread(raw, most, by_zone, zones)
        # Few distinct pairs of count and zone: rate each pair once.
        counts = np.tile(np.arange(most + 1), len(by_zone))
        pairs = np.repeat(np.arange(len(by_zone)), most + 1)
        table = _spread(counts, most, by_zone, pairs)
        return table[zones * (most + 1) + raw]


def _spread(counts: np.ndarray, most: int, by_zone: np.ndarray, zones: np.ndarray) -> np.ndarray:
    """Score of nodes with these counts in these zones; zone 0 stands for no zone."""
    spread = _fewer_is_better(counts, most)
    zoned = _fewer_is_better(by_zone, int(by_zone.max()))[zones]
    mixed = spread * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * zoned
    return np.where(zones > 0, mixed, spread).astype(np.int64)


def _fewer_is_better(counts: np.ndarray, most: int) -> np.ndarray:
    if most <= 0:
        return np.full(len(counts), float(MAX_SCORE))
    return float(MAX_SCORE) * ((most - counts) / float(most))


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """An old name: in effect the same as SelectorSpreadPriority."""

    name = "ServiceSpreadingPriority"


class ServiceAntiAffinity(NodePriority):
    """Prefers label values that hold few of the service's pods; nodes without the label get 0."""

    always = Scope.CLUSTER
    reduces = True

    def __init__(self, label: str, name: str = "ServiceAntiAffinity") -> None:
        self.label = label
        self.name = name

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """How many pods of the pod's first service the node holds."""
        selector = _first_service(pod.cls, at.view)
        if selector is None:
            return at.full(0)
        return at.on_row(living(at.view, pod.cls.namespace, (selector,)))

    def reduce(self, pod: Incoming, at: ManyRows, raw: Ints) -> Ints:  # noqa: ARG002
        """The total counts nodes without the label too."""
        values = at.label_ids(self.label)
        by_value = np.bincount(values, weights=raw, minlength=1)
        scores = _fewer_is_better(by_value, int(raw.sum()))[values]
        return at.truncate(np.where(values > 0, scores, 0.0))


def _first_service(cls: PodClass, view: View) -> Selector | None:
    services = services_of(cls, view.catalog)
    return from_map(services[0].spec.selector) if services else None
