"""What rules cost; the figures themselves are printed by `benchmarks/bench_rules.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench_rules import measure


def test_a_rule_for_one_node_costs_a_loop_and_columns_far_less() -> None:
    """With room for a busy machine: alone, 1.1 times the loop, and 76 times faster in columns."""
    costs = measure(5000, repeats=7)

    assert costs.overhead < 2
    assert costs.gain > 25


@pytest.mark.parametrize("size", [1, 17])
def test_it_measures_small_clusters_too(size: int) -> None:
    assert measure(size, repeats=1).loop >= 0
