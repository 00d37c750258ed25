"""A rule that a user wrote decides like any other, and cannot take the scheduler down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from builders import node, objects, pod, simulation
from builders_v1_36 import spec_with
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile, Weighted
from podium.engine.preemption.pod_priority import PodPriorityPreemption
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.state.accounting import ContainerSums
from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod, PodSchedulingGroup, Volume
from podium.profiles.user_rules.adapter import UserPredicate, UserPriority, normalized
from podium.profiles.user_rules.loading import rules_in
from podium.profiles.user_rules.nodes import RulePod
from podium.profiles.user_rules.run_times import RuleWatch
from podium.rules import predicate, priority

# Calls of functions are counted here.
pytestmark = pytest.mark.unverified

Function = Callable[..., Any]


class Witness:
    """A watch that takes no time and writes everything down."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str, str, str]] = []

    def begin(self, rule: str, pod: str) -> float:
        return 0.0

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        pass

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        self.failures.append((rule, pod, node, what))

    def set_aside(self, rule: str) -> bool:
        return False


def profile(*rules: Function, watch: Any = None) -> Profile:
    specs = [spec for rule in rules for spec in rules_in(rule)]
    predicates = [UserPredicate(spec, watch=watch) for spec in specs if spec.kind == "predicate"]
    priorities = [
        Weighted(UserPriority(spec, watch=watch), spec.weight)
        for spec in specs
        if spec.kind == "priority"
    ]
    return Profile(
        "own",
        (GeneralPredicates(), *predicates),
        tuple(priorities),
        ContainerSums(),
        post_filters=(PodPriorityPreemption(),),
    )


def decide(
    rules: Profile, nodes: list[Node], wanted: Pod | None = None, running: list[Pod] | None = None
) -> Decision:
    world = simulation(*nodes, *(running or []), profile=rules)
    return world.attempt(wanted or pod("new"), recording=True)


TWO = [node("small", cpu="1", labels={"size": "1"}), node("large", cpu="8", labels={"size": "8"})]


@predicate("NotSmall", reason="node(s) were small", depends="node")
def not_small(pod: Any, node: Any) -> bool:
    return bool(node.labels["size"] != "1")


@predicate("NotSmallColumns", reason="node(s) were small", depends="node", columns=True)
def not_small_columns(pod: Any, nodes: Any) -> Any:
    return ~nodes.has_label("size", "1")


@pytest.mark.parametrize("rule", [not_small, not_small_columns], ids=["one node", "columns"])
def test_a_predicate_turns_nodes_down_with_its_reason(rule: Function) -> None:
    decision = decide(profile(rule), TWO)

    assert decision.node == "large"
    assert decision.failed() == {"small": ["node(s) were small"]}


def test_a_predicate_may_word_its_reason() -> None:
    @predicate("Wordy")
    def wordy(pod: Any, node: Any) -> bool | str:
        return node.name == "large" or f"{node.name} is too small"

    assert decide(profile(wordy), TWO).failed() == {"small": ["small is too small"]}


@pytest.mark.parametrize("columns", [False, True])
def test_a_priority_decides_by_what_is_free(columns: bool) -> None:
    @priority("MostFree", normalize="max", depends="pods", columns=columns)
    def most_free(pod: Any, node: Any) -> Any:
        return node.free("cpu")

    running = [pod("busy", node="large", requests={"cpu": "7500m"})]
    decision = decide(profile(most_free), TWO, running=running)

    assert decision.node == "small"
    assert decision.scores[0].raw.tolist() == [1000, 500]
    assert decision.scores[0].score.tolist() == [10, 5]


@pytest.mark.parametrize(
    ("how", "raw", "final"),
    [
        pytest.param("none", [3, 0, -2], [3, 0, -2], id="none takes scores as they are"),
        pytest.param("max", [2, 6, 4], [3, 10, 6], id="max scales by the largest"),
        pytest.param("max", [0, 0], [0, 0], id="max of nothing is nothing"),
        pytest.param("reverse", [2, 6, 4], [7, 0, 4], id="reverse is max upside down"),
        pytest.param("reverse", [0, 0], [10, 10], id="nothing is best in reverse"),
        pytest.param("min-max", [2, 6, 4], [0, 10, 5], id="min-max spreads"),
        pytest.param("min-max", [5, 5], [10, 10], id="equal ones are best"),
    ],
)
def test_normalisations(how: str, raw: list[int], final: list[int]) -> None:
    assert normalized(how, np.array(raw), 10).tolist() == final


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("not even this")


def _raise(error: BaseException) -> Any:
    raise error


