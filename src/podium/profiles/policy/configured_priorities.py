"""The priorities of a configuration, with their weights.

Every entry of a Policy registers its name anew, with its weight; the last one counts. An argument
makes a priority under any name, that of a built-in one included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.framework.profile import Weighted
from podium.engine.rules.priorities import AUTOSCALER_PROVIDER, DEFAULT_PROVIDER
from podium.errors import ConfigError
from podium.generations.predicates import PRIORITIES, PRIORITY_ARGUMENTS
from podium.profiles.policy.document import MAX_INT, MAX_SCORE
from podium.profiles.policy.rule_names import rule_factory, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.engine.framework.declaration import FactoryArgs, PriorityDeclaration
    from podium.engine.framework.rule import ScoreRule
    from podium.profiles.policy.document import PriorityPolicy
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


@dataclass(slots=True)
class ConfiguredPriorities:
    """The priorities of one configuration: factory and weight by name."""

    chosen: dict[str, tuple[Maker, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def make(self, args: FactoryArgs) -> tuple[Weighted, ...]:
        """Make the priorities, sorted by name; shapes and the sum of weights are checked here."""
        made = tuple(
            Weighted(maker(args), weight) for _, (maker, weight) in sorted(self.chosen.items())
        )
        if sum(each.weight for each in made) * MAX_SCORE > MAX_INT:
            raise ConfigError(
                "Total priority of priority functions has overflown", hint="use smaller weights"
            )
        return made


def provider_priorities(
    provider: str, gates: PolicyGates, own: Mapping[str, tuple[Maker, int]] | None = None
) -> ConfiguredPriorities:
    """Those of a provider and all users' rules; a Policy that lists none has these, too."""
    entries = provided(provider, gates)
    chosen = {name: (entry.make, entry.weight) for name, entry in entries.items()}
    return ConfiguredPriorities({**chosen, **(own or {})})


def policy_priorities(
    entries: list[PriorityPolicy],
    gates: PolicyGates,
    own: Mapping[str, tuple[Maker, int]] | None = None,
) -> ConfiguredPriorities:
    """Those that a Policy lists."""
    found = ConfiguredPriorities()
    known = {name: entry.make for name, entry in registered(gates).items()}
    known |= {name: maker for name, (maker, _) in (own or {}).items()}
    for entry in entries:
        known[entry.name] = _maker(entry, known)
        _add_notes(entry, found, gates)
        found.chosen[entry.name] = (known[entry.name], entry.weight)
    for name in sorted(set(own or {}) - set(found.chosen)):
        found.notes.append(f"priority {name} was loaded, but the Policy does not list it")
    return found


def _add_notes(entry: PriorityPolicy, found: ConfiguredPriorities, gates: PolicyGates) -> None:
    name = entry.name
    if entry.argument is not None and name in registered(gates):
        built_in = "RequestedToCapacityRatioPriority"
        if name != built_in or entry.argument.requested_to_capacity_ratio_arguments is None:
            found.notes.append(f"the argument of {name} replaces what {name} usually does")
    if name in found.chosen:
        found.notes.append(f"priority {name} is listed more than once; the last one counts")


def _maker(entry: PriorityPolicy, known: dict[str, Maker]) -> Maker:
    if entry.argument is not None:
        return rule_factory(PRIORITY_ARGUMENTS, entry.argument, "Priority", entry.name)
    if entry.name not in known:
        condition = next((each.exists for each in PRIORITIES if each.name == entry.name), "")
        raise unknown("Priority", entry.name, known, condition=condition)
    return known[entry.name]
