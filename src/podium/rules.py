"""Write your own predicates and priorities.

    from podium.rules import predicate, priority

    @predicate("NotOnSpot", reason="node(s) may be taken away at any time", depends="node")
    def not_on_spot(pod, node):
        return pod.labels.get("tier") != "database" or "spot" not in node.labels

    @priority("NewestKernel", normalize="max", depends="node")
    def newest_kernel(pod, node):
        return int(node.labels.get("kernel", "0"))

A rule is a function of a pod and a node, or with `columns=True` of a pod and many nodes at once.
It is used by its name: in a Policy file, or as soon as `--rules FILE.py` loads it. Keyword
arguments of the function come from `argument` of its entry in the Policy.

`depends` says what the answer depends on, besides what all pods of a class share: `node` (the node
object), `pods` (that, and the pods on the node), or `cluster` (anything; asked at every decision).
The first two are asked again only where something changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from podium.engine.rule_nodes import NodeColumns, NodeFacts, PlacedPod, RuleColumns, RuleNode, RulePod
from podium.engine.user_rules import (
    ACCEPT,
    DEPENDS,
    NORMALIZE,
    PREDICATE,
    PRIORITY,
    REJECT,
    RuleSpec,
)
from podium.errors import ConfigError
from podium.profiles.naming import check_name
from podium.profiles.rules import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "NodeColumns",
    "NodeFacts",
    "PlacedPod",
    "RuleColumns",
    "RuleNode",
    "RulePod",
    "predicate",
    "priority",
]

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def predicate(
    name: str,
    *,
    reason: str = "",
    depends: str = "cluster",
    columns: bool = False,
    curable: bool | None = None,
    on_error: str = REJECT,
) -> Callable[[_Function], _Function]:
    """Declare `fits(pod, node) -> bool | str`: True, False, or the reason why not.

    With `columns`, `fits(pod, nodes)` answers a mask, True where the pod fits. `reason` is what a
    node is turned down with when the rule says no more than False. `curable` says whether evicting
    pods could help; unless told, it could if the answer depends on pods. `on_error` says what a
    rule that raises or answers nonsense means for the node: `reject` or `accept`.
    """
    check_name(name)
    _one_of(name, "depends", depends, DEPENDS)
    _one_of(name, "on_error", on_error, (REJECT, ACCEPT))
    return _declared(
        lambda function: RuleSpec(
            PREDICATE,
            name,
            function,
            depends=depends,
            columns=columns,
            reason=reason,
            curable=curable,
            on_error=on_error,
            description=_first_line(function),
        )
    )


def priority(
    name: str,
    *,
    weight: int = 1,
    normalize: str = "none",
    depends: str = "cluster",
    columns: bool = False,
) -> Callable[[_Function], _Function]:
    """Declare `score(pod, node) -> int`; with `columns`, `score(pod, nodes)` answers an array.

    `normalize` makes scores of the raw answers: `none` takes them as they are, `max` scales by the
    largest, `reverse` does so upside down, `min-max` spreads them from nothing to everything.
    `weight` counts where no Policy gives another. A rule that raises or answers nonsense gives 0.
    """
    check_name(name)
    _one_of(name, "depends", depends, DEPENDS)
    _one_of(name, "normalize", normalize, NORMALIZE)
    if type(weight) is not int or weight < 1:
        raise ConfigError(f"rule {name}: weight is {weight!r}, expected a positive integer")
    return _declared(
        lambda function: RuleSpec(
            PRIORITY,
            name,
            function,
            depends=depends,
            columns=columns,
            weight=weight,
            normalize=normalize,
            description=_first_line(function),
        )
    )


def _declared(made: Callable[[_Function], RuleSpec]) -> Callable[[_Function], _Function]:
    """The function itself, marked, so that it can be called and tested as it is."""

    def declare(function: _Function) -> _Function:
        setattr(function, MARK, made(function))
        return function

    return declare


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def _one_of(rule: str, option: str, given: str, known: Iterable[str]) -> None:
    if given not in known:
        choices = ", ".join(known)
        raise ConfigError(f"rule {rule}: {option} is {given!r}", hint=f"expected one of {choices}")
