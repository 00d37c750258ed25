"""Priorities by name: which can be used, and which the algorithm providers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.priorities import AUTOSCALER_PROVIDER, DEFAULT_PROVIDER
from podium.generations.predicates import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.declaration import FactoryArgs, PriorityDeclaration
    from podium.engine.framework.rule import ScoreRule
    from podium.profiles.policy.feature_gates import PolicyGates

    Maker = Callable[[FactoryArgs], ScoreRule]

PROVIDERS = {
    DEFAULT_PROVIDER: "spreads pods over nodes with room",
    AUTOSCALER_PROVIDER: "fills nodes up, so that a cluster autoscaler can remove empty ones",
}


def registered(gates: PolicyGates) -> dict[str, PriorityDeclaration]:
    """The priorities that can be used without an argument, by name."""
    return {entry.name: entry for entry in PRIORITIES if gates.hold(entry.exists)}


def provided(provider: str, gates: PolicyGates) -> dict[str, PriorityDeclaration]:
    """The priorities of a provider, by name."""
    return {name: e for name, e in registered(gates).items() if provider in e.providers}
