"""Edits of a pod that let it fit on more nodes: requests, tolerations, terms, ports, gates.

Each is a `Relaxation` with a number of steps. More steps accept at least the nodes that fewer do,
so the smallest edit that helps is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace
from typing_extensions import override

from podium.objects.kinds.pod import (
    Affinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    WeightedPodAffinityTerm,
)
from podium.objects.quantity import milli, value
from podium.objects.taints import tolerated
from podium.render.plain import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
    from podium.objects.kinds.node import Node, Taint
    from podium.objects.kinds.pod import (
        Container,
        Pod,
        PodAffinityTerm,
        TopologySpreadConstraint,
    )

_MEBIBYTE: Final = 1 << 20
_KIBIBYTE: Final = 1 << 10
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})
#: Taints that say that something is wrong with the node.
_TROUBLE: Final = "node.kubernetes.io/"
_PREFERENCE: Final = 100


class Relaxation(Protocol):
    """An edit of the pod that can be made in steps, from 1 to `steps`."""

    @property
    def action(self) -> str:
        """The kind of edit."""

    @property
    def steps(self) -> int:
        """How many steps can be made."""

    def on(self, pod: Pod, steps: int) -> Pod:
        """The pod after the edit."""

    def cost(self, steps: int) -> float:
        """How much is given up; docs/fit.md has the table."""

    def sentence(self, steps: int) -> str:
        """What is done, in words."""


# Requests -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LowerRequest:
    """A lower request of one container for one resource, in steps of one unit."""

    field: str  #: `containers`, `init_containers`, or empty for the pod as a whole
    index: int
    name: str
    resource: str
    amount: int
    unit: int

    action = "request"

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
        text = self._text(steps)
        if not self.field:
            resources = self._lowered(pod.spec.resources or ResourceRequirements(), text)
            return replace(pod, spec=replace(pod.spec, resources=resources))
        containers: list[Container] = list(getattr(pod.spec, self.field))
        if self.index >= len(containers):
            return pod
        container = containers[self.index]
        lowered = self._lowered(container.resources or ResourceRequirements(), text)
        containers[self.index] = replace(container, resources=lowered)
        return replace(pod, spec=replace(pod.spec, **{self.field: containers}))

    def _lowered(self, resources: ResourceRequirements, text: str) -> ResourceRequirements:
        found = replace(resources, requests=(resources.requests or {}) | {self.resource: text})
        if _limits_are_requests(self.resource) and self.resource in (resources.limits or {}):
            found = replace(found, limits=(resources.limits or {}) | {self.resource: text})
        return found

    def _text(self, steps: int) -> str:
        left = self.left(steps)
        if self.resource == "cpu":
            return format_amount("cpu", left)
        suffix = {_MEBIBYTE: "Mi", _KIBIBYTE: "Ki"}.get(self.unit, "")
        return f"{left // self.unit}{suffix}" if left else "0"

    def cost(self, steps: int) -> float:
        """1, and up to 4 more for the share of the request that is given up."""
        return round(1 + 4 * (self.amount - self.left(steps)) / self.amount, 2)

    def sentence(self, steps: int) -> str:
        """The container, the resource, and both amounts."""
        whose = f"container {self.name}" if self.field else "the pod"
        before = format_amount(self.resource, self.amount)
        return f"lower the {self.resource} request of {whose} from {before} to {self._text(steps)}"


def _requests(pod: Pod) -> Iterator[Relaxation]:
    for field in ("containers", "init_containers"):
        containers: list[Container] = getattr(pod.spec, field) or []
        for index, container in enumerate(containers):
            name = container.name or f"number {index}"
            for resource, amount, unit in _amounts(container.resources):
                yield LowerRequest(field, index, name, resource, amount, unit)
    for resource, amount, unit in _amounts(pod.spec.resources):
        yield LowerRequest("", 0, "", resource, amount, unit)


def _amounts(resources: ResourceRequirements | None) -> Iterator[tuple[str, int, int]]:
    """Resource, amount and unit of each request that is not 0."""
    for resource, raw in ((resources and resources.requests) or {}).items():
        amount = milli(raw) if resource == "cpu" else value(raw)
        if amount > 0:
            yield resource, amount, _unit(resource, amount)


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


# What is done or not --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Single:
    """An edit with one step; the base of those that follow."""

    steps = 1

    def on(self, pod: Pod, steps: int) -> Pod:  # noqa: ARG002  there is one step
        """The pod after the edit."""
        return self.edited(pod)

    def edited(self, pod: Pod) -> Pod:
        """The pod after the edit."""
        raise NotImplementedError


@dataclass(frozen=True)
class AddToleration(_Single):
    """A toleration for one taint, for all taints of a key, or for all taints."""

    toleration: Toleration

    action = "toleration"

    @override
    def edited(self, pod: Pod) -> Pod:
        tolerations = [*(pod.spec.tolerations or ()), self.toleration]
        return replace(pod, spec=replace(pod.spec, tolerations=tolerations))

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """Little for a taint that keeps nodes apart, much for one that reports trouble."""
        if not self.toleration.key:
            return 9
        if self.toleration.key.startswith(_TROUBLE):
            return 8
        return 3 if self.toleration.effect == "NoSchedule" else 4

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The taint that is tolerated."""
        key = self.toleration.key
        if not key:
            return "tolerate all taints"
        if not self.toleration.effect:
            return f"tolerate every taint with the key {key}"
        text = f"{key}={self.toleration.value}" if self.toleration.value else key
        return f"tolerate the taint {text}:{self.toleration.effect}"


