"""Arguments of a Policy, which make predicates and priorities under a name that the Policy chooses.

Each argument is declared once: the field that holds it, the rule that it makes, and how
`podium policy` shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from podium.engine.rules.nodes.v1_13 import CheckNodeLabelPresence, NodeLabelPriority
from podium.engine.rules.resources.v1_13 import RequestedToCapacityRatioPriority
from podium.engine.rules.service_affinity.v1_13 import CheckServiceAffinity, ServiceAntiAffinity
from podium.errors import ConfigError
from podium.profiles.policy.rule_names import check_name, wrong_arguments
from podium.profiles.policy.validation import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.engine.framework.rule import FilterRule, ScoreRule
    from podium.profiles.policy.document import CapacityRatio
    from podium.profiles.policy.factory_args import FactoryArgs

R = TypeVar("R")
_MAX_UTILIZATION = 100


@dataclass(frozen=True, slots=True)
class PolicyArgument(Generic[R]):
    """A member of an `argument`, and the rule that it makes."""

    field: str
    #: Its value in the document; None if another member is given.
    value: Callable[[Any], Any]
    #: Makes the rule from the value and its name.
    make: Callable[[Any, str], R]
    rule: type[R]
    description: str
    #: The value as it is written in a Policy, from the rule that it made.
    shown: Callable[[Any], dict[str, Any]]


def rule_factory(
    declared: Sequence[PolicyArgument[R]], argument: object, kind: str, name: str
) -> Callable[[FactoryArgs], R]:
    """What makes the rule called *name*; *kind* is FilterRule or Priority."""
    given = [(each, each.value(argument)) for each in declared]
    given = [(each, value) for each, value in given if value is not None]
    if len(given) != 1:
        raise wrong_arguments(kind, name, len(given), [each.field for each in declared])
    check_name(name)
    [(chosen, value)] = given
    return lambda _: chosen.make(value, name)


def shown_argument(declared: Sequence[PolicyArgument[R]], rule: object) -> dict[str, Any]:
    """Description and argument of a rule that an argument made; empty for any other rule."""
    for each in declared:
        if isinstance(rule, each.rule):
            return {"description": each.description, "argument": {each.field: each.shown(rule)}}
    return {}


SERVICE_AFFINITY: Final[PolicyArgument[FilterRule]] = PolicyArgument(
    "serviceAffinity",
    lambda argument: argument.service_affinity,
    lambda value, name: CheckServiceAffinity(value.labels, name),
    CheckServiceAffinity,
    "pods of a service stay on nodes with the same labels",
    lambda rule: {"labels": list(rule.labels)},
)
LABELS_PRESENCE: Final[PolicyArgument[FilterRule]] = PolicyArgument(
    "labelsPresence",
    lambda argument: argument.labels_presence,
    lambda value, name: CheckNodeLabelPresence(value.labels, presence=value.presence, name=name),
    CheckNodeLabelPresence,
    "the node has all of some labels, or none of them",
    lambda rule: {"labels": list(rule.labels), "presence": rule.presence},
)
PREDICATE_ARGUMENTS: Final = (SERVICE_AFFINITY, LABELS_PRESENCE)


def _capacity_ratio(argument: CapacityRatio, name: str) -> RequestedToCapacityRatioPriority:
    """The priority, or a `ConfigError` for points that are no function of the utilization."""
    points = [(point.utilization, point.score) for point in argument.shape]
    error = next(_shape_errors(points), None)
    if error:
        raise ConfigError(
            f"invalid RequestedToCapacityRatioPriority arguments: {error}",
            hint="utilization rises from 0 to 100, scores are 0 to 10",
        )
    return RequestedToCapacityRatioPriority(points, name)


def _shape_errors(points: list[tuple[int, int]]) -> Iterator[str]:
    """What is wrong with a shape, in kube-scheduler's words, order and spelling."""
    if not points:
        yield "at least one point must be specified"
    for i, ((before, _), (after, _)) in enumerate(pairwise(points)):
        if before >= after:
            yield (
                "utilization values must be sorted. "
                f"Utilization[{i}]=={before} >= Utilization[{i + 1}]=={after}"
            )
    for i, (utilization, score) in enumerate(points):
        found = f"Utilization[{i}]=={utilization}"
        if utilization < 0:
            yield f"utilization values must not be less than 0. {found}"
        if utilization > _MAX_UTILIZATION:
            yield f"utilization values must not be greater than {_MAX_UTILIZATION}. {found}"
        if score < 0:
            yield f"score values must not be less than 0. Score[{i}]=={score}"
        if score > MAX_SCORE:
            yield f"score valuses not be greater than {MAX_SCORE}. Score[{i}]=={score}"


PRIORITY_ARGUMENTS: Final[tuple[PolicyArgument[ScoreRule], ...]] = (
    PolicyArgument(
        "serviceAntiAffinity",
        lambda argument: argument.service_anti_affinity,
        lambda value, name: ServiceAntiAffinity(value.label, name),
        ServiceAntiAffinity,
        "pods of the service spread over the values of a label",
        lambda rule: {"label": rule.label},
    ),
    PolicyArgument(
        "labelPreference",
        lambda argument: argument.label_preference,
        lambda value, name: NodeLabelPriority(value.label, presence=value.presence, name=name),
        NodeLabelPriority,
        "the node has a label, or lacks it",
        lambda rule: {"label": rule.label, "presence": rule.presence},
    ),
    PolicyArgument(
        "requestedToCapacityRatioArguments",
        lambda argument: argument.requested_to_capacity_ratio_arguments,
        _capacity_ratio,
        RequestedToCapacityRatioPriority,
        "utilization scored by a line through these points",
        lambda rule: {"shape": [{"utilization": x, "score": y} for x, y in rule.shape]},
    ),
)
