"""The world finds deliberate faults: a check of the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from world.mutants import MUTANTS, Mutant
from world.plan import make_plan
from world.run import run_plan, run_seeds

#: Within so many seeds each mutant is found.
SEEDS = 1500
EACH = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)


@pytest.mark.slow
@EACH
def test_the_seed_of_a_mutant_finds_it(mutant: Mutant) -> None:
    with mutant.put():
        findings = run_plan(make_plan(mutant.seed)).findings
    assert any(mutant.finding in each for each in findings), findings


@pytest.mark.soak
@pytest.mark.timeout(1800)
@EACH
def test_a_mutant_is_found(mutant: Mutant, record_property: Callable[[str, object], None]) -> None:
    with mutant.put():
        for outcome in run_seeds(range(SEEDS)):
            if outcome.findings:
                record_property("found by seed", outcome.plan.seed)
                record_property("as", outcome.findings[0])
                return
    pytest.fail(f"no seed below {SEEDS} finds it")
