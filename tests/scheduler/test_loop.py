"""The loop of the scheduler, beside an API server in the same process and on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from manifests import Manifest, node, pod, priority_class
from podium.engine.framework.extenders import Extender, Filtered
from podium.engine.framework.profile import Profile
from podium.kube.connections import Answer
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.scheduler.state.options import SchedulerOptions
from podium.virtual_cluster.cluster import SimulatedCluster
from podium.virtual_cluster.in_process_api import InProcessApi
from scheduler.fakes import PROFILES, Events

PROFILE, _ = PROFILES["v1.37"]
ASKED = replace(PROFILE, extenders=(Extender("http://127.0.0.1:9", filter_verb="filter"),))


class Attempts(Observer):
    """The attempts in their order: pod, number, whether it got a node, virtual seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.made: list[tuple[str, int, bool, float]] = []
        self.refused: list[str] = []
        self._clock = clock

    def attempted(self, result: AttemptResult) -> None:
        placed = result.decision.node is not None
        self.made.append((result.pod.name, result.number, placed, round(self._clock(), 1)))

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        self.refused.append(result.pod.name)

    @property
    def pods(self) -> list[str]:
        return [name for name, *_ in self.made]


class SlowBinding(InProcessApi):
    """An API server that takes five seconds for a binding."""

    async def exchange(self, method: str, path: str, *rest: Any) -> Answer:
        if path.endswith("/binding"):
            await asyncio.sleep(5)
        return await super().exchange(method, path, *rest)


class World:
    """One scheduler and the objects of its cluster; nothing happens between two calls."""

    def __init__(self, cluster: SimulatedCluster, *, slow: bool = False, **given: Any) -> None:
        self.cluster, self.registry = cluster, cluster.registry
        self.attempts, self.events = Attempts(lambda: cluster.time), Events()
        profile: Profile = given.pop("profile", PROFILE)
        self.scheduler = Scheduler(
            (SlowBinding if slow else InProcessApi)(cluster.server),
            [profile],
            recorder=self.events,
            observers=[self.attempts],
            clocks=cluster.clock.clocks(),
            **given,
        )
        self.task = cluster.loop.create_task(self.scheduler.run())

    def run_for(self, seconds: float) -> None:
        self.cluster.run_for(seconds)
        if self.task.done():
            self.task.result()

    def nodes(self) -> dict[str, str]:
        """Pod -> the node that it is bound to."""
        pods = self.registry.list("Pod")
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}


@contextmanager
def world(*objects: Manifest, **given: Any) -> Iterator[World]:
    """A scheduler that has just been started in a cluster of these objects."""
    with SimulatedCluster(controllers=False) as cluster:
        cluster.load(objects)
        made = World(cluster, **given)
        yield made
        made.scheduler.abandon()
        made.run_for(5)
        assert made.task.done()


def options(**given: Any) -> SchedulerOptions:
    return SchedulerOptions(verified_decisions=1, **given)


def test_the_loop_decides_while_others_are_bound() -> None:
    with world(node("n1"), pod("a"), pod("b"), pod("c"), slow=True) as made:
        made.run_for(1)
        assert made.attempts.pods == ["a", "b", "c"]
        assert (made.scheduler.binding, made.nodes()) == (3, {"a": "", "b": "", "c": ""})

        made.run_for(10)
        assert (made.scheduler.binding, set(made.nodes().values())) == (0, {"n1"})
        assert made.scheduler.is_idle


def test_the_pod_with_the_highest_priority_comes_first() -> None:
    classes = [priority_class(name, value) for name, value in (("low", 1), ("high", 3))]
    pods = [pod("a", priorityClassName="low"), pod("b", priorityClassName="high"), pod("c")]
    with world(node("n1"), *classes, *pods) as made:
        made.run_for(1)
        assert made.attempts.pods == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("version", "again"),
    [
        # The second in which the backoff ends must be over.
        pytest.param("v1.13", 2.0, id="when its backoff is over: the loop wakes by itself"),
        pytest.param("v1.37", 0.1, id="at once where an idle scheduler takes pods that back off"),
    ],
)
def test_a_pod_that_a_node_gives_hope_is_attempted_again(version: str, again: float) -> None:
    profile, behaviour = PROFILES[version]
    given = {"profile": profile, "options": options(behaviour=behaviour)}
    with world(node("n1", "1"), pod("big", "3"), **given) as made:
        made.run_for(0.1)
        made.cluster.load([node("n2", "4")])
        made.run_for(3)

    assert made.attempts.made == [("big", 1, False, 0.0), ("big", 2, True, again)]
    assert made.nodes() == {"big": "n2"}


def test_a_pod_that_comes_wakes_the_loop() -> None:
    with world(node("n1")) as made:
        made.run_for(100)
        made.cluster.load([pod("late")])
        made.run_for(1)

    assert made.attempts.made == [("late", 1, True, 100.0)]


def test_a_replica_that_does_not_lead_decides_nothing() -> None:
    with world(node("n1"), pod("a"), options=options(waits_to_lead=True)) as made:
        made.run_for(60)
        assert made.scheduler.synced.is_set()
        assert made.attempts.made == []

        made.scheduler.leading.set()
        made.run_for(1)
        assert made.attempts.made == [("a", 1, True, 60.0)]


