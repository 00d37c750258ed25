"""Predicates on the room a node has left: resources, host ports, and the bundle of basics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.accounting import NATIVE
from podium.engine.contracts import Scope
from podium.engine.predicates import reasons as why
from podium.engine.predicates.base import BitPredicate
from podium.engine.predicates.nodes import HostName, MatchNodeSelector
from podium.objects.resources import is_extended

if TYPE_CHECKING:
    from podium.engine.pod_class import Incoming, PodClass
    from podium.engine.rows import Rows
    from podium.engine.tallies import Ints
    from podium.engine.verdicts import Reason
    from podium.engine.view import View


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

    def _scalars(self, pod: Incoming, view: View) -> list[tuple[str, int, int]]:
        """Name, column and amount of each scalar to check, by name."""
        names = {column: name for name, column in view.resources.items()}
        # The list of ignored resources travels with facts that a ghost row makes unavailable.
        ignored = self.ignored if not view.ghosts else frozenset()
        wanted = sorted((names[column], column, n) for column, n in pod.cls.scalars.items())
        return [s for s in wanted if not (s[0] in ignored and is_extended(s[0]))]

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Pods, the native resources, then scalars by name."""
        if _wants_nothing(pod.cls):
            return (why.insufficient("pods"),)
        names = ["pods", *NATIVE]
        if pod.cls.scalars:
            names += [name for name, _, _ in self._scalars(pod, view)]
        return tuple(map(why.insufficient, names))

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """A bit for each resource that falls short."""
        short = (at.pod_count() + 1 > at.allowed_pods()) * 1
        if _wants_nothing(pod.cls):
            return short
        for i, wanted in enumerate(pod.cls.wanted):
            lacking = at.allocatable(i) < at.wrap(at.requested(i) + wanted)
            short = short | (lacking * (2 << i))
        if pod.cls.scalars:
            for i, (_, column, wanted) in enumerate(self._scalars(pod, at.view)):
                lacking = at.allocatable(column) < at.wrap(at.requested(column) + wanted)
                short = short | (lacking * (16 << i))
        return short


def _wants_nothing(cls: PodClass) -> bool:
    return not any(cls.wanted) and not cls.scalars


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

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """Those of the parts, one part after the other."""
        return tuple(
            reason
            for part in self.parts
            if part.scope(pod.cls)
            for reason in part.reasons(pod, view)
        )

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Those of the parts, shifted apart."""
        bits, shift = at.full(0), 0
        for part in self.parts:
            if part.scope(pod.cls):
                bits = bits | (part.bits(pod, at) << shift)
                shift += len(part.reasons(pod, at.view))
        return bits