def _tolerations(pod: Pod, nodes: Iterable[Node]) -> Iterator[Relaxation]:
    taints: dict[Taint, None] = {}
    for node in nodes:
        for taint in node.spec.taints or ():
            if taint.effect in _HARD and not tolerated(pod.spec.tolerations, taint):
                taints[taint] = None
        if node.spec.unschedulable:
            found = Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule")
            if found not in (pod.spec.tolerations or ()):
                taints[_taint_of(found)] = None
    keys: dict[str, int] = {}
    for taint in taints:
        operator = "Equal" if taint.value else "Exists"
        yield AddToleration(Toleration(taint.key, operator, taint.value, taint.effect))
        keys[taint.key] = keys.get(taint.key, 0) + 1
    for key, number in keys.items():
        if number > 1:
            yield AddToleration(Toleration(key, "Exists"))
    if len(keys) > 1:
        yield AddToleration(Toleration("", "Exists"))


def is_for_all_taints(relaxation: Relaxation) -> bool:
    """Whether it tolerates all taints, where a toleration for some may do."""
    return isinstance(relaxation, AddToleration) and not relaxation.toleration.key


def _taint_of(toleration: Toleration) -> Taint:
    from podium.objects.kinds.node import Taint  # noqa: PLC0415  a value, once

    return Taint(toleration.key, toleration.value, toleration.effect)


@dataclass(frozen=True)
class DropSelector(_Single):
    """One label less in the node selector."""

    key: str
    value: str

    action = "selector"

    @override
    def edited(self, pod: Pod) -> Pod:
        kept = {k: v for k, v in (pod.spec.node_selector or {}).items() if k != self.key}
        return replace(pod, spec=replace(pod.spec, node_selector=kept))

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """The same for every label."""
        return 4

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The label that is no longer required."""
        return f"no longer require the node label {self.key}={self.value}"


@dataclass(frozen=True)
class DropNodeExpression(_Single):
    """One expression less in a required term of node affinity."""

    term: NodeSelectorTerm
    expression: LabelSelectorRequirement
    of_fields: bool

    action = "node affinity"

    @override
    def edited(self, pod: Pod) -> Pod:
        terms = [_without(self) if each == self.term else each for each in _node_terms(pod)]
        return _with_node_terms(pod, terms)

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """The same for every expression."""
        return 4

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The expression that is no longer required."""
        return f"no longer require {_expression_text(self.expression)} in the node affinity"


def _without(edit: DropNodeExpression) -> NodeSelectorTerm:
    term = edit.term
    name = "match_fields" if edit.of_fields else "match_expressions"
    listed: list[LabelSelectorRequirement] = list(getattr(term, name) or ())
    if edit.expression in listed:
        listed.remove(edit.expression)
    return replace(term, **{name: listed or None})


