"""Counters and histograms that are cheap to add to, and their Prometheus form.

The loop decides thousands of times a second, so counting is a list index and an addition. Names,
labels and text are put together when the metrics are read; Prometheus' client is imported then.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

Labels = tuple[str, ...]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds, each *factor* times the one before."""
    return tuple(start * factor**place for place in range(count))


class Histogram:
    """The number of observations in each bucket, and their sum."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """The upper bound of each bucket and the number of observations up to it."""
        found, seen = [], 0
        for bound, count in zip([*self._bounds, None], self.counts, strict=True):
            seen += count
            found.append(("+Inf" if bound is None else f"{bound:.12g}", float(seen)))
        return found


class Histograms:
    """A metric with a histogram per combination of label values."""

    def __init__(
        self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._bounds = tuple(bounds)
        self._kept: dict[Labels, Histogram] = {}
        if not labels:
            self.at()

    def at(self, *labels: str) -> Histogram:
        """The histogram of these label values, made on first use."""
        found = self._kept.get(labels)
        if found is None:
            found = self._kept[labels] = Histogram(self._bounds)
        return found

    def family(self) -> HistogramMetricFamily:
        """The metric with its current values, in Prometheus' form."""
        from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415

        family = HistogramMetricFamily(self._name, self._text, labels=list(self._labels))
        for labels, histogram in self._kept.items():
            family.add_metric(list(labels), histogram.buckets(), histogram.total)
        return family


class Counters:
    """A metric with a counter per combination of label values."""

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self._name, self._text, self._labels = name, text, labels
        self.kept: dict[Labels, int] = {} if labels else {(): 0}

    def add(self, *labels: str, count: int = 1) -> None:
        """Raise the counter of these label values."""
        self.kept[labels] = self.kept.get(labels, 0) + count

    def family(self) -> CounterMetricFamily:
        """The metric with its current values, in Prometheus' form."""
        from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

        family = CounterMetricFamily(self._name, self._text, labels=list(self._labels))
        for labels, count in self.kept.items():
            family.add_metric(list(labels), count)
        return family


def metrics_of(owner: object) -> Iterator[Counters | Histograms]:
    """The metrics that are attributes of an object, in the order in which they were set."""
    return (each for each in vars(owner).values() if isinstance(each, Counters | Histograms))


def gauges(
    name: str, text: str, labels: Sequence[str], values: Mapping[Labels, float]
) -> GaugeMetricFamily:
    """A metric with the current values by label values."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415

    family = GaugeMetricFamily(name, text, labels=list(labels))
    for given, value in values.items():
        family.add_metric(list(given), value)
    return family
