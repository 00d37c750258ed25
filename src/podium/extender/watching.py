"""The cluster as an extender sees it: nodes and pods, followed from an API server; and binding."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from podium.errors import PodiumError
from podium.kube.client import ApiClient
from podium.kube.errors import UnreachableError
from podium.kube.reflector import Reflector
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from podium.extender.knowledge import Knowledge
    from podium.kube.access import Access


class _Nodes:
    """Tells the knowledge about nodes."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.replace, self.put = knowledge.replace_nodes, knowledge.put_node
        self._drop = knowledge.drop_node

    def drop(self, node: Node) -> None:
        self._drop(node.name)


class _Pods:
    """Tells the knowledge about pods."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.replace, self.put = knowledge.replace_pods, knowledge.put_pod
        self._drop = knowledge.drop_pod

    def drop(self, pod: Pod) -> None:
        self._drop(pod.uid)


class Watcher:
    """Keeps the knowledge up to date, and binds pods. To be used in an `async with`."""

    def __init__(
        self, access: Access, knowledge: Knowledge, tell: Callable[[str], None], **options: Any
    ) -> None:
        """The *options* are those of reflectors."""
        self._access = access
        self._client = ApiClient(access)
        self._knowledge = knowledge
        self._options = {"tell": tell, **options}
        self._reflectors: list[Reflector[Any]] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether everything was listed once."""
        return bool(self._reflectors) and all(each.synced.is_set() for each in self._reflectors)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        nodes, pods = _Nodes(self._knowledge), _Pods(self._knowledge)
        node, pod = msgspec.json.Decoder(Node), msgspec.json.Decoder(Pod)
        self._reflectors = [
            Reflector(self._client, "/api/v1/nodes", node, nodes, **self._options),
            Reflector(self._client, "/api/v1/pods", pod, pods, **self._options),
        ]
        self._tasks = [asyncio.create_task(each.run()) for each in self._reflectors]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.__aexit__()

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind a pod; why it did not work, or nothing."""
        try:
            await self._client.bind(namespace, name, uid, node)
        except UnreachableError as error:
            return f"binding {namespace}/{name}: {error}"
        except PodiumError as error:
            return str(error)
        self._knowledge.bound(uid, node)
        return ""