@dataclass(frozen=True)
class PreferNodes(_Single):
    """Required node affinity made a preference."""

    action = "node affinity"

    @override
    def edited(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        assert affinity is not None
        assert affinity.node_affinity is not None
        wanted = [t for t in _node_terms(pod) if t.match_expressions or t.match_fields]
        preferred = [
            *(affinity.node_affinity.preferred or ()),
            *(PreferredSchedulingTerm(_PREFERENCE, term) for term in wanted),
        ]
        changed = replace(affinity.node_affinity, required=None, preferred=preferred or None)
        spec = replace(pod.spec, affinity=replace(affinity, node_affinity=changed))
        return replace(pod, spec=spec)

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """More than one expression less."""
        return 5

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """What becomes a preference."""
        return "make the required node affinity a preference"


def _node_terms(pod: Pod) -> list[NodeSelectorTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return list((affinity and affinity.required and affinity.required.node_selector_terms) or ())


def _requires_nodes(pod: Pod) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity is not None and affinity.required is not None


def _with_node_terms(pod: Pod, terms: list[NodeSelectorTerm]) -> Pod:
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    changed = replace(affinity.node_affinity, required=NodeSelector(terms))
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=changed)))


def _node_conditions(pod: Pod) -> Iterator[Relaxation]:
    for key, wanted in (pod.spec.node_selector or {}).items():
        yield DropSelector(key, wanted)
    if not _requires_nodes(pod):
        return
    for term in dict.fromkeys(map(_frozen, _node_terms(pod))):
        found = next(each for each in _node_terms(pod) if _frozen(each) == term)
        expressions, fields = found.match_expressions or (), found.match_fields or ()
        if len(expressions) + len(fields) > 1:  # a term without any would match no node
            for expression in expressions:
                yield DropNodeExpression(found, expression, of_fields=False)
            for expression in fields:
                yield DropNodeExpression(found, expression, of_fields=True)
    yield PreferNodes()


def _frozen(term: NodeSelectorTerm) -> str:
    return repr(term)


@dataclass(frozen=True)
class PreferPods(_Single):
    """A required term of pod affinity or anti-affinity made a preference."""

    term: PodAffinityTerm
    field: str  #: `pod_affinity` or `pod_anti_affinity`

    action = "pod affinity"

    @override
    def edited(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity or Affinity()
        part: PodAffinity = getattr(affinity, self.field) or PodAffinity()
        required = list(part.required or ())
        if self.term in required:
            required.remove(self.term)
        preferred = list(part.preferred or ())
        preferred.append(WeightedPodAffinityTerm(_PREFERENCE, self.term))
        changed = replace(part, required=required or None, preferred=preferred)
        return replace(
            pod, spec=replace(pod.spec, affinity=replace(affinity, **{self.field: changed}))
        )

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """The same for every term."""
        return 4

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The term that becomes a preference."""
        relation = "with" if self.field == "pod_affinity" else "apart from"
        pods = _selector_text(self.term.label_selector)
        return f"make being {relation} {pods} per {self.term.topology_key} a preference"


def _pod_conditions(pod: Pod) -> Iterator[Relaxation]:
    affinity = pod.spec.affinity
    for field in ("pod_affinity", "pod_anti_affinity"):
        part: PodAffinity | None = getattr(affinity, field) if affinity else None
        seen: list[PodAffinityTerm] = []
        for term in (part and part.required) or ():
            if term not in seen:
                seen.append(term)
                yield PreferPods(term, field)


# Spreading ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RaiseSkew:
    """A larger maximum skew of one spread constraint, in steps of one."""

    constraint: TopologySpreadConstraint
    place: int
    steps: int

    action = "spread"

    def on(self, pod: Pod, steps: int) -> Pod:
        """Write the larger skew."""
        raised = replace(self.constraint, max_skew=self.constraint.max_skew + steps)
        return _with_constraint(pod, self.place, raised)

    def cost(self, steps: int) -> float:
        """2, and 1 for each pod more that a domain may have."""
        return 2 + steps

    def sentence(self, steps: int) -> str:
        """The constraint and both numbers."""
        skew, key = self.constraint.max_skew, self.constraint.topology_key
        return f"raise maxSkew of the spread over {key} from {skew} to {skew + steps}"


@dataclass(frozen=True)
class LowerMinDomains:
    """Fewer domains that a spread constraint asks for, in steps of one."""

    constraint: TopologySpreadConstraint
    place: int
    steps: int

    action = "spread"

    def on(self, pod: Pod, steps: int) -> Pod:
        """Write the lower number."""
        wanted = (self.constraint.min_domains or 1) - steps
        return _with_constraint(pod, self.place, replace(self.constraint, min_domains=wanted))

    def cost(self, steps: int) -> float:
        """2, and 1 for each domain less."""
        return 2 + steps

    def sentence(self, steps: int) -> str:
        """The constraint and both numbers."""
        number = self.constraint.min_domains or 1
        key = self.constraint.topology_key
        return f"lower minDomains of the spread over {key} from {number} to {number - steps}"


@dataclass(frozen=True)
class PreferSpread(_Single):
    """A spread constraint that is only a preference: ScheduleAnyway."""

    constraint: TopologySpreadConstraint
    place: int

    action = "spread"

    @override
    def edited(self, pod: Pod) -> Pod:
        soft = replace(self.constraint, when_unsatisfiable="ScheduleAnyway", min_domains=None)
        return _with_constraint(pod, self.place, soft)

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """More than a larger skew."""
        return 6

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The constraint that becomes a preference."""
        return f"make the spread over {self.constraint.topology_key} a preference (ScheduleAnyway)"


def _with_constraint(pod: Pod, place: int, constraint: TopologySpreadConstraint) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints or ())
    constraints[place] = constraint
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))


