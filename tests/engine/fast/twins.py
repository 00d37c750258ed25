"""Random histories for two simulations: one remembers answers, the other asks all rules again.

Every decision must come out the same: host, ties, cursor, number of feasible nodes, reasons,
victims. Journals and the limits at which the fast one changes its ways are made small, so that
short histories cross them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from hypothesis import strategies as st

from builders import objects
from builders_v1_36 import spec_with
from podium.cluster.simulation import RETRY, TERMINATE, Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.framework.tuning import Tuning
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

NODES = tuple(f"n{number}" for number in range(7))


@dataclass(frozen=True)
class Ground:
    """What a history is made of."""

    profiles: Mapping[str, Profile]
    #: The kinds of pods and of nodes, and how one is made.
    pods: Mapping[str, Any]
    make_pod: Callable[..., Pod]
    nodes: Mapping[str, Any]
    make_node: Callable[[str, str, str], Node]
    #: Objects besides nodes and pods, by the name under which a history adds and drops them.
    others: Mapping[str, tuple[str, Any]]
    zones: tuple[str, ...]


def outcome(decision: Decision) -> dict[str, Any]:
    """What must not depend on how the decision was reached; codes are spelled out."""
    preemption = decision.preemption
    return {
        "pod": decision.pod,
        "node": decision.node,
        "nominated": decision.nominated,
        "message": decision.message,
        "error": decision.error,
        "refused": decision.refused,
        "tied": decision.tied,
        "cursor": decision.cursor if decision.tied else 0,
        "feasible": decision.feasible_count,
        "consumed": (decision.consumed, decision.dropped),
        "verdicts": Counter(
            {
                (v.predicate, v.reasons, v.curable): number
                for code, number in decision.histogram.items()
                for v in [decision.verdict(code)]
            }
        ),
        "volumes": decision.volumes,
        "after": decision.post_code,
        "preemption": preemption
        and (
            preemption.eligible,
            preemption.potential,
            dict(preemption.candidates),
            preemption.node,
            preemption.tie,
            preemption.criterion,
            preemption.nomination,
        ),
        "cleared": preemption and preemption.cleared,
    }


class Twins:
    """The same cluster twice: one that remembers and one that does not."""

    def __init__(self, ground: Ground, profile: Profile, after_preemption: str) -> None:
        self.ground = ground
        self.both = tuple(
            Simulation(profile, after_preemption=after_preemption, fast=fast, start_time=self.now)
            for fast in (True, False)
        )
        #: Every pod that was ever made.
        self.pods: dict[str, Pod] = {}

    def now(self, attempt: int) -> str:
        return f"2026-01-01T00:{attempt // 2 % 60:02}:00Z"

    def each(self, action: Callable[[Simulation], object]) -> None:
        for simulation in self.both:
            action(simulation)

    def make(self, kind: str, **more: Any) -> Pod:
        made = self.ground.make_pod(f"{kind.replace(' ', '-')}-{len(self.pods)}", kind, **more)
        self.pods[made.uid] = made
        return made

    def placed(self) -> list[str]:
        fast, plain = (
            sorted(each.uid for row in s.cache.columns.pods.residents for each in row)
            for s in self.both
        )
        assert fast == plain
        return fast

    def nodes(self) -> list[Node]:
        return [each for each in self.both[0].cache.columns.nodes.objects if each is not None]

    # What can happen

    def schedule(self, kind: str) -> None:
        """A pod comes, and goes where it is sent."""
        wanted = self.make(kind)
        fast, plain = ([outcome(step.decision) for step in s.run([wanted])] for s in self.both)
        assert fast == plain

    def ask(self, kind: str) -> None:
        """A pod is looked at, and nothing comes of it."""
        wanted = self.make(kind)
        fast, plain = (outcome(simulation.attempt(wanted)) for simulation in self.both)
        assert fast == plain

    def keep_asking(self, kind: str) -> None:
        """Long enough for answers to be kept that have not changed."""
        for _ in range(4):
            self.ask(kind)

    def put_node(self, name: str, kind: str, zone: str) -> None:
        """A node is new, or changes into another kind of node."""
        made = self.ground.make_node(name, kind, zone)
        self.each(lambda simulation: simulation.cache.put_node(made))

    def drop_node(self, number: int) -> None:
        """A node goes; its pods stay believed in."""
        if known := self.nodes():
            gone = known[number % len(known)]
            self.each(lambda simulation: simulation.cache.drop_node(gone))

    def remove(self, number: int) -> None:
        """A placed pod goes."""
        if placed := self.placed():
            self.each(lambda simulation: simulation.remove(placed[number % len(placed)]))

    def terminate(self, number: int) -> None:
        """A placed pod is about to go."""
        if placed := self.placed():
            uid = placed[number % len(placed)]
            self.each(lambda simulation: simulation.cache.columns.mark_terminating(uid))

    def relabel(self, number: int, app: str) -> None:
        """A placed pod is given another label."""
        if placed := self.placed():
            uid = placed[number % len(placed)]
            for simulation in self.both:
                resident = simulation.cache.columns.pods.by_uid.get(uid)
                assert resident is not None
                there = simulation.cache.columns.nodes.names[resident.row]
                before = spec_with(self.pods[uid], node_name=there)
                if simulation.cache.is_assumed(uid):
                    simulation.cache.add_pod(before)
                meta = msgspec.structs.replace(before.metadata, labels={"app": app})
                after = msgspec.structs.replace(before, metadata=meta)
                simulation.cache.update_pod(before, after)
            self.pods[uid] = after

    def add_placed(self, kind: str, name: str) -> None:
        """Somebody else placed a pod, perhaps on a node that nobody knows."""
        there = self.make(kind, node=name)
        self.each(lambda simulation: simulation.load(objects(there)))

    def promise(self, kind: str, name: str) -> None:
        """A pod that waits is promised a node."""
        waiting = self.make(kind, nominated=name)
        self.each(lambda simulation: simulation.nominate(waiting, name))

    def keep_promises(self, name: str) -> None:
        """Pods that were promised a node get another try."""
        fast, plain = (s._nominations.on(name) for s in self.both)
        assert [each.uid for each in fast] == [each.uid for each in plain]
        for waiting in fast:
            results = [[outcome(step.decision) for step in s.run([waiting])] for s in self.both]
            assert results[0] == results[1]

    def put(self, name: str) -> None:
        """A service, a namespace, a volume or the like comes or changes."""
        shelf, item = self.ground.others[name]
        self.each(lambda s: getattr(s.cache.columns.catalog, shelf).put(item))

    def drop(self, name: str) -> None:
        """It goes."""
        shelf, item = self.ground.others[name]
        self.each(lambda s: getattr(s.cache.columns.catalog, shelf).drop(item))


@dataclass(frozen=True)
class History:
    """What happens, and how small the limits are while it does."""

    ground: Ground = field(repr=False)
    profile: str
    after_preemption: str
    one_by_one: int
    journal: int
    patience: int
    pods: tuple[str, ...]
    start: list[tuple[Any, ...]]
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def twins(self) -> Twins:
        """The simulations, with nothing in them yet."""
        tuning = Tuning(
            self.one_by_one,
            self.patience,
            min_reduction=1,
            min_batch_rows=2,
            journal_limit=self.journal,
            # With a patience of 2 the best rows are found in columns all the time.
            steady_rounds=99 if self.patience == 2 else self.patience % 2,
            few_changes=1 if self.one_by_one == 1 else self.patience,
        )
        profile = replace(self.ground.profiles[self.profile], tuning=tuning)
        return Twins(self.ground, profile, self.after_preemption)

    def live(self) -> Twins:
        twins = self.twins()
        for name, *arguments in [*self.start, *self.events]:
            getattr(twins, name)(*arguments)
        for kind in self.pods:
            twins.ask(kind)
        return twins


NUMBERS = st.integers(0, 20)
NAMES = st.sampled_from(NODES)
#: The node that only pods speak of comes rarely: with it, the slow rules take over.
ANY_NODE = st.sampled_from((*NODES * 2, "unknown"))


@st.composite
def histories(draw: st.DrawFn, ground: Ground, longest: int = 30) -> History:
    """Few kinds of pods in each, so that classes come again."""
    kinds = tuple(draw(st.lists(st.sampled_from(sorted(ground.pods)), min_size=1, max_size=4)))
    kind = st.sampled_from(kinds)
    other = st.sampled_from(sorted(ground.others))
    node_event = st.tuples(
        st.just("put_node"),
        NAMES,
        st.sampled_from(sorted(ground.nodes)),
        st.sampled_from(ground.zones),
    )
    schedule = st.tuples(st.just("schedule"), kind)
    event = st.one_of(
        schedule,
        schedule,
        schedule,
        st.tuples(st.just("ask"), kind),
        st.tuples(st.just("keep_asking"), kind),
        node_event,
        st.tuples(st.just("drop_node"), NUMBERS),
        st.tuples(st.just("remove"), NUMBERS),
        st.tuples(st.just("terminate"), NUMBERS),
        st.tuples(st.just("relabel"), NUMBERS, st.sampled_from("abc")),
        st.tuples(st.just("add_placed"), st.sampled_from(sorted(ground.pods)), ANY_NODE),
        st.tuples(st.just("promise"), kind, NAMES),
        st.tuples(st.just("keep_promises"), NAMES),
        st.tuples(st.just("put"), other),
        st.tuples(st.just("drop"), other),
    )
    return History(
        ground,
        profile=draw(st.sampled_from(sorted(ground.profiles))),
        after_preemption=draw(st.sampled_from([RETRY, TERMINATE])),
        one_by_one=draw(st.sampled_from([24, 1])),
        journal=draw(st.sampled_from([1 << 16, 6])),
        patience=draw(st.sampled_from([1, 2, 8])),
        pods=kinds,
        start=draw(st.lists(node_event, min_size=1, max_size=6)),
        events=draw(st.lists(event, max_size=longest)),
    )
