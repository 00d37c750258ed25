"""Random histories of the queue of groups against a plain model of its description."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from cluster.pod_groups.groups import group, member
from podium.cluster.queue.entities import GroupTurn, Turn
from podium.cluster.queue.group_queue import GroupQueue
from podium.cluster.queue.queue import OF_CONFIGURATIONS
from podium.cluster.wakeups.wakeups import MoveRules
from podium.engine.framework.group_decision import Code
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.pod_group import PodGroup

GROUPS: Final = {"g": (3, 0), "h": (1, 5), "i": (2, 0)}
CODES: Final[tuple[Code, ...]] = ("Success", "Unschedulable", "Error")


@dataclass
class Member:
    pod: Pod
    time: float
    arrival: int
    attempts: int = 0

    def place(self) -> tuple[int, int, float, str]:
        return -self.pod.priority, -self.attempts, self.time, self.pod.name


@dataclass
class ModelGroup:
    """A group: where it is, the pods that wait with it, and what it remembers."""

    minimum: int
    priority: int
    exists: bool = False
    where: str = ""
    time: float = 0.0
    arrival: int = 0
    rejections: int = 0
    errors: int = 0
    failed: float = 0.0
    size: int = 0
    waiting: dict[str, Member] = field(default_factory=dict)
    #: Pods that came while the group was tried, or came back from that; None unless it is tried.
    aside: dict[str, Member] | None = None
    #: All pods of the group that are known, whatever became of them.
    known: set[str] = field(default_factory=set)

    def rest_ends(self) -> float:
        failures = self.errors or self.rejections
        rest = min(2.0 ** (failures - 1), 10.0 * math.sqrt(max(self.size, 1)))
        return math.floor(self.failed + rest) if failures else -math.inf

    def enter(self, now: float, *, rests: bool) -> None:
        """Gates are looked at when a group enters; one that is gated waits for its pods."""
        if len(self.known) < self.minimum:
            self.where = "gated"
        else:
            resting = rests and self.rest_ends() >= math.floor(now)
            self.where = "backoff" if resting else "active"


@dataclass(frozen=True)
class Rules(MoveRules):
    """A gang is held until so many pods are known as it needs."""

    groups: Mapping[str, ModelGroup] = field(default_factory=dict)

    def gate(self, pod: Pod) -> str:
        found = self.groups[pod.group.partition("/")[2]]
        return "GangScheduling" if len(found.known) < found.minimum else ""


class World:
    """The queue and the model, which everything happens to alike."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)  # noqa: S311  not a secret
        self.now, self.arrivals, self.made = 1000.0, 0, 0
        self.groups = {name: ModelGroup(*each) for name, each in GROUPS.items()}
        options = replace(OF_CONFIGURATIONS, arrival_order=True)
        self.queue = GroupQueue(lambda: self.now, Rules(groups=self.groups), options)
        self.pods: dict[str, Pod] = {}

    def object_of(self, name: str) -> PodGroup:
        found = self.groups[name]
        return group(name, found.minimum, priority=found.priority)

    def pass_time(self) -> None:
        self.now += self.dice.choice((0.0, 0.3, 1.0, 2.5))
        for each in self.groups.values():
            if each.where == "backoff" and each.rest_ends() < math.floor(self.now):
                each.where = "active"

    def add_pod(self) -> None:
        name, self.made = self.dice.choice(list(GROUPS)), self.made + 1
        pod = member(f"p{self.dice.randrange(100)}-{self.made}", name, priority=self.made % 2)
        found, self.arrivals = self.groups[name], self.arrivals + 1
        found.known.add(pod.key)
        self.pods[pod.key] = pod
        self.queue.add(pod)
        self.join(found, Member(pod, self.now, self.arrivals))

    def join(self, found: ModelGroup, new: Member) -> None:
        if found.aside is not None and found.exists:
            found.aside[new.pod.key] = new
            return
        first = not found.waiting
        found.waiting[new.pod.key] = new
        if not found.exists:
            found.where = "incomplete"
        elif first:
            found.time, found.arrival = new.time, new.arrival
            found.rejections = found.errors = found.size = 0
            found.enter(self.now, rests=False)
        else:
            found.enter(self.now, rests=found.where != "active")

    def put_group(self) -> None:
        name = self.dice.choice(list(GROUPS))
        found = self.groups[name]
        was, found.exists = found.exists, True
        self.queue.put_group(self.object_of(name))
        if not was:
            held, found.waiting = found.waiting, {}
            for each in held.values():
                self.join(found, each)

    def drop_group(self) -> None:
        name = self.dice.choice(list(GROUPS))
        found = self.groups[name]
        if found.exists:
            found.exists = False
            found.where = "incomplete" if found.waiting else ""
            self.queue.drop_group(self.object_of(name))

    def delete_pod(self) -> None:
        if not self.pods:
            return
        key = self.dice.choice(sorted(self.pods))
        pod = self.pods.pop(key)
        found = self.groups[pod.group.partition("/")[2]]
        found.known.discard(key)
        self.queue.delete(pod)
        if found.aside is not None:
            found.aside.pop(key, None)
        if found.waiting.pop(key, None) is not None and found.where in {"active", "backoff"}:
            found.enter(self.now, rests=found.where == "backoff")
        if not found.waiting:
            found.where = ""

    def turn(self) -> None:
        """Try the first group: some pods get a node, the others come back, new ones come."""
        taken = self.queue.pop_entity()
        active = [name for name, each in self.groups.items() if each.where == "active"]
        if not active:
            assert taken is None
            return
        assert isinstance(taken, GroupTurn)
        name = min(active, key=self.rank)
        found = self.groups[name]
        tried = sorted(found.waiting.values(), key=Member.place)
        assert taken.group.name == name
        assert [each.pod.key for each in taken.members] == [each.pod.key for each in tried]
        found.waiting, found.aside, found.where = {}, {}, ""
        if self.dice.random() < 0.3:
            self.add_pod()
        code = self.dice.choice(CODES)
        for turn, each in zip(taken.members, tried, strict=True):
            each.attempts += 1
            self.end_turn(found, turn, each, placed=code == "Success" and self.dice.random() < 0.7)
        self.queue.requeue_group(taken, code)
        self.end_cycle(found, code, {each.pod.key for each in tried})

    def end_turn(self, found: ModelGroup, turn: Turn, each: Member, *, placed: bool) -> None:
        if placed:
            self.queue.done(turn)
            self.pods.pop(each.pod.key)
            return
        self.queue.requeue(turn)
        each.time = self.now
        assert found.aside is not None
        found.aside[each.pod.key] = each

    def end_cycle(self, found: ModelGroup, code: Code, tried: set[str]) -> None:
        left, found.aside = found.aside or {}, None
        if not left:
            return
        found.waiting, found.size = left, len(left)
        if code == "Success":
            found.rejections = found.errors = 0
        elif code == "Error":
            found.errors += 1
        else:
            found.rejections, found.errors = found.rejections + 1, 0
        if code != "Success" or not tried & left.keys():
            found.time = self.now
        found.failed = found.time
        found.enter(self.now, rests=code != "Success")

    def rank(self, name: str) -> tuple[int, float, int]:
        found = self.groups[name]
        return -found.priority, found.time, found.arrival

    def check(self) -> None:
        """Every pod waits where the model says."""
        for found in self.groups.values():
            for key in found.waiting:
                assert str(self.queue.pool_of(self.pods[key])) == found.where
        counts = self.queue.counts()
        assert sum(counts.values()) == sum(len(each.waiting) for each in self.groups.values())


@given(seed=st.integers(0, 2**32))
def test_groups_are_queued_as_the_description_says(seed: int) -> None:
    world = World(seed)
    often = (world.add_pod, world.turn)
    acts = (*often * 3, world.put_group, world.put_group, world.drop_group, world.delete_pod)
    for _ in range(40):
        world.pass_time()
        world.dice.choice(acts)()
        world.check()
