"""Random histories find a fault in what rules keep between decisions: a check of the checks.

The faults in kept answers of pod classes are in `engine.fast.mutants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from long_histories import DifferenceError
from podium.engine.rules.devices.device_ledger import DeviceLedger
from podium.engine.rules.volumes.volume_ledger import VolumeLedger
from podium.engine.state.view import View
from podium.profiles.user_rules.nodes import _PerNode
from rich_histories import RichHistory, rich_plan

Mutant = Callable[[], AbstractContextManager[None]]
#: Within so many seeds each fault is found, by histories of so many decisions.
SEEDS, DECISIONS = 200, 250


@contextmanager
def attached_volumes_stay() -> Iterator[None]:
    """The volumes attached to nodes are read once."""
    refresh = VolumeLedger.refresh

    def once(self: VolumeLedger) -> None:
        if not self._versions:
            refresh(self)

    with patch.object(VolumeLedger, "refresh", once):
        yield


@contextmanager
def devices_stay() -> Iterator[None]:
    """What the devices of a node can be allocated to is found once."""
    with patch.object(DeviceLedger, "refresh", lambda _: None):
        yield


@contextmanager
def numbers_of_users_stay() -> Iterator[None]:
    """What the function of a user returned for a node is kept although its pods changed."""
    at = _PerNode.at

    def staying(self: _PerNode, view: View, rows: np.ndarray) -> np.ndarray:
        if self._follower is not None and self._follower.news() is None:
            self._follower = None
        return at(self, view, rows)

    with patch.object(_PerNode, "at", staying):
        yield


#: Each with a seed that finds it, which is tried first.
MUTANTS: dict[Mutant, int] = {
    attached_volumes_stay: 23,
    devices_stay: 1,
    numbers_of_users_stay: 24,
}


def name_of(mutant: Mutant) -> str:
    return mutant.__name__.replace("_", " ")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_fault_is_found(mutant: Mutant) -> None:
    with mutant():
        for seed in (MUTANTS[mutant], *range(SEEDS)):
            try:
                RichHistory(seed, rich_plan(Random(seed))).run(DECISIONS)  # noqa: S311  a seed
            except DifferenceError:
                return
    pytest.fail(f"no seed below {SEEDS} finds it")
