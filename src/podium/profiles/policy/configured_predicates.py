"""From the predicates of a Policy to those that run, in order.

Naming a predicate with an argument registers it under that name, over a built-in one too; naming
it without takes what is registered by then. The last registration counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.rules.nodes.v1_13 import CheckNodeLabelPresence
from podium.engine.rules.service_affinity.v1_13 import CheckServiceAffinity
from podium.profiles.policy.document import LabelsPresence
from podium.profiles.policy.predicate_registry import (
    ALIASES,
    BY_NAME,
    POSITIONS,
    mandatory,
    provided,
    registered,
)
from podium.profiles.policy.rule_names import check_name, unknown, wrong_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.rule import Predicate
    from podium.profiles.policy.document import PredicateArgument, PredicatePolicy
    from podium.profiles.policy.factory_args import FactoryArgs
    from podium.profiles.policy.feature_gates import FeatureGates
    from podium.profiles.policy.predicate_registry import Maker

ARGUMENTS = ("serviceAffinity", "labelsPresence")


@dataclass(slots=True)
class ConfiguredPredicates:
    """What is configured, and how to make it."""

    gates: FeatureGates
    names: set[str] = field(default_factory=set)
    custom: dict[str, Maker] = field(default_factory=dict)
    orders: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: The user's own rules, in the order they run after all others.
    own: Mapping[str, Maker] = field(default_factory=dict)

    def configured(self) -> tuple[str, ...]:
        """All names, mandatory ones included, sorted."""
        return tuple(sorted(self.names | set(mandatory(self.gates))))

    def running(self) -> list[str]:
        """The names that are asked, in order; what does nothing under the gates is left out."""
        idle = self.idle()
        places = {**{name: len(POSITIONS) + 1 for name in self.own}, **POSITIONS}
        return sorted(
            (name for name in self.configured() if name in places and name not in idle),
            key=lambda name: (self.orders.get(name, places[name]), places[name], self._rank(name)),
        )

    def _rank(self, name: str) -> int:
        return list(self.own).index(name) if name in self.own else -1

    def idle(self) -> list[str]:
        """The names that would be asked, but pass every node under the gates."""
        others = {*self.custom, *self.own}
        built_in = (name for name in self.configured() if name not in others)
        return [name for name in built_in if not self.gates.hold(BY_NAME[name].effective)]

    def make(self, args: FactoryArgs) -> tuple[Predicate, ...]:
        """The predicates that run, in order."""
        return tuple(self._maker(name)(args) for name in self.running())

    def _maker(self, name: str) -> Maker:
        maker = self.own.get(name) or self.custom.get(name) or BY_NAME[name].make
        assert maker is not None, name  # only what is registered is ever chosen
        return maker


def provider_predicates(
    gates: FeatureGates, own: Mapping[str, Maker] | None = None
) -> ConfiguredPredicates:
    """Those of the providers and all of the user's; also of a Policy that does not list any."""
    return ConfiguredPredicates(gates, {*provided(gates), *(own or {})}, own=own or {})


def policy_predicates(
    entries: list[PredicatePolicy], gates: FeatureGates, own: Mapping[str, Maker] | None = None
) -> ConfiguredPredicates:
    """Those that a Policy lists."""
    choice = ConfiguredPredicates(gates, own=own or {})
    for entry in entries:
        name = _register(entry, choice)
        if name in choice.names:
            choice.notes.append(f"predicate {name} is listed more than once; it runs once")
        choice.names.add(name)
        if entry.order is not None:
            choice.orders[name] = entry.order
    _note_names(choice)
    return choice


def _register(entry: PredicatePolicy, choice: ConfiguredPredicates) -> str:
    """Note how the predicate is made, and say under which name it counts."""
    name, known = entry.name, registered(choice.gates)
    if name in choice.own:
        return name
    if entry.argument is not None:
        choice.custom[name] = _custom(name, entry.argument)
        if name in known:
            choice.notes.append(f"the argument of {name} replaces what {name} usually does")
        return name
    if name in known or name in choice.custom:
        return name
    if name in ALIASES:
        choice.notes.append(f"{name} is read as {ALIASES[name]}; kube-scheduler refuses that name")
        return ALIASES[name]
    raise unknown("Predicate", name, {*known, *choice.own})


def _custom(name: str, argument: PredicateArgument) -> Maker:
    affinity, presence = argument.service_affinity, argument.labels_presence
    count = sum(each is not None for each in (affinity, presence))
    if count != 1:
        raise wrong_arguments("Predicate", name, count, ARGUMENTS)
    check_name(name)
    if affinity is not None:
        return lambda _: CheckServiceAffinity(affinity.labels, name)
    given = presence or LabelsPresence()
    return lambda _: CheckNodeLabelPresence(given.labels, presence=given.presence, name=name)


def _note_names(choice: ConfiguredPredicates) -> None:
    for name in sorted(choice.names - set(POSITIONS) - set(choice.own)):
        if name in choice.custom:
            choice.notes.append(
                f"predicate {name} never runs, as in kube-scheduler, which asks only for the names "
                "it knows; call it CheckServiceAffinity or CheckNodeLabelPresence"
            )
        else:
            choice.notes.append(f"{name} has no effect; PodFitsHostPorts checks host ports")
    for name in sorted(set(choice.own) - choice.names):
        choice.notes.append(f"predicate {name} was loaded, but the Policy does not list it")
    if choice.orders:
        choice.notes.append("`order` is Podium's own; kube-scheduler has a fixed order")
    for name in mandatory(choice.gates):
        if name not in choice.names:
            choice.notes.append(f"{name} is mandatory and was added")
    if not choice.names & {"GeneralPredicates", "PodFitsResources"}:
        choice.notes.append(
            "neither GeneralPredicates nor PodFitsResources is configured: "
            "nothing keeps pods off full nodes"
        )
