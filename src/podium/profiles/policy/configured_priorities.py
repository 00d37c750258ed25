"""From the priorities of a Policy to those that score, with their weights.

Every entry registers its name anew, with its weight; the last one counts. An argument makes a
priority under whatever name the user likes, a built-in one included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.framework.profile import Weighted
from podium.engine.rules.nodes.v1_13 import NodeLabelPriority
from podium.engine.rules.resources.v1_13 import RequestedToCapacityRatioPriority
from podium.engine.rules.service_affinity.v1_13 import ServiceAntiAffinity
from podium.errors import ConfigError
from podium.profiles.policy.priority_registry import provided, registered
from podium.profiles.policy.rule_names import check_name, unknown, wrong_arguments
from podium.profiles.policy.shapes import shape
from podium.profiles.policy.validation import MAX_INT, MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.profiles.policy.document import PriorityArgument, PriorityPolicy
    from podium.profiles.policy.factory_args import FactoryArgs
    from podium.profiles.policy.feature_gates import FeatureGates
    from podium.profiles.policy.priority_registry import Maker

ARGUMENTS = ("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments")


@dataclass(slots=True)
class ConfiguredPriorities:
    """What is configured: maker and weight by name."""

    chosen: dict[str, tuple[Maker, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def make(self, args: FactoryArgs) -> tuple[Weighted, ...]:
        """The priorities by name. Only now are shapes looked at, and the weights together."""
        made = tuple(
            Weighted(maker(args), weight) for _, (maker, weight) in sorted(self.chosen.items())
        )
        if sum(each.weight for each in made) * MAX_SCORE > MAX_INT:
            raise ConfigError(
                "Total priority of priority functions has overflown", hint="use smaller weights"
            )
        return made


def provider_priorities(
    provider: str, gates: FeatureGates, own: Mapping[str, tuple[Maker, int]] | None = None
) -> ConfiguredPriorities:
    """Those of a provider and all of the user's; also of a Policy that does not list any."""
    entries = provided(provider, gates)
    chosen = {name: (entry.make, entry.weight) for name, entry in entries.items()}
    return ConfiguredPriorities({**chosen, **(own or {})})


def policy_priorities(
    entries: list[PriorityPolicy],
    gates: FeatureGates,
    own: Mapping[str, tuple[Maker, int]] | None = None,
) -> ConfiguredPriorities:
    """Those that a Policy lists."""
    choice = ConfiguredPriorities()
    known = {name: entry.make for name, entry in registered(gates).items()}
    known |= {name: maker for name, (maker, _) in (own or {}).items()}
    for entry in entries:
        known[entry.name] = _maker(entry, known)
        _note(entry, choice, gates)
        choice.chosen[entry.name] = (known[entry.name], entry.weight)
    for name in sorted(set(own or {}) - set(choice.chosen)):
        choice.notes.append(f"priority {name} was loaded, but the Policy does not list it")
    if not entries:
        choice.notes.append("no priorities: every node that fits is as good as any other")
    return choice


def _note(entry: PriorityPolicy, choice: ConfiguredPriorities, gates: FeatureGates) -> None:
    name = entry.name
    if entry.argument is not None and name in registered(gates):
        built_in = "RequestedToCapacityRatioPriority"
        if name != built_in or entry.argument.requested_to_capacity_ratio_arguments is None:
            choice.notes.append(f"the argument of {name} replaces what {name} usually does")
    if name in choice.chosen:
        choice.notes.append(f"priority {name} is listed more than once; the last one counts")


def _maker(entry: PriorityPolicy, known: dict[str, Maker]) -> Maker:
    if entry.argument is not None:
        maker = _custom(entry.name, entry.argument)
        check_name(entry.name)
        return maker
    if entry.name not in known:
        raise unknown("Priority", entry.name, known)
    return known[entry.name]


def _custom(name: str, argument: PriorityArgument) -> Maker:
    spread, label = argument.service_anti_affinity, argument.label_preference
    ratio = argument.requested_to_capacity_ratio_arguments
    count = sum(each is not None for each in (spread, label, ratio))
    if count == 1:
        if spread is not None:
            return lambda _: ServiceAntiAffinity(spread.label, name)
        if label is not None:
            return lambda _: NodeLabelPriority(label.label, presence=label.presence, name=name)
        if ratio is not None:
            return lambda _: RequestedToCapacityRatioPriority(shape(ratio), name)
    raise wrong_arguments("Priority", name, count, ARGUMENTS)
