"""The program of `podium run --shadow`: it judges another scheduler and writes nothing.

It watches the cluster as a scheduler does. Instead of deciding in turn it feeds every change to a
`Judge`, which judges each placement of the other scheduler in hindsight. No binding, status, event,
eviction or lease is written.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from podium.past.format.reading import ObjectChange
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.object_index import LivePods, ObjectIndex
from podium.scheduler.state.observers import AttemptResult

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.past.judge.agreement import Judgement
    from podium.past.judge.shadow import Shadow
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.informers import Indexes
    from podium.scheduler.state.observers import Observer
    from podium.scheduler.state.options import SchedulerOptions
    from podium.scheduler.telemetry.timings import RuleTimings


class JudgedIndexes:
    """Objects as last reported; what changes is fed to a judge, which follows when it can."""

    def __init__(
        self, judge: Judge, clock: Callable[[], float], on_change: Callable[[], None]
    ) -> None:
        """*on_change* is called after every change."""
        self._judge, self._clock, self._on_change = judge, clock, on_change
        self._indexes: dict[str, ObjectIndex[Any]] = {}

    def index(self, kind: str) -> ObjectIndex[Any]:
        """The index of a kind."""
        found = self._indexes.get(kind)
        if found is None:

            def changed(old: Object | None, new: Object | None) -> None:
                self._judge.feed(ObjectChange(self._clock(), kind, old, new))
                self._on_change()

            found = LivePods(changed) if kind == "Pod" else ObjectIndex(changed)
            self._indexes[kind] = found
        return found


#: How many changes are followed before other tasks run.
_JUDGED_AT_ONCE: Final = 16


class ShadowScheduler(Scheduler):
    """Judges the placements of another scheduler as they become known, until it is stopped."""

    _judge: Judge

    def __init__(
        self,
        client: KubeApi,
        profiles: Sequence[Profile],
        shadow: Shadow,
        *,
        observers: Sequence[Observer],
        options: SchedulerOptions,
        clocks: Clocks,
        timings: RuleTimings,
        served: Served,
        rng: random.Random,
    ) -> None:
        """Judge by *profiles*; *shadow* is given every judgement."""
        self._shadow = shadow
        super().__init__(
            client,
            profiles,
            recorder=NoEvents(),
            observers=observers,
            options=options,
            clocks=clocks,
            timings=timings,
            served=served,
            rng=rng,
        )

    def _new_state(self) -> tuple[ClusterState, Indexes]:
        """The state that the judge has followed so far, and indexes that feed it."""
        judge = self._judge = Judge(
            Rules(self.profiles, self.options.behaviour),
            self._report,
            clock=self._clocks.steady,
            observers=self._observers,
            verification=self.verification,
        )
        self._shadow.waiting = lambda: judge.waiting
        self._shadow.missed = lambda: judge.missed
        self._shadow.min_count = lambda key: _min_count(judge, key)
        return judge.state, JudgedIndexes(judge, self._clocks.steady, self._pod_ready.set)

    def _report(self, judgement: Judgement) -> None:
        """Count a judgement, and show the decision behind it to the observers."""
        self._shadow.judged(judgement)
        if judgement.decision is None or judgement.profile is None:
            return
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

    def look(self, pod: Pod, profile: Profile) -> Decision:
        """Decide about a pod on request, in the state that the judge has followed."""
        return self._judge.look(pod, profile)

    async def _attempt_pods(self) -> None:
        """Judge placements as changes come, until the shadow is stopped."""
        while not self._stopping:
            self._pod_ready.clear()
            if self._judge.advance(_JUDGED_AT_ONCE):
                await asyncio.sleep(0)
                continue
            try:
                # A pod whose node is never seen is given up after a while without any event.
                async with asyncio.timeout(self.options.cleanup_seconds):
                    await self._pod_ready.wait()
            except TimeoutError:
                pass


def _min_count(judge: Judge, key: str) -> int | None:
    """How many pods of a group must have a node; None if it is not there."""
    namespace, _, name = key.partition("/")
    group = judge.state.cache.columns.catalog.pod_groups.get(name, namespace)
    return None if group is None else group.min_count
