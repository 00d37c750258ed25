"""From a decision to a bound pod: volumes first, then the binding, and what if it fails.

Deciding goes on meanwhile; the pod counts as placed from the moment it was decided. An answer that
got lost is the hard case: the API server may have bound the pod. The same binding is then sent
again, which it takes once at most, and the pod keeps its place until it is known where it is.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from podium.kube.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.cluster_state import Beliefs
    from podium.daemon.failure_handler import Failures
    from podium.daemon.observers import Attempted, Observer
    from podium.daemon.pod_events import Announcer
    from podium.daemon.volumes import VolumeBinder
    from podium.daemon.worker_pool import Crew
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

    #: Lets an extender bind a pod: None if none does, else why it did not; "" when it did.
    ExtenderBind = Callable[[Profile, Pod, str], Awaitable[str | None]]

#: Pauses before a binding whose answer got lost is sent again.
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_CONFLICT, _TOO_MANY, _SERVER_ERROR = 409, 429, 500


class BindingClient(Protocol):
    """What is needed of a client here."""

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        timeout: float,  # noqa: ASYNC109  of the whole request
    ) -> None:
        """Give a pod its node."""

    async def get(self, path: str) -> Any:
        """Read something."""


class NotBoundError(Exception):
    """The pod was not bound, for this reason."""


class Binder:
    """Binds pods, many at a time."""

    def __init__(
        self,
        *,
        beliefs: Beliefs,
        client: BindingClient,
        volumes: VolumeBinder,
        failures: Failures,
        announcer: Announcer,
        crew: Crew,
        observers: Sequence[Observer],
        now: Callable[[], float],
        timeout_seconds: float,
        by_extender: ExtenderBind | None = None,
    ) -> None:
        self._beliefs = beliefs
        self._client = client
        self._volumes = volumes
        self._failures = failures
        self._announcer = announcer
        self._crew = crew
        self._observers = observers
        self._now = now
        self._timeout_seconds = timeout_seconds
        self._by_extender = by_extender

    def start(self, turn: Turn, attempted: Attempted) -> None:
        """Bind the pod to the node it was given; returns at once."""
        if attempted.decision.volumes is None:
            self._crew.do(partial(self._bind, turn, attempted))
        else:
            # This may take minutes, in which the crew has other pods to bind.
            self._volumes.start(attempted, partial(self._volumes_done, turn, attempted))

    def _volumes_done(self, turn: Turn, attempted: Attempted, error: str) -> None:
        if error:
            self._failed(turn, attempted, error, volumes=True)
        else:
            self._crew.do(partial(self._bind, turn, attempted))

    async def _bind(self, turn: Turn, attempted: Attempted) -> None:
        pod, node = attempted.pod, attempted.decision.node
        assert node is not None
        began = time.perf_counter()
        try:
            await self._send(attempted.profile, pod, node)
        except NotBoundError as error:
            self._failed(turn, attempted, str(error), volumes=False)
            return
        self._beliefs.cache.finish_binding(pod.uid, self._now())
        self._announcer.placed(pod, node)
        seconds = time.perf_counter() - began
        for observer in self._observers:
            observer.bound(attempted, node, seconds)

    def _failed(self, turn: Turn, attempted: Attempted, error: str, *, volumes: bool) -> None:
        node = attempted.decision.node or ""
        for observer in self._observers:
            observer.bind_failed(attempted, node, error)
        self._beliefs.do(self._give_up, turn, attempted, error, volumes)

    def _give_up(self, turn: Turn, attempted: Attempted, error: str, volumes: bool) -> None:  # noqa: FBT001
        self._beliefs.forget(attempted.pod)
        self._failures.unbound(turn, attempted, error, volumes=volumes)

    async def _send(self, profile: Profile, pod: Pod, node: str) -> None:
        """Bind the pod, or raise."""
        if self._beliefs.node(node) is None:
            raise NotBoundError(f'node "{node}" not found')
        if not self._beliefs.cache.is_assumed(pod.uid):
            raise NotBoundError("the pod was deleted or placed meanwhile")
        refused = None
        if profile.extenders and self._by_extender is not None:
            refused = await self._by_extender(profile, pod, node)
        if refused:
            raise NotBoundError(refused)
        if refused is None:
            await self._post(pod, node)

    async def _post(self, pod: Pod, node: str) -> None:
        """Send the binding, again and again if nobody answers."""
        uid, seconds = pod.metadata.uid, self._timeout_seconds
        for pause in PAUSES:
            try:
                await self._client.bind(pod.namespace, pod.name, uid, node, timeout=seconds)
            except UnreachableError:
                await asyncio.sleep(pause)
            except ApiError as error:
                if error.status == _TOO_MANY:
                    await asyncio.sleep(error.retry_after or pause)
                elif error.status == _CONFLICT or error.status >= _SERVER_ERROR:
                    await self._settle(pod, node, error)
                    return
                else:
                    raise NotBoundError(str(error)) from error
            else:
                return
        await self._settle(pod, node, NotBoundError("the API server does not answer"))

    async def _settle(self, pod: Pod, node: str, error: Exception) -> None:
        """Find out whether the pod was bound in spite of an error; raise if it was not."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        while (found := await self._found(path, error)) is None:  # noqa: ASYNC110
            await asyncio.sleep(PAUSES[2])
        same = found["metadata"].get("uid", "") == pod.metadata.uid
        if not same or found["spec"].get("nodeName") != node:
            raise NotBoundError(str(error)) from error

    async def _found(self, path: str, error: Exception) -> Any:
        """The pod as the API server has it; None when it does not tell."""
        try:
            return await self._client.get(path)
        except UnreachableError:
            return None
        except ApiError as refused:
            if refused.status == _TOO_MANY or refused.status >= _SERVER_ERROR:
                return None
            raise NotBoundError(str(error)) from error