NONSENSE = [
    pytest.param(lambda: _raise(ValueError("bad label")), "ValueError: bad label", id="raises"),
    pytest.param(lambda: _raise(SystemExit(3)), "SystemExit: 3", id="exits"),
    pytest.param(lambda: None, "answered None", id="answers nothing"),
    pytest.param(Unprintable, "answered a Unprintable", id="answers the unprintable"),
    pytest.param(lambda: 0.5, "answered 0.5", id="answers a fraction"),
]


@pytest.mark.parametrize(
    ("answer", "told"), [*NONSENSE, pytest.param(lambda: "", "answered ''", id="")]
)
def test_a_predicate_that_fails_rejects_the_node_and_is_told_of(
    answer: Callable[[], Any], told: str
) -> None:
    @predicate("Bad")
    def bad(pod: Any, node: Any) -> Any:
        return answer() if node.name == "small" else True

    witness = Witness()
    decision = decide(profile(bad, watch=witness), TWO)

    assert decision.node == "large"
    assert decision.failed() == {"small": ["rule Bad failed"]}
    [(rule, who, where, what)] = witness.failures
    assert (rule, who, where) == ("Bad", "default/new", "small")
    assert what.startswith(told)


def test_a_predicate_may_accept_where_it_fails() -> None:
    @predicate("Lenient", on_error="accept")
    def lenient(pod: Any, node: Any) -> Any:
        raise ValueError

    assert decide(profile(lenient), TWO).feasible == ["small", "large"]


@pytest.mark.parametrize(
    ("answer", "told"), [*NONSENSE, pytest.param(lambda: 1 << 40, "answered 1099", id="too much")]
)
@pytest.mark.parametrize("how", ["none", "max", "reverse"])
def test_a_priority_that_fails_gives_nothing(
    answer: Callable[[], Any], told: str, how: str
) -> None:
    @priority("Bad", normalize=how)
    def bad(pod: Any, node: Any) -> Any:
        return answer() if node.name == "large" else 1

    witness = Witness()
    decision = decide(profile(bad, watch=witness), TWO)

    assert decision.scores[0].score.tolist()[1] == 0
    assert [failure[:3] for failure in witness.failures] == [("Bad", "default/new", "large")]
    assert witness.failures[0][3].startswith(told)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(lambda _: 1 / 0, "ZeroDivisionError", id="raises"),
        pytest.param(lambda _: [True], "answered an array of shape (1,)", id="too short"),
        pytest.param(lambda nodes: nodes.full(1) * 0.5, "answered float64", id="not a mask"),
    ],
)
def test_columns_that_fail_fail_for_all_nodes(answer: Function, told: str) -> None:
    @predicate("Bad", columns=True)
    def bad(pod: Any, nodes: Any) -> Any:
        return answer(nodes)

    @priority("Bad", columns=True)
    def worse(pod: Any, nodes: Any) -> Any:
        return answer(nodes)

    witness = Witness()
    decision = decide(profile(bad, watch=witness), TWO)
    assert decision.message == "0/2 nodes are available: 2 rule Bad failed."
    assert witness.failures[0][2] == "all 2 nodes"
    assert witness.failures[0][3].startswith(told)

    assert decide(profile(worse), TWO).scores[0].score.tolist() == [0, 0]


def test_evicting_pods_mends_no_rule() -> None:
    @predicate("Bad")
    def bad(pod: Any, node: Any) -> Any:
        raise ValueError

    running = [pod("low", node="small", requests={"cpu": "1"})]
    decision = decide(
        profile(bad), TWO[:1], pod("high", priority=10, requests={"cpu": "1"}), running
    )

    assert decision.preemption is not None
    assert decision.preemption.potential == ("small",)  # for want of cpu
    assert decision.preemption.node is None

    decision = decide(profile(bad), TWO[1:], pod("high", priority=10), running)
    assert decision.preemption is not None
    assert decision.preemption.potential == ()


def test_victims_are_chosen_by_asking_the_rule_again() -> None:
    @predicate("Alone", reason="node(s) had pods", depends="pods")
    def alone(pod: Any, node: Any) -> Any:
        return node.pod_count == 0

    running = [pod("a", node="small"), pod("b", node="small")]
    decision = decide(profile(alone), TWO[:1], pod("high", priority=10), running)

    assert decision.preemption is not None
    assert decision.preemption.node == "small"
    assert set(decision.preemption.candidates["small"].pods) == {"default/a", "default/b"}


