"""The scheduler of a cluster: watch, decide, assume, bind; and what if not.

The loop is on this page. What we believe is in `believing`, one attempt in `attempting`, the way
to a bound pod in `binding`, and what follows a failure in `failing`. Deciding never waits for any
of them: it takes the next pod while others are bound, and lets the rest of the program run every
few milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from podium.cluster.cache.trimming import Trimmer
from podium.daemon.actions import Hands, SchedulerOptions
from podium.daemon.clock import SteadyClock
from podium.daemon.cluster_state import Beliefs
from podium.daemon.decider import Attempts
from podium.daemon.informers import Watching
from podium.daemon.observers import Attempted, Observer
from podium.daemon.shadow_binder import PATIENCE_SECONDS
from podium.daemon.slow_trace import Steps
from podium.daemon.worker_pool import Crew
from podium.profiles.watched_kinds import watched_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cluster.cache.cache import Cache
    from podium.cluster.queue.queue import SchedulingQueue
    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.binder import ExtenderBind
    from podium.daemon.decider import Ask
    from podium.daemon.pod_events import Recorder
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.kube.client import ApiClient
    from podium.kube.discovery import Served
    from podium.objects.kinds.pod import Pod

__all__ = ["Scheduler", "SchedulerOptions"]

logger = logging.getLogger(__name__)

#: How long deciding goes on before anything else may run.
SLICE_SECONDS = 0.005
#: How often it is looked at whether anything can be forgotten.
TIDY_SECONDS = 1.0


class Scheduler:
    """Places the pods of its profiles, until it is stopped."""

    def __init__(
        self,
        client: ApiClient,
        profiles: Sequence[Profile],
        *,
        recorder: Recorder,
        observers: Sequence[Observer] = (),
        options: SchedulerOptions = SchedulerOptions(),  # noqa: B008  immutable
        clock: Callable[[], float] | None = None,
        ask: Ask | None = None,
        bind_by_extender: ExtenderBind | None = None,
        served: Served | None = None,
    ) -> None:
        self.profiles = {profile.scheduler_name: profile for profile in profiles}
        self.options = options
        self.clock = clock or SteadyClock()
        self._client, self._recorder, self._observers = client, recorder, tuple(observers)
        #: Set once everything was seen, and while we are the one who decides.
        self.synced = asyncio.Event()
        self.leading = asyncio.Event()
        if not options.waits_to_lead:
            self.leading.set()
        self._news = asyncio.Event()
        self._stopping = False
        self._drain_seconds = options.drain_seconds
        self._starting: asyncio.Task[None] | None = None
        self._bindings, self._writes = Crew(options.bindings), Crew(options.writes)
        self.beliefs = Beliefs(
            self.profiles,
            options.manners,
            self.clock,
            self._observers,
            stir=self._news.set,
            surprised=self._decide_late if options.shadow else None,
            ttl_seconds=PATIENCE_SECONDS if options.shadow else float("inf"),
        )
        self._watching = Watching(client, self.beliefs, served)
        self._trimmer = Trimmer()
        self._equip(options, ask, bind_by_extender)

    def _equip(
        self, options: SchedulerOptions, ask: Ask | None, bind_by_extender: ExtenderBind | None
    ) -> None:
        self._attempts = Attempts(
            self.beliefs,
            self.profiles,
            ask,
            recording=options.shadow,
            recorded_nodes=options.recorded_nodes,
        )
        self._hands = Hands(
            self._client,
            self.beliefs,
            self._recorder,
            options=options,
            observers=self._observers,
            bindings=self._bindings,
            writes=self._writes,
            clock=self.clock,
            bind_by_extender=bind_by_extender,
        )

    @property
    def cache(self) -> Cache:
        """What we believe about nodes and placed pods."""
        return self.beliefs.cache

    @property
    def queue(self) -> SchedulingQueue:
        """Pods that wait for a node."""
        return self.beliefs.queue

    @property
    def binding(self) -> int:
        """How many pods are on their way to their node."""
        return len(self._bindings) + len(self._hands.volumes)

    # --- life -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch, and decide once everything is known and it is our turn; until stopped."""
        tidying = asyncio.get_running_loop().create_task(self._keep_tidy())
        try:
            await self._see_everything()
            await self._lead()
        finally:
            tidying.cancel()
            await self._drain()

    def stop(self) -> None:
        """Decide nothing any more; `run` returns when what is under way is done."""
        self._stopping = True
        self._news.set()
        self.leading.set()
        if self._starting is not None:
            self._starting.cancel()

    def abandon(self) -> None:
        """Stop at once: somebody else decides from now on, and must not be crossed."""
        self._drain_seconds = 0.0
        self.stop()

    async def _see_everything(self) -> None:
        """Wait until the whole cluster was seen; it may never be, and then we can be stopped."""
        kinds = watched_kinds(self.profiles.values())
        self._starting = asyncio.get_running_loop().create_task(self._watching.start(kinds))
        try:
            await self._starting
            self.synced.set()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._starting = None

    async def reconfigure(
        self,
        profiles: Sequence[Profile],
        options: SchedulerOptions | None = None,
        *,
        ask: Ask | None = None,
        bind_by_extender: ExtenderBind | None = None,
    ) -> None:
        """Go on with other profiles. Pods that wait are tried anew, pods on their way stay so."""
        if self.synced.is_set():
            await self._watching.start(watched_kinds(profiles))
        self.beliefs.do(
            self._change, tuple(profiles), options or self.options, ask, bind_by_extender
        )

    def _change(
        self,
        profiles: Sequence[Profile],
        options: SchedulerOptions,
        ask: Ask | None,
        bind_by_extender: ExtenderBind | None,
    ) -> None:
        self.profiles = {profile.scheduler_name: profile for profile in profiles}
        self.options = options
        self.beliefs.change_profiles(self.profiles, options.manners)
        self._equip(options, ask, bind_by_extender)

    async def _drain(self) -> None:
        """Finish what was begun: bindings first, then what is to be said about them."""
        for crew in (self._bindings, self._writes):
            if not await crew.finish(self._drain_seconds):
                logger.warning("%d writes were not answered in time", len(crew))
            await crew.dismiss()
        await self._hands.volumes.dismiss()
        await self._watching.stop()

    async def _keep_tidy(self) -> None:
        """What has to be done now and then."""
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            self.beliefs.expire(self.clock())
            self.beliefs.do(self._tidy)

    def _tidy(self) -> None:
        if self._trimmer.tidy(self.cache.columns):
            self._attempts.start_afresh()

    # --- the loop -------------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Decide about one pod after the other."""
        await self.leading.wait()
        until = time.monotonic() + SLICE_SECONDS
        while not self._stopping:
            turn = self.queue.pop()
            if turn is None:
                await self._rest()
            else:
                await self._try(turn)
            if time.monotonic() >= until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS

    async def _rest(self) -> None:
        """Wait until a pod is ready."""
        self._news.clear()
        ready = self.queue.next_ready_at()
        seconds = None if ready is None else max(ready - self.clock(), 0.0)
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _try(self, turn: Turn) -> None:
        """One attempt at one pod."""
        if not self._is_worth_trying(turn):
            self.queue.done(turn)
            return
        pod, profile = turn.pod, self.profiles[turn.pod.spec.scheduler_name]
        began, steps = self.clock(), Steps(time.perf_counter)
        decision = await self._attempts.decide(pod, profile, steps.mark)
        attempted = Attempted(
            pod,
            decision,
            profile,
            turn.number,
            began,
            self.clock() - began,
            max(turn.queued.timestamp, 0.0),
            steps.taken(),
        )
        for observer in self._observers:
            observer.attempted(attempted)
        if decision.node is None:
            self._hands.failures.undecided(turn, attempted)
        elif self.beliefs.pod(pod) is not None:
            self._place(turn, attempted, decision.node)
        else:
            self.queue.done(turn)  # it was deleted while extenders were asked

    def _is_worth_trying(self, turn: Turn) -> bool:
        """Not a pod that is being deleted, is placed already, or is somebody else's by now."""
        pod = turn.pod
        if pod.terminating:
            self._hands.announcer.skipped(pod)
            return False
        placed = self.cache.columns.pod(pod.uid) is not None
        return not placed and pod.spec.scheduler_name in self.profiles

    def _place(self, turn: Turn, attempted: Attempted, node: str) -> None:
        """The pod counts as placed from now on, and its binding is on its way."""
        self.queue.clear_nomination(turn.pod)
        self.cache.assume(turn.pod, node, attempted.decision.volumes)
        # What happens from now on cannot make the pod fit better: its turn is over.
        self.queue.done(turn)
        self._hands.binder.start(turn, attempted)

    def _decide_late(self, pod: Pod) -> None:
        """Somebody else was faster: decide now, with the cluster as it was before that."""
        profile = self.profiles[pod.spec.scheduler_name]
        if profile.extenders:
            return  # asking takes time, and the moment is over
        began = self.clock()
        decision: Decision = self._attempts.decide_alone(pod, profile)
        seconds = self.clock() - began
        attempted = Attempted(pod, decision, profile, 1, began, seconds, began)
        for observer in self._observers:
            observer.attempted(attempted)
