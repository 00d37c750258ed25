"""What the real program refuses in the arguments of plugins.

Each check yields its sentences in order; *path* is where the arguments are, or nothing when a
plugin checks them itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from podium.objects.durations import SECOND, text_of
from podium.objects.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    key_faults,
    required,
    unsupported,
    value_faults,
)
from podium.objects.go_json import go_json
from podium.objects.names import quoted
from podium.profiles.config.args import binding_conditions

if TYPE_CHECKING:
    from podium.objects.kinds.meta import LabelSelectorRequirement
    from podium.objects.kinds.pod import NodeSelectorTerm, TopologySpreadConstraint
    from podium.profiles.config import args
    from podium.profiles.config.feature_gates import FeatureGates

Faults = Iterator[str]

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_MOST: Final = 100
_MOST_SCORE: Final = 10
_INTEGER = re.compile(r"[+-]?0*([0-9]+)")


def default_preemption(found: args.DefaultPreemptionArgs, path: str, _: FeatureGates) -> Faults:
    """How many nodes to look at."""
    percentage, absolute = found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    of_percentage = child(path, "minCandidateNodesPercentage")
    of_absolute = child(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= _MOST:
        yield invalid(of_percentage, str(percentage), "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(of_absolute, str(absolute), "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(
            of_percentage, "0", "cannot be zero at the same time as minCandidateNodesAbsolute"
        )
        yield invalid(
            of_absolute, "0", "cannot be zero at the same time as minCandidateNodesPercentage"
        )


def inter_pod_affinity(found: args.InterPodAffinityArgs, path: str, _: FeatureGates) -> Faults:
    """The weight."""
    weight = found.hard_pod_affinity_weight
    if not 0 <= weight <= _MOST:
        where = child(path, "hardPodAffinityWeight")
        yield invalid(where, str(weight), "not in valid range [0, 100]")


def pod_topology_spread(found: args.PodTopologySpreadArgs, path: str, _: FeatureGates) -> Faults:
    """The constraints, and whether they may be there at all."""
    kind, where = found.defaulting_type, child(path, "defaultingType")
    if kind not in ("System", "List"):
        yield unsupported(where, go_json(kind), ("System", "List"))
    elif kind == "System" and found.default_constraints:
        yield invalid(where, go_json(kind), "when .defaultConstraints are not empty")
    seen = set()
    for index, constraint in enumerate(found.default_constraints):
        here = child(path, f"defaultConstraints[{index}]")
        yield from _constraint(constraint, here)
        key = constraint.topology_key, constraint.when_unsatisfiable
        if key in seen:
            yield duplicate(here, quoted(f"{{{', '.join(key)}}}"))
        seen.add(key)


def _constraint(found: TopologySpreadConstraint, path: str) -> Faults:
    if found.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", str(found.max_skew), "not in valid range (0, inf)")
    if not found.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from _label_name(found.topology_key, f"{path}.topologyKey")
    action = found.when_unsatisfiable
    if not action:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif action not in _ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", go_json(action), _ACTIONS)
    if found.label_selector is not None:
        yield forbidden(
            f"{path}.labelSelector",
            "constraint must not define a selector, as they deduced for each pod",
        )


def _label_name(name: str, path: str) -> Faults:
    for fault in key_faults(name):
        yield invalid(path, quoted(name), fault)


def balanced_allocation(
    found: args.NodeResourcesBalancedAllocationArgs, path: str, _: FeatureGates
) -> Faults:
    """Each resource once, all alike."""
    seen = set()
    for index, resource in enumerate(found.resources):
        here = child(path, f"resources[{index}]")
        if resource.name in seen:
            yield duplicate(f"{here}.name", quoted(resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{here}.weight", str(resource.weight), "must be 1")


def node_resources_fit(found: args.NodeResourcesFitArgs, path: str, _: FeatureGates) -> Faults:
    """Names and the scoring strategy. Only the plugin itself asks for this."""
    for index, name in enumerate(found.ignored_resources):
        yield from _label_name(name, child(path, f"ignoredResources[{index}]"))
    for index, group in enumerate(found.ignored_resource_groups):
        here = child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            yield invalid(here, quoted(group), "resource group name can't contain '/'")
        yield from _label_name(group, here)
    if found.scoring_strategy is None:
        yield required(child(path, "scoringStrategy"), "ScoringStrategy field is required")
    else:
        yield from _strategy(found.scoring_strategy, child(path, "scoringStrategy"))


def _strategy(found: args.ScoringStrategy, path: str) -> Faults:
    if found.type not in _STRATEGIES:
        yield unsupported(f"{path}.type", go_json(found.type), _STRATEGIES)
    for index, resource in enumerate(found.resources):
        if not 0 < resource.weight <= _MOST:
            yield invalid(
                f"{path}.resources[{index}].weight",
                str(resource.weight),
                f"resource weight of {resource.name} not in valid range (0, 100]",
            )
    ratio, here = found.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if found.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield required(here, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from _shape(ratio.shape, f"{here}.shape")
    elif ratio is not None:
        yield forbidden(here, "must be nil when type is not RequestedToCapacityRatio")


def _shape(points: tuple[args.ShapePoint, ...], path: str) -> Faults:
    if not points:
        yield required(path, "at least one point must be specified")
    for index, (before, after) in enumerate(pairwise(points), 1):
        if before.utilization >= after.utilization:
            where, shown = f"{path}[{index}].utilization", str(after.utilization)
            yield invalid(where, shown, "values must be sorted in increasing order")
            break
    for index, point in enumerate(points):
        if not 0 <= point.utilization <= _MOST:
            where, shown = f"{path}[{index}].utilization", str(point.utilization)
            yield invalid(where, shown, "not in valid range [0, 100]")
        if not 0 <= point.score <= _MOST_SCORE:
            where, shown = f"{path}[{index}].score", str(point.score)
            yield invalid(where, shown, "not in valid range [0, 10]")


def volume_binding(found: args.VolumeBindingArgs, path: str, gates: FeatureGates) -> Faults:
    """The timeout, and a shape only where it means something."""
    seconds, where = found.bind_timeout_seconds, child(path, "shape")
    if seconds < 0:
        yield invalid(
            child(path, "bindTimeoutSeconds"),
            str(seconds),
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if gates["StorageCapacityScoring"]:
        yield from _shape(found.shape or (), where)
    elif found.shape is not None:
        points = [{"Utilization": p.utilization, "Score": p.score} for p in found.shape]
        yield invalid(
            where,
            go_json(points),
            "unexpected field `shape`, remove it or turn on the feature gate "
            "StorageCapacityScoring",
        )


def dynamic_resources(found: args.DynamicResourcesArgs, path: str, gates: FeatureGates) -> Faults:
    """The timeouts, where the gates know them."""
    where, time = child(path, "filterTimeout"), found.filter_timeout
    if time is not None and not gates["DRASchedulerFilterTimeout"]:
        yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
    elif time is not None and time < 0:
        yield invalid(where, go_json(text_of(time)), "must be zero or positive")
    where, time = child(path, "bindingTimeout"), found.binding_timeout
    if time is not None and not binding_conditions(gates):
        yield forbidden(
            where,
            "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        )
    elif time is not None and time < SECOND:
        yield invalid(where, go_json(text_of(time)), "must be at least 1 second")


def node_affinity(found: args.NodeAffinityArgs, path: str, _: FeatureGates) -> Faults:
    """The selectors."""
    affinity, where = found.added_affinity, child(path, "addedAffinity")
    if affinity is None:
        return
    if affinity.required is not None:
        here = f"{where}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms or ()):
            yield from _term(term, f"{here}[{index}]")
    here = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred or ()):
        # Terms that count for nothing are not looked at.
        if preferred.weight:
            yield from _term(preferred.preference, f"{here}[{index}]")


def _term(term: NodeSelectorTerm, path: str) -> Faults:
    for index, found in enumerate(term.match_expressions or ()):
        yield from _requirement(found, f"{path}.matchExpressions[{index}]")
    for index, found in enumerate(term.match_fields or ()):
        here = f"{path}.matchFields[{index}]"
        if found.operator not in _FIELD_OPERATORS:
            yield unsupported(f"{here}.operator", go_json(found.operator), _FIELD_OPERATORS)
        elif len(found.values or ()) != 1:
            yield invalid(f"{here}.values", go_json(found.values), "must have one element")


def _requirement(found: LabelSelectorRequirement, path: str) -> Faults:
    operator, values, where = found.operator, found.values or [], f"{path}.values"
    if operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", go_json(operator), _OPERATORS)
        return
    faults = key_faults(found.key)
    if faults:
        yield invalid(f"{path}.key", quoted(found.key), "; ".join(faults))
    yield from _values(found, where)
    for index, value in enumerate(values):
        faults = value_faults(value)
        if faults:
            yield invalid(f"{where}[{index}][{found.key}]", quoted(value), "; ".join(faults))


def _values(found: LabelSelectorRequirement, path: str) -> Faults:
    """Whether there are as many values as the operator wants, and of its kind."""
    operator, values, shown = found.operator, found.values or [], go_json(found.values)
    if operator in ("In", "NotIn") and not values:
        yield invalid(path, shown, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield invalid(path, shown, "values set must be empty for exists and does not exist")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "for 'Gt', 'Lt' operators, exactly one value is required"
            yield invalid(path, shown, detail)
        for index, value in enumerate(values):
            if not _is_int64(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield invalid(f"{path}[{index}]", quoted(value), detail)


def _is_int64(text: str) -> bool:
    found = _INTEGER.fullmatch(text)
    return found is not None and len(found[1]) < 20 and -(1 << 63) <= int(text) < 1 << 63


#: Plugin -> the check of its arguments. The real program means NodeResourcesFit and looks for
#: NodeResourcesFitArgs, so that the plugin is the first to notice what is wrong with those.
CHECKS: Final[dict[str, Callable[[Any, str, FeatureGates], Faults]]] = {
    "DefaultPreemption": default_preemption,
    "InterPodAffinity": inter_pod_affinity,
    "NodeAffinity": node_affinity,
    "NodeResourcesBalancedAllocation": balanced_allocation,
    "NodeResourcesFitArgs": node_resources_fit,
    "PodTopologySpread": pod_topology_spread,
    "VolumeBinding": volume_binding,
    "DynamicResources": dynamic_resources,
}
