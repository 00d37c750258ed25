"""What rules cost; the figures themselves are printed by `benchmarks/bench_rules.py`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "bench_rules.py"


@pytest.fixture(scope="module")
def bench() -> Any:
    spec = spec_from_file_location("bench_rules", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["bench_rules"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_rule_for_one_node_costs_a_loop_and_columns_far_less(bench: Any) -> None:
    """With room for a busy machine: alone it costs what the loop costs, and 80 times less."""
    costs = bench.measure(5000, repeats=7)

    assert costs.overhead < 2
    assert costs.gain > 25


@pytest.mark.parametrize("size", [1, 17])
def test_it_measures_small_clusters_too(bench: Any, size: int) -> None:
    assert bench.measure(size, repeats=1).loop >= 0
