"""Edits of a pod that let it fit on more nodes: requests, tolerations, terms, ports, gates.

Each is a `Relaxation` with a number of steps. More steps accept at least the nodes that fewer do,
so the smallest edit that helps is found by bisection. docs/fit.md has the table of costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from podium.engine.state.accounting import amount
from podium.objects.kinds.node import Taint
from podium.objects.kinds.pod import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    WeightedPodAffinityTerm,
)
from podium.objects.quantity import value
from podium.objects.taints import tolerated
from podium.render.plain import format_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Container, Pod, PodAffinityTerm, TopologySpreadConstraint

_MEBIBYTE: Final = 1 << 20
_KIBIBYTE: Final = 1 << 10
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})
#: Taints that say that something is wrong with the node.
_TROUBLE: Final = "node.kubernetes.io/"
_PREFERENCE: Final = 100
_CONTAINERS: Final = ("containers", "init_containers")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """An edit of the pod that can be made in steps, from 1 to `steps`."""

    #: The kind of edit.
    action: str
    #: How many steps can be made.
    steps: int
    #: The pod after so many steps.
    on: Callable[[Pod, int], Pod]
    #: How much is given up by so many steps.
    cost: Callable[[int], float]
    #: What so many steps do, in words.
    sentence: Callable[[int], str]
    #: Whether it tolerates all taints, where a toleration for some may do.
    is_for_all_taints: bool = False


def _single(
    action: str,
    cost: float,
    sentence: str,
    edited: Callable[[Pod], Pod],
    *,
    is_for_all_taints: bool = False,
) -> Relaxation:
    """An edit with one step."""
    return Relaxation(
        action,
        1,
        lambda pod, _: edited(pod),
        lambda _: cost,
        lambda _: sentence,
        is_for_all_taints,
    )


def _with(pod: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its spec."""
    return replace(pod, spec=replace(pod.spec, **fields))


# Requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    """The request of one container, or of the pod as a whole, for one resource."""

    field: str  #: `containers`, `init_containers`, or empty for the pod as a whole
    index: int
    name: str
    resource: str
    amount: int
    #: How much it is lowered by in one step.
    unit: int

    @property
    def steps(self) -> int:
        """As many as there are units in the request."""
        return -(-self.amount // self.unit)

    def left(self, steps: int) -> int:
        """What is requested after the edit."""
        return (self.steps - steps) * self.unit

    def on(self, pod: Pod, steps: int) -> Pod:
        """Write the lower request, and the same limit where limits must equal requests.

        The template of a workload may say less than its pods: admission added to them.
        """
        if not self.field:
            return _with(pod, resources=self._lowered(pod.spec.resources, steps))
        containers: list[Container] = list(getattr(pod.spec, self.field))
        if self.index >= len(containers):
            return pod
        container = containers[self.index]
        lowered = self._lowered(container.resources, steps)
        containers[self.index] = replace(container, resources=lowered)
        return _with(pod, **{self.field: containers})

    def _lowered(self, resources: ResourceRequirements | None, steps: int) -> ResourceRequirements:
        found = resources or ResourceRequirements()
        text: dict[str, str | int | float] = {self.resource: self.text(steps)}
        limits = found.limits or {}
        if _limits_are_requests(self.resource) and self.resource in limits:
            limits = {**limits, **text}
        return replace(found, requests=(found.requests or {}) | text, limits=limits or found.limits)

    def text(self, steps: int) -> str:
        """The lower request as a quantity."""
        left = self.left(steps)
        if self.resource == "cpu":
            return format_amount("cpu", left)
        suffix = {_MEBIBYTE: "Mi", _KIBIBYTE: "Ki"}.get(self.unit, "")
        return f"{left // self.unit}{suffix}" if left else "0"

    def relaxation(self) -> Relaxation:
        """A lower request, in steps of one unit."""
        whose = f"container {self.name}" if self.field else "the pod"
        before = format_amount(self.resource, self.amount)
        lower = f"lower the {self.resource} request of {whose} from {before} to"
        return Relaxation(
            "request",
            self.steps,
            self.on,
            # 1, and up to 4 more for the share of the request that is given up.
            lambda steps: round(1 + 4 * (self.amount - self.left(steps)) / self.amount, 2),
            lambda steps: f"{lower} {self.text(steps)}",
        )


def _requests(pod: Pod) -> Iterator[Relaxation]:
    for field in _CONTAINERS:
        for index, container in enumerate(getattr(pod.spec, field) or ()):
            name = container.name or f"number {index}"
            for each in _amounts(container.resources):
                yield _Request(field, index, name, *each).relaxation()
    for each in _amounts(pod.spec.resources):
        yield _Request("", 0, "", *each).relaxation()


def _amounts(resources: ResourceRequirements | None) -> Iterator[tuple[str, int, int]]:
    """Resource, amount and unit of each request that is not 0."""
    for resource, raw in ((resources and resources.requests) or {}).items():
        wanted = amount(resource, raw)
        if wanted > 0:
            yield resource, wanted, _unit(resource, wanted)


def _unit(resource: str, amount: int) -> int:
    """How much a request is lowered by at a time."""
    if resource.startswith("hugepages-"):
        size = value(resource.removeprefix("hugepages-"))
        return size if size > 0 else 1
    if resource not in {"memory", "ephemeral-storage"}:
        return 1
    return _MEBIBYTE if amount >= _MEBIBYTE else _KIBIBYTE if amount >= _KIBIBYTE else 1


def _limits_are_requests(resource: str) -> bool:
    """Whether the API server wants limit and request to be equal."""
    return resource.startswith("hugepages-") or resource not in {
        "cpu",
        "memory",
        "ephemeral-storage",
    }


# Tolerations ----------------------------------------------------------------------------------


def _add_toleration(toleration: Toleration) -> Relaxation:
    """A toleration for one taint, for all taints of a key, or for all taints."""
    key, text = toleration.key, toleration.key
    if not key:
        cost, sentence = 9, "tolerate all taints"
    else:
        # Little for a taint that keeps nodes apart, much for one that reports trouble.
        cost = 3 if toleration.effect == "NoSchedule" else 4
        cost = 8 if key.startswith(_TROUBLE) else cost
        text = f"{key}={toleration.value}" if toleration.value else key
        sentence = f"tolerate the taint {text}:{toleration.effect}"
        if not toleration.effect:
            sentence = f"tolerate every taint with the key {key}"
    return _single(
        "toleration",
        cost,
        sentence,
        lambda pod: _with(pod, tolerations=[*(pod.spec.tolerations or ()), toleration]),
        is_for_all_taints=not key,
    )


def _tolerations(pod: Pod, nodes: Iterable[Node]) -> Iterator[Relaxation]:
    taints: dict[Taint, None] = {}
    for node in nodes:
        for taint in node.spec.taints or ():
            if taint.effect in _HARD and not tolerated(pod.spec.tolerations, taint):
                taints[taint] = None
        if node.spec.unschedulable:
            found = Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule")
            if found not in (pod.spec.tolerations or ()):
                taints[Taint(found.key, found.value, found.effect)] = None
    keys: dict[str, int] = {}
    for taint in taints:
        operator = "Equal" if taint.value else "Exists"
        yield _add_toleration(Toleration(taint.key, operator, taint.value, taint.effect))
        keys[taint.key] = keys.get(taint.key, 0) + 1
    for key, number in keys.items():
        if number > 1:
            yield _add_toleration(Toleration(key, "Exists"))
    if len(keys) > 1:
        yield _add_toleration(Toleration("", "Exists"))


# Conditions on nodes --------------------------------------------------------------------------


def _without_label(pod: Pod, key: str) -> Pod:
    kept = {k: v for k, v in (pod.spec.node_selector or {}).items() if k != key}
    return _with(pod, node_selector=kept)


def _without_expression(
    pod: Pod, term: NodeSelectorTerm, expression: LabelSelectorRequirement, field: str
) -> Pod:
    """One expression less in a required term of node affinity."""
    listed: list[LabelSelectorRequirement] = list(getattr(term, field) or ())
    if expression in listed:
        listed.remove(expression)
    shorter = replace(term, **{field: listed or None})
    terms = [shorter if each == term else each for each in required_node_terms(pod)]
    affinity = _node_affinity(pod)
    return _with_node_affinity(pod, replace(affinity, required=NodeSelector(terms)))


def _preferring_nodes(pod: Pod) -> Pod:
    """Required node affinity made a preference."""
    affinity = _node_affinity(pod)
    wanted = [t for t in required_node_terms(pod) if t.match_expressions or t.match_fields]
    preferred = [
        *(affinity.preferred or ()),
        *(PreferredSchedulingTerm(_PREFERENCE, term) for term in wanted),
    ]
    return _with_node_affinity(pod, replace(affinity, required=None, preferred=preferred or None))


def _node_affinity(pod: Pod) -> NodeAffinity:
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    return pod.spec.affinity.node_affinity


def _with_node_affinity(pod: Pod, changed: NodeAffinity) -> Pod:
    return _with(pod, affinity=replace(pod.spec.affinity or Affinity(), node_affinity=changed))


def required_node_terms(pod: Pod) -> list[NodeSelectorTerm]:
    """The terms of the node affinity that a node must match, one of them."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return list((affinity and affinity.required and affinity.required.node_selector_terms) or ())


def _distinct(terms: Iterable[NodeSelectorTerm]) -> list[NodeSelectorTerm]:
    found: list[NodeSelectorTerm] = []
    for term in terms:
        if term not in found:
            found.append(term)
    return found


def _node_conditions(pod: Pod) -> Iterator[Relaxation]:
    for key, wanted in (pod.spec.node_selector or {}).items():
        label = f"no longer require the node label {key}={wanted}"
        yield _single("selector", 4, label, partial(_without_label, key=key))
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return
    for term in _distinct(required_node_terms(pod)):
        expressions = [("match_expressions", each) for each in term.match_expressions or ()]
        expressions += [("match_fields", each) for each in term.match_fields or ()]
        if len(expressions) > 1:  # a term without any would match no node
            for field, each in expressions:
                text = f"no longer require {_expression_text(each)} in the node affinity"
                edit = partial(_without_expression, term=term, expression=each, field=field)
                yield _single("node affinity", 4, text, edit)
    text = "make the required node affinity a preference"
    yield _single("node affinity", 5, text, _preferring_nodes)


# Conditions on other pods ---------------------------------------------------------------------


def _preferring_pods(pod: Pod, term: PodAffinityTerm, field: str) -> Pod:
    """A required term of pod affinity or anti-affinity made a preference."""
    affinity = pod.spec.affinity or Affinity()
    part: PodAffinity = getattr(affinity, field) or PodAffinity()
    required = list(part.required or ())
    if term in required:
        required.remove(term)
    preferred = [*(part.preferred or ()), WeightedPodAffinityTerm(_PREFERENCE, term)]
    changed = replace(part, required=required or None, preferred=preferred)
    return _with(pod, affinity=replace(affinity, **{field: changed}))


def _pod_conditions(pod: Pod) -> Iterator[Relaxation]:
    for field, relation in (("pod_affinity", "with"), ("pod_anti_affinity", "apart from")):
        part: PodAffinity | None = getattr(pod.spec.affinity, field, None)
        seen: list[PodAffinityTerm] = []
        for term in (part and part.required) or ():
            if term not in seen:
                seen.append(term)
                pods = _selector_text(term.label_selector)
                text = f"make being {relation} {pods} per {term.topology_key} a preference"
                edit = partial(_preferring_pods, term=term, field=field)
                yield _single("pod affinity", 4, text, edit)


# Spreading ------------------------------------------------------------------------------------


def _with_constraint(pod: Pod, place: int, constraint: TopologySpreadConstraint) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints or ())
    constraints[place] = constraint
    return _with(pod, topology_spread_constraints=constraints)


def _spreads(pod: Pod, pods: int) -> Iterator[Relaxation]:
    for place, each in enumerate(pod.spec.topology_spread_constraints or ()):
        if each.when_unsatisfiable == "DoNotSchedule":
            yield from _of_constraint(place, each, pods)


def _of_constraint(
    place: int, constraint: TopologySpreadConstraint, pods: int
) -> Iterator[Relaxation]:
    """A larger skew, fewer domains, or only a preference."""
    skew, domains = constraint.max_skew, constraint.min_domains or 1
    over = f"the spread over {constraint.topology_key}"

    def changed(pod: Pod, **fields: Any) -> Pod:
        return _with_constraint(pod, place, replace(constraint, **fields))

    yield Relaxation(
        "spread",
        min(pods + 1, 2**31 - 1 - skew),
        lambda pod, steps: changed(pod, max_skew=skew + steps),
        lambda steps: 2 + steps,
        lambda steps: f"raise maxSkew of {over} from {skew} to {skew + steps}",
    )
    if domains > 1:
        yield Relaxation(
            "spread",
            domains - 1,
            lambda pod, steps: changed(pod, min_domains=domains - steps),
            lambda steps: 2 + steps,
            lambda steps: f"lower minDomains of {over} from {domains} to {domains - steps}",
        )
    yield _single(
        "spread",
        6,
        f"make {over} a preference (ScheduleAnyway)",
        lambda pod: changed(pod, when_unsatisfiable="ScheduleAnyway", min_domains=None),
    )


# Ports and gates ------------------------------------------------------------------------------


def _without_host_port(pod: Pod, field: str, index: int, place: int) -> Pod:
    containers: list[Container] = list(getattr(pod.spec, field))
    ports = list(containers[index].ports or ())
    ports[place] = replace(ports[place], host_port=0, host_ip="")
    containers[index] = replace(containers[index], ports=ports)
    return _with(pod, **{field: containers})


def _ports_and_gates(pod: Pod) -> Iterator[Relaxation]:
    for field in _CONTAINERS:
        for index, container in enumerate(getattr(pod.spec, field) or ()):
            for place, port in enumerate(container.ports or ()):
                if port.host_port:
                    edit = partial(_without_host_port, field=field, index=index, place=place)
                    text = f"no longer use the host port {port.host_port}"
                    yield _single("port", 5, text, edit)
    names = [gate.name for gate in pod.spec.scheduling_gates or ()]
    if names:
        # Much is given up: the controllers that set gates remove them when they are done.
        gates = "gate" if len(names) == 1 else "gates"
        text = f"remove the scheduling {gates} {', '.join(names)}"
        yield _single("gate", 8, text, lambda pod: _with(pod, scheduling_gates=None))


def relaxations(pod: Pod, nodes: Iterable[Node], pods: int) -> list[Relaxation]:
    """All edits of the pod that may let it fit in a cluster with these nodes and so many pods."""
    return [
        *_ports_and_gates(pod),
        *_requests(pod),
        *_tolerations(pod, nodes),
        *_node_conditions(pod),
        *_pod_conditions(pod),
        *_spreads(pod, pods),
    ]


# Texts ----------------------------------------------------------------------------------------


def _expression_text(expression: LabelSelectorRequirement) -> str:
    values = ", ".join(expression.values or ())
    match expression.operator:
        case "In":
            return f"{expression.key} in ({values})"
        case "NotIn":
            return f"{expression.key} not in ({values})"
        case "Exists":
            return expression.key
        case "DoesNotExist":
            return f"no {expression.key}"
        case _:
            return f"{expression.key} {expression.operator} {values}"


def _selector_text(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts: list[str] = [f"{k}={v}" for k, v in (selector.match_labels or {}).items()]
    parts += [_expression_text(each) for each in selector.match_expressions or ()]
    return f"pods with {', '.join(parts)}" if parts else "all pods"