def _spreads(pod: Pod, pods: int) -> Iterator[Relaxation]:
    for place, each in enumerate(pod.spec.topology_spread_constraints or ()):
        if each.when_unsatisfiable != "DoNotSchedule":
            continue
        yield RaiseSkew(each, place, min(pods + 1, 2**31 - 1 - each.max_skew))
        if (each.min_domains or 1) > 1:
            yield LowerMinDomains(each, place, (each.min_domains or 1) - 1)
        yield PreferSpread(each, place)


# Ports and gates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DropHostPort(_Single):
    """One host port less."""

    field: str
    index: int
    place: int
    number: int

    action = "port"

    @override
    def edited(self, pod: Pod) -> Pod:
        containers: list[Container] = list(getattr(pod.spec, self.field))
        ports = list(containers[self.index].ports or ())
        ports[self.place] = replace(ports[self.place], host_port=0, host_ip="")
        containers[self.index] = replace(containers[self.index], ports=ports)
        return replace(pod, spec=replace(pod.spec, **{self.field: containers}))

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """What reaches the pod by its node's address no longer does."""
        return 5

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The port that is no longer taken."""
        return f"no longer use the host port {self.number}"


@dataclass(frozen=True)
class DropGates(_Single):
    """No scheduling gates any more."""

    names: tuple[str, ...]

    action = "gate"

    @override
    def edited(self, pod: Pod) -> Pod:
        return replace(pod, spec=replace(pod.spec, scheduling_gates=None))

    def cost(self, steps: int) -> float:  # noqa: ARG002
        """Much: the controllers that set gates remove them when they are done."""
        return 8

    def sentence(self, steps: int) -> str:  # noqa: ARG002
        """The gates that are removed."""
        gates = "gate" if len(self.names) == 1 else "gates"
        return f"remove the scheduling {gates} {', '.join(self.names)}"


def _ports_and_gates(pod: Pod) -> Iterator[Relaxation]:
    for field in ("containers", "init_containers"):
        containers: list[Container] = getattr(pod.spec, field) or []
        for index, container in enumerate(containers):
            for place, port in enumerate(container.ports or ()):
                if port.host_port:
                    yield DropHostPort(field, index, place, port.host_port)
    if pod.spec.scheduling_gates:
        yield DropGates(tuple(gate.name for gate in pod.spec.scheduling_gates))


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
