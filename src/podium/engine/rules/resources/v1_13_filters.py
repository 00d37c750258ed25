"""Predicates on the room a node has left: resources, host ports, and the bundle of basics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules import reasons as why
from podium.engine.rules.nodes.v1_13 import HostName, MatchNodeSelector
from podium.engine.rules.pod_affinity.v1_13_filter import facts_unavailable
from podium.engine.rules.predicates import BitPredicate
from podium.engine.state.accounting import NATIVE
from podium.objects.resource_names import is_extended

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View


class PodFitsResources(BitPredicate):
    """The node must have room for one more pod and for everything it requests.

    A pod that requests nothing at all needs only the room for one more pod. Otherwise cpu, memory
    and ephemeral storage are all checked, also those it requests none of: an overcommitted node
    turns it down.
    """

    name = "PodFitsResources"
    always = Scope.PODS

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        #: Extended resources that only an extender looks after.
        self.ignored = ignored

    def scope(self, cls: PodClass) -> Scope:
        """Whether ignored resources are ignored depends on facts about the whole cluster."""
        return Scope.CLUSTER if self.ignored and cls.scalars else Scope.PODS

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: only numbers are read."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def _checked(self, cls: PodClass, view: View) -> tuple[list[tuple[int, int]], list[str]]:
        """Column and amount of each resource to check, and the names, in the order reported."""
        if not any(cls.wanted) and not cls.scalars:
            return [], ["pods"]
        # The list of ignored resources is lost along with the facts about other pods.
        lost = self.ignored and facts_unavailable(cls, view)
        ignored = self.ignored if not lost else frozenset()
        return cls.once(("resources", ignored), lambda: _resources(cls, view, ignored))

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Pods, the native resources, then scalars by name."""
        return tuple(map(why.insufficient, self._checked(pod.cls, view)[1]))

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """A bit for each resource that falls short."""
        short = (at.pod_count() + 1 > at.allowed_pods()) * 1
        bit = 2
        for column, wanted in self._checked(pod.cls, at.view)[0]:
            lacking = at.allocatable(column) < at.wrap(at.requested(column) + wanted)
            short = short | (lacking * bit)
            bit <<= 1
        return short


def _resources(
    cls: PodClass, view: View, ignored: frozenset[str]
) -> tuple[list[tuple[int, int]], list[str]]:
    names = {column: name for name, column in view.resources.items()}
    scalars = sorted((names[column], column, number) for column, number in cls.scalars.items())
    kept = [s for s in scalars if not (s[0] in ignored and is_extended(s[0]))]
    amounts = [*enumerate(cls.wanted), *((column, number) for _, column, number in kept)]
    return amounts, ["pods", *NATIVE, *(name for name, _, _ in kept)]


class PodFitsHostPorts(BitPredicate):
    """No host port the pod wants may be in use on the node.

    The ip 0.0.0.0 stands for all of them, on either side.
    """

    name = "PodFitsHostPorts"

    def scope(self, cls: PodClass) -> Scope:
        """Most pods want no host port."""
        return Scope.PODS if cls.ports else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.HOST_PORTS,)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere: the ports in use are known for each row."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """A conflicting port is in use."""
        if not pod.cls.ports:
            return at.full(0)
        return at.port_conflict(pod.cls.ports) * 1


class GeneralPredicates(BitPredicate):
    """Resources, host name, host ports and node selector, all four always reported together."""

    name = "GeneralPredicates"
    always = Scope.PODS

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        resources = PodFitsResources(ignored)
        self.parts = (resources, HostName(), PodFitsHostPorts(), MatchNodeSelector())

    def scope(self, cls: PodClass) -> Scope:
        """As wide as that of the resources; the others need less."""
        return self.parts[0].scope(cls)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:  # noqa: ARG002
        """Everywhere, as all of its parts."""
        return at.full(True)  # noqa: FBT003 - a column of True

    def room_only(self, cls: PodClass) -> bool:
        """Unless more than resources is asked for."""
        return len(self._active(cls)) == 1

    def _active(self, cls: PodClass) -> list[BitPredicate]:
        """The parts that have anything to say about pods of this class."""
        return cls.once((self, "parts"), lambda: [p for p in self.parts if p.scope(cls)])

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Those of the parts, one part after the other."""
        parts = self._active(pod.cls)
        return tuple(reason for part in parts for reason in part.reasons(pod, view))

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Those of the parts, shifted apart."""
        first, *others = self._active(pod.cls)
        bits = first.bits(pod, at)
        shift = len(first.reasons(pod, at.view)) if others else 0
        for part in others:
            bits = bits | (part.bits(pod, at) << shift)
            shift += len(part.reasons(pod, at.view))
        return bits
