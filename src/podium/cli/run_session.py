"""A scheduler with all that stands around it: the lease, events, metrics, logs, probes."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import uvloop

from podium.cli.composition import composed, options_of
from podium.cli.console import notes
from podium.cli.run import LEASE, LEASE_NAMESPACE
from podium.daemon.decisions.decision_file import DecisionFile
from podium.daemon.decisions.decision_log import DecisionLog
from podium.daemon.http_server import Health, application, listening, serve_on
from podium.daemon.logs import DecisionLines, Log
from podium.daemon.metrics import Metrics
from podium.daemon.options import SchedulerOptions
from podium.daemon.pod_events import NoEvents
from podium.daemon.rule_timings import RuleTimings
from podium.daemon.scheduler import Scheduler
from podium.daemon.shadow import Shadow
from podium.daemon.slow_trace import SlowTrace
from podium.errors import InputError
from podium.kube.client import ApiClient
from podium.kube.discovery import Served, discover
from podium.kube.events import CORE, EVENTS
from podium.kube.lease import LeaderElector, LeaseTimes
from podium.kube.recorder import EventRecorder
from podium.objects.durations import SECOND, parse

if TYPE_CHECKING:
    from podium.cli.run import RunFlags
    from podium.daemon.observers import Observer
    from podium.daemon.pod_events import Recorder
    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles

LEADERSHIP_LOST = 1
#: So many events may wait to be written; more are dropped.
MOST_EVENTS = 20_000


def run_scheduler(access: Access, chosen: ChosenProfiles, own: RunFlags) -> int:
    """Run until a signal says stop, or the lease is lost; the exit code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_Run(access, chosen, own).run())


