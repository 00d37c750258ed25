"""Priorities by name: which can be used, and which the algorithm providers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.generations.v1_13 import PRIORITIES
from podium.engine.rules.v1_13 import AUTOSCALER_PROVIDER, DEFAULT_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.declaration import FactoryArgs, PriorityDeclaration
    from podium.engine.framework.rule import ScoreRule
    from podium.profiles.policy.feature_gates import FeatureGates

    Maker = Callable[[FactoryArgs], ScoreRule]

PROVIDERS = {
    DEFAULT_PROVIDER: "spreads pods over nodes with room",
    AUTOSCALER_PROVIDER: "fills nodes up, so that a cluster autoscaler can remove empty ones",
}


def registered(gates: FeatureGates) -> dict[str, PriorityDeclaration]:
    """The priorities that can be used without an argument, by name."""
    return {entry.name: entry for entry in PRIORITIES if gates.hold(entry.exists)}


def provided(provider: str, gates: FeatureGates) -> dict[str, PriorityDeclaration]:
    """The priorities of a provider, by name."""
    return {name: e for name, e in registered(gates).items() if provider in e.providers}