def test_a_replica_whose_lease_is_not_sure_waits_and_goes_on() -> None:
    sure = [True]
    with world(node("n1"), pod("a"), leads=lambda: sure[0]) as made:
        made.run_for(1)
        sure[0] = False
        made.cluster.load([pod("b")])
        made.run_for(10)
        assert made.attempts.pods == ["a"]

        sure[0] = True
        made.run_for(1)
        assert made.attempts.pods == ["a", "b"]


@pytest.mark.parametrize(
    ("slice_seconds", "seen"),
    [
        pytest.param(0.0, [1, 2, 3], id="after each decision"),
        pytest.param(60.0, [3], id="once the queue is empty"),
    ],
)
def test_other_tasks_run_when_the_slice_is_over(slice_seconds: float, seen: list[int]) -> None:
    found: list[int] = []

    async def looking(made: World) -> None:
        while True:
            await asyncio.sleep(0)
            if (count := len(made.attempts.made)) and count not in found:
                found.append(count)

    with world(
        *(node("n1"), pod("a"), pod("b"), pod("c")),
        options=options(slice_seconds=slice_seconds),
    ) as made:
        task = made.cluster.loop.create_task(looking(made))
        made.run_for(0.1)
        task.cancel()

    assert found == seen


def test_a_stopped_scheduler_takes_no_pod_and_ends_its_bindings() -> None:
    with world(node("n1"), pod("a"), slow=True) as made:
        made.run_for(1)
        made.scheduler.stop()
        made.cluster.load([pod("b")])
        made.run_for(3)
        assert not made.task.done()

        made.run_for(3)
        assert made.task.done()
        assert (made.attempts.pods, made.nodes()) == (["a"], {"a": "n1", "b": ""})


def test_an_abandoned_scheduler_waits_for_no_binding() -> None:
    with world(node("n1"), pod("a"), slow=True) as made:
        made.run_for(1)
        made.scheduler.abandon()
        made.run_for(0.1)
        assert made.task.done()
        made.run_for(10)

    assert made.nodes() == {"a": ""}


def test_a_stopped_scheduler_that_is_abandoned_waits_no_longer() -> None:
    with world(node("n1"), pod("a"), slow=True) as made:
        made.run_for(1)
        made.scheduler.stop()
        made.run_for(1)
        made.scheduler.abandon()
        made.run_for(0.1)
        assert made.task.done()
        made.run_for(10)

    assert made.nodes() == {"a": ""}


def test_a_scheduler_that_is_stopped_while_it_lists_ends() -> None:
    with world(node("n1"), pod("a")) as made:
        made.scheduler.stop()
        made.run_for(0.1)
        assert made.task.done()

    assert made.attempts.made == []


def test_a_pod_that_is_deleted_while_an_extender_is_asked_is_not_bound() -> None:
    async def ask(question: Any) -> Filtered:
        await asyncio.sleep(1)
        return Filtered(question.nodes)

    with world(node("n1"), node("n2"), pod("a"), pod("b"), profile=ASKED, ask=ask) as made:
        made.run_for(0.5)
        made.registry.delete("Pod", "a", "default")
        made.run_for(5)

        assert made.attempts.pods == ["a", "b"]
        assert made.attempts.refused == []
        assert made.nodes().keys() == {"b"}
        assert made.scheduler.cache.columns.pods.total == 1
        assert made.scheduler.is_idle


def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    leaving = pod("leaving")
    leaving["metadata"]["finalizers"] = ["example.com/kept"]
    with world(node("n1"), options=options(waits_to_lead=True)) as made:
        made.cluster.load([leaving])
        made.run_for(1)
        made.registry.delete("Pod", "leaving", "default")
        made.run_for(1)
        made.scheduler.leading.set()
        made.run_for(1)

        assert made.attempts.made == []
        assert made.events.written == [
            ("default/leaving", "FailedScheduling", "skip schedule deleting pod: default/leaving")
        ]
        assert made.scheduler.is_idle


def test_a_pod_that_another_scheduler_has_bound_meanwhile_is_not_attempted() -> None:
    with world(node("n1"), pod("a"), options=options(waits_to_lead=True)) as made:
        made.run_for(1)
        made.registry.bind("a", "default", "n1")
        made.run_for(1)
        made.scheduler.leading.set()
        made.run_for(1)

        assert (made.attempts.made, made.nodes()) == ([], {"a": "n1"})


def test_pods_of_other_schedulers_are_left_alone() -> None:
    with world(node("n1"), pod("a", schedulerName="other"), pod("b")) as made:
        made.run_for(5)

    assert (made.attempts.pods, made.nodes()) == (["b"], {"a": "", "b": "n1"})


def test_other_profiles_are_used_from_the_next_pod_on() -> None:
    other = replace(PROFILE, scheduler_name="other")
    with world(node("n1"), pod("a", schedulerName="other"), pod("b")) as made:
        made.run_for(1)
        made.cluster.loop.create_task(made.scheduler.reconfigure([other]))
        made.run_for(1)
        made.cluster.load([pod("c")])
        made.run_for(1)

    assert made.attempts.pods == ["b", "a"]
    assert made.nodes() == {"a": "n1", "b": "n1", "c": ""}
