"""Predicates by name: which can be used, which every configuration gets, which providers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.generations.predicates import PREDICATES, PREDICATES_THAT_NEVER_RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.declaration import FactoryArgs, PredicateDeclaration
    from podium.engine.framework.rule import FilterRule
    from podium.profiles.policy.feature_gates import PolicyGates

    Maker = Callable[[FactoryArgs], FilterRule]


def constant(entry: PredicateDeclaration) -> str:
    """The constant of kube-scheduler's source that stands for the name, such as HostNamePred."""
    return f"{entry.name.removesuffix('icates').removesuffix('Pred')}Pred"


_IN_DOCUMENTS = {
    alias: tuple(other.name for other in PREDICATES if alias in other.aliases)
    for entry in PREDICATES
    for alias in entry.aliases
}
#: Names that kube-scheduler does not know, and the predicates that they are read as: those that
#: documents use, and the constants of its source.
ALIASES = _IN_DOCUMENTS | {
    constant(entry): _IN_DOCUMENTS.get(entry.name, (entry.name,))
    for entry in PREDICATES
    if constant(entry) != entry.name
}
POSITIONS = {entry.name: position for position, entry in enumerate(PREDICATES, 1)}
BY_NAME = {entry.name: entry for entry in (*PREDICATES, *PREDICATES_THAT_NEVER_RUN)}


def registered(gates: PolicyGates) -> dict[str, PredicateDeclaration]:
    """The predicates that can be used without an argument, by name."""
    return {
        entry.name: entry
        for entry in BY_NAME.values()
        if entry.make is not None and gates.hold(entry.exists)
    }


def mandatory(gates: PolicyGates) -> tuple[str, ...]:
    """The names that every configuration gets."""
    return tuple(
        entry.name
        for entry in PREDICATES
        if entry.mandatory is not None and gates.hold(entry.mandatory)
    )


def provided(gates: PolicyGates) -> tuple[str, ...]:
    """The names that both providers have."""
    return tuple(entry.name for entry in registered(gates).values() if entry.provided)