def test_columns_see_the_trial_too() -> None:
    @predicate("Alone", reason="node(s) had pods", depends="pods", columns=True)
    def alone(pod: Any, nodes: Any) -> Any:
        return (nodes.pod_count == 0) & (nodes.free("cpu") >= 1000)

    running = [pod("a", node="small", requests={"cpu": "500m"})]
    decision = decide(profile(alone), TWO[:1], pod("high", priority=10), running)

    assert decision.preemption is not None
    assert decision.preemption.node == "small"


@pytest.mark.parametrize(
    ("depends", "read", "told"),
    [
        pytest.param("node", lambda _, n: n.free("cpu"), "HiddenError: node.free", id="room"),
        pytest.param("node", lambda _, n: n.pods, "HiddenError: node.pods", id="pods"),
        pytest.param("pods", lambda p, _: p.name, "HiddenError: names and", id="the pod's name"),
        pytest.param("node", lambda p, _: p.annotations, "HiddenError: names", id="annotations"),
        pytest.param(
            "node",
            lambda p, _: p.spec.priority_class_name,
            "HiddenError: spec.priority_class_name differs",
            id="the class of its priority",
        ),
        pytest.param("cluster", lambda _, n: n.colour, "AttributeError: a node has", id="nothing"),
    ],
)
def test_a_rule_sees_only_what_it_says_it_depends_on(
    depends: str, read: Function, told: str
) -> None:
    @predicate("Curious", depends=depends)
    def curious(pod: Any, node: Any) -> bool:
        read(pod, node)
        return True

    witness = Witness()
    decide(profile(curious, watch=witness), TWO[:1])

    assert witness.failures[0][3].startswith(told)


def test_pods_of_one_class_show_a_rule_the_same_specification() -> None:
    """What a rule of single nodes can read of one of them, it reads of all."""
    fields = {
        "priority_class_name": "high",
        "scheduler_name": "mine",
        "scheduling_gates": [],
        "scheduling_group": PodSchedulingGroup(),
        "volumes": [Volume(name="token-1")],
        "priority": 0,
    }
    columns = simulation(*TWO).cache.columns
    plain = columns.pods.incoming(pod("plain"))
    for name, value in fields.items():
        other = columns.pods.incoming(spec_with(pod("other"), **{name: value}))
        assert other.cls is plain.cls, name
        shown = [
            getattr(RulePod(each, columns, class_only=True).spec, name, "hidden")
            for each in (plain, other)
        ]
        assert shown[0] == shown[1], name


