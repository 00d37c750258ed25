"""The extender's copy of the cluster: nodes and placed pods, held in columns.

It is filled from files, from an API server, or from the nodes that a scheduler sends with its
requests. Requests carry no placed pods, so in the last case resource rules see empty nodes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from podium.cluster.simulation import Simulation
from podium.extender import wire
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from podium.cluster.cache.columns import Columns
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.reading.collection import Objects

#: So long nodes are kept that came with requests and do not come any more.
FORGET_SECONDS: Final = 600.0


class ExtenderState:
    """Nodes and placed pods by name and uid; pending pods until they are bound."""

    def __init__(self, profile: Profile, clock: Callable[[], float] = time.monotonic) -> None:
        """Hold a cluster for the rules of *profile*; *clock* says how old requests are."""
        self._simulation = Simulation(profile, score_single=True)
        self._placed: dict[str, Pod] = {}
        self._pending: dict[str, Pod] = {}
        #: The JSON of nodes that came with requests; an unchanged node is not decoded again.
        self._encoded: dict[str, bytes] = {}
        #: When nodes that are known from requests alone last came with one, the oldest first.
        self._asked_at: OrderedDict[str, float] = OrderedDict()
        self._clock = clock

    @property
    def columns(self) -> Columns:
        """The columns that rules read."""
        return self._simulation.cache.columns

    def look(self, pod: Pod, profile: Profile, names: Sequence[str]) -> Decision:
        """Decide about a pod on the named nodes, with every verdict and every score."""
        rows = self.columns.nodes.rows_named(names)
        return self._simulation.decider.look(pod, profile, order=rows)

    def load(self, objects: Objects) -> None:
        """Add all objects that were read from files."""
        pods, objects.pods = objects.pods, []
        self._simulation.load(objects)
        objects.pods = pods
        for pod in pods:
            self.put_pod(pod)

    # Nodes
    def put_node(self, node: Node) -> None:
        """Add or replace a node."""
        self._forget_request(node.name)
        self.columns.put_node(node)

    def drop_node(self, name: str) -> None:
        """Remove a node; its pods stay until they are removed themselves."""
        self._forget_request(name)
        self.columns.drop_node(name)

    def replace_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace all nodes by those of a list."""
        listed = {node.name: node for node in nodes}
        for name in [
            name for name, row in self.columns.nodes.row_of.items() if self.columns.nodes.known[row]
        ]:
            if name not in listed:
                self.drop_node(name)
        for node in listed.values():
            self.put_node(node)

    def put_encoded_nodes(self, nodes: Mapping[str, msgspec.Raw]) -> None:
        """Add the nodes of a request; only new and changed ones are decoded.

        A request has the nodes that fit so far, so one that is not in it may exist. It is forgotten
        when no request had it for a while.
        """
        now = self._clock()
        for name, raw in nodes.items():
            text = bytes(raw)
            if name in self._asked_at or not self.has_node(name):
                self._asked_at[name] = now
                self._asked_at.move_to_end(name)
            if self._encoded.get(name) != text or name not in self.columns.nodes.row_of:
                self.columns.put_node(wire.decode_object(raw, Node, f"node {name}"))
                self._encoded[name] = text
        while self._asked_at and next(iter(self._asked_at.values())) < now - FORGET_SECONDS:
            self.drop_node(next(iter(self._asked_at)))

    def _forget_request(self, name: str) -> None:
        self._asked_at.pop(name, None)
        self._encoded.pop(name, None)

    def has_node(self, name: str) -> bool:
        """Whether a node of this name exists."""
        row = self.columns.nodes.row_of.get(name)
        return row is not None and bool(self.columns.nodes.known[row])

    # Pods
    def put_pod(self, pod: Pod) -> None:
        """Add or replace a pod; a finished pod is removed."""
        known = self._placed.get(pod.uid)
        if pod.finished or not pod.spec.node_name:
            if pod.finished or known is None:
                self.drop_pod(pod.uid)
            if not pod.finished and known is None:
                self._pending[pod.uid] = pod
            return
        self._pending.pop(pod.uid, None)
        if known == pod:
            return
        if known is not None:
            self.columns.remove_pod(pod.uid)
        self.columns.add_pod(pod)
        self._placed[pod.uid] = pod

    def drop_pod(self, uid: str) -> None:
        """Remove a placed or pending pod, if it exists."""
        self._pending.pop(uid, None)
        if self._placed.pop(uid, None) is not None:
            self.columns.remove_pod(uid)

    def replace_pods(self, pods: Iterable[Pod]) -> None:
        """Replace all pods by those of a list."""
        listed = {pod.uid: pod for pod in pods}
        for uid in [*self._placed, *self._pending]:
            if uid not in listed:
                self.drop_pod(uid)
        for pod in listed.values():
            self.put_pod(pod)

    def assume(self, uid: str, node: str) -> None:
        """Place a pod that was just bound, before the watch confirms it."""
        pod = self._pending.get(uid)
        if pod is not None:
            spec = msgspec.structs.replace(pod.spec, node_name=node)
            self.put_pod(msgspec.structs.replace(pod, spec=spec))
