"""A scheduler and everything around it, wired in one place for every program that runs one.

The host owns discovery, the event recorder, the calls to extenders, the observers (metrics,
decision log, decision lines, slow trace, shadow comparison), the timings of rules and the HTTP
endpoints. The client, the clocks and the source of jitter are passed in. What only some options
need is imported where they ask for it: a start takes as long as its imports.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from podium.host.options import scheduler_options
from podium.kube.discovery import discover
from podium.kube.events import CORE, EVENTS
from podium.kube.failure_log import FailureLog
from podium.kube.pauses import RESTART_PAUSES
from podium.kube.recorder import EventRecorder
from podium.past.decisions.decision_log import DecisionLog
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.clock import Clocks, real_clocks
from podium.scheduler.state.cluster_copy import ClusterCopies, beside_decisions
from podium.scheduler.telemetry.logs import DecisionLines
from podium.scheduler.telemetry.metrics import GroupMetrics, Metrics
from podium.scheduler.telemetry.timings import SLOW_SECONDS, RuleTimings, SlowTrace
from podium.serving.endpoints.health import Health
from podium.serving.page_data.waiting import waiting_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from starlette.applications import Starlette

    from podium.engine.framework.decision import Decision
    from podium.extender.client import Post
    from podium.host.extender_calls import ExtenderCalls
    from podium.host.record_run import RecordOptions
    from podium.host.supervisor import Supervisor
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.workloads import PriorityClass
    from podium.past.decisions.causes_now import Causes
    from podium.past.judge.agreement import Agreement
    from podium.past.recorder.recorder import HistoryRecorder
    from podium.past.replay.recorded_past import RecordedPast
    from podium.scheduler.placing.pod_events import Recorder
    from podium.scheduler.state.observers import Observer
    from podium.scheduler.state.options import SchedulerOptions
    from podium.scheduler.telemetry.logs import Log
    from podium.serving.page_data.activity import ActivityObserver
    from podium.serving.page_data.page_data import PageData, Planner

#: The most events that wait to be written; further ones are dropped.
MOST_EVENTS: Final = 20_000
#: How long events may take to be written when the host ends.
EVENT_DRAIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What a program decides about its host."""

    scheduler: SchedulerOptions
    #: Whether the placements of another scheduler are judged, and nothing is written.
    shadow: bool = False
    #: A file that every decision is appended to; "" for none.
    decision_file: str = ""
    #: From how many seconds on a decision is logged as slow.
    slow_seconds: float = SLOW_SECONDS
    #: The history that everything is recorded in; None for none.
    record: RecordOptions | None = None


