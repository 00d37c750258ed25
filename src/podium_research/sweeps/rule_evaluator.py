"""Figures of a file with rules: a function for programs that search for better rules."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from podium.library.profile_source import ProfileSource
from podium_research.sweeps.figures import PlacementFigures
from podium_research.sweeps.runs import place_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium_research.traces.trace import Trace


def evaluate_rules(
    path: str,
    trace: Trace,
    *,
    config: str | None = None,
    seeds: Sequence[int] = (0,),
) -> dict[str, float]:
    """Place the pods of *trace* with the rules in the file *path*: the mean of each figure.

    *config* is a KubeSchedulerConfiguration that says which other plugins take part. Each seed is
    another order of arrival; seed 0 is the order of the trace. A rule that fails raises
    `podium.ConfigError` or `podium.InputError` with its place.
    """
    chosen = ProfileSource(rules=(path,), config=config).choose()
    sums: dict[str, float] = {}
    for seed in seeds:
        ordered = _shuffled(trace, seed)
        measure = PlacementFigures(ordered)
        place_all(ordered, chosen, measure)
        _add(sums, measure.figures())
    return {name: total / len(seeds) for name, total in sums.items()}


def _shuffled(trace: Trace, seed: int) -> Trace:
    if not seed:
        return trace
    pods = list(trace.pods)
    random.Random(seed).shuffle(pods)  # noqa: S311 - a simulation, not a secret
    return trace.with_order(trace.nodes, pods)


def _add(sums: dict[str, float], figures: Mapping[str, float]) -> None:
    for name, number in figures.items():
        sums[name] = sums.get(name, 0.0) + number
