"""The API server behind an extender: nodes and pods are watched, bindings are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.errors import PodiumError
from podium.kube.client import ApiClient
from podium.kube.errors import UnreachableError
from podium.kube.own_tasks import OwnTasks
from podium.kube.reflector import Reflector
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from podium.extender.cluster_state import ExtenderState
    from podium.kube.access import Access


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
