"""A profile of v1.13 as plain data, for output in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.generations.v1_13 import PREDICATE_ARGUMENTS, PRIORITIES, PRIORITY_ARGUMENTS
from podium.engine.rules.pod_affinity.v1_13 import InterPodAffinityPriority
from podium.engine.user_rules.adapter import UserPriority
from podium.profiles.extenders import describe_extender
from podium.profiles.policy import predicate_registry, priority_registry
from podium.profiles.policy.arguments import shown_argument
from podium.profiles.policy.feature_gates import GATES, FeatureGates
from podium.profiles.policy.predicate_registry import BY_NAME, POSITIONS
from podium.profiles.policy.priority_registry import PROVIDERS

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import FilterRule
    from podium.profiles.policy.build import Options

Data = dict[str, Any]

_PRIORITIES = {entry.name: entry for entry in PRIORITIES}


def describe(profile: Profile, options: Options) -> Data:
    """The rules that run, in order; configured predicates that do not; options and notes."""
    gates = FeatureGates(options.feature_gates)
    return {
        "profile": profile.name,
        "predicates": [_predicate(rule, gates) for rule in profile.predicates],
        "idlePredicates": _idle(profile),
        "priorities": [_priority(weighted) for weighted in profile.priorities],
        "extenders": [describe_extender(extender) for extender in profile.extenders],
        "options": _options(profile, gates),
        "notes": list(profile.notes),
    }


def catalogue(options: Options) -> Data:
    """Every name that a Policy can use under these options."""
    gates = FeatureGates(options.feature_gates)
    return {
        "providers": [{"name": n, "description": text} for n, text in PROVIDERS.items()],
        "predicates": [
            {"name": name, "description": entry.description, "position": POSITIONS.get(name)}
            for name, entry in predicate_registry.registered(gates).items()
        ],
        "predicateArguments": [each.field for each in PREDICATE_ARGUMENTS],
        "priorities": [
            {"name": name, "description": entry.description, "weight": entry.weight}
            for name, entry in priority_registry.registered(gates).items()
        ],
        "priorityArguments": [each.field for each in PRIORITY_ARGUMENTS],
        "featureGates": [
            {"name": gate.name, "description": gate.description, "on": gates[gate.name]}
            for gate in GATES
        ],
    }


def _predicate(rule: FilterRule, gates: FeatureGates) -> Data:
    entry = BY_NAME.get(rule.name)
    return {
        "name": rule.name,
        "position": POSITIONS.get(rule.name),
        "description": entry.description if entry is not None else _own_words(rule),
        "mandatory": rule.name in predicate_registry.mandatory(gates),
        # An argument makes its rule under any name, that of a built-in predicate included.
        **shown_argument(PREDICATE_ARGUMENTS, rule),
    }


def _idle(profile: Profile) -> list[Data]:
    """The configured predicates that never run, and why."""
    running = {rule.name for rule in profile.predicates}
    return [
        {"name": name, "why": _why_idle(name)}
        for name in profile.configured_predicates
        if name not in running
    ]


def _why_idle(name: str) -> str:
    if name not in POSITIONS:
        return "its name is not in the order of predicates"
    return f"the feature gate {BY_NAME[name].effective} is off"


def _priority(weighted: Weighted) -> Data:
    rule, entry = weighted.priority, _PRIORITIES.get(weighted.name)
    found: Data = {"name": weighted.name, "weight": weighted.weight}
    made = shown_argument(PRIORITY_ARGUMENTS, rule)
    if made:
        found |= made
    elif entry is not None:
        found["description"] = entry.description
    elif isinstance(rule, UserPriority):
        found["description"] = _own_words(rule)
    return found


def _own_words(rule: object) -> str:
    """The description that the author of a user's rule gave it."""
    return getattr(rule, "description", "") or "a rule of yours"


def _options(profile: Profile, gates: FeatureGates) -> Data:
    rules = [weighted.priority for weighted in profile.priorities]
    weights = [rule.hard_weight for rule in rules if isinstance(rule, InterPodAffinityPriority)]
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        # Only InterPodAffinityPriority reads it.
        "hardPodAffinitySymmetricWeight": weights[0] if weights else None,
        "alwaysCheckAllPredicates": profile.always_check_all,
        "preemption": profile.preemption,
        "ties": profile.ties,
        "featureGates": gates.as_dict(),
    }
