"""The predicates of a configuration: which are configured, which run, and in what order.

A predicate with an argument is registered under its name, in place of a built-in one too; without
an argument its name stands for what is registered at that point. The last registration counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.generations.predicates import PREDICATE_ARGUMENTS, PREDICATES, PREDICATES_THAT_NEVER_RUN
from podium.profiles.policy.rule_names import rule_factory, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.engine.framework.declaration import FactoryArgs, PredicateDeclaration
    from podium.engine.framework.rule import FilterRule
    from podium.profiles.policy.document import PredicatePolicy
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


@dataclass(slots=True)
class ConfiguredPredicates:
    """The predicates of one configuration, by name."""

    gates: PolicyGates
    names: set[str] = field(default_factory=set)
    #: Factories of predicates that arguments make.
    custom: dict[str, Maker] = field(default_factory=dict)
    #: Positions that the Policy gives with `order`.
    orders: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: Factories of users' rules, in the order in which they run after all others.
    own: Mapping[str, Maker] = field(default_factory=dict)
    #: Whether names from documentation that kube-scheduler refuses are read.
    accepts_other_names: bool = True

    def configured(self) -> tuple[str, ...]:
        """All names, mandatory ones included, sorted."""
        return tuple(sorted(self.names | set(mandatory(self.gates))))

    def running(self) -> list[str]:
        """The names that run, in order."""
        idle = self.idle()
        positions = {**{name: len(POSITIONS) + 1 for name in self.own}, **POSITIONS}
        return sorted(
            (name for name in self.configured() if name in positions and name not in idle),
            key=lambda name: (
                self.orders.get(name, positions[name]),
                positions[name],
                self._rank(name),
            ),
        )

    def _rank(self, name: str) -> int:
        return list(self.own).index(name) if name in self.own else -1

    def idle(self) -> list[str]:
        """The names that would run, but reject no node under the feature gates."""
        others = {*self.custom, *self.own}
        built_in = (name for name in self.configured() if name not in others)
        return [name for name in built_in if not self.gates.hold(BY_NAME[name].effective)]

    def make(self, args: FactoryArgs) -> tuple[FilterRule, ...]:
        """Make the predicates that run, in order."""
        return tuple(self._maker(name)(args) for name in self.running())

    def _maker(self, name: str) -> Maker:
        maker = self.own.get(name) or self.custom.get(name) or BY_NAME[name].make
        assert maker is not None, name  # only what is registered is ever chosen
        return maker


def provider_predicates(
    gates: PolicyGates, own: Mapping[str, Maker] | None = None
) -> ConfiguredPredicates:
    """Those of the providers and all users' rules; a Policy that lists none has these, too."""
    return ConfiguredPredicates(gates, {*provided(gates), *(own or {})}, own=own or {})


def policy_predicates(
    entries: list[PredicatePolicy],
    gates: PolicyGates,
    own: Mapping[str, Maker] | None = None,
    *,
    accepts_other_names: bool = True,
) -> ConfiguredPredicates:
    """Those that a Policy lists."""
    found = ConfiguredPredicates(gates, own=own or {}, accepts_other_names=accepts_other_names)
    for entry in entries:
        for name in _register(entry, found):
            if name in found.names:
                found.notes.append(f"predicate {name} is listed more than once; it runs once")
            found.names.add(name)
            if entry.order is not None:
                found.orders[name] = entry.order
    _add_notes(found)
    return found


def with_registered_names(policy: Mapping[str, Any], gates: PolicyGates) -> Mapping[str, Any]:
    """The Policy with every predicate under a name that kube-scheduler knows as well."""
    entries, known = policy.get("predicates"), registered(gates)
    if not isinstance(entries, list):
        return policy
    found: list[dict[str, Any]] = []
    for entry in entries:
        name = entry["name"]
        is_other = name in ALIASES and name not in known and entry.get("argument") is None
        names = [each for each in ALIASES[name] if each in known] if is_other else [name]
        found += [{**entry, "name": each} for each in names]
    return {**policy, "predicates": found}


def _register(entry: PredicatePolicy, found: ConfiguredPredicates) -> tuple[str, ...]:
    """Register what the entry makes; returns the names under which it is configured."""
    name, known = entry.name, registered(found.gates)
    if name in found.own:
        return (name,)
    if entry.argument is not None:
        if name in ALIASES and found.accepts_other_names and _needs_argument(name):
            alias, (name, *_) = name, ALIASES[name]
            found.notes.append(
                f"{alias} is read as {name}; kube-scheduler accepts that name and never asks it"
            )
        found.custom[name] = rule_factory(PREDICATE_ARGUMENTS, entry.argument, "Predicate", name)
        if name in known:
            found.notes.append(f"the argument of {name} replaces what {name} usually does")
        return (name,)
    if name in known or name in found.custom:
        return (name,)
    if name in ALIASES and found.accepts_other_names and not _needs_argument(name):
        return _existing(_read_as(name, found), known, found)
    declared = BY_NAME.get(ALIASES.get(name, (name,))[0])
    raise unknown(
        "Predicate",
        name,
        {*known, *found.own},
        condition=declared.exists if declared else "",
        argument=declared.argument.field if declared and declared.argument else "",
    )


def _read_as(alias: str, found: ConfiguredPredicates) -> tuple[str, ...]:
    """The predicates that another name stands for; a note says so."""
    names = ALIASES[alias]
    read_as = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    found.notes.append(f"{alias} is read as {read_as}; kube-scheduler refuses that name")
    return names


def _needs_argument(alias: str) -> bool:
    return all(BY_NAME[name].argument is not None for name in ALIASES[alias])


def _existing(
    names: tuple[str, ...], known: Mapping[str, object], found: ConfiguredPredicates
) -> tuple[str, ...]:
    """Those of the predicates that exist under the feature gates; a note names the others."""
    for name in names:
        if name not in known:
            found.notes.append(
                f"{name} exists with the feature gate {BY_NAME[name].exists} only; with "
                "TaintNodesByCondition, taints do its work"
            )
    return tuple(name for name in names if name in known)


def _add_notes(found: ConfiguredPredicates) -> None:
    for name in sorted(found.names - set(POSITIONS) - set(found.own)):
        if name in found.custom:
            found.notes.append(
                f"predicate {name} never runs, as in kube-scheduler, which asks only for the names "
                "it knows; call it CheckServiceAffinity or CheckNodeLabelPresence"
            )
        else:
            found.notes.append(f"{name} has no effect; PodFitsHostPorts checks host ports")
    for name in sorted(set(found.own) - found.names):
        found.notes.append(f"predicate {name} was loaded, but the Policy does not list it")
    if found.orders:
        found.notes.append("`order` is Podium's own; kube-scheduler has a fixed order")
    if not found.names & {"GeneralPredicates", "PodFitsResources"}:
        found.notes.append(
            "neither GeneralPredicates nor PodFitsResources is configured: "
            "nothing keeps pods off full nodes"
        )
