"""Which pods were promised which nodes.

A promise is made by preemption before it is written to the API server, so it can differ from what
the pod's status says.

Upstream: internal/queue/scheduling_queue.go (nominatedPodMap), Kubernetes v1.13;
backend/queue/nominator.go, v1.36.
"""

from __future__ import annotations

from podium.objects.kinds.pod import Pod


class Nominations:
    """Pods per node, in the order in which they were nominated."""

    def __init__(self, *, keep_unwritten: bool = False) -> None:
        """No promises. *keep_unwritten*: an update that knows of no promise does not end one."""
        self._keep_unwritten = keep_unwritten
        #: Changes with every promise that is made or ends.
        self.version = 0
        self._pods: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods that were promised this node."""
        return tuple(self._pods.get(node, {}).values())

    def node_of(self, pod: Pod) -> str:
        """The node promised to the pod, or nothing."""
        return self._node_of.get(pod.uid, "")

    def nodes(self) -> tuple[str, ...]:
        """Every node that was promised to somebody."""
        return tuple(self._pods)

    def set(self, pod: Pod, node: str) -> None:
        """Promise a node to a pod, which goes to the end of the line there.

        An older promise to the same pod ends; an empty *node* does no more than that.
        """
        self.remove(pod)
        if node:
            self.version += 1
            self._node_of[pod.uid] = node
            self._pods.setdefault(node, {})[pod.uid] = pod

    def refresh(self, pod: Pod) -> None:
        """Believe what the pod's status says, whatever was promised before."""
        self.set(pod, pod.status.nominated_node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by its newer version.

        In v1.13 the status of the new version decides, so an update that was under way when the
        promise was made undoes it. Later versions keep a promise of which neither version knows.
        """
        known = self.node_of(old)
        self.remove(old)
        written = old.status.nominated_node_name or new.status.nominated_node_name
        unwritten = self._keep_unwritten and known and not written
        self.set(new, known if unwritten else new.status.nominated_node_name)

    def remove(self, pod: Pod) -> None:
        """End the promise to a pod, if there is one."""
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        self.version += 1
        pods = self._pods[node]
        del pods[pod.uid]
        if not pods:
            del self._pods[node]
