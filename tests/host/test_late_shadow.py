"""A shadow that reads late accuses nobody of what it has not read yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import msgspec

from builders import node, pod
from past.judge.other_scheduler import OtherScheduler
from podium.host.shadow import ClusterReading, judged_indexes
from podium.kube.api import JSON, KubeApi, always
from podium.objects.kinds.pod import Pod
from podium.past.format.reading import ObjectChange
from podium.past.judge.agreement import AS_GOOD, SAME, Agreement
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from scheduler.fakes import PROFILES


class PodsAt(KubeApi):
    """The pods of a cluster at a time, as an API server lists them."""

    def __init__(self, log: list[ObjectChange], clock: Callable[[], float]) -> None:
        self._log, self._clock = log, clock

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,  # noqa: ASYNC109  as declared
        before_send: Callable[[], None] = always,
    ) -> bytes:
        found: dict[str, Pod] = {}
        for change in self._log:
            if change.time <= self._clock() and isinstance(change.new, Pod):
                found[change.new.uid] = change.new
        pending = [each for each in found.values() if not each.spec.node_name]
        assert params is not None
        assert params["fieldSelector"].startswith("spec.nodeName=,")
        return msgspec.json.encode({"items": [{"metadata": each.metadata} for each in pending]})

    def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError


class LateShadow:
    """A shadow in virtual time, which reads what happened when it is told to."""

    def __init__(self, other: OtherScheduler) -> None:
        self.now = other.log[0].time
        self._left = list(other.log)
        self.shadow = Agreement(None)
        rules = Rules({other.profile.scheduler_name: other.profile}, other.behaviour)
        self.reading = ClusterReading(PodsAt(other.log, self._clock), self._clock)
        self.judge = Judge(rules, self.shadow.judged, reading=self.reading)
        self._indexes = judged_indexes(self.judge, self.reading, self._clock, lambda: None)

    def _clock(self) -> float:
        return self.now

    def read(self, most: int) -> None:
        """Read the next changes, and follow them as far as is known."""
        for change in self._left[:most]:
            self.now = max(self.now, change.time)
            index: Any = self._indexes.index(change.kind)
            if change.new is not None:
                index.put(change.new)
            else:
                index.drop(change.old)
        del self._left[:most]
        self.go_on()

    def go_on(self) -> None:
        """Judge what can be judged, and ask the API server if that is needed."""
        self.judge.advance()
        if self.reading.is_needed:
            asyncio.run(self.reading.ask())
            self.judge.advance()

    def finished(self) -> Agreement:
        while self._left:
            self.read(1)
        self.judge.finish()
        return self.shadow


def busy(pods: int = 150) -> OtherScheduler:
    other = OtherScheduler(*PROFILES["v1.37"], 1)
    for number in range(30):
        other.put(node(f"n{number}", cpu=4, memory="16Gi"))
    sizes = Random(5)  # noqa: S311  a seed
    cpus = [sizes.choice(["100m", "300m", "700m"]) for _ in range(pods)]
    other.burst(
        pod(f"p{number:04}", uid=f"u{number}", requests={"cpu": cpu})
        for number, cpu in enumerate(cpus)
    )
    return other


def test_a_shadow_that_reads_nothing_for_a_minute_accuses_nobody() -> None:
    """It gave pods up whose bindings it had not read: 5 of 150 were different, 78 excused."""
    late = LateShadow(busy())

    for _ in range(12):
        late.read(20)
        late.now += 60
        late.go_on()
    found = late.finished()

    assert found.pods == 150
    assert found.counts[SAME] + found.counts[AS_GOOD] == 150


def test_a_pod_that_never_gets_a_node_is_not_waited_for() -> None:
    """The API server says that it still has none: those after it are judged."""
    other = busy(40)
    other.log = [
        change
        for change in other.log
        if change.old is None or change.new is None or change.new.key != "default/p0005"
    ]
    late = LateShadow(other)
    late.read(len(other.log))
    before = late.shadow.pods

    late.now += 31
    late.go_on()

    assert before < 39
    assert late.shadow.pods == 39
