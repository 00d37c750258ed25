"""From a decision to a bound pod: permit, PreBind and volumes, the binding; or their undo.

The scheduling loop goes on meanwhile, and the cache counts the pod on its node from the moment it
was decided. The hard case is a binding whose answer got lost: the API server may have bound the
pod. The same binding is then sent again; the API server accepts it once at most. The pod stays
assumed until the API server has said where it is.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from podium.kube.errors import ApiError, UnreachableError, is_outcome_unknown
from podium.kube.failure_log import FailureLog
from podium.kube.pauses import growing_pauses
from podium.scheduler.placing.tasks import Stage
from podium.scheduler.state.observers import acting

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Sequence

    from podium.cluster.queue.entities import Turn
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.placing.failure_handler import FailureHandler
    from podium.scheduler.placing.pod_events import PodEvents
    from podium.scheduler.placing.pre_bind import PreBind
    from podium.scheduler.placing.tasks import WorkerPool
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.observers import AttemptResult, Observer

    #: Lets an extender bind a pod: None if none is configured to, "" when it did, else its error.
    ExtenderBind = Callable[[Profile, Pod, str], Awaitable[str | None]]

logger = logging.getLogger(__name__)

#: Seconds before a binding whose answer got lost is sent again.
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_NOT_FOUND, _CONFLICT, _TOO_MANY = 404, 409, 429
#: Internal error and service unavailable.
_NOT_SERVED = frozenset({500, 503})


class NotBoundError(Exception):
    """The pod was not bound; the text says why."""


class UnboundError(NotBoundError):
    """The API server has the pod, on no node yet."""


class Binder:
    """Binds pods, many at a time, and requeues those that could not be bound."""

    def __init__(
        self,
        *,
        state: ClusterState,
        client: KubeApi,
        pre_bind: PreBind,
        failure_handler: FailureHandler,
        events: PodEvents,
        workers: WorkerPool,
        observers: Sequence[Observer],
        clocks: Clocks,
        timeout_seconds: float,
        by_extender: ExtenderBind | None = None,
        rng: random.Random,
    ) -> None:
        """*rng* is the source of jitter."""
        self._rng = rng
        self._state = state
        self._client = client
        self._pre_bind = pre_bind
        self._failure_handler = failure_handler
        self._events = events
        self._workers = workers
        self._observers = observers
        self._bound_observers = acting(observers, "bound")
        self._clocks = clocks
        self._timeout_seconds = timeout_seconds
        self._by_extender = by_extender
        #: Bindings of which nothing is known, by the uid of their pod; each is logged once.
        self._unknown = FailureLog(logger.warning)

    def start(self, turn: Turn, result: AttemptResult) -> None:
        """Begin to bind the pod to the node of its decision; returns at once."""
        if self._pre_bind.is_needed(result):
            self._pre_bind.start(result, partial(self._ready, turn, result))
        else:
            self._ready(turn, result, "", Stage.BIND)

    def _ready(self, turn: Turn, result: AttemptResult, error: str, stage: Stage) -> None:
        if error:
            self._failed(turn, result, error, stage)
        else:
            self._workers.submit(partial(self._bind, turn, result))

    async def _bind(self, turn: Turn, result: AttemptResult) -> None:
        pod, node = result.pod, result.decision.node
        assert node is not None
        timer = self._clocks.timer
        began = timer()
        try:
            await self._send(result.profile, pod, node)
        except NotBoundError as error:
            self._failed(turn, result, str(error), Stage.BIND)
            return
        finally:
            self._unknown.succeeded(pod.uid)
        self._events.scheduled(pod, node)
        seconds = timer() - began
        for observer in self._bound_observers:
            observer.bound(result, node, seconds)

    def _failed(self, turn: Turn, result: AttemptResult, error: str, stage: Stage) -> None:
        node = result.decision.node or ""
        for observer in self._observers:
            observer.bind_failed(result, node, error)
        self._pre_bind.undo(result)
        self._state.apply(self._undo, turn, result, error, stage)

    def _undo(self, turn: Turn, result: AttemptResult, error: str, stage: Stage) -> None:
        """Take the pod off its node in the cache, and put it back into the queue."""
        self._state.forget(result.pod)
        self._failure_handler.not_bound(turn, result, error, stage)

    async def _send(self, profile: Profile, pod: Pod, node: str) -> None:
        """Bind the pod by an extender or by the API server; `NotBoundError` if it is not bound."""
        if self._state.node(node) is None:
            raise NotBoundError(f'node "{node}" not found')
        if not self._state.cache.is_assumed(pod.uid):
            raise NotBoundError("the pod was deleted or placed meanwhile")
        try:
            passed_over = False
            if profile.extenders:
                if await self._bound_by_extender(profile, pod, node):
                    return
                # An ignorable extender that failed is passed over, and may have bound the pod.
                passed_over = any(each.bind_verb and each.ignorable for each in profile.extenders)
            await self._post(profile, pod, node, is_lost=passed_over)
        except NotBoundError:
            raise
        except Exception as bug:
            # Nothing is known of the pod then; unless asked for, it would stay assumed for ever.
            logger.exception("binding pod %s to %s", pod.key, node)
            await self._settle(pod, node, bug)

    async def _bound_by_extender(self, profile: Profile, pod: Pod, node: str) -> bool:
        """Whether an extender has bound the pod; `NotBoundError` if it has not, and failed."""
        if self._by_extender is None:
            return False
        error = await self._by_extender(profile, pod, node)
        if error:
            # It may have bound the pod before it failed, or its answer got lost.
            await self._settle(pod, node, NotBoundError(error))
        return error is not None

    async def _post(self, profile: Profile, pod: Pod, node: str, *, is_lost: bool) -> None:
        """Send the binding, again after a pause as long as no answer comes.

        Some releases also send it again if the API server could not serve it. *is_lost* says
        whether the answer to an earlier binding of the pod may have got lost.
        """
        generation = profile.generation
        again = iter(generation.conduct.binding_pauses if generation is not None else ())
        uid, seconds = pod.metadata.uid, self._timeout_seconds
        for pause in PAUSES:
            try:
                await self._client.bind(pod.namespace, pod.name, uid, node, timeout=seconds)
            except UnreachableError:
                is_lost = True
                await self._clocks.sleep(pause)
            except ApiError as error:
                if error.status == _TOO_MANY:
                    await self._clocks.sleep(error.retry_after or pause)
                elif is_lost or error.status == _CONFLICT or is_outcome_unknown(error):
                    # A refusal says nothing of an earlier request whose answer got lost.
                    try:
                        await self._settle(pod, node, error)
                    except UnboundError:
                        wait = next(again, None) if error.status in _NOT_SERVED else None
                        if wait is None:
                            raise
                        await self._clocks.sleep(wait)
                        continue
                    return
                else:
                    raise NotBoundError(str(error)) from error
            else:
                return
        await self._settle(pod, node, NotBoundError("the API server does not answer"))

    async def _settle(self, pod: Pod, node: str, error: Exception) -> None:
        """Ask whether the pod was bound in spite of an error; `NotBoundError` if it was not.

        Until the API server or a watch has said so, the pod counts on its node.
        """
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        pauses = growing_pauses(self._rng)
        while (found := await self._read(path, error)) is None:
            text = f"pod {pod.key}: it is not known whether it was bound to {node}: {error}"
            self._unknown.failed(pod.uid, text)
            await self._clocks.sleep(next(pauses))
            known = self._state.pod(pod)
            if known is not None and known.spec.node_name == node:
                return  # a watch has reported the binding
            if known is None or known.spec.node_name:
                raise NotBoundError(str(error)) from error
        same = found["metadata"].get("uid", "") == pod.metadata.uid
        bound_to = found["spec"].get("nodeName")
        if same and not bound_to:
            raise UnboundError(str(error)) from error
        if not same or bound_to != node:
            raise NotBoundError(str(error)) from error

    async def _read(self, path: str, error: Exception) -> Any:
        """The pod as the API server has it; None when the API server cannot say."""
        try:
            found = await self._client.get(path)
        except ApiError as refused:
            if refused.status == _NOT_FOUND:
                raise NotBoundError(str(error)) from error
            return None  # a right or a token that is missing says nothing of the pod
        except Exception:  # noqa: BLE001  as long as nothing is known the pod stays assumed
            return None
        return found if found and "metadata" in found and "spec" in found else None
