"""The scheduler of a cluster: watch, decide, assume, bind; requeue what was not placed.

The loop is on this page. The copy of the cluster is `cluster_state`, one attempt is `decider`, the
way to a bound pod is `binder`, and what follows a failure is `failure_handler`. Deciding waits for
none of them: the loop takes the next pod while others are bound, and lets other tasks run every few
milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

import msgspec

from podium.cluster.cache.columns import Trimmer
from podium.cluster.pod_groups.cycle import failed_before, not_found, own_decision
from podium.cluster.queue.entities import GroupTurn, Pool
from podium.cluster.queue.group_queue import GroupQueue
from podium.cluster.verification import Verification
from podium.engine.framework.decision import Decision
from podium.engine.framework.group_decision import SUCCESS
from podium.engine.rows.rows import OneRow
from podium.errors import ConfigError
from podium.profiles.watched_kinds import watched_kinds
from podium.scheduler.decider import LiveDecider
from podium.scheduler.placing.actions import Actions
from podium.scheduler.placing.tasks import WorkerPool
from podium.scheduler.state.clock import real_clocks
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.informers import Informers
from podium.scheduler.state.observers import (
    ATTEMPT_FAILED,
    AttemptResult,
    GroupAttemptResult,
    Observer,
)
from podium.scheduler.state.options import SchedulerOptions
from podium.scheduler.telemetry.logs import Crashes, described
from podium.scheduler.telemetry.timings import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from podium.cluster.cache.cache import Cache
    from podium.cluster.queue.entities import Turn
    from podium.cluster.queue.queue import SchedulingQueue
    from podium.cluster.verification import Discrepancy
    from podium.engine.cycle.ties import Ties
    from podium.engine.framework.group_decision import GroupDecision, MemberResult
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup
    from podium.scheduler.decider import Ask
    from podium.scheduler.placing.binder import ExtenderBind
    from podium.scheduler.placing.pod_events import Recorder
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.informers import Indexes
    from podium.scheduler.telemetry.timings import RuleTimings

logger = logging.getLogger(__name__)

#: How often a replica whose lease is not sure any more looks whether it leads again.
_LEAD_SECONDS: Final = 0.1


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
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Schedule for all *profiles* through *client*.

        *timings* measures the rules of the profiles, also of those that come with `reconfigure`.
        *ask* answers the engine's questions to extenders. *served* is the result of discovery,
        which is otherwise asked for at the start. *rng* is the source of jitter. *leads* says
        before each decision whether this replica still is the one that decides.
        """
        self.options = options
        self._leads = leads
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
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
        #: The attempts that are decided twice, and what came of it.
        self.verification = Verification(options.verified_decisions, self._report_difference)
        self._pod_ready = asyncio.Event()
        self._stopping = False
        self._drain_seconds = options.drain_seconds
        self._syncing: asyncio.Task[None] | None = None
        self._bindings, self._writes = WorkerPool(options.bindings), WorkerPool(options.writes)
        self.state, indexes = self._new_state()
        self._informers = Informers(client, indexes, served, clocks=self._clocks, rng=rng)
        self.state.on_unreported = self._informers.list_again
        self._trimmer = Trimmer()
        self._crashes = Crashes()
        #: The actions of earlier configurations, as long as pods are on their way through them.
        self._former_actions: list[Actions] = []
        self._use(options, ask, bind_by_extender)

    def _new_state(self) -> tuple[ClusterState, Indexes]:
        """The state that is decided on, and the indexes that the informers write to."""
        state = ClusterState(
            self.profiles,
            self.options.behaviour,
            self._clocks.steady,
            self._observers,
            on_pod_ready=self._pod_ready.set,
        )
        return state, state

    def _report_difference(self, difference: Discrepancy) -> None:
        """Log a decision that kept answers gave otherwise, with all that it was made from."""
        logger.error(
            "kept answers were wrong, and were dropped; all nodes were looked at: %s; the pod: %s",
            difference,
            msgspec.json.encode(difference.pod).decode(),
        )

    def _by_scheduler_name(self, profiles: Sequence[Profile]) -> Mapping[str, Profile]:
        if self._timings is not None:
            profiles = [self._timings.instrument(profile) for profile in profiles]
        return {profile.scheduler_name: profile for profile in profiles}

    def _use(
        self, options: SchedulerOptions, ask: Ask | None, bind_by_extender: ExtenderBind | None
    ) -> None:
        self._decider = LiveDecider(
            self.state,
            self.profiles,
            ask,
            recorded_nodes=options.recorded_nodes,
            verification=self.verification,
            timer=self._clocks.timer,
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
            rng=self._rng,
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
        return self._decider.plain.ties

    def pods(self) -> Iterable[Pod]:
        """The newest version of every pod."""
        return self.state.pods()

    def look(self, pod: Pod, profile: Profile) -> Decision:
        """Decide about a pod on request; nothing changes, and no extender is called."""
        return self._decider.plain.look(pod, profile)

    @property
    def binding(self) -> int:
        """The number of pods that are being bound, or in a stage before that."""
        return len(self._bindings) + sum(actions.waiting for actions in self._all_actions())

    @property
    def is_idle(self) -> bool:
        """Whether no pod is to be attempted, resting or being bound, and no write is under way.

        A pod group that was rejected backs off again and again. It counts only after a change.
        """
        counts = self.queue.counts()
        return (
            not counts[Pool.ACTIVE]
            and not self.queue.resting(self.state.changes)
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
        works = (self._schedule_pods(), self._clean_up(), self._informers.until_dead())
        tasks = {loop.create_task(work) for work in works}
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
        """Stop without waiting for requests under way, because another replica leads now.

        This also ends the wait of a scheduler that was stopped before.
        """
        self._drain_seconds = 0.0
        for workers in (self._bindings, self._writes):
            workers.end_drain()
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
        """Continue with other profiles: pending pods are queued anew, bindings under way go on.

        A scheduler that stops keeps its profiles, and starts no informers.
        """
        if self._stopping:
            return
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
        self._former_actions = self._at_work(self._all_actions())
        self._use(options, ask, bind_by_extender)

    def _at_work(self, actions: Iterable[Actions]) -> list[Actions]:
        """Those of which a pod is on its way through.

        A job of a worker may still start a task of the actions that it belongs to.
        """
        working = len(self._bindings) or len(self._writes)
        return [each for each in actions if working or not each.is_idle]

    async def _drain(self) -> None:
        """Let requests under way end: bindings first, then the writes that follow from them."""
        for what, workers in (("bindings", self._bindings), ("other writes", self._writes)):
            if not await workers.drain(self._drain_seconds):
                logger.warning("%d %s were not answered in time", len(workers), what)
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
        self._former_actions = self._at_work(self._former_actions)
        if self._trimmer.tidy(self.cache.columns):
            # The columns that kept answers refer to were trimmed.
            self._decider.plain.drop_answers()

    # --- the loop -------------------------------------------------------------------------------

    async def _schedule_pods(self) -> None:
        """Attempt pods, once synced and leading."""
        await self._sync()
        await self.leading.wait()
        await self._attempt_pods()

    async def _attempt_pods(self) -> None:
        """Attempt one pod after the other, until the scheduler is stopped."""
        timer, seconds = self._clocks.timer, self.options.slice_seconds
        until = timer() + seconds
        while not self._stopping:
            if not self._leads():
                await self._clocks.sleep(_LEAD_SECONDS)
                continue
            turn = self.queue.pop_entity()
            if turn is None:
                await self._wait_for_pod()
            elif isinstance(turn, GroupTurn):
                await self._attempt_group(turn)
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
        self._client.pace.let_rest()
        ready = self.queue.next_ready_at()
        seconds = None if ready is None else max(ready - self._clocks.steady(), 0.0)
        try:
            async with asyncio.timeout(seconds):
                await self._pod_ready.wait()
        except TimeoutError:
            pass
        await self._client.pace.catch_up()

    async def _attempt(self, turn: Turn) -> None:
        """Decide about one pod, then bind it or handle the failure."""
        if self._is_skipped(turn):
            self.queue.done(turn)
            return
        pod, profile = turn.pod, self.profiles[turn.pod.spec.scheduler_name]
        clock = self._clocks.steady
        began, steps = clock(), Steps(self._clocks.timer)
        decision = await self._decided(pod, profile, steps)
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

    async def _attempt_group(self, turn: GroupTurn) -> None:
        """Decide about the pods of a group together, then bind those that fit, or none."""
        queue = self.state.queue
        assert isinstance(queue, GroupQueue)
        waiting = [each for each in turn.members if not self._is_skipped(each)]
        for member in turn.members:
            if member not in waiting:
                queue.done(member)
        if not waiting:
            queue.requeue_group(turn, SUCCESS)
            return
        pods, changes = [each.pod for each in waiting], self.state.changes
        for observer in self._observers:
            observer.group_attempting()
        began = self._clocks.steady()
        group = self.cache.columns.catalog.pod_groups.get(turn.group.name, turn.group.namespace)
        if group is None:
            found = not_found(turn.group.key, pods)
        else:
            found = await self._group_decided(group, pods)
            self._actions.groups.write(group, found)
        self._carry_out_group(turn, waiting, found, began)
        if found.preemption is not None:
            handler, scheduler = self._actions.failure_handler, pods[0].spec.scheduler_name
            handler.evict_for_group(turn.group, found.preemption, scheduler)
        pool = queue.requeue_group(turn, found.queue_code, changes)
        left = sum(each.node is None for each in found.members)
        if pool is not None:
            for observer in self._observers:
                observer.group_queued(pool, ATTEMPT_FAILED, left, enters=True)
        self._pod_ready.set()

    def _carry_out_group(
        self, turn: GroupTurn, waiting: Sequence[Turn], found: GroupDecision, began: float
    ) -> None:
        """Assume and bind the pods of a group that get a node; the others return to the queue."""
        seconds = self._clocks.steady() - began
        results = tuple(
            self._member_result(member, found, outcome, began, seconds / len(waiting))
            for member, outcome in zip(waiting, found.members, strict=True)
        )
        cycle = GroupAttemptResult(found, results[0].profile, turn.number, began, seconds, results)
        for observer in self._observers:
            observer.group_attempted(cycle)
        placed: list[tuple[Turn, AttemptResult]] = []
        for member, outcome, result in zip(waiting, found.members, results, strict=True):
            for observer in self._observers:
                observer.attempted(result)
            if outcome.node is None:
                handler = self._actions.failure_handler
                handler.not_scheduled(member, result, outcome, released=found.released)
                continue
            if self.state.pod(member.pod) is not None:
                self.queue.clear_nomination(member.pod)
                self.cache.assume(member.pod, outcome.node, result.decision.reservations)
                placed.append((member, result))
            self.queue.done(member)
        for member, result in placed:
            # All of them have their nodes now, so that the first do not wait for the last.
            self._ask_permits(result)
            self._actions.binder.start(member, result)

    def _member_result(
        self,
        member: Turn,
        found: GroupDecision,
        outcome: MemberResult,
        began: float,
        seconds: float,
    ) -> AttemptResult:
        """What became of one pod of a group, for those who look on and for its binding."""
        profile = self.profiles[member.pod.spec.scheduler_name]
        decision = own_decision(outcome, profile.name, self.cache.columns)
        return AttemptResult(
            member.pod,
            decision,
            profile,
            member.number,
            began,
            seconds,
            max(member.queued.timestamp, 0.0),
            group=found,
        )

    def _ask_permits(self, result: AttemptResult) -> None:
        """Note which permit rules let the pod wait before its binding."""
        columns, decision = self.cache.columns, result.decision
        row = columns.nodes.row_of.get(decision.node or "")
        if row is None:
            return
        incoming, at = columns.pods.incoming(result.pod), OneRow(columns, row)
        asked = ((rule.name, rule.permit(incoming, at)) for rule in result.profile.permits)
        decision.waits = tuple((name, told) for name, told in asked if not told.allowed)

    async def _group_decided(self, group: PodGroup, pods: Sequence[Pod]) -> GroupDecision:
        """The decision about a group; an exception becomes an error of its pods alone."""
        try:
            return await self._decider.decide_group(group, pods)
        except ConfigError:
            raise
        except Exception as bug:  # noqa: BLE001  whatever one group does, the others are decided
            self._decider.plain.drop_everything_kept()
            self._crashes.note(f"pod group {group.key}", bug)
            for observer in self._observers:
                observer.crashed(pods[0])
            return failed_before(group, pods, described(bug))

    async def _decided(self, pod: Pod, profile: Profile, steps: Steps) -> Decision:
        """The decision about one pod; an exception becomes an error of that pod alone.

        What is wrong with the configuration is wrong for every pod, and ends the program.
        """
        try:
            return await self._decider.decide(pod, profile, steps.mark)
        except ConfigError:
            raise
        except Exception as bug:  # noqa: BLE001  whatever one pod does, the others are decided
            self._decider.plain.drop_everything_kept()  # answers may have been kept by halves
            self._crashes.note(pod.key, bug)
            for observer in self._observers:
                observer.crashed(pod)
            nodes = len(self.cache.columns.nodes.order)
            return Decision(pod.key, pod.uid, profile.name, nodes=nodes, error=described(bug))

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
