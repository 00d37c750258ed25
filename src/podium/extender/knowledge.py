"""What the extender knows of the cluster: from requests, from files, or from the API server.

Pods are counted where somebody tells of them (files, the API server); a scheduler that sends whole
nodes with its requests sends no pods, so rules about room see empty nodes then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.cluster.simulation import Simulation
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.cluster.cache.columns import Columns
    from podium.engine.framework.profile import Profile
    from podium.objects.reading.collection import Objects

_node = msgspec.json.Decoder(Node)


class Knowledge:
    """Nodes and placed pods, kept in columns."""

    def __init__(self, profile: Profile) -> None:
        self._simulation = Simulation(profile)
        #: Placed pods, and those that wait, by uid.
        self._placed: dict[str, Pod] = {}
        self._waiting: dict[str, Pod] = {}
        #: The text of nodes that came with requests, to notice when one changes.
        self._texts: dict[str, bytes] = {}

    @property
    def columns(self) -> Columns:
        """The cluster as the rules read it."""
        return self._simulation.cache.columns

    def load(self, objects: Objects) -> None:
        """Take over everything in some files."""
        pods, objects.pods = objects.pods, []
        self._simulation.load(objects)
        objects.pods = pods
        for pod in pods:
            self.put_pod(pod)

    # Nodes
    def put_node(self, node: Node) -> None:
        """A node was added or changed."""
        self.columns.put_node(node)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self.columns.drop_node(name)

    def replace_nodes(self, nodes: Iterable[Node]) -> None:
        """These are all nodes there are."""
        listed = {node.name: node for node in nodes}
        for name in [name for name, row in self.columns.row_of.items() if self.columns.known[row]]:
            if name not in listed:
                self.drop_node(name)
        for node in listed.values():
            self.put_node(node)

    def take(self, nodes: Mapping[str, msgspec.Raw]) -> None:
        """Nodes that came with a request; read only if they are new or have changed."""
        for name, raw in nodes.items():
            text = bytes(raw)
            if self._texts.get(name) != text or name not in self.columns.row_of:
                self.columns.put_node(_node.decode(raw))
                self._texts[name] = text

    def knows(self, name: str) -> bool:
        """Whether there is such a node."""
        row = self.columns.row_of.get(name)
        return row is not None and bool(self.columns.known[row])

    # Pods
    def put_pod(self, pod: Pod) -> None:
        """A pod was added or changed; one that has finished is gone."""
        known = self._placed.get(pod.uid)
        if pod.finished or not pod.spec.node_name:
            if pod.finished or known is None:
                self.drop_pod(pod.uid)
            if not pod.finished and known is None:
                self._waiting[pod.uid] = pod
            return
        self._waiting.pop(pod.uid, None)
        if known == pod:
            return
        if known is not None:
            self.columns.remove_pod(pod.uid)
        self.columns.add_pod(pod)
        self._placed[pod.uid] = pod

    def drop_pod(self, uid: str) -> None:
        """A pod is gone."""
        self._waiting.pop(uid, None)
        if self._placed.pop(uid, None) is not None:
            self.columns.remove_pod(uid)

    def replace_pods(self, pods: Iterable[Pod]) -> None:
        """These are all pods there are."""
        listed = {pod.uid: pod for pod in pods}
        for uid in [*self._placed, *self._waiting]:
            if uid not in listed:
                self.drop_pod(uid)
        for pod in listed.values():
            self.put_pod(pod)

    def bound(self, uid: str, node: str) -> None:
        """A pod was bound: it counts on its node before the API server says so."""
        pod = self._waiting.get(uid)
        if pod is not None:
            spec = msgspec.structs.replace(pod.spec, node_name=node)
            self.put_pod(msgspec.structs.replace(pod, spec=spec))
