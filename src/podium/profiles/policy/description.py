"""A profile of v1.13 as plain data, for output in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.declaration import FactoryArgs
from podium.engine.rules.pod_affinity import InterPodAffinityPriority
from podium.generations.predicates import PREDICATE_ARGUMENTS, PRIORITIES, PRIORITY_ARGUMENTS
from podium.profiles.extenders import describe_extender
from podium.profiles.policy import configured_predicates, configured_priorities
from podium.profiles.policy.configured_predicates import ALIASES, BY_NAME, POSITIONS
from podium.profiles.policy.configured_priorities import PROVIDERS
from podium.profiles.policy.feature_gates import GATES, PolicyGates
from podium.profiles.policy.rule_names import shown_argument
from podium.profiles.policy.shipped import SHIPPED
from podium.profiles.user_rules.adapter import UserPredicate, UserPriority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.declaration import PredicateDeclaration, PriorityDeclaration
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import FilterRule, Rule
    from podium.profiles.policy.build import Options

Data = dict[str, Any]

_PRIORITIES = {entry.name: entry for entry in PRIORITIES}


def describe(profile: Profile, options: Options, policy: Mapping[str, Any] | None = None) -> Data:
    """The rules that run, in order; configured predicates that do not; options and notes.

    *policy* is the document that the profile was made from: what it lists, and in what `order`.
    """
    gates = PolicyGates(options.feature_gates)
    listed = None if policy is None else _listed(policy)
    return {
        "profile": profile.name,
        "predicates": [
            {"runs": number, **_predicate(rule, gates, listed)}
            for number, rule in enumerate(profile.predicates, 1)
        ],
        "idlePredicates": _idle(profile),
        "priorities": [_priority(weighted) for weighted in profile.priorities],
        "extenders": [describe_extender(extender) for extender in profile.extenders],
        "options": _options(profile, gates),
        "notes": list(profile.notes),
    }


def _listed(policy: Mapping[str, Any]) -> dict[str, int | None] | None:
    """The predicates that a Policy lists, each with its `order`; None if it lists none."""
    entries = policy.get("predicates")
    if not isinstance(entries, list):
        return None
    found: dict[str, int | None] = {}
    for entry in entries:
        for name in ALIASES.get(entry["name"], (entry["name"],)):
            found[name] = entry.get("order")
    return found


def catalogue(options: Options) -> Data:
    """Every name that a Policy can use under these options."""
    gates = PolicyGates(options.feature_gates)
    return {
        "providers": [{"name": n, "description": text} for n, text in PROVIDERS.items()],
        "predicates": [
            {"name": name, "description": entry.description, "position": POSITIONS.get(name)}
            for name, entry in configured_predicates.registered(gates).items()
        ],
        "allPredicates": [_listed_predicate(entry, gates) for entry in BY_NAME.values()],
        "allPriorities": [_listed_priority(entry, gates) for entry in PRIORITIES],
        "shippedPolicies": [
            {"name": each.name, "description": each.description} for each in SHIPPED.values()
        ],
        "predicateArguments": [each.field for each in PREDICATE_ARGUMENTS],
        "priorities": [
            {"name": name, "description": entry.description, "weight": entry.weight}
            for name, entry in configured_priorities.registered(gates).items()
        ],
        "priorityArguments": [each.field for each in PRIORITY_ARGUMENTS],
        "featureGates": [
            {"name": gate.name, "description": gate.description, "on": gates[gate.name]}
            for gate in GATES
        ],
    }


def _listed_predicate(entry: PredicateDeclaration, gates: PolicyGates) -> Data:
    """Everything that is declared of a predicate."""
    return {
        "name": entry.name,
        "position": POSITIONS.get(entry.name),
        "description": entry.description,
        "argument": entry.argument.field if entry.argument is not None else None,
        "aliases": list(entry.aliases),
        "constant": configured_predicates.constant(entry),
        "featureGate": entry.exists or None,
        "effectiveWith": entry.effective or None,
        "exists": gates.hold(entry.exists) and (entry.make or entry.argument) is not None,
        "mandatory": entry.mandatory is not None and gates.hold(entry.mandatory),
        "providers": list(PROVIDERS) if entry.provided and gates.hold(entry.exists) else [],
    }


def _listed_priority(entry: PriorityDeclaration, gates: PolicyGates) -> Data:
    """Everything that is declared of a priority."""
    rule = entry.make(FactoryArgs(gates))
    return {
        "name": entry.name,
        "kind": entry.kind or ("map and reduce" if rule.normalizes else "map"),
        "weight": entry.weight,
        "description": entry.description,
        "formula": rule.formula,
        "featureGate": entry.exists or None,
        "exists": gates.hold(entry.exists),
        "providers": list(entry.providers),
    }


def _predicate(
    rule: FilterRule, gates: PolicyGates, listed: Mapping[str, int | None] | None
) -> Data:
    entry = BY_NAME.get(rule.name)
    return {
        "name": rule.name,
        "position": POSITIONS.get(rule.name),
        **({} if listed is None else {"order": listed.get(rule.name)}),
        "description": entry.description if entry is not None else _own_words(rule),
        "mandatory": rule.name in configured_predicates.mandatory(gates),
        **({"added": True} if listed is not None and rule.name not in listed else {}),
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


def _own_words(rule: Rule) -> str:
    """The description that the author of a user's rule gave it."""
    written = rule.description if isinstance(rule, UserPredicate | UserPriority) else ""
    return written or "a rule of yours"


def _options(profile: Profile, gates: PolicyGates) -> Data:
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
