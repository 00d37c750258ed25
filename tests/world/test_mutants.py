"""The world finds deliberate faults: a check of the checks."""

from __future__ import annotations

import pytest

from world.mutants import MUTANTS, Mutant
from world.run import run_seeds

#: Within so many seeds each mutant is found.
SEEDS = 1000


def name_of(mutant: Mutant) -> str:
    return mutant.__name__.replace("_", " ")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_mutant_is_found(mutant: Mutant, record_property: pytest.FixtureRequest) -> None:
    with mutant():
        for outcome in run_seeds(range(SEEDS)):
            if outcome.findings:
                record_property("found by seed", outcome.plan.seed)  # type: ignore[operator]
                record_property("as", outcome.findings[0])  # type: ignore[operator]
                return
    pytest.fail(f"no seed below {SEEDS} finds it")
