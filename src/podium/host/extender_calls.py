"""Calls to the extenders of a scheduler's profiles: questions of the engine, and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.framework.extenders import interested
from podium.extender.client import ExtenderClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from podium.engine.framework.profile import Profile
    from podium.extender.client import Post
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.cluster_state import ClusterState


class ExtenderCalls:
    """Asks extenders about the pods of one scheduler. Use it in an `async with`.

    Extenders are asked about nodes and pods by name, so `state` must be set before the first call.
    """

    def __init__(self, warn: Callable[[str], None], post: Post | None = None) -> None:
        """Ask over HTTP, or through *post*."""
        self.state: ClusterState | None = None
        self._client = ExtenderClient(self, warn, post)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    def node(self, name: str) -> Node | None:
        """The node with this name, as it is sent to extenders."""
        assert self.state is not None
        return self.state.node(name)

    def pod(self, uid: str) -> Pod | None:
        """The placed pod with this uid, as it is sent to extenders."""
        assert self.state is not None
        resident = self.state.cache.columns.pods.by_uid.get(uid)
        return None if resident is None else self.state.pod_named(resident.key)

    async def ask(self, question: Any) -> Any:
        """Answer a question of the engine."""
        return await self._client.ask(question)

    async def bind(self, profile: Profile, pod: Pod, node: str) -> str | None:
        """Let the first extender that binds this pod do so: its error, or "" for none.

        None means that no extender of the profile binds the pod. An ignorable extender that fails
        is passed over.
        """
        assert self.state is not None
        incoming = self.state.cache.columns.pods.incoming(pod)
        for extender in profile.extenders:
            if not extender.bind_verb or not interested(extender, incoming):
                continue
            error: str = await self._client.bind(extender, pod, node)
            if error and extender.ignorable:
                self._client.ignored(extender, error)
                continue
            return error
        return None
