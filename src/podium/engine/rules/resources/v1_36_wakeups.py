"""Which events wake pods that NodeResourcesFit rejected.

Upstream: the queueing hints of noderesources, Kubernetes v1.36.
"""

from __future__ import annotations

import msgspec

from podium.engine.framework.declaration import Requests
from podium.engine.rules.v1_36_wakeups import holds_place
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.quantity import milli, value
from podium.objects.resource_names import is_extended


class ResourceHints(msgspec.Struct, frozen=True):
    """Room was made, or may have been, for what the pod asks for."""

    requests: Requests

    def pod_gone(self, _waiting: Pod, old: Pod, _new: None) -> bool:
        """Any pod that took room went."""
        return holds_place(old)

    def scaled_down(self, waiting: Pod, old: Pod, new: Pod) -> bool:
        """The pod itself asks for less, or an assigned one for less of what it asks for."""
        if new.uid == waiting.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = self.requests(old), self.requests(new)
        return any(
            amount and before.get(name, 0) > after.get(name, 0)
            for name, amount in self.requests(waiting).items()
        )

    def node_grew(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        """The pod fits on the node when empty, and the node is new or has more of its wants."""
        wants = {name: amount for name, amount in self.requests(waiting).items() if amount}
        room = {name: allocatable(new, name) for name in (*wants, "pods")}
        if room["pods"] < 1 or any(room[name] < amount for name, amount in wants.items()):
            return False
        return old is None or any(room[name] > allocatable(old, name) for name in room)

    def device_class(self, waiting: Pod, _old: object, _new: object) -> bool:
        """A class of devices may stand for an extended resource that the pod asks for."""
        return any(amount and is_extended(name) for name, amount in self.requests(waiting).items())


def allocatable(node: Node, name: str) -> int:
    """How much of a resource a node offers."""
    raw = (node.status.allocatable or {}).get(name, 0)
    return milli(raw) if name == "cpu" else value(raw)
