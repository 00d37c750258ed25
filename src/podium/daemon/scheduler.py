"""The scheduler of a cluster: watch, decide, assume, bind; requeue what was not placed.

The loop is on this page. The copy of the cluster is `cluster_state`, one attempt is `decider`, the
way to a bound pod is `binder`, and what follows a failure is `failure_handler`. Deciding waits for
none of them: the loop takes the next pod while others are bound, and lets other tasks run every few
milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from podium.cluster.cache.trimming import Trimmer
from podium.cluster.queue.queued_pod import Pool
from podium.daemon.actions import Actions
from podium.daemon.clock import real_clocks
from podium.daemon.cluster_state import ClusterState
from podium.daemon.decider import Decider
from podium.daemon.informers import Informers
from podium.daemon.observers import AttemptResult, Observer
from podium.daemon.options import SchedulerOptions
from podium.daemon.slow_trace import Steps
from podium.daemon.worker_pool import WorkerPool
from podium.profiles.watched_kinds import watched_kinds

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from podium.cluster.cache.cache import Cache
    from podium.cluster.queue.queue import SchedulingQueue
    from podium.cluster.queue.queued_pod import Turn
    from podium.daemon.binder import ExtenderBind
    from podium.daemon.clock import Clocks
    from podium.daemon.decider import Ask
    from podium.daemon.hindsight.judge import Judge, Judgement
    from podium.daemon.informers import Indexes
    from podium.daemon.pod_events import Recorder
    from podium.daemon.rule_timings import RuleTimings
    from podium.daemon.shadow import Shadow
    from podium.engine.cycle.ties import Ties
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served

logger = logging.getLogger(__name__)

#: How many changes are followed before other tasks run, in shadow mode.
_JUDGED_AT_ONCE: Final = 16


class Scheduler:
    """Places the pods of its profiles, until it is stopped."""

    def __init__(
        self,
        client: KubeApi,
        profiles: Sequence[Profile],
        *,
        recorder: Recorder,
        observers: Sequence[Observer] = (),
        options: SchedulerOptions = SchedulerOptions(),  # noqa: B008  immutable
        clocks: Clocks | None = None,
        timings: RuleTimings | None = None,
        ask: Ask | None = None,
        bind_by_extender: ExtenderBind | None = None,
        served: Served | None = None,
        rng: random.Random | None = None,
        shadow: Shadow | None = None,
    ) -> None:
        """Schedule for all *profiles* through *client*.

        *timings* measures the rules of the profiles, also of those that come with `reconfigure`.
        *ask* answers the engine's questions to extenders. *served* is the result of discovery,
        which is otherwise asked for at the start. *rng* is the source of jitter. In shadow mode
        *shadow* is given every judgement.
        """
        self.options = options
        self._timings = timings
        self.profiles = self._by_scheduler_name(profiles)
        self._clocks = clocks or real_clocks()
        self._client, self._recorder, self._observers = client, recorder, tuple(observers)
        #: Set once all informers have listed their objects.
        self.synced = asyncio.Event()
        #: Set while this replica is the one that decides.
        self.leading = asyncio.Event()
        if not options.waits_to_lead:
            self.leading.set()
        self._pod_ready = asyncio.Event()
        self._stopping = False
        self._drain_seconds = options.drain_seconds
        self._syncing: asyncio.Task[None] | None = None
        self._bindings, self._writes = WorkerPool(options.bindings), WorkerPool(options.writes)
        indexes: Indexes
        self._judge: Judge | None = None
        if options.shadow:
            # What only judges is imported only where it does, here and below: it takes long.
            from podium.daemon.hindsight.judged_indexes import JudgedIndexes  # noqa: PLC0415

            self._judge = self._new_judge(options, shadow)
            self.state = self._judge.state
            indexes = JudgedIndexes(self._judge, self._clocks.steady, self._pod_ready.set)
        else:
            self.state = indexes = ClusterState(
                self.profiles,
                options.behaviour,
                self._clocks.steady,
                self._observers,
                on_pod_ready=self._pod_ready.set,
            )
        self._informers = Informers(client, indexes, served, clocks=self._clocks, rng=rng)
        self.state.on_unreported = self._informers.list_again
        self._trimmer = Trimmer()
        #: The actions of earlier configurations, as long as pods are on their way through them.
        self._former_actions: list[Actions] = []
        self._use(options, ask, bind_by_extender)

    def _new_judge(self, options: SchedulerOptions, shadow: Shadow | None) -> Judge:
        """The judge of shadow mode, which decides in place of the loop and writes nothing."""
        from podium.daemon.hindsight.judge import Judge  # noqa: PLC0415
        from podium.daemon.hindsight.replay import Rules  # noqa: PLC0415

        def report(judgement: Judgement) -> None:
            if shadow is not None:
                shadow.judged(judgement)
            if judgement.decision is not None and judgement.profile is not None:
                result = AttemptResult(
                    judgement.pod,
                    judgement.decision,
                    judgement.profile,
                    judgement.attempt,
                    judgement.time,
                    0.0,
                    judgement.time,
                )
                for observer in self._observers:
                    observer.attempted(result)

        judge = Judge(
            Rules(self.profiles, options.behaviour),
            report,
            wait_seconds=options.shadow_seconds,
            clock=self._clocks.steady,
            observers=self._observers,
        )
        if shadow is not None:
            shadow.waiting = lambda: judge.waiting
            shadow.missed = lambda: judge.missed
        return judge

    def _by_scheduler_name(self, profiles: Sequence[Profile]) -> Mapping[str, Profile]:
        if self._timings is not None:
            profiles = [self._timings.instrument(profile) for profile in profiles]
        return {profile.scheduler_name: profile for profile in profiles}

    def _use(
        self, options: SchedulerOptions, ask: Ask | None, bind_by_extender: ExtenderBind | None
    ) -> None:
        self._decider = Decider(
            self.state,
            self.profiles,
            ask,
            recorded_nodes=options.recorded_nodes,
        )
        self._actions = Actions(
            self._client,
            self.state,
            self._recorder,
            options=options,
            observers=self._observers,
            bindings=self._bindings,
            writes=self._writes,
            clocks=self._clocks,
            bind_by_extender=bind_by_extender,
        )

    @property
    def cache(self) -> Cache:
        """Nodes and placed pods."""
        return self.state.cache

    @property
    def queue(self) -> SchedulingQueue:
        """Pods that wait for a node."""
        return self.state.queue

    @property
    def ties(self) -> Ties:
        """The rule that breaks ties."""
        return self._decider.ties

    @property
    def binding(self) -> int:
        """The number of pods that are being bound, or in a stage before that."""
        return len(self._bindings) + sum(actions.waiting for actions in self._all_actions())

    @property
    def is_idle(self) -> bool:
        """Whether no pod is to be attempted, resting or being bound, and no write is under way."""
        counts = self.queue.counts()
        return (
            not counts[Pool.ACTIVE]
            and not counts[Pool.BACKOFF]
            and not self.queue.in_flight
            and not self.binding
            and not len(self._writes)
            and not any(each.failure_handler.retrying for each in self._all_actions())
        )

    def _all_actions(self) -> tuple[Actions, ...]:
        return (*self._former_actions, self._actions)

    # --- start and stop -------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch the cluster, and schedule once it is synced and leading; returns after `stop`."""
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self._schedule_pods()), loop.create_task(self._clean_up())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._drain()

    def stop(self) -> None:
        """Take no further pod; `run` returns when the requests under way have ended."""
        self._stopping = True
        self._pod_ready.set()
        self.leading.set()
        if self._syncing is not None:
            self._syncing.cancel()

    def abandon(self) -> None:
        """Stop without waiting for requests under way, because another replica leads now."""
        self._drain_seconds = 0.0
        self.stop()

    async def _sync(self) -> None:
        """Wait until the informers have listed everything; `stop` ends the wait."""
        kinds = watched_kinds(self.profiles.values())
        self._syncing = asyncio.get_running_loop().create_task(self._informers.start(kinds))
        try:
            await self._syncing
            self.synced.set()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._syncing = None

    async def reconfigure(
        self,
        profiles: Sequence[Profile],
        options: SchedulerOptions | None = None,
        *,
        ask: Ask | None = None,
        bind_by_extender: ExtenderBind | None = None,
    ) -> None:
        """Continue with other profiles: pending pods are queued anew, bindings under way go on."""
        if self.synced.is_set():
            await self._informers.start(watched_kinds(profiles))
        self.state.apply(
            self._change_profiles, tuple(profiles), options or self.options, ask, bind_by_extender
        )

    def _change_profiles(
        self,
        profiles: Sequence[Profile],
        options: SchedulerOptions,
        ask: Ask | None,
        bind_by_extender: ExtenderBind | None,
    ) -> None:
        self.profiles = self._by_scheduler_name(profiles)
        self.options = options
        self.state.change_profiles(self.profiles, options.behaviour)
        # A job of a worker may still start a task of the actions that it belongs to.
        working = len(self._bindings) or len(self._writes)
        self._former_actions = [
            actions for actions in self._all_actions() if working or not actions.is_idle
        ]
        self._use(options, ask, bind_by_extender)

    async def _drain(self) -> None:
        """Let requests under way end: bindings first, then the writes that follow from them."""
        for workers in (self._bindings, self._writes):
            if not await workers.drain(self._drain_seconds):
                logger.warning("%d writes were not answered in time", len(workers))
            await workers.cancel()
        for actions in self._all_actions():
            await actions.cancel()
        await self._informers.stop()

    async def _clean_up(self) -> None:
        """Release memory that is not used any more, at intervals."""
        while True:
            await self._clocks.sleep(self.options.cleanup_seconds)
            self.state.apply(self._trim)

    def _trim(self) -> None:
        if self._trimmer.tidy(self.cache.columns):
            self._decider.clear_rankings()

    # --- the loop -------------------------------------------------------------------------------

    async def _schedule_pods(self) -> None:
        """Attempt one pod after the other, once synced and leading."""
        await self._sync()
        await self.leading.wait()
        if self._judge is not None:
            await self._judge_placements(self._judge)
            return
        timer, seconds = self._clocks.timer, self.options.slice_seconds
        until = timer() + seconds
        while not self._stopping:
            turn = self.queue.pop()
            if turn is None:
                await self._wait_for_pod()
            else:
                await self._attempt(turn)
            if timer() >= until:
                await asyncio.sleep(0)
                until = timer() + seconds

    async def _wait_for_pod(self) -> None:
        """Wait until a pod enters the active queue, or the backoff of one is over.

        Watches may read less often meanwhile. They catch up before the next decision.
        """
        self._pod_ready.clear()
        self._client.let_watches_rest()
        ready = self.queue.next_ready_at()
        seconds = None if ready is None else max(ready - self._clocks.steady(), 0.0)
        try:
            async with asyncio.timeout(seconds):
                await self._pod_ready.wait()
        except TimeoutError:
            pass
        await self._client.catch_up()

    async def _attempt(self, turn: Turn) -> None:
        """Decide about one pod, then bind it or handle the failure."""
        if self._is_skipped(turn):
            self.queue.done(turn)
            return
        pod, profile = turn.pod, self.profiles[turn.pod.spec.scheduler_name]
        clock = self._clocks.steady
        began, steps = clock(), Steps(self._clocks.timer)
        decision = await self._decider.decide(pod, profile, steps.mark)
        result = AttemptResult(
            pod,
            decision,
            profile,
            turn.number,
            began,
            clock() - began,
            max(turn.queued.timestamp, 0.0),
            steps.taken(),
        )
        for observer in self._observers:
            observer.attempted(result)
        if decision.node is None:
            self._actions.failure_handler.not_decided(turn, result)
        elif self.state.pod(pod) is not None:
            self._assume_and_bind(turn, result, decision.node)
        else:
            self.queue.done(turn)  # it was deleted while extenders were asked

    def _is_skipped(self, turn: Turn) -> bool:
        """Whether the pod is being deleted, is placed, or belongs to another scheduler by now."""
        pod = turn.pod
        if pod.terminating:
            self._actions.events.skipped_deleting(pod)
            return True
        placed = self.cache.columns.pods.by_uid.get(pod.uid) is not None
        return placed or pod.spec.scheduler_name not in self.profiles

    def _assume_and_bind(self, turn: Turn, result: AttemptResult, node: str) -> None:
        """Count the pod on its node from now on, and begin to bind it."""
        self.queue.clear_nomination(turn.pod)
        self.cache.assume(turn.pod, node, result.decision.reservations)
        # Events from now on cannot make the pod fit better: its turn in the queue is over.
        self.queue.done(turn)
        self._actions.binder.start(turn, result)

    async def _judge_placements(self, judge: Judge) -> None:
        """In shadow mode, judge the placements of the other scheduler as they become known."""
        while not self._stopping:
            self._pod_ready.clear()
            if judge.advance(_JUDGED_AT_ONCE):
                await asyncio.sleep(0)
                continue
            try:
                # A pod whose node is never seen is given up after a while without any event.
                async with asyncio.timeout(self.options.cleanup_seconds):
                    await self._pod_ready.wait()
            except TimeoutError:
                pass