class _Run:
    """One run: what is put together, and in which order it ends."""

    def __init__(self, access: Access, chosen: ChosenProfiles, own: RunFlags) -> None:
        self._access, self._chosen, self._own = access, chosen, own
        self._log = Log(own.logging_format, own.v)
        logging.basicConfig(handlers=[_ToLog(self._log)], level=logging.WARNING)
        self._config = chosen.scheduler_config
        self._elects = self._wants_lease()
        self._times = self._lease_times()
        self._elector: LeaderElector | None = None
        self._timings = RuleTimings()
        self._metrics = Metrics(self._timings)
        self._decisions = DecisionLog()
        self._shadow = Shadow() if own.shadow else None
        self._health = Health()

    async def run(self) -> int:
        """The exit code."""
        self._introduce()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(ApiClient(self._access))
            served = await discover(client)
            recorder = await self._recorder(stack, client, events=EVENTS in served.versions)
            scheduler = await self._scheduler(stack, client, recorder, served)
            self._serve(stack, scheduler)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, scheduler.stop)
            if self._shadow is not None:
                stack.callback(self._report)
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._report)
            return await self._until_over(client, scheduler)

    async def _until_over(self, client: ApiClient, scheduler: Scheduler) -> int:
        """Stopped: what is under way is finished, then the lease goes. Lost: out at once."""
        working = asyncio.create_task(scheduler.run())
        if not self._elects:
            await working
            return 0
        leading = asyncio.create_task(self._lead(client, scheduler))
        await asyncio.wait((working, leading), return_when=asyncio.FIRST_COMPLETED)
        lost = leading.done()
        if lost:
            self._log.error("leader election lost")
            scheduler.abandon()
        await working
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading
        return LEADERSHIP_LOST if lost else 0

    async def _lead(self, client: ApiClient, scheduler: Scheduler) -> None:
        given = self._config.leader_election if self._config is not None else None
        own = self._own
        name = own.leader_elect_resource_name or (given.resource_name if given else LEASE)
        space = own.leader_elect_resource_namespace or (
            given.resource_namespace if given else LEASE_NAMESPACE
        )
        identity = f"{socket.gethostname()}_{uuid4()}"
        self._elector = LeaderElector(
            client,
            space,
            name,
            identity,
            times=self._times,
            on_started=lambda: self._began(scheduler, identity),
            on_new_leader=lambda leader: self._stand_by(leader, identity),
            warn=self._log.warning,
        )
        await self._elector.run()

    def _stand_by(self, leader: str, identity: str) -> None:
        if leader != identity:
            self._log.info("standing by", v=0, leader=leader)

    def _began(self, scheduler: Scheduler, identity: str) -> None:
        self._log.info("leading", v=0, identity=identity)
        scheduler.leading.set()

    # What stands around ---------------------------------------------------------------------

    async def _recorder(
        self, stack: AsyncExitStack, client: ApiClient, *, events: bool
    ) -> Recorder:
        if self._own.shadow:
            return NoEvents()
        api = EVENTS if events and not self._chosen.is_v1_13 else CORE
        name = self._chosen.profile.scheduler_name
        recorder = EventRecorder(client, name, api=api, most=MOST_EVENTS, warn=self._log.warning)
        await stack.enter_async_context(recorder)
        stack.push_async_callback(recorder.drain, 5.0)
        return recorder

    async def _scheduler(
        self, stack: AsyncExitStack, client: ApiClient, recorder: Recorder, served: Served
    ) -> Scheduler:
        profiles = (self._chosen.profile, *self._chosen.others)
        options = options_of(
            self._chosen,
            SchedulerOptions(
                waits_to_lead=self._elects,
                shadow=self._own.shadow,
                recorded_nodes=self._own.recorded_nodes,
            ),
        )
        return await composed(
            stack,
            client,
            [self._timings.instrument(profile) for profile in profiles],
            options=options,
            recorder=recorder,
            observers=self._observers(stack),
            tell=self._log.warning,
            served=served,
        )

    def _observers(self, stack: AsyncExitStack) -> list[Observer]:
        found: list[Observer] = [
            self._metrics,
            self._decisions,
            DecisionLines(self._log),
            SlowTrace(self._log),
        ]
        if self._shadow is not None:
            found.append(self._shadow)
            self._metrics.more.append(self._shadow.families)
        if self._own.decision_log_file:
            file = DecisionFile(self._own.decision_log_file, self._log.warning)
            self._decisions.listen(file.write)
            stack.callback(file.close)
        return found

    def _serve(self, stack: AsyncExitStack, scheduler: Scheduler) -> None:
        self._metrics.pending = lambda: {
            str(pool): count for pool, count in scheduler.queue.counts().items()
        }
        self._metrics.cache_size = scheduler.state.sizes
        self._metrics.binding = lambda: scheduler.binding
        self._health.ready["informer-sync"] = lambda: (
            "" if scheduler.synced.is_set() else "not everything was seen yet"
        )
        self._health.alive["leaderElection"] = self._check_lease
        own = self._own
        if not own.port:
            return
        app = application(
            self._health,
            self._metrics,
            self._decisions,
            self._shadow,
            loopback=own.bind_address in {"127.0.0.1", "::1", "localhost"},
        )
        serving = asyncio.create_task(serve_on(app, listening(own.bind_address, own.port)))
        stack.callback(serving.cancel)

    def _check_lease(self) -> str:
        """Whoever believes to lead must have renewed the lease lately."""
        elector = self._elector
        if elector is None or elector.holder != elector.identity or elector.leading:
            return ""
        return "failed election to renew leadership on the lease"

    def _introduce(self) -> None:
        names = ", ".join(sorted(self._chosen.schedulers))
        what = "shadows" if self._own.shadow else "schedules"
        line = (
            f"podium {what} pods of {names} at {self._access.shown} by {self._chosen.profile.name}"
        )
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        notes(self._chosen.profile.notes)

    def _report(self) -> None:
        """How far we agree with the scheduler beside us."""
        assert self._shadow is not None
        sys.stdout.write(self._shadow.table())
        sys.stdout.flush()

    # The lease ------------------------------------------------------------------------------

    def _wants_lease(self) -> bool:
        if self._own.shadow:
            return False
        if self._own.leader_elect is not None:
            return self._own.leader_elect
        return self._config is None or self._config.leader_election.leader_elect

    def _lease_times(self) -> LeaseTimes:
        own, given = self._own, self._config
        found = given.leader_election if given is not None else None
        usual = LeaseTimes()
        return LeaseTimes(
            _seconds(
                "lease-duration",
                own.leader_elect_lease_duration,
                found.lease_duration / SECOND if found else usual.lease_seconds,
            ),
            _seconds(
                "renew-deadline",
                own.leader_elect_renew_deadline,
                found.renew_deadline / SECOND if found else usual.renew_deadline_seconds,
            ),
            _seconds(
                "retry-period",
                own.leader_elect_retry_period,
                found.retry_period / SECOND if found else usual.retry_seconds,
            ),
        )


def _seconds(name: str, text: str | None, usual: float) -> float:
    if text is None:
        return usual
    try:
        return parse(text) / SECOND
    except ValueError as error:
        raise InputError(f"--leader-elect-{name}: {error}", hint="such as 15s or 1m30s") from None


class _ToLog(logging.Handler):
    """Lines of Python's own logging, in our form."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass it on."""
        tell: Any = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        fields = {"where": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        tell(record.getMessage(), **fields)
