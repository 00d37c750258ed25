"""Long histories find a fault in each structure that is kept between decisions."""

from __future__ import annotations

import pytest

from engine.fast.mutants import MUTANTS, Mutant
from long_histories import TUNINGS, LongHistory, Plan

#: Ordinary clusters; clusters with pods of many wishes; such with preemption; each with several
#: ways of bringing answers up to date.
PLANS = (
    Plan(nodes=20, classes=6),
    Plan("v1.36", TUNINGS[1], nodes=20, classes=6, features=True),
    Plan("v1.36", TUNINGS[2], nodes=20, classes=15, features=True),
    Plan("v1.13", TUNINGS[3], nodes=20, classes=15, features=True, preemption=True),
    Plan("v1.36", TUNINGS[1], nodes=7, classes=15, features=True, taints=True, preemption=True),
    Plan("v1.13", TUNINGS[1], nodes=40, classes=15, features=True),
    Plan("v1.36", TUNINGS[0], nodes=40, classes=15, features=True),
    Plan("v1.13", TUNINGS[2], nodes=20, classes=6, features=True, taints=True),
    Plan("v1.36", TUNINGS[0], nodes=20, classes=6, losses=True),
)
#: So many decisions of each plan, twice.
DECISIONS = 400


def find(mutant: Mutant) -> str:
    """Live through histories until one goes wrong; how."""
    with mutant():
        for seed in range(2):
            for plan in PLANS:
                try:
                    LongHistory(seed, plan).run(DECISIONS)
                except Exception as error:  # noqa: BLE001 - a crash is found as well
                    return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_fault_is_found(mutant: Mutant) -> None:
    assert find(mutant)
