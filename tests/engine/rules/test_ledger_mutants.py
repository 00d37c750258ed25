"""Random histories find a fault in what rules keep between decisions: a check of the checks.

The faults in kept answers of pod classes are in `engine.fast.mutants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from long_histories import DifferenceError
from podium.engine.rules.devices.device_ledger import DeviceLedger
from podium.engine.rules.volumes.volume_ledger import VolumeLedger
from podium.engine.state.journal import Follower
from podium.engine.state.view import KeptInView, View
from podium.profiles.user_rules.nodes import _PerNode
from rich_histories import RichHistory, rich_plan
from wild_histories import WildHistory, wild_plan

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


class _Deaf(Follower[Any]):
    """Hears nothing."""

    def news(self) -> list[Any]:
        return []


def _deaf_to(followed: str) -> AbstractContextManager[object]:
    """A ledger of devices with one follower that hears nothing."""
    start_over = DeviceLedger._start_over

    def deafly(self: Any) -> None:
        start_over(self)
        setattr(self, followed, _Deaf(getattr(self, followed)._log))

    return patch.object(DeviceLedger, "_start_over", deafly)


@contextmanager
def slices_stay() -> Iterator[None]:
    """The devices that drivers report are read once."""
    with _deaf_to("_slice_pools"):
        yield


@contextmanager
def devices_in_use_stay() -> Iterator[None]:
    """Devices that claims take or give back do not change what is kept for a row."""
    with _deaf_to("_claim_pools"):
        yield


@contextmanager
def values_of_views_stay() -> Iterator[None]:
    """What is kept with a view is found once: nodes of CSI drivers, what users' rules prepare."""
    of = KeptInView.of

    def once(self: Any, view: View, key: object, find: Any, state: object = None) -> Any:
        return of(self, view, key, find)

    with patch.object(KeptInView, "of", once):
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


#: Those that `RichHistory` does not find.
OF_WILD_HISTORIES: tuple[Mutant, ...] = (values_of_views_stay,)
#: Each with a seed that finds it, which is tried first.
MUTANTS: dict[Mutant, int] = {
    attached_volumes_stay: 23,
    devices_stay: 1,
    numbers_of_users_stay: 24,
    slices_stay: 20,
    devices_in_use_stay: 11,
    values_of_views_stay: 14,
}


def name_of(mutant: Mutant) -> str:
    return mutant.__name__.replace("_", " ")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_fault_is_found(mutant: Mutant) -> None:
    wild = mutant in OF_WILD_HISTORIES
    with mutant():
        for seed in (MUTANTS[mutant], *range(SEEDS)):
            dice = Random(seed)  # noqa: S311  a seed
            history = (
                WildHistory(seed, wild_plan(dice)) if wild else RichHistory(seed, rich_plan(dice))
            )
            try:
                history.run(DECISIONS)
            except DifferenceError:
                return
    pytest.fail(f"no seed below {SEEDS} finds it")
