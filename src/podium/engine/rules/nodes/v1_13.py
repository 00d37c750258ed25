"""Predicates on the node alone: conditions, cordons, taints, pressure, labels, name, selector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.rule import Scope
from podium.engine.rows.node_match import selects, selects_any
from podium.engine.rules import reasons as why
from podium.engine.rules.predicates import BitPredicate
from podium.engine.state.accounting import is_best_effort
from podium.objects.kinds.node import Taint
from podium.objects.kinds.pod import Toleration
from podium.objects.selectors.selectors import NodeTerm, Selector, from_map, node_terms
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class CheckNodeCondition(BitPredicate):
    """The node must be ready, reachable by network, have disk space and not be cordoned.

    A condition that is not reported is fine; one that is `Unknown` is not.
    """

    name = "CheckNodeCondition"

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """All of them are reported, in this order."""
        return (why.NOT_READY, why.OUT_OF_DISK, why.NETWORK_UNAVAILABLE, why.UNSCHEDULABLE)

    def reject(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """The order of the reasons is the order of the conditions, so verdicts are made whole."""
        facts, verdicts = at.view.facts, at.view.verdicts
        found = at.fact(
            facts.conditions,
            lambda conditions: verdicts.of(self.name, _bad(conditions)) if _bad(conditions) else 0,
        )
        cordoned = at.fact(facts.unschedulable, bool)
        both = at.fact(
            facts.conditions,
            lambda conditions: verdicts.of(self.name, (*_bad(conditions), why.UNSCHEDULABLE)),
        )
        return at.where(cordoned, both, found)


def _bad(conditions: tuple[tuple[str, str], ...]) -> tuple[Reason, ...]:
    wanted = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
    texts = {
        "Ready": why.NOT_READY,
        "OutOfDisk": why.OUT_OF_DISK,
        "NetworkUnavailable": why.NETWORK_UNAVAILABLE,
    }
    return tuple(texts[kind] for kind, status in conditions if status != wanted.get(kind, status))


class CheckNodeUnschedulable(BitPredicate):
    """A cordoned node takes only pods that tolerate its being cordoned."""

    name = "CheckNodeUnschedulable"

    def scope(self, cls: PodClass) -> Scope:
        """Nothing to check for a pod that tolerates it."""
        return Scope.NONE if tolerated(cls.spec.tolerations, UNSCHEDULABLE_TAINT) else Scope.NODE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.UNSCHEDULABLE,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Cordoned and not tolerated."""
        if tolerated(pod.cls.spec.tolerations, UNSCHEDULABLE_TAINT):
            return at.full(0)
        return at.fact(at.view.facts.unschedulable, int)


class HostName(BitPredicate):
    """A pod that names its node fits that node only."""

    name = "HostName"

    def scope(self, cls: PodClass) -> Scope:
        """Pods to be scheduled name no node."""
        return Scope.NODE if cls.host else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.HOST_NAME,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Another node than the one named."""
        wanted = pod.cls.host
        return (at.is_node(wanted) ^ True) * 1 if wanted else at.full(0)


class MatchNodeSelector(BitPredicate):
    """The node must match the pod's nodeSelector and required node affinity."""

    name = "MatchNodeSelector"

    def scope(self, cls: PodClass) -> Scope:
        """Most pods select nothing."""
        return Scope.NODE if any(required_node(cls)) else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.NODE_SELECTOR,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Not matching."""
        return (matches_required_node(pod.cls, at) ^ True) * 1


Required = tuple[Selector | None, tuple[NodeTerm, ...] | None]


def required_node(cls: PodClass) -> Required:
    """The compiled nodeSelector and required terms; None where the pod has none."""
    return cls.once("required node", lambda: _required_node(cls))


def _required_node(cls: PodClass) -> Required:
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    selector = from_map(cls.spec.node_selector) if cls.spec.node_selector else None
    terms = node_terms(required) if required is not None else None
    return selector, (
        terms if terms is None or terms else (NodeTerm(Selector(nothing=True), None),)
    )


def matches_required_node(cls: PodClass, at: Rows) -> Flags:
    """Whether rows match the pod's nodeSelector and required node affinity."""
    selector, terms = required_node(cls)
    matched = at.full(True) if selector is None else selects(at, selector)  # noqa: FBT003
    return matched if terms is None else matched & selects_any(at, terms)


class PodToleratesNodeTaints(BitPredicate):
    """Every taint that forbids scheduling must be tolerated."""

    name = "PodToleratesNodeTaints"
    effects = frozenset({"NoSchedule", "NoExecute"})

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.TAINTS,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some taint is not tolerated."""
        tolerations = pod.cls.spec.tolerations
        return at.fact(at.view.facts.taints, lambda taints: self._blocked(tolerations, taints))

    def _blocked(self, tolerations: list[Toleration] | None, taints: tuple[Taint, ...]) -> int:
        return int(any(t.effect in self.effects and not tolerated(tolerations, t) for t in taints))


class PodToleratesNodeNoExecuteTaints(PodToleratesNodeTaints):
    """Only taints that evict must be tolerated."""

    name = "PodToleratesNodeNoExecuteTaints"
    effects = frozenset({"NoExecute"})


class CheckNodeLabelPresence(BitPredicate):
    """All of some label keys must exist on the node, or none of them may."""

    def __init__(
        self, labels: list[str], *, presence: bool, name: str = "CheckNodeLabelPresence"
    ) -> None:
        self.name = name
        self.labels = labels
        self.presence = presence

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Nothing to check without labels."""
        return Scope.NODE if self.labels else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.LABEL_PRESENCE,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """A wanted key is missing, or an unwanted one is there."""
        wrong = at.full(0)
        for key in self.labels:
            wrong = wrong | (at.has_label(key) != self.presence)
        return wrong * 1


class _Pressure(BitPredicate):
    """A node under some pressure takes no new pods."""

    condition: str
    reason: Reason

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (self.reason,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """The node reports the pressure."""
        return at.fact(at.view.facts.pressures, lambda pressures: int(self.condition in pressures))


class CheckNodeMemoryPressure(_Pressure):
    """A node short of memory takes no pods that promise nothing about theirs."""

    name = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    reason = why.MEMORY_PRESSURE

    def scope(self, cls: PodClass) -> Scope:
        """Only pods without any request or limit are kept away."""
        best_effort: Any = cls.once("best effort", lambda: is_best_effort(cls.sample))
        return Scope.NODE if best_effort else Scope.NONE

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """The node reports the pressure, and the pod is of the kind that feels it."""
        return super().bits(pod, at) if self.scope(pod.cls) else at.full(0)


class CheckNodeDiskPressure(_Pressure):
    """A node short of disk takes no pods."""

    name = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    reason = why.DISK_PRESSURE


class CheckNodePIDPressure(_Pressure):
    """A node short of process ids takes no pods."""

    name = "CheckNodePIDPressure"
    condition = "PIDPressure"
    reason = why.PID_PRESSURE