def test_a_node_that_is_being_deleted_is_news() -> None:
    """Rules see the node object: nothing else of it may have changed."""

    @predicate("Stays", reason="node(s) leave", depends="node")
    def stays(pod: Any, node: Any) -> bool:
        return node.object.metadata.deletion_timestamp is None

    world = simulation(*TWO, profile=profile(stays))
    assert [world.attempt(pod(f"p{number}")).feasible_count for number in range(3)] == [2, 2, 2]
    about = replace(TWO[0].metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    world.cache.put_node(replace(TWO[0], metadata=about))

    assert world.attempt(pod("later")).feasible_count == 1


def test_a_rule_that_depends_on_the_node_is_asked_once_per_class_and_node() -> None:
    asked = []

    @predicate("Counting", depends="node")
    def counting(pod: Any, node: Any) -> bool:
        asked.append(node.name)
        return True

    world = simulation(*TWO, profile=profile(counting))
    placed = [step.decision.node for step in world.run([pod(f"p{i}") for i in range(20)])]

    assert len(placed) == 20
    assert len(asked) <= 4  # the first pod, and the class when it is seen again

    world.cache.put_node(node("small", cpu="1", labels={"size": "2"}))
    asked.clear()
    list(world.run([pod("later")]))
    assert set(asked) <= {"small", "large"}
    assert "small" in asked


def test_a_pod_shows_its_facts() -> None:
    seen: dict[str, Any] = {}

    @predicate("Seeing")
    def seeing(pod: Any, node: Any) -> bool:
        seen.update(
            name=pod.name,
            namespace=pod.namespace,
            labels=dict(pod.labels),
            cpu=pod.requests("cpu"),
            none=pod.requests("example.com/none"),
            priority=pod.priority,
            taints=list(node.taints),
            ready=node.condition("Ready"),
            cordoned=node.unschedulable,
            pods=[(p.namespace, p.name, p.priority) for p in node.pods],
            requested=node.requested("cpu"),
            unknown=node.allocatable("example.com/none"),
        )
        return True

    wanted = pod("new", requests={"cpu": "250m"}, labels={"a": "b"}, priority=3)
    decide(profile(seeing), TWO[:1], wanted, [pod("old", node="small", requests={"cpu": "100m"})])

    assert seen == {
        "name": "new",
        "namespace": "default",
        "labels": {"a": "b"},
        "cpu": 250,
        "none": 0,
        "priority": 3,
        "taints": [],
        "ready": "",
        "cordoned": False,
        "pods": [("default", "old", 0)],
        "requested": 100,
        "unknown": 0,
    }


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_rule_that_is_slow_too_often_is_set_aside() -> None:
    clock, told = Clock(), list[str]()
    watch = RuleWatch(clock, told.append, limit_seconds=1, overruns=2)

    @predicate("Slow")
    def slow(pod: Any, node: Any) -> bool:
        clock.now += 0.75
        return True

    @priority("SlowToo", weight=2)
    def slow_too(pod: Any, node: Any) -> int:
        clock.now += 0.75
        return 1

    rules = profile(slow, slow_too, watch=watch)
    world = simulation(*TWO, profile=rules)
    decisions = [world.attempt(pod(f"p{i}"), recording=True) for i in range(3)]

    assert [each.node is not None for each in decisions] == [True, True, False]
    assert decisions[2].message == "0/2 nodes are available: 2 rule Slow was set aside."
    assert told[0] == ("rule Slow took 1.50 s for pod default/p0 and 2 nodes, more than 1 s (once)")
    assert "rule Slow is set aside: it took too long 2 times" in told
    assert watch.overruns == {"Slow": 2, "SlowToo": 2}


def test_the_same_failure_is_not_told_for_ever() -> None:
    told: list[str] = []
    watch = RuleWatch(lambda: 0.0, told.append)
    for number in range(250):
        watch.failed("Bad", "ns/pod", f"n{number}", "ValueError")

    assert len(told) == 5  # 1, 2, 3, 10, 100
    assert told[0] == "rule Bad failed for pod ns/pod on node n0: ValueError"
    assert told[-1].endswith("(100 times)")
    assert watch.failures == {"Bad": 250}


def test_reasons_without_end_are_cut_off() -> None:
    @predicate("Chatty", reason="no")
    def chatty(pod: Any, node: Any) -> str:
        return f"{pod.name} on {node.name}"

    world = simulation(*(node(f"n{i}") for i in range(50)), profile=profile(chatty))
    for number in range(30):
        world.attempt(pod(f"p{number}"))

    assert len(world.cache.columns.verdicts) < 1010


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("depends", ["node", "pods", "cluster"])
@pytest.mark.parametrize("how", ["none", "max", "reverse", "min-max"])
def test_what_is_remembered_is_what_would_be_answered(
    depends: str, columns: bool, how: str
) -> None:
    @predicate("EvenRank", depends=depends, columns=columns)
    def even_rank(pod: Any, node: Any) -> Any:
        crowded = node.pod_count > 4 if depends != "node" else False
        if columns:
            return node.label("rank", lambda rank: int(rank) % 2 == 0) & ~np.asarray(crowded)
        return int(node.labels["rank"]) % 2 == 0 and not crowded

    @priority("ByRank", depends=depends, columns=columns, normalize=how)
    def by_rank(pod: Any, node: Any) -> Any:
        taken = node.requested("cpu") // 100 if depends != "node" else 0
        if columns:
            return node.label("rank", int) - taken
        return int(node.labels["rank"]) - taken

    rules = profile(even_rank, by_rank)
    ground = [node(f"n{i}", labels={"rank": str(i)}) for i in range(9)]
    pods = [pod(f"p{i}", requests={"cpu": f"{100 + 50 * (i % 3)}m"}) for i in range(40)]
    placed = []
    for fast in (True, False):
        world = Simulation(rules, fast=fast)
        world.load(objects(*ground))
        placed.append([step.decision.node for step in world.run(pods)])

    assert placed[0] == placed[1]
    assert placed[0].count(None) == (0 if depends == "node" else 15)


def test_columns_of_labels_and_taints() -> None:
    seen: dict[str, Any] = {}

    @predicate("Looking", columns=True)
    def looking(pod: Any, nodes: Any) -> Any:
        seen.update(
            names=nodes.names,
            any=nodes.has_label("a").tolist(),
            one=nodes.has_label("a", "1").tolist(),
            two=nodes.has_label("a", "1", "2", "9").tolist(),
            none=nodes.has_label("a", "9").tolist(),
            unknown=nodes.has_label("b").tolist(),
            number=nodes.label("a", lambda value: int(value or -1)).tolist(),
            taint=nodes.has_taint("t").tolist(),
            effect=nodes.has_taint("t", "NoExecute").tolist(),
            objects=[each.name for each in nodes.objects],
            nothing=nodes.free("example.com/none").tolist(),
        )
        return nodes.full(value=True)

    taint = Taint("t", "", "NoSchedule")
    ground = [node("x", labels={"a": "1"}), node("y", labels={"a": "2"}, taints=[taint]), node("z")]
    assert decide(profile(looking), ground).feasible_count == 3

    assert seen == {
        "names": ["x", "y", "z"],
        "any": [True, True, False],
        "one": [True, False, False],
        "two": [True, True, False],
        "none": [False, False, False],
        "unknown": [False, False, False],
        "number": [1, 2, -1],
        "taint": [False, True, False],
        "effect": [False, False, False],
        "objects": ["x", "y", "z"],
        "nothing": [0, 0, 0],
    }


@pytest.mark.parametrize("answer", [1, 0])
def test_one_and_zero_mean_yes_and_no(answer: int) -> None:
    @predicate("Number")
    def number(pod: Any, node: Any) -> Any:
        return answer if node.name == "large" else not answer

    assert decide(profile(number), TWO).node == ("large" if answer else "small")


def test_changed_nodes_are_scored_only_where_the_pod_fits() -> None:
    asked: list[list[str]] = []

    @priority("Scored", depends="pods", columns=True)
    def scored(pod: Any, nodes: Any) -> Any:
        asked.append(nodes.names)
        return nodes.full(1)

    nodes = [node(f"n{number}", cpu="2") for number in range(4)]
    world = simulation(*nodes, profile=profile(scored))
    for name in ("first", "second"):
        world.attempt(pod(name, requests={"cpu": "1"}))
    for number, cpu in enumerate(("2", "1", "2")):
        world.cache.add_pod(pod(f"p{number}", node=f"n{number}", requests={"cpu": cpu}))
    asked.clear()
    decision = world.attempt(pod("third", requests={"cpu": "1"}))

    assert asked == [["n1"]]
    assert decision.node in {"n1", "n3"}


def test_the_smallest_number_of_64_bits_is_no_score() -> None:
    @priority("Bad", columns=True)
    def bad(pod: Any, nodes: Any) -> Any:
        return nodes.full(-(1 << 63))

    witness = Witness()
    assert decide(profile(bad, watch=witness), TWO).scores[0].score.tolist() == [0, 0]
    assert witness.failures[0][3] == f"answered a score beyond {1 << 31}"


def pods_and_size(node: Any) -> tuple[int, int]:
    return node.pod_count, int(node.labels["size"])


def test_numbers_of_each_node_are_kept_until_the_node_changes() -> None:
    asked: list[str] = []

    def counted(node: Any) -> tuple[int, int]:
        asked.append(node.name)
        return pods_and_size(node)

    @priority("Counted", depends="pods", columns=True)
    def by_count(pod: Any, nodes: Any) -> Any:
        return nodes.each(counted).sum(axis=1)

    world = simulation(*TWO, profile=profile(by_count))
    first = pod("first")
    world.place(first, world.attempt(first))
    assert asked == ["small", "large"]
    decision = world.attempt(pod("second"), recording=True)

    assert asked == ["small", "large", "large"]
    assert decision.scores[0].raw.tolist() == [1, 9]
    world.cache.put_node(node("small", cpu="1", labels={"size": "5"}))
    assert world.attempt(pod("third"), recording=True).scores[0].raw.tolist() == [5, 9]


def test_numbers_of_each_node_may_become_fractions() -> None:
    def share(node: Any) -> float | int:
        return node.pod_count / 4 if node.pod_count else 0

    seen: list[list[float]] = []

    @predicate("Shares", depends="pods", columns=True)
    def shares(pod: Any, nodes: Any) -> Any:
        seen.append(nodes.each(share).tolist())
        return nodes.full(value=True)

    world = simulation(*TWO, profile=profile(shares))
    for name in ("first", "second"):
        wanted = pod(name)
        decision = world.attempt(wanted, recording=True)
        world.place(wanted, decision)

    assert seen[0] == [0, 0]
    assert sorted(seen[1]) == [0, 0.25]


def test_a_victim_does_not_count_in_the_numbers_of_its_node() -> None:
    @predicate("OnlyOne", depends="pods", columns=True)
    def only_one(pod: Any, nodes: Any) -> Any:
        return nodes.each(pods_and_size)[:, 0] < 1

    running = [pod("low", node="small", priority=1)]
    decision = decide(profile(only_one), TWO[:1], pod("high", priority=9), running)

    assert decision.preemption is not None
    assert decision.preemption.node == "small"
