"""Arguments of PodTopologySpread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.engine.rules.v1_36_arguments import label_key_errors
from podium.objects.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from podium.objects.go_json import go_json
from podium.objects.go_types import INT32, STRING, STRING_MAP, Slice, named, record
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import TopologySpreadConstraint
from podium.objects.names import quoted

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Constraints for pods that have none of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


def _complete(found: PodTopologySpreadArgs, _: FeatureGates) -> PodTopologySpreadArgs:
    return replace(found, defaulting_type=found.defaulting_type or "System")


def _check(found: PodTopologySpreadArgs, path: str, _: FeatureGates) -> Errors:
    """The constraints are checked even where they must not be."""
    kind, where = found.defaulting_type, child(path, "defaultingType")
    if kind not in ("System", "List"):
        yield unsupported(where, go_json(kind), ("System", "List"))
    elif kind == "System" and found.default_constraints:
        yield invalid(where, go_json(kind), "when .defaultConstraints are not empty")
    seen = set()
    for index, constraint in enumerate(found.default_constraints):
        here = child(path, f"defaultConstraints[{index}]")
        yield from _constraint_errors(constraint, here)
        key = constraint.topology_key, constraint.when_unsatisfiable
        if key in seen:
            yield duplicate(here, quoted(f"{{{', '.join(key)}}}"))
        seen.add(key)


def _constraint_errors(found: TopologySpreadConstraint, path: str) -> Errors:
    if found.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", str(found.max_skew), "not in valid range (0, inf)")
    if not found.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from label_key_errors(found.topology_key, f"{path}.topologyKey")
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


_REQUIREMENT = record(
    "v1.LabelSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.LabelSelectorOperator"),
    values=Slice(STRING, list),
)
_LABEL_SELECTOR = record(
    "v1.LabelSelector",
    LabelSelector,
    match_labels=STRING_MAP,
    match_expressions=Slice(_REQUIREMENT, list),
)
_CONSTRAINT = record(
    "v1.TopologySpreadConstraint",
    TopologySpreadConstraint,
    max_skew=INT32,
    topology_key=STRING,
    when_unsatisfiable=named("v1.UnsatisfiableConstraintAction"),
    label_selector=_LABEL_SELECTOR,
    min_domains=INT32,
    node_affinity_policy=named("v1.NodeInclusionPolicy"),
    node_taints_policy=named("v1.NodeInclusionPolicy"),
    match_label_keys=Slice(STRING, list),
)
POD_TOPOLOGY_SPREAD_ARGUMENTS: Final = Arguments(
    arguments_record(
        PodTopologySpreadArgs,
        default_constraints=Slice(_CONSTRAINT),
        defaulting_type=named("v1.PodTopologySpreadConstraintsDefaulting"),
    ),
    _check,
    _complete,
)
