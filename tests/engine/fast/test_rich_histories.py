"""A decision with kept answers is the plain decision, also while all other objects change."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest

from long_histories import LongHistory, random_plan
from rich_histories import RichHistory, rich_plan
from wild_histories import WildHistory, wild_plan

#: `make soak` compares ten million decisions, in so many parts.
PARTS = 40
DECISIONS_PER_PART = 250_000
#: How many decisions of one history are compared.
LENGTHS = (200, 1000, 10_000)


@pytest.mark.parametrize("seed", range(12))
def test_devices_volumes_and_nominations(seed: int) -> None:
    RichHistory(seed, rich_plan(Random(seed))).run(150)  # noqa: S311  a seed


@pytest.mark.parametrize("seed", range(12))
def test_states_that_few_clusters_reach(seed: int) -> None:
    WildHistory(seed, wild_plan(Random(seed))).run(150)  # noqa: S311  a seed


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_million_decisions_are_the_plain_ones(
    part: int, record_property: pytest.FixtureRequest
) -> None:
    compared = 0
    for seed in count(part * 1_000_000):
        dice = Random(seed)  # noqa: S311  a seed
        history: LongHistory
        kind = dice.random()
        if kind < 0.3:
            history = WildHistory(seed, wild_plan(dice))
        elif kind < 0.6:
            history = RichHistory(seed, rich_plan(dice))
        else:
            history = LongHistory(seed, random_plan(dice))
        history.run(dice.choice(LENGTHS))
        compared += history.decisions
        if compared >= DECISIONS_PER_PART:
            break
    record_property("decisions", compared)  # type: ignore[operator]
