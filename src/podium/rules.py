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

`try_predicate` and `try_priority` ask a rule about manifests, as the scheduler would; they are for
tests. A rule that reads more than it says in `depends`, or that compares nodes, fails there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from podium.cluster.cache.columns import Columns
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.state.accounting import ContainerSums
from podium.errors import ConfigError
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.rule_names import check_name
from podium.profiles.user_rules.adapter import (
    ACCEPT,
    DEPENDS,
    NORMALIZE,
    PERMIT,
    PREDICATE,
    PRIORITY,
    REJECT,
    RESERVE,
    FailAttemptError,
    RuleSpec,
    Unwatched,
    UserPredicate,
    UserPriority,
)
from podium.profiles.user_rules.loading import MARK, bound, rules_in
from podium.profiles.user_rules.nodes import (
    NodeArrays,
    NodeFacts,
    PlacedPod,
    RuleColumns,
    RuleNode,
    RulePod,
)
from podium.profiles.user_rules.stated_view import stated_view

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming

__all__ = [
    "FailAttemptError",
    "NodeArrays",
    "NodeFacts",
    "PlacedPod",
    "RuleColumns",
    "RuleFailure",
    "RuleNode",
    "RulePod",
    "permit",
    "predicate",
    "priority",
    "reserve",
    "try_predicate",
    "try_priority",
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
    prepare: Callable[[RulePod, list[Any]], Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Declare `fits(pod, node) -> bool | str | list[str]`: True, False, or why not.

    With `columns`, `fits(pod, nodes)` returns a mask, True where the pod fits. `reason` is why a
    node is rejected when the rule returns just False. `curable` says whether evicting pods could
    help; by default it could if the answer depends on pods. `on_error` says what becomes of the
    node when the rule raises or returns something else: `reject` or `accept`. A rule that depends
    on the cluster may raise `FailAttemptError`, which fails the attempt. `prepare(pod, nodes)` is
    called once for each pod, with all nodes; what it returns is `pod.prepared`.
    """
    _check_declaration(name, depends)
    _check_prepare(name, depends, prepare)
    _one_of(name, "on_error", on_error, (REJECT, ACCEPT))
    return _declared(
        PREDICATE,
        name,
        depends=depends,
        columns=columns,
        reason=reason,
        curable=curable,
        on_error=on_error,
        prepare=prepare,
    )


def priority(
    name: str,
    *,
    weight: int = 1,
    normalize: str = "none",
    depends: str = "cluster",
    columns: bool = False,
    reduce: Callable[[RulePod, dict[str, int]], Mapping[str, int]] | None = None,
    prepare: Callable[[RulePod, list[Any]], Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Declare `score(pod, node) -> int`; with `columns`, `score(pod, nodes)` returns an array.

    `normalize` turns the raw scores into final ones: `none` takes them as they are, `max` scales
    the largest to the highest score, `reverse` does so and subtracts from it, `min-max` scales the
    smallest to 0 as well. `weight` counts where no Policy gives another. A rule that raises or
    returns something else gives 0. `reduce(pod, scores)` takes the place of `normalize`: it gets
    the raw scores of all feasible nodes by name and returns the final ones. `prepare` and
    `FailAttemptError` are as in `predicate`.
    """
    _check_declaration(name, depends)
    _one_of(name, "normalize", normalize, NORMALIZE)
    _check_prepare(name, depends, prepare)
    if reduce is not None and normalize != "none":
        raise ConfigError(f"rule {name}: give normalize or reduce, not both")
    if type(weight) is not int or weight < 1:
        raise ConfigError(f"rule {name}: weight is {weight!r}, expected a positive integer")
    return _declared(
        PRIORITY,
        name,
        depends=depends,
        columns=columns,
        weight=weight,
        normalize=normalize,
        reduce=reduce,
        prepare=prepare,
    )


def reserve(
    name: str,
    *,
    depends: str = "cluster",
    annotation: str = "",
    pre_bind: Callable[[str, str, Any], None] | None = None,
    undo: Callable[[str, str, Any], None] | None = None,
) -> Callable[[_Function], _Function]:
    """Declare `reserve(pod, node) -> object | None`: what the pod takes on the chosen node.

    It is asked once the node is chosen, and changes nothing itself. The scheduler keeps the answer
    with the pod: other rules, and this one for later pods, see it as `node.reserved(name)`. With
    `annotation`, the answer is written to that annotation of the pod as JSON before the pod is
    bound, and read back from there. `pre_bind(pod, node, reserved)` is called before the pod is
    bound, and fails the binding if it raises; `undo(pod, node, reserved)` when the reservation is
    over: the pod was not bound, or has left the node. None reserves nothing.
    """
    _check_declaration(name, depends)
    return _declared(
        RESERVE, name, depends=depends, pre_bind=pre_bind, undo=undo, annotation=annotation
    )


def permit(name: str, *, depends: str = "cluster") -> Callable[[_Function], _Function]:
    """Declare `permit(pod, node) -> bool | str | float`: whether the pod may be bound.

    It is asked when the node is chosen and everything is reserved. True allows the binding, a
    string rejects the pod for that reason, a number lets the pod wait for as many seconds at most;
    a waiting pod is asked about again every second.
    """
    _check_declaration(name, depends)
    return _declared(PERMIT, name, depends=depends)


# Trying ---------------------------------------------------------------------------------------

Manifest = Mapping[str, Any]


class RuleFailure(AssertionError):  # noqa: N818 - what a test reports
    """A rule that was tried raised, or returned something unusable."""


class _Strict(Unwatched):
    """Raises what goes wrong in a rule, where the scheduler would report it and go on."""

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        raise _FailedError(f"rule {rule} failed for pod {pod} on {node}: {what}")


class _FailedError(BaseException):
    """A failure on its way through the engine, which catches every `Exception` of a rule."""


def try_predicate(
    rule: Callable[..., Any],
    pod: Manifest,
    nodes: Iterable[Manifest],
    running: Iterable[Manifest] = (),
    **arguments: Any,
) -> dict[str, list[str]]:
    """Node -> why the rule rejects it, empty where the pod fits.

    Objects are manifests with the fields that the rule reads; *running* are pods with a
    `spec.nodeName`.
    """
    spec = _spec(rule, PREDICATE)
    made = UserPredicate(spec, bound(spec, arguments), _Strict())
    view, incoming = _small_cluster(pod, nodes, running)
    codes = _answers(made, view, incoming, made.filter)
    return {name: list(view.verdicts[code].reasons) for name, code in codes.items()}


def try_priority(
    rule: Callable[..., Any],
    pod: Manifest,
    nodes: Iterable[Manifest],
    running: Iterable[Manifest] = (),
    *,
    max_score: int = 10,
    **arguments: Any,
) -> dict[str, int]:
    """Node -> its final score, normalised but not weighted."""
    spec = _spec(rule, PRIORITY)
    made = UserPriority(spec, bound(spec, arguments), _Strict(), max_score)
    view, incoming = _small_cluster(pod, nodes, running)
    raw = _answers(made, view, incoming, made.score)
    if not made.normalizes:
        return raw
    at = ManyRows(view, view.nodes.order)
    final = made.normalize(incoming, at, np.fromiter(raw.values(), np.int64))
    return dict(zip(raw, final.tolist(), strict=True))


def _spec(function: Callable[..., Any], kind: str) -> RuleSpec:
    for spec in rules_in(function):
        if spec.kind == kind:
            return spec
    raise ConfigError(f"{getattr(function, '__name__', function)} is not a {kind}")


def _small_cluster(
    pod: Manifest, nodes: Iterable[Manifest], running: Iterable[Manifest]
) -> tuple[Columns, Incoming]:
    view = Columns(ContainerSums())
    for node in nodes:
        view.put_node(msgspec.convert(node, Node))
    for each in running:
        view.add_pod(msgspec.convert(each, Pod))
    return view, view.pods.incoming(msgspec.convert(pod, Pod))


def _answers(
    rule: UserPredicate | UserPriority,
    view: Columns,
    pod: Incoming,
    ask: Callable[[Incoming, Any], Any],
) -> dict[str, int]:
    """Node -> what the rule answers, reading no more than it said that it depends on."""
    together = _asked(rule, view, pod, ask, view.nodes.order)
    if rule.scope(pod.cls).of_row:
        for row in view.nodes.order:
            for name, alone in _asked(rule, view, pod, ask, np.array([row])).items():
                if alone != together[name]:
                    what = f"rule {rule.name} answers otherwise for node {name} asked alone"
                    raise RuleFailure(f'{what}; say depends="cluster" if it compares nodes')
    return together


def _asked(
    rule: UserPredicate | UserPriority,
    view: Columns,
    pod: Incoming,
    ask: Callable[[Incoming, Any], Any],
    rows: np.ndarray,
) -> dict[str, int]:
    seen = stated_view(view, rule, pod, rows.tolist())
    try:
        answers = as_array(ask(pod, ManyRows(seen, rows))).tolist()
    except _FailedError as error:
        raise RuleFailure(str(error)) from None
    return dict(zip(view.nodes.names_of(rows), answers, strict=True))


# Declaring ------------------------------------------------------------------------------------


def _check_declaration(name: str, depends: str) -> None:
    if not isinstance(name, str):
        raise ConfigError("a rule has no name", hint='say @predicate("Name") or @priority("Name")')
    check_name(name)
    _one_of(name, "depends", depends, DEPENDS)


def _declared(kind: str, name: str, **fields: Any) -> Callable[[_Function], _Function]:
    """A decorator that marks the function and returns it, so that it can be called as before."""

    def declare(function: _Function) -> _Function:
        text = (function.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        setattr(function, MARK, RuleSpec(kind, name, function, description=text, **fields))
        return function

    return declare


def _check_prepare(name: str, depends: str, prepare: object) -> None:
    if prepare is not None and depends != "cluster":
        what = f"rule {name}: prepare sees the whole cluster, but depends is {depends!r}"
        raise ConfigError(what, hint='say depends="cluster"')


def _one_of(rule: str, option: str, given: str, known: Iterable[str]) -> None:
    if given not in known:
        choices = ", ".join(known)
        raise ConfigError(f"rule {rule}: {option} is {given!r}", hint=f"expected one of {choices}")
