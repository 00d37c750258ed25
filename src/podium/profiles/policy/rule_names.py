"""Names of rules: which a Policy may choose, how an unknown one is refused, and arguments.

An argument makes a rule under a name that the Policy chooses; the module of that rule declares it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from podium.errors import ConfigError
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from podium.engine.framework.declaration import FactoryArgs, PolicyArgument


_PATTERN = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"
_VALID = re.compile(_PATTERN.strip("^$"))

_LABELS = "a label priority has any name and an argument: labelPreference"
_SERVICES = "a service anti-affinity priority has any name and an argument: serviceAntiAffinity"
#: Hints for names that no rule has, and for functions whose rules have other names.
_HINTS = {
    "NodeLabelPriority": _LABELS,
    "CalculateNodeLabelPriorityMap": _LABELS,
    "ServiceAntiAffinityPriority": _SERVICES,
    "ServiceAntiAffinity": _SERVICES,
    "CalculateAntiAffinityPriorityMap": _SERVICES,
    "CalculateSpreadPriorityMap": "did you mean SelectorSpreadPriority?",
}


def check_name(name: str) -> None:
    """Refuse a name that cannot be registered."""
    if not _VALID.fullmatch(name):
        raise ConfigError(
            f'Algorithm name {name} does not match the name validation regexp "{_PATTERN}".',
            hint="use letters, digits and -, at least two, with a letter or digit at both ends",
        )


def unknown(
    kind: str, name: str, known: Iterable[str], *, condition: str = "", argument: str = ""
) -> ConfigError:
    """The refusal of a name that nothing is registered under; *kind* is Predicate or Priority.

    *condition* is the feature gate, and *argument* the argument, with which there would be a rule
    of that name.
    """
    known = sorted(known)
    hint = _HINTS.get(name, "")
    if condition:
        hint = f"it exists with the feature gate {condition} only"
    elif argument:
        hint = f"it needs an argument: {argument}"
    hint = hint or did_you_mean(name, known) or f"known: {', '.join(known)}"
    return ConfigError(f"Invalid configuration: {kind} type not found for {name}", hint=hint)


def wrong_arguments(kind: str, name: str, count: int, known: Iterable[str]) -> ConfigError:
    """The refusal of an argument that has no member, or several."""
    text = f"Exactly 1 {kind.lower()} argument is required, numArgs: {count}, {kind}: {name}"
    return ConfigError(text, hint=f"give one of {', '.join(known)}, or no argument at all")


R = TypeVar("R")


def rule_factory(
    declared: Sequence[PolicyArgument[R]], argument: object, kind: str, name: str
) -> Callable[[FactoryArgs], R]:
    """What makes the rule called *name*; *kind* is FilterRule or Priority."""
    given = [(each, getattr(argument, each.attribute)) for each in declared]
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
