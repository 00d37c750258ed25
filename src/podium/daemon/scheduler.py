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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.daemon.announcing import Announcer
from podium.daemon.attempting import Attempts
from podium.daemon.believing import Beliefs
from podium.daemon.binding import Binder
from podium.daemon.clock import SteadyClock
from podium.daemon.crew import Crew
from podium.daemon.failing import Failures
from podium.daemon.manners import CURRENT, Manners
from podium.daemon.observing import Attempted, Observer
from podium.daemon.volumes import TIMEOUT_SECONDS, VolumeBinder
from podium.daemon.watching import Watching
from podium.daemon.writing import StatusWriter
from podium.profiles.needs import needed_kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.cluster.cache import Cache
    from podium.cluster.queue import SchedulingQueue
    from podium.cluster.queued_pod import Turn
    from podium.daemon.announcing import Recorder
    from podium.daemon.attempting import Ask
    from podium.daemon.binding import ExtenderBind
    from podium.engine.decision import Decision
    from podium.engine.profile import Profile
    from podium.kube.client import ApiClient

logger = logging.getLogger(__name__)

#: How long deciding goes on before anything else may run.
SLICE_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """How a scheduler works, apart from its decisions."""

    manners: Manners = CURRENT
    #: How many bindings, and how many other writes, are under way together.
    bindings: int = 100
    writes: int = 32
    bind_seconds: float = 15.0
    volume_seconds: float = TIMEOUT_SECONDS
    #: How long bindings under way may take to finish once it was told to stop.
    drain_seconds: float = 20.0
    #: Whether it begins to decide only when told that it leads.
    waits_to_lead: bool = False


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
    ) -> None:
        self.profiles = {profile.scheduler_name: profile for profile in profiles}
        self.options = options
        self.clock = clock or SteadyClock()
        self._client = client
        #: Set once everything was seen, and while we are the one who decides.
        self.synced = asyncio.Event()
        self.leading = asyncio.Event()
        if not options.waits_to_lead:
            self.leading.set()
        self._news = asyncio.Event()
        self._stopping = False
        self._bindings, self._writes = Crew(options.bindings), Crew(options.writes)
        manners = options.manners
        writer = StatusWriter(client, probes=manners.probes, now=self.clock)
        self._observers = (*observers, writer)
        self.beliefs = Beliefs(
            self.profiles, manners, self.clock, self._observers, stir=self._news.set
        )
        self._watching = Watching(client, self.beliefs)
        self._attempts = Attempts(self.beliefs, self.profiles, ask)
        self._announcer = Announcer(recorder, manners)
        self._failures = Failures(
            beliefs=self.beliefs,
            client=client,
            writer=writer,
            announcer=self._announcer,
            crew=self._writes,
            manners=manners,
            now=self.clock,
        )
        self._volumes = VolumeBinder(
            self.beliefs,
            client,
            writer,
            announces=manners.announces_volumes,
            timeout_seconds=options.volume_seconds,
        )
        self._binder = Binder(
            beliefs=self.beliefs,
            client=client,
            volumes=self._volumes,
            failures=self._failures,
            announcer=self._announcer,
            crew=self._bindings,
            observers=self._observers,
            now=self.clock,
            timeout_seconds=options.bind_seconds,
            by_extender=bind_by_extender,
        )

    @property
    def cache(self) -> Cache:
        """What we believe about nodes and placed pods."""
        return self.beliefs.cache

    @property
    def queue(self) -> SchedulingQueue:
        """Pods that wait for a node."""
        return self.beliefs.queue

    # --- life -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch, and decide once everything is known and it is our turn; until stopped."""
        try:
            await self._watching.start(needed_kinds(self.profiles.values()))
            self.synced.set()
            await self._lead()
        finally:
            await self._drain()

    def stop(self) -> None:
        """Decide nothing any more; `run` returns when what is under way is done."""
        self._stopping = True
        self._news.set()
        self.leading.set()

    async def _drain(self) -> None:
        """Finish what was begun: bindings first, then what is to be said about them."""
        for crew in (self._bindings, self._writes):
            if not await crew.finish(self.options.drain_seconds):
                logger.warning("%d writes were not answered in time", len(crew))
            await crew.dismiss()
        await self._volumes.dismiss()
        await self._watching.stop()

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
        profile = self.profiles[turn.pod.spec.scheduler_name]
        began, watch = self.clock(), time.perf_counter()
        decision = await self._attempts.decide(turn.pod, profile)
        attempted = Attempted(
            turn.pod,
            decision,
            profile,
            turn.number,
            began,
            time.perf_counter() - watch,
            max(turn.queued.timestamp, 0.0),
        )
        for observer in self._observers:
            observer.attempted(attempted)
        if decision.node is None:
            self._failures.undecided(turn, attempted)
        elif self.beliefs.pod(turn.pod) is not None:
            self._place(turn, attempted, decision)
        else:
            self.queue.done(turn)  # it was deleted while extenders were asked

    def _is_worth_trying(self, turn: Turn) -> bool:
        """Not a pod that is being deleted, is placed already, or is somebody else's by now."""
        pod = turn.pod
        if pod.terminating:
            self._announcer.skipped(pod)
            return False
        placed = self.cache.columns.pod(pod.uid) is not None
        return not placed and pod.spec.scheduler_name in self.profiles

    def _place(self, turn: Turn, attempted: Attempted, decision: Decision) -> None:
        """The pod counts as placed from now on, and its binding is on its way."""
        assert decision.node is not None
        self.queue.clear_nomination(turn.pod)
        self.cache.assume(turn.pod, decision.node, decision.volumes)
        # What happens from now on cannot make the pod fit better: its turn is over.
        self.queue.done(turn)
        self._binder.start(turn, attempted)
