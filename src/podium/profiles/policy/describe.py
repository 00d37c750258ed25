"""What a profile will do, as plain data for people and programs to read.

Nothing is worded or laid out here beyond the one-line descriptions of rules.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from podium.engine.rules.nodes.v1_13 import CheckNodeLabelPresence, NodeLabelPriority
from podium.engine.rules.pod_affinity.v1_13 import InterPodAffinityPriority
from podium.engine.rules.resources.v1_13 import RequestedToCapacityRatioPriority
from podium.engine.rules.service_affinity.v1_13 import CheckServiceAffinity, ServiceAntiAffinity
from podium.engine.user_rules.adapter import UserPriority
from podium.profiles.policy import (
    configured_predicates,
    configured_priorities,
    predicate_registry,
    priority_registry,
)
from podium.profiles.policy.feature_gates import GATES, FeatureGates
from podium.profiles.policy.predicate_registry import BY_NAME, POSITIONS
from podium.profiles.policy.priority_registry import PRIORITIES, PROVIDERS

if TYPE_CHECKING:
    from podium.engine.framework.extenders import Extender
    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import Predicate
    from podium.profiles.policy.build import Options

Data = dict[str, Any]

_PRIORITIES = {entry.name: entry for entry in PRIORITIES}


def describe(profile: Profile, options: Options) -> Data:
    """What runs, in order, and how; what is configured and does not run; what to know."""
    gates = FeatureGates(options.feature_gates)
    return {
        "profile": profile.name,
        "predicates": [_predicate(rule, gates) for rule in profile.predicates],
        "idlePredicates": _idle(profile),
        "priorities": [_priority(weighted) for weighted in profile.priorities],
        "extenders": [_extender(extender) for extender in profile.extenders],
        "options": _options(profile, gates),
        "notes": list(profile.notes),
    }


def catalogue(options: Options) -> Data:
    """Every name that a configuration can use under these options."""
    gates = FeatureGates(options.feature_gates)
    return {
        "providers": [{"name": n, "description": text} for n, text in PROVIDERS.items()],
        "predicates": [
            {"name": name, "description": entry.description, "position": POSITIONS.get(name)}
            for name, entry in predicate_registry.registered(gates).items()
        ],
        "predicateArguments": list(configured_predicates.ARGUMENTS),
        "priorities": [
            {"name": name, "description": entry.description, "weight": entry.weight}
            for name, entry in priority_registry.registered(gates).items()
        ],
        "priorityArguments": list(configured_priorities.ARGUMENTS),
        "featureGates": [
            {"name": gate.name, "description": gate.description, "on": gates[gate.name]}
            for gate in GATES
        ],
    }


def _predicate(rule: Predicate, gates: FeatureGates) -> Data:
    entry = BY_NAME.get(rule.name)
    found: Data = {
        "name": rule.name,
        "position": POSITIONS.get(rule.name),
        "description": entry.description if entry is not None else _own_words(rule),
        "mandatory": rule.name in predicate_registry.mandatory(gates),
    }
    # An argument makes the same rule under any name of the order.
    if isinstance(rule, CheckServiceAffinity):
        found["description"] = BY_NAME["CheckServiceAffinity"].description
        found["argument"] = {"serviceAffinity": {"labels": list(rule.labels)}}
    elif isinstance(rule, CheckNodeLabelPresence):
        found["description"] = BY_NAME["CheckNodeLabelPresence"].description
        labels, presence = list(rule.labels), rule.presence
        found["argument"] = {"labelsPresence": {"labels": labels, "presence": presence}}
    return found


def _idle(profile: Profile) -> list[Data]:
    """The configured predicates that are never asked, and why."""
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
    if isinstance(rule, ServiceAntiAffinity):
        found["description"] = "pods of the service spread over the values of a label"
        found["argument"] = {"serviceAntiAffinity": {"label": rule.label}}
    elif isinstance(rule, NodeLabelPriority):
        found["description"] = "the node has a label, or lacks it"
        found["argument"] = {"labelPreference": {"label": rule.label, "presence": rule.presence}}
    elif isinstance(rule, RequestedToCapacityRatioPriority):
        found["description"] = "utilization scored by a line through these points"
        points = [{"utilization": x, "score": y} for x, y in rule.shape]
        found["argument"] = {"requestedToCapacityRatioArguments": {"shape": points}}
    elif entry is not None:
        found["description"] = entry.description
    elif isinstance(rule, UserPriority):
        found["description"] = _own_words(rule)
    return found


def _own_words(rule: object) -> str:
    """What the author of a rule says about it."""
    return getattr(rule, "description", "") or "a rule of yours"


def _extender(extender: Extender) -> Data:
    verbs = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    seconds = extender.timeout_seconds
    return {
        "urlPrefix": extender.url_prefix,
        "verbs": {call: verb for call, verb in verbs.items() if verb},
        "weight": extender.weight,
        "timeoutSeconds": None if math.isinf(seconds) else seconds,
        "managedResources": sorted(extender.managed_resources),
        "ignorable": extender.ignorable,
    }


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
