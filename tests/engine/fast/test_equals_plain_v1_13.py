"""A remembered answer equals a fresh one, whatever happened in between.

Two simulations live through the same random history: one remembers what classes of pods were
told about every node, the other asks all rules about all nodes each time. Every decision must come
out the same: host, ties, cursor, number of feasible nodes, reasons, victims. Journals and the
limits at which the fast one changes its ways are made small, so that short histories cross them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    BROKEN,
    REGION,
    ZONE,
    budget,
    claim,
    claim_volume,
    expression,
    gce,
    node,
    node_term,
    objects,
    pod,
    replica_set,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from podium.cluster.simulation import RETRY, TERMINATE, Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.framework.tuning import Tuning
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.build import Options, from_policy, from_provider
from user_rules import MILD, always_out_of_range, extended, grows_out_of_range

pytestmark = pytest.mark.slow

HOST = "kubernetes.io/hostname"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDING = (
    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "r"}}}]}'
)
NODES = tuple(f"n{number}" for number in range(7))
POLICY = {"apiVersion": "v1", "kind": "Policy"}
SPREADING = POLICY | {
    "predicates": [
        {"name": "GeneralPredicates"},
        {"name": "MatchInterPodAffinity"},
        {"name": "NoDiskConflict"},
        {"name": "ByZone", "argument": {"serviceAffinity": {"labels": [ZONE]}}},
        {"name": "Labelled", "argument": {"labelsPresence": {"labels": [HOST], "presence": True}}},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 2},
        {"name": "SelectorSpreadPriority", "weight": 3},
        {"name": "InterPodAffinityPriority", "weight": 1},
        {"name": "Apart", "weight": 2, "argument": {"serviceAntiAffinity": {"label": ZONE}}},
        {
            "name": "Ssd",
            "weight": 1,
            "argument": {"labelPreference": {"label": "disk", "presence": True}},
        },
    ],
}
PROFILES: dict[str, Profile] = {
    "default": from_provider("DefaultProvider", Options()),
    "autoscaler": from_provider(
        "ClusterAutoscalerProvider", Options(hard_pod_affinity_symmetric_weight=7, ties="first")
    ),
    "policy": from_policy(SPREADING, Options()),
    "all predicates": from_policy(POLICY | {"alwaysCheckAllPredicates": True}, Options()),
    "conditions": from_provider(
        "DefaultProvider", Options(feature_gates={"TaintNodesByCondition": False})
    ),
    "user rules": extended(from_provider("DefaultProvider", Options()), *MILD),
    "user rules beyond 10": extended(
        from_provider("DefaultProvider", Options()), grows_out_of_range, always_out_of_range
    ),
}

#: What a pod can be like. Names and uids come later.
PODS: dict[str, dict[str, Any]] = {
    "basic": {"requests": {"cpu": "1", "memory": "1Gi"}},
    "large": {"requests": {"cpu": "3", "memory": "3Gi"}, "priority": 5},
    "nothing": {},
    "app": {"labels": {"app": "a"}, "requests": {"cpu": "500m"}},
    "owned": {"labels": {"app": "a"}, "owner": ("ReplicaSet", "r"), "requests": {"cpu": "1"}},
    "alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)]},
    "zone alone": {"labels": {"app": "c"}, "anti": [term({"app": "c"}, ZONE)], "priority": 3},
    "together": {"labels": {"app": "d"}, "affinity": [term({"app": "d"}, ZONE)]},
    "near a": {"affinity": [term({"app": "a"}, HOST)], "requests": {"cpu": "1"}},
    "likes": {"labels": {"app": "a"}, "prefers": [(5, term({"app": "a"}, ZONE))]},
    "dislikes": {"labels": {"app": "e"}, "avoids": [(3, term({"app": "a"}, HOST))]},
    "both": {"prefers": [(2, term({"app": "b"}, HOST))], "avoids": [(7, term({"app": "d"}, ZONE))]},
    "port": {"ports": [80], "requests": {"cpu": "100m"}},
    "chooses": {"node_selector": {"disk": "ssd"}, "requests": {"cpu": "1"}},
    "prefers ssd": {"prefers_nodes": [(4, node_term(expression("disk", "In", "ssd")))]},
    "tolerates": {"tolerations": [tolerates("t", "Exists")], "requests": {"cpu": "1"}},
    "image": {"image": "app:1", "requests": {"memory": "1Gi"}},
    "disk": {"volumes": [gce("shared")]},
    "claim": {"volumes": [claim_volume("data")]},
    "gpu": {"requests": {"example.com/gpu": 1}},
    "broken": {"affinity": [term(BROKEN, ZONE)]},
    "broken anti": {"labels": {"app": "a"}, "anti": [term(BROKEN, ZONE)]},
    "urgent": {"requests": {"cpu": "4", "memory": "1Gi"}, "priority": 9},
    "urgent alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)], "priority": 8},
    "polite": {"requests": {"cpu": "4"}, "priority": 9, "preemption_policy": "Never"},
}
#: What a node can be like.
NODE_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "small": {"cpu": "2", "memory": "2Gi", "pods": 2},
    "ssd": {"labels": {"disk": "ssd"}},
    "tainted": {"taints": [taint("t")]},
    "softly tainted": {"taints": [taint("t", effect="PreferNoSchedule")]},
    "cordoned": {"unschedulable": True},
    "image": {"images": {"app:1": 600 * 1024 * 1024}},
    "gpu": {"resources": {"example.com/gpu": 2}},
    "avoiding": {"annotations": {AVOID: AVOIDING}},
    "pressed": {"conditions": {"Ready": "True", "MemoryPressure": "True"}},
    "not ready": {"conditions": {"Ready": "False"}},
}
#: Objects besides nodes and pods, by the name under which a history adds and drops them.
OTHERS: dict[str, tuple[str, Any]] = {
    "service a": ("services", service("a", {"app": "a"})),
    "service b": ("services", service("b", {"app": "b"})),
    "set a": ("replica_sets", replica_set("a", selector({"app": "a"}))),
    "set b": ("replica_sets", replica_set("b", selector({"app": "b"}))),
    "claim": ("claims", claim("data", volume="v")),
    "unbound claim": ("claims", claim("data", storage_class="late")),
    "class": ("storage_classes", storage_class("late")),
    "volume": ("volumes", volume("v", claimed_by="data")),
    "volume near n1": (
        "volumes",
        volume("v", storage_class="late", reachable=[node_term(expression(HOST, "In", "n1"))]),
    ),
    "budget": ("budgets", budget("a", selector({"app": "a"}))),
}


def outcome(decision: Decision) -> dict[str, Any]:
    """What must not depend on how the decision was reached; codes are spelled out."""
    preemption = decision.preemption
    return {
        "pod": decision.pod,
        "node": decision.node,
        "error": decision.error,
        "tied": decision.tied,
        "cursor": decision.cursor if decision.tied else 0,
        "feasible": decision.feasible_count,
        "consumed": decision.consumed,
        "verdicts": Counter(
            {
                (v.predicate, v.reasons, v.curable): number
                for code, number in decision.histogram.items()
                for v in [decision.verdict(code)]
            }
        ),
        "volumes": decision.volumes,
        "preemption": preemption
        and (preemption.eligible, preemption.candidates, preemption.node, preemption.tie),
        "cleared": preemption and preemption.cleared,
    }


class Twins:
    """The same cluster twice: one that remembers and one that does not."""

    def __init__(self, profile: Profile, after_preemption: str) -> None:
        self.both = tuple(
            Simulation(profile, after_preemption=after_preemption, fast=fast)
            for fast in (True, False)
        )
        self.made = 0

    def each(self, action: Callable[[Simulation], object]) -> None:
        for simulation in self.both:
            action(simulation)

    def make(self, kind: str, **more: Any) -> Pod:
        self.made += 1
        return pod(f"{kind.replace(' ', '-')}-{self.made}", **{**PODS[kind], **more})

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

    def put_node(self, name: str, kind: str, zone: str) -> None:
        """A node is new, or changes into another kind of node."""
        options: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": 5} | NODE_KINDS[kind]
        labels = {HOST: name} | options.pop("labels", {})
        if zone:
            labels |= {ZONE: zone, REGION: "r"}
        made = node(name, labels=labels, **options)
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

    def add_placed(self, kind: str, name: str) -> None:
        """Somebody else placed a pod, perhaps on a node that nobody knows."""
        there = self.make(kind, node=name)
        self.each(lambda simulation: simulation.load(objects(there)))

    def promise(self, kind: str, name: str) -> None:
        """A pod that waits is promised a node."""
        waiting = self.make(kind)
        self.each(lambda simulation: simulation.nominate(waiting, name))

    def keep_promises(self, name: str) -> None:
        """Pods that were promised a node get another try."""
        fast, plain = (s._nominations.on(name) for s in self.both)
        assert [each.uid for each in fast] == [each.uid for each in plain]
        for waiting in fast:
            results = [[outcome(step.decision) for step in s.run([waiting])] for s in self.both]
            assert results[0] == results[1]

    def put(self, name: str) -> None:
        """A service, a volume or the like comes or changes."""
        shelf, item = OTHERS[name]
        self.each(lambda s: getattr(s.cache.columns.catalog, shelf).put(item))

    def drop(self, name: str) -> None:
        """It goes."""
        shelf, item = OTHERS[name]
        self.each(lambda s: getattr(s.cache.columns.catalog, shelf).drop(item))


@dataclass(frozen=True)
class History:
    """What happens, and how small the limits are while it does."""

    profile: str
    after_preemption: str
    one_by_one: int
    patience: int
    journal: int
    pods: tuple[str, ...]
    start: list[tuple[Any, ...]]
    events: list[tuple[Any, ...]] = field(default_factory=list)

    def twins(self) -> Twins:
        """The simulations, with nothing in them yet."""
        tuning = Tuning(
            self.one_by_one,
            self.patience,
            min_reduction=1,
            journal_limit=self.journal,
            # With a patience of 2 the best rows are found in columns all the time.
            steady_rounds=99 if self.patience == 2 else self.patience % 2,
            few_changes=1 if self.one_by_one == 1 else self.patience,
        )
        return Twins(replace(PROFILES[self.profile], tuning=tuning), self.after_preemption)

    def live(self) -> Twins:
        twins = self.twins()
        for name, *arguments in [*self.start, *self.events]:
            getattr(twins, name)(*arguments)
        for kind in self.pods:
            twins.ask(kind)
        return twins


ZONES = st.sampled_from(["", "east", "west"])
NUMBERS = st.integers(0, 20)
NAMES = st.sampled_from(NODES)
#: The node that only pods speak of comes rarely: with it, the slow rules take over.
ANY_NODE = st.sampled_from((*NODES * 2, "unknown"))
NODE_EVENT = st.tuples(st.just("put_node"), NAMES, st.sampled_from(sorted(NODE_KINDS)), ZONES)


@st.composite
def histories(draw: st.DrawFn, longest: int = 30) -> History:
    """Few kinds of pods in each, so that classes come again."""
    kinds = tuple(draw(st.lists(st.sampled_from(sorted(PODS)), min_size=1, max_size=4)))
    kind = st.sampled_from(kinds)
    other = st.sampled_from(sorted(OTHERS))
    schedule = st.tuples(st.just("schedule"), kind)
    event = st.one_of(
        schedule,
        schedule,
        schedule,
        st.tuples(st.just("ask"), kind),
        NODE_EVENT,
        st.tuples(st.just("drop_node"), NUMBERS),
        st.tuples(st.just("remove"), NUMBERS),
        st.tuples(st.just("terminate"), NUMBERS),
        st.tuples(st.just("add_placed"), st.sampled_from(sorted(PODS)), ANY_NODE),
        st.tuples(st.just("promise"), kind, NAMES),
        st.tuples(st.just("keep_promises"), NAMES),
        st.tuples(st.just("put"), other),
        st.tuples(st.just("drop"), other),
    )
    return History(
        profile=draw(st.sampled_from(sorted(PROFILES))),
        after_preemption=draw(st.sampled_from([RETRY, TERMINATE])),
        one_by_one=draw(st.sampled_from([24, 1])),
        patience=draw(st.sampled_from([8, 1, 2])),
        journal=draw(st.sampled_from([1 << 16, 6])),
        pods=kinds,
        start=draw(st.lists(NODE_EVENT, min_size=1, max_size=6)),
        events=draw(st.lists(event, max_size=longest)),
    )


@settings(max_examples=max(300, settings().max_examples))
@given(history=histories())
def test_a_remembered_answer_equals_a_fresh_one(history: History) -> None:
    history.live()
