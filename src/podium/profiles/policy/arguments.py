"""Arguments of a Policy, which make predicates and priorities under a name that the Policy chooses.

Each argument is declared beside the rule that it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from podium.profiles.policy.rule_names import check_name, wrong_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.engine.framework.declaration import FactoryArgs, PolicyArgument

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