class SchedulerHost:
    """One scheduler with its observers, to be used in an `async with`.

    Entering asks the API server what it serves and builds the `scheduler`; `start` runs it, and
    leaving stops it and finishes its writes.
    """

    def __init__(
        self,
        client: KubeApi,
        chosen: ChosenProfiles,
        log: Log,
        options: HostOptions,
        *,
        observers: Sequence[Observer] = (),
        clocks: Clocks | None = None,
        rng: random.Random | None = None,
        extender_post: Post | None = None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Schedule by the *chosen* profiles; *observers* are called after those of the host.

        Extenders are asked over HTTP, or through *extender_post*. *leads* says whether this replica
        may decide now.
        """
        self._leads = leads
        self._gives_up = False
        self._client, self._chosen, self._log = client, chosen, log
        self._options, self._extender_post = options, extender_post
        self._scheduler_options = scheduler_options(chosen, options.scheduler)
        self._clocks = clocks or real_clocks()
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        self._stack = AsyncExitStack()
        #: None before the host is entered.
        self.scheduler: Scheduler | None = None
        self._event_recorder: EventRecorder | None = None
        self._timings = RuleTimings(self._clocks.timer)
        entities = chosen.generation.conduct.queues_entities
        self.metrics = Metrics(self._timings, self._clocks.steady, counts_entities=entities)
        self.decisions = DecisionLog()
        self.shadow = _new_shadow() if options.shadow else None
        self.health = Health()
        self._lines = DecisionLines(log)
        self._observers: list[Observer] = [
            self.metrics,
            self.decisions,
            self._lines,
            SlowTrace(log, options.slow_seconds),
        ]
        self._group_metrics = GroupMetrics()
        if chosen.schedules_groups:
            self._observers.append(self._group_metrics)
            self.metrics.more.append(self._group_metrics.families)
        if self.shadow is not None:
            self.metrics.more.append(self.shadow.families)
        self._observers += observers
        #: Writes the history, while the host is entered and one is asked for.
        self.history: HistoryRecorder | None = None
        #: What is read of the history: its decisions, and the cluster at its moments.
        self.past: RecordedPast | None = None

    async def __aenter__(self) -> Self:
        async with self._stack as stack:
            served = await self._discovered()
            recorder = await self._enter_recorder(stack, served)
            self._open_decision_file(stack)
            extenders = await self._enter_extenders(stack)
            self._open_history(stack)
            scheduler = self._new_scheduler(served, recorder, extenders)
            if extenders is not None:
                extenders.state = scheduler.state
            self._connect(scheduler)
            self._lines.labels_of = scheduler.cache.labels_of
            self.scheduler = scheduler
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _discovered(self) -> Served:
        """What the API server serves; one that restarts is waited for."""
        failures = FailureLog(self._log.warning)
        return await discover(
            self._client,
            pauses=takewhile(lambda _: not self._gives_up, RESTART_PAUSES),
            sleep=self._clocks.sleep,
            failed=lambda error: failures.failed("discovery", f"discovery: {error}; trying again"),
        )

    def give_up(self) -> None:
        """Wait no longer for an API server that does not answer, while the host is entered."""
        self._gives_up = True

    def _new_scheduler(
        self, served: Served, recorder: Recorder, extenders: ExtenderCalls | None
    ) -> Scheduler:
        if self.shadow is not None:
            from podium.host.shadow import ShadowScheduler  # noqa: PLC0415  brings the judge

            return ShadowScheduler(
                self._client,
                self._chosen.profiles,
                self.shadow,
                observers=self._observers,
                options=self._scheduler_options,
                clocks=self._clocks,
                timings=self._timings,
                served=served,
                rng=self._rng,
            )
        return Scheduler(
            self._client,
            self._chosen.profiles,
            recorder=recorder,
            observers=self._observers,
            options=self._scheduler_options,
            clocks=self._clocks,
            timings=self._timings,
            ask=extenders.ask if extenders is not None else None,
            bind_by_extender=extenders.bind if extenders is not None else None,
            served=served,
            rng=self._rng,
            leads=self._leads,
        )

    def start(self, supervisor: Supervisor) -> asyncio.Task[None]:
        """Run the scheduler as a supervised task, which ends when the scheduler is stopped."""
        scheduler = self.scheduler
        assert scheduler is not None
        if self.history is not None:
            flushing = supervisor.start("the history", self._flush_history(self.history))
            self._stack.push_async_callback(supervisor.stop, flushing)
        if self._event_recorder is not None:
            writing = supervisor.start("the event recorder", self._event_recorder.until_dead())
            self._stack.push_async_callback(supervisor.stop, writing)
        task = supervisor.start("the scheduler", scheduler.run(), may_return=True)
        self._stack.push_async_callback(supervisor.release, task)
        self._stack.callback(scheduler.stop)
        return task

    def abandon(self) -> None:
        """Stop deciding and writing at once, events included: another replica may lead now."""
        if self.scheduler is not None:
            self.scheduler.abandon()
        if self._event_recorder is not None:
            self._event_recorder.abandon()

    def application(self, *, loopback: bool = False) -> Starlette:
        """The HTTP endpoints: probes, metrics, decisions, and the comparison in shadow mode."""
        from podium.serving.endpoints.http_server import application  # noqa: PLC0415  brings the server

        return application(
            self.health,
            self.metrics,
            self.decisions,
            self.shadow,
            waiting=self._waiting,
            past=self.past,
            causes=self._causes,
            loopback=loopback,
        )

    def page_data(
        self,
        activity: ActivityObserver,
        chosen: ChosenProfiles,
        text: str | None,
        planner: Planner | None,
        priority_classes: Callable[[], Iterable[PriorityClass]] = tuple,
    ) -> PageData:
        """What the pages read of the scheduler; *text* is what its profiles were made from."""
        from podium.serving.page_data.page_data import PageData  # noqa: PLC0415  for pages alone

        assert self.scheduler is not None
        data = PageData(
            self.scheduler,
            activity,
            log=self.decisions,
            options=chosen.options,
            text=text,
            priority_classes=priority_classes,
            planner=planner,
            copies=self.copies,
        )
        data.past = self.past
        data.on_other_profiles = self.record_profiles
        return data

    @cached_property
    def copies(self) -> ClusterCopies:
        """Copies of the cluster, for those who read; once the host is entered."""
        assert self.scheduler is not None
        return ClusterCopies(self.scheduler)

    async def _causes(self, key: str, decision: Decision) -> Causes:
        """What led to a recorded decision, as far as the cluster still is as it was."""
        from podium.past.decisions.causes_now import (  # noqa: PLC0415  rarely asked for
            Causes,
            causes_of,
        )

        scheduler = self.scheduler
        if scheduler is None or not len(decision.examined):
            return Causes()
        # Not those of the scheduler, whose rules are timed.
        profiles = self._chosen.profiles
        async with self.copies.ready() as copied:
            pod = scheduler.queue.pending_pod(key)
            return await beside_decisions(causes_of, copied(), key, pod, profiles, decision)

    def _waiting(self, key: str) -> dict[str, Any] | None:
        """Where a pod waits and what would wake it."""
        return None if self.scheduler is None else waiting_data(self.scheduler.queue, key)

    async def _enter_recorder(self, stack: AsyncExitStack, served: Served) -> Recorder:
        if self._options.shadow:
            return NoEvents()
        newer = EVENTS in served.versions and not self._chosen.generation.uses_policies
        recorder = EventRecorder(
            self._client,
            self._chosen.profile.scheduler_name,
            api=EVENTS if newer else CORE,
            most=MOST_EVENTS,
            warn=self._log.warning,
            clock=self._clocks.wall,
            rng=self._rng,
            sleep=self._clocks.sleep,
        )
        self._event_recorder = recorder
        await stack.enter_async_context(recorder)
        stack.push_async_callback(recorder.drain, EVENT_DRAIN_SECONDS)
        return recorder

    def _open_decision_file(self, stack: AsyncExitStack) -> None:
        if self._options.decision_file:
            from podium.past.decisions.decision_log import DecisionFile  # noqa: PLC0415

            file = DecisionFile(self._options.decision_file, self._log.warning)
            self.decisions.listen(file.write)
            stack.callback(file.close)

    def _open_history(self, stack: AsyncExitStack) -> None:
        options = self._options.record
        if options is not None:
            from podium.past.recorder.recorder import HistoryRecorder  # noqa: PLC0415
            from podium.past.replay.recorded_past import RecordedPast  # noqa: PLC0415

            writer = options.open(self._clocks.steady)
            self.history = HistoryRecorder(
                writer, self._clocks.steady, with_decisions=not self._options.shadow
            )
            self.past = RecordedPast(
                self.history,
                options.folder,
                options.rules_of,
                lambda: () if self.scheduler is None else self.scheduler.profiles,
            )
            stack.callback(self.past.close)
            self._observers.append(self.history)
            stack.callback(self.history.close)

    def record_profiles(self, kind: str, text: str) -> None:
        """Note in the history that the scheduler decides by the profiles of a text from now on."""
        from podium.library.profiles import parse_policy  # noqa: PLC0415
        from podium.serving.page_data.profile_data import POLICY  # noqa: PLC0415  rarely changed

        record = self._options.record
        if self.history is not None and record is not None:
            field = "policy" if kind == POLICY else "config"
            profile = dict(record.about.get("profile", {}))  # gates, ties and the like stay
            for name in ("policy", "config", "provider"):
                profile.pop(name, None)
            if kind == POLICY or self._chosen.generation.uses_policies:
                profile.pop("profile", None)
            profile[field] = parse_policy(text, "the text of the profiles")
            self.history.reconfigured(profile)

    async def _flush_history(self, history: HistoryRecorder) -> None:
        from podium.host.record_run import FLUSH_SECONDS  # noqa: PLC0415

        while True:
            await self._clocks.sleep(FLUSH_SECONDS)
            history.flush()

    async def _enter_extenders(self, stack: AsyncExitStack) -> ExtenderCalls | None:
        if not any(profile.extenders for profile in self._chosen.profiles):
            return None
        from podium.host.extender_calls import ExtenderCalls  # noqa: PLC0415  brings its client

        return await stack.enter_async_context(
            ExtenderCalls(self._log.warning, self._extender_post)
        )

    def _connect(self, scheduler: Scheduler) -> None:
        """Connect the gauges, the readiness check and the history with the scheduler."""
        if self.history is not None:
            self.history.scheduler = scheduler
        self.metrics.pending = lambda: {
            str(pool): count for pool, count in scheduler.queue.counts().items()
        }
        self.metrics.groups = lambda: {
            str(pool): counts for pool, counts in scheduler.queue.groups_in_pools().items()
        }
        self._group_metrics.unit_of = scheduler.state.evicted_with
        self.metrics.cache_size = scheduler.state.sizes
        self.metrics.binding = lambda: scheduler.binding
        verification = scheduler.verification
        self.metrics.verified = lambda: (verification.compared, verification.differing)
        self.health.ready["informer-sync"] = lambda: (
            "" if scheduler.synced.is_set() else "not everything was seen yet"
        )


def _new_shadow() -> Agreement:
    from podium.past.judge.agreement import Agreement  # noqa: PLC0415  brings what compares

    return Agreement()
