"""Which pods are nominated to which nodes.

Preemption nominates a pod before that is written to the API server, so a nomination can differ from
what the pod's status says.

Upstream: internal/queue/scheduling_queue.go (nominatedPodMap), Kubernetes v1.13;
backend/queue/nominator.go, v1.36.
"""

from __future__ import annotations

from podium.objects.kinds.pod import Pod


class Nominations:
    """Pods per node, in the order in which they were nominated."""

    def __init__(self, *, keep_unwritten: bool = False) -> None:
        """Without nominations. *keep_unwritten*: an update without a nomination ends none."""
        self._keep_unwritten = keep_unwritten
        #: Changes with every nomination that is made or ends.
        self.version = 0
        self._pods: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def on(self, node: str) -> tuple[Pod, ...]:
        """The pods that are nominated to this node."""
        return tuple(self._pods.get(node, {}).values())

    def node_of(self, pod: Pod) -> str:
        """The node that the pod is nominated to; empty if there is none."""
        return self._node_of.get(pod.uid, "")

    def nodes(self) -> tuple[str, ...]:
        """Every node that a pod is nominated to."""
        return tuple(self._pods)

    def set(self, pod: Pod, node: str) -> None:
        """Nominate a pod to a node, as the last one there.

        An older nomination of the pod ends; an empty *node* does no more than that.
        """
        self.remove(pod)
        if node:
            self.version += 1
            self._node_of[pod.uid] = node
            self._pods.setdefault(node, {})[pod.uid] = pod

    def show(self, pod: Pod) -> None:
        """Let this version of a pod count where it is nominated, in its place."""
        node = self._node_of.get(pod.uid)
        if node is not None and self._pods[node][pod.uid] is not pod:
            self.version += 1
            self._pods[node][pod.uid] = pod

    def refresh(self, pod: Pod) -> None:
        """Take over the nomination in the pod's status, whatever it was before."""
        self.set(pod, pod.status.nominated_node_name)

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by its newer version.

        In v1.13 the status of the new version decides, so an update that was under way when the
        pod was nominated undoes it. v1.36 keeps a nomination that neither version has.
        """
        known = self.node_of(old)
        self.remove(old)
        written = old.status.nominated_node_name or new.status.nominated_node_name
        unwritten = self._keep_unwritten and known and not written
        self.set(new, known if unwritten else new.status.nominated_node_name)

    def remove(self, pod: Pod) -> None:
        """End the nomination of a pod, if there is one."""
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        self.version += 1
        pods = self._pods[node]
        del pods[pod.uid]
        if not pods:
            del self._pods[node]
