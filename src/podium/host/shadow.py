"""The program of `podium run --shadow`: it judges another scheduler and writes nothing.

It watches the cluster as a scheduler does. Instead of deciding in turn it feeds every change to a
`Judge`, which judges each placement of the other scheduler in hindsight. No binding, status, event,
eviction or lease is written.

In a burst the shadow may read late. Where the judge has waited long for the node of a pod, the API
server is asked for the pods without a node. Changes that are not read yet are waited for.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

import msgspec

from podium.kube.api import JSON
from podium.kube.errors import ApiError
from podium.kube.failure_log import FailureLog
from podium.past.format.reading import ObjectChange
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.object_index import KindIndexes, is_older
from podium.scheduler.state.observers import AttemptResult

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.kube.api import KubeApi
    from podium.kube.discovery import Served
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.past.judge.agreement import Agreement, Judgement
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.informers import Indexes
    from podium.scheduler.state.observers import Observer
    from podium.scheduler.state.options import SchedulerOptions
    from podium.scheduler.telemetry.timings import RuleTimings


logger = logging.getLogger(__name__)

#: How often it is looked whether the API server is to be asked.
_LOOK_SECONDS: Final = 5.0
#: How long each piece of an answer may take.
_ANSWER_SECONDS: Final = 30.0
#: The pods that have no node.
_PENDING: Final = {
    "fieldSelector": "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed",
    "resourceVersion": "",
}
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, "


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Listed(msgspec.Struct):
    metadata: _Metadata


class _PendingPods(msgspec.Struct):
    items: list[_Listed] | None = None


class ClusterReading:
    """Whether what happened to pods has been read; else the API server is to be asked.

    The answer says which pods had no node at some time. One that was read without a node, and is
    not among them or is there in a newer version, has changed unread.
    """

    def __init__(self, client: KubeApi, clock: Callable[[], float]) -> None:
        """Ask through *client*; the *clock* says when."""
        self._client, self._clock = client, clock
        #: The versions of the pods without a node, by uid: as read, and as last answered.
        self._read: dict[str, str] = {}
        self._pending: dict[str, str] = {}
        #: When the API server was asked for them.
        self._asked_at = float("-inf")
        #: Whether it is to be asked again.
        self.is_needed = False

    def read(self, old: Object | None, new: Object | None) -> None:
        """Note a version of a pod that was read."""
        pod = cast("Pod", new or old)
        if new is None or pod.spec.node_name:
            self._read.pop(pod.uid, None)
        else:
            self._read[pod.uid] = pod.metadata.resource_version

    def read_up_to(self, uids: Collection[str], since: float) -> bool:
        """True once all that happened to some pods up to a time after *since* was read."""
        if self._asked_at <= since:
            self.is_needed |= self._clock() > since
            return False
        return all(map(self._has_read, uids))

    def _has_read(self, uid: str) -> bool:
        read = self._read.get(uid)
        if read is None:
            return True
        listed = self._pending.get(uid)
        return listed is not None and (listed == read or is_older(listed, read))

    async def ask(self) -> None:
        """Ask the API server now."""
        asked_at = self._clock()
        text = bytearray()
        async with self._client.reading(
            "/api/v1/pods", _PENDING, seconds=_ANSWER_SECONDS, accept=_METADATA_ONLY + JSON
        ) as pieces:
            async for piece in pieces:
                text += piece
        items = msgspec.json.decode(bytes(text), type=_PendingPods).items or []
        self._pending = {each.metadata.uid: each.metadata.resource_version for each in items}
        self._asked_at, self.is_needed = asked_at, False


def judged_indexes(
    judge: Judge,
    reading: ClusterReading,
    clock: Callable[[], float],
    on_change: Callable[[], None],
) -> KindIndexes:
    """Objects as last reported; what changes is fed to a judge, which follows when it can.

    *reading* notes each version of a pod; *on_change* is called after every change.
    """

    def changed(kind: str, old: Object | None, new: Object | None) -> None:
        judge.feed(ObjectChange(clock(), kind, old, new))
        if kind == "Pod":
            reading.read(old, new)
        on_change()

    return KindIndexes(changed)


#: How many changes are followed before other tasks run.
_JUDGED_AT_ONCE: Final = 16


class ShadowScheduler(Scheduler):
    """Judges the placements of another scheduler as they become known, until it is stopped."""

    _judge: Judge

    def __init__(
        self,
        client: KubeApi,
        profiles: Sequence[Profile],
        shadow: Agreement,
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
        self._reading = ClusterReading(self._client, self._clocks.steady)
        judge = self._judge = Judge(
            Rules(self.profiles, self.options.behaviour),
            self._report,
            reading=self._reading,
            observers=self._observers,
            verification=self.verification,
        )
        self._shadow.waiting = lambda: judge.waiting
        self._shadow.missed = lambda: judge.missed
        indexes = judged_indexes(judge, self._reading, self._clocks.steady, self._pod_ready.set)
        return judge.state, indexes

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
        return self._judge.cluster.decider.look(pod, profile)

    async def _attempt_pods(self) -> None:
        """Judge placements as changes come, until the shadow is stopped."""
        asking = asyncio.get_running_loop().create_task(self._ask())
        try:
            await self._judge_placements()
        finally:
            asking.cancel()

    async def _judge_placements(self) -> None:
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

    async def _ask(self) -> None:
        """Ask the API server for pods without a node whenever the judge has waited for long."""
        failures = FailureLog(logger.warning)
        while True:
            await self._clocks.sleep(_LOOK_SECONDS)
            if not self._reading.is_needed:
                continue
            try:
                await self._reading.ask()
            except ApiError as error:
                failures.failed("pods", f"pods without a node: {error}; asking again")
            except msgspec.DecodeError as error:
                failures.failed("pods", f"pods without a node: {error}; asking again")
            else:
                failures.succeeded("pods")
                self._pod_ready.set()
