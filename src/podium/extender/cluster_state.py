"""The extender's copy of the cluster: nodes and placed pods, held in columns.

It is filled from files, from an API server, or from the nodes that a scheduler sends with its
requests. Requests carry no placed pods, so in the last case resource rules see empty nodes. With an
API server, nodes and pods are watched and bindings are written.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.cluster.simulation import Simulation
from podium.errors import PodiumError
from podium.extender import wire
from podium.kube.client import ApiClient
from podium.kube.errors import UnreachableError
from podium.kube.own_tasks import OwnTasks
from podium.kube.reflector import Reflector
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from podium.cluster.cache.columns import Columns
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.kube.access import Access
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


class _NodeSink:
    """Writes what a reflector of nodes reports into the cluster state."""

    def __init__(self, state: ExtenderState) -> None:
        self.replace, self.put = state.replace_nodes, state.put_node
        self._drop = state.drop_node

    def drop(self, node: Node) -> None:
        self._drop(node.name)


class _PodSink:
    """Writes what a reflector of pods reports into the cluster state."""

    def __init__(self, state: ExtenderState) -> None:
        self.replace, self.put = state.replace_pods, state.put_pod
        self._drop = state.drop_pod

    def drop(self, pod: Pod) -> None:
        self._drop(pod.uid)


class ClusterFollower:
    """Keeps a cluster state in step with an API server. Use it in an `async with`."""

    def __init__(
        self, access: Access, state: ExtenderState, warn: Callable[[str], None], **options: Any
    ) -> None:
        """Warnings go to *warn*; *options* are passed to the reflectors."""
        self._access = access
        self._client = ApiClient(access)
        self._state = state
        self._options = {"warn": warn, **options}
        self._reflectors: list[Reflector[Any]] = []
        self._tasks = OwnTasks()

    @property
    def synced(self) -> bool:
        """Whether nodes and pods were listed once."""
        return bool(self._reflectors) and all(each.synced.is_set() for each in self._reflectors)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        nodes, pods = _NodeSink(self._state), _PodSink(self._state)
        node, pod = msgspec.json.Decoder(Node), msgspec.json.Decoder(Pod)
        self._reflectors = [
            Reflector(self._client, "/api/v1/nodes", node, nodes, **self._options),
            Reflector(self._client, "/api/v1/pods", pod, pods, **self._options),
        ]
        for each in self._reflectors:
            self._tasks.start("a watch of the cluster", each.run())
        return self

    async def until_dead(self) -> None:
        """Wait until a watch has ended by itself, and raise its exception."""
        await self._tasks.until_one_dies()

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.end()
        await self._client.__aexit__()

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind a pod to a node and assume it there; the error, empty on success."""
        try:
            await self._client.bind(namespace, name, uid, node)
        except UnreachableError as error:
            return f"binding {namespace}/{name}: {error}"
        except PodiumError as error:
            return str(error)
        self._state.assume(uid, node)
        return ""
