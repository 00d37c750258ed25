"""What must hold for any cluster: no order matters, and more room never hurts."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import budget, decided, node, pod, profile, selector, view
from plain_victims import plain_v1_13
from podium.engine.framework.decision import Decision
from podium.engine.framework.plan import plan_of
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.preemption import pod_priority
from podium.engine.preemption.batch_filter import batch_rows
from podium.engine.preemption.criteria import choose
from podium.engine.preemption.victim_search import find_candidates
from podium.engine.rules.images import ImageLocalityPriority
from podium.engine.rules.nodes import CheckNodeUnschedulable
from podium.engine.rules.pod_affinity import MatchInterPodAffinity
from podium.engine.rules.resources.predicates import GeneralPredicates, PodFitsResources
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.workloads import PodDisruptionBudget
from podium.objects.quantity import milli, value
from random_clusters import HUGE, PREDICATES, PRIORITIES, Cluster, Extremes, clusters

#: Without what the real program lets depend on history: who came first, and who held an image.
TIMELESS = [rule for rule in PREDICATES if not isinstance(rule, CheckServiceAffinity)]
ORDERLESS = [rule for rule in PRIORITIES if not isinstance(rule, ImageLocalityPriority)]


def chosen(data: st.DataObject) -> Any:
    """Some of the predicates: with all of them hardly any node is ever feasible."""
    names = data.draw(st.lists(st.sampled_from(range(len(TIMELESS))), unique=True, max_size=8))
    return [TIMELESS[number] for number in sorted(names)] or [GeneralPredicates()]


def scores(decision: Decision) -> dict[str, dict[str, int]]:
    return {
        column.name: dict(zip(decision.feasible, column.score.tolist(), strict=True))
        for column in decision.scores
    }


@given(cluster=clusters(least_nodes=2, nominated=True), data=st.data())
@settings(max_examples=120)
def test_the_order_of_nodes_changes_no_answer(cluster: Cluster, data: st.DataObject) -> None:
    rules = profile(*chosen(data), priorities=ORDERLESS, preemption=False)
    order = data.draw(st.permutations(cluster.nodes))

    one = decided(view(*cluster.objects()), cluster.wanted, rules)
    other = decided(view(*cluster.objects(order)), cluster.wanted, rules)

    assert one.error == other.error
    assert one.failed() == other.failed()
    assert one.message == other.message
    assert sorted(one.feasible) == sorted(other.feasible)
    assert scores(one) == scores(other)
    assert sorted(one.best) == sorted(other.best)


@given(cluster=clusters(least_nodes=2, nominated=True), data=st.data())
@settings(max_examples=60)
def test_the_order_in_which_rows_are_looked_at_changes_no_answer(
    cluster: Cluster, data: st.DataObject
) -> None:
    # The same columns: even image counts and the first pod of a service are the same.
    columns = view(*cluster.objects())
    rules = profile(*PREDICATES[:-1], priorities=PRIORITIES, preemption=False)
    names = data.draw(st.permutations([one.name for one in cluster.nodes]))

    one = decided(columns, cluster.wanted, rules)
    other = decided(columns, cluster.wanted, rules, order=names)

    assert one.error == other.error
    assert one.failed() == other.failed()
    assert scores(one) == scores(other)


def with_more(one: Node, more: dict[str, int]) -> Node:
    """The node with more cpu (in thousandths), memory or places for pods."""
    allocatable = dict(one.status.allocatable or {})
    for name, number in more.items():
        known = allocatable.get(name, 0)
        now = milli(known) if name == "cpu" else value(known)
        allocatable[name] = f"{now + number}m" if name == "cpu" else now + number
    status = msgspec.structs.replace(one.status, allocatable=allocatable)
    return msgspec.structs.replace(one, status=status)


@given(
    cluster=clusters(
        least_nodes=1,
        extremes=Extremes(huge=False, broken=False, odd_volumes=False),
        nominated=True,
    ),
    more=st.fixed_dictionaries(
        {},
        optional={
            "cpu": st.integers(0, HUGE // 2),
            "memory": st.integers(0, HUGE // 2),
            "pods": st.integers(0, HUGE // 2),
        },
    ),
    data=st.data(),
)
@settings(max_examples=120)
def test_more_room_never_turns_a_node_down(
    cluster: Cluster, more: dict[str, int], data: st.DataObject
) -> None:
    rules = profile(*chosen(data), PodFitsResources(), preemption=False)
    place = data.draw(st.integers(0, len(cluster.nodes) - 1))
    grown = list(cluster.nodes)
    grown[place] = with_more(grown[place], more)

    before = decided(view(*cluster.objects()), cluster.wanted, rules)
    after = decided(view(*cluster.objects(grown)), cluster.wanted, rules)

    # A node with more room may get as far as a rule that cannot judge it.
    if not before.error and not after.error:
        # Other nodes are not touched at all.
        assert set(before.feasible) <= set(after.feasible) <= {*before.feasible, grown[place].name}
        rest = {n: r for n, r in before.failed().items() if n != grown[place].name}
        assert rest == {n: r for n, r in after.failed().items() if n != grown[place].name}


@given(cluster=clusters(least_nodes=1, nominated=True), data=st.data())
@settings(max_examples=80)
def test_checking_everything_only_adds_reasons(cluster: Cluster, data: st.DataObject) -> None:
    rules = chosen(data)
    columns = view(*cluster.objects())

    short = decided(columns, cluster.wanted, profile(*rules, preemption=False))
    whole = decided(
        columns, cluster.wanted, profile(*rules, preemption=False, always_check_all=True)
    )

    if not short.error and not whole.error:
        assert short.feasible == whole.feasible
        for name, reasons in short.failed().items():
            assert whole.failed()[name][: len(reasons)] == reasons


@given(cluster=clusters(least_nodes=1, nominated=True), data=st.data())
@settings(max_examples=60)
def test_a_decision_made_twice_is_the_same(cluster: Cluster, data: st.DataObject) -> None:
    columns = view(*cluster.objects())
    rules = profile(*chosen(data), priorities=PRIORITIES)

    one, two = (decided(columns, cluster.wanted, rules) for _ in range(2))

    assert one.error == two.error
    assert (one.node, one.failed(), one.preemption) == (two.node, two.failed(), two.preemption)
    assert scores(one) == scores(two)


@given(
    cluster=clusters(least_nodes=1, nominated=True, extremes=Extremes(ghosts=False, broken=False))
)
@settings(max_examples=80)
def test_a_preemption_that_is_carried_out_makes_room(cluster: Cluster) -> None:
    # With the victims really gone the pod fits, and with any one fewer gone it would not.
    rules = profile()
    wanted = important(cluster.wanted)
    found = decided(view(*cluster.objects()), wanted, rules).preemption
    if found is None or found.node is None:
        return
    victims = found.candidates[found.node].uids

    left = view(*cluster.objects())
    for uid in victims:
        left.remove_pod(uid)
    assert decided(left, wanted, rules, order=[found.node]).node == found.node


#: Budgets that may be used up, for pods that meet often.
BUDGETS = (
    budget("x", selector({"app": "x"})),
    budget("t", selector({"tier": "t"}), allowed=1),
    budget("y", selector({"app": "y"}), allowed=-1),
)


SIZES = st.tuples(st.integers(0, 3), st.integers(0, 3))
ROOMS = st.tuples(st.integers(3, 9), st.integers(3, 9))
#: Per node: cpu and memory, and of each pod cpu and memory, priority and labels.
CROWDS = st.lists(
    st.tuples(
        ROOMS,
        st.lists(
            st.tuples(SIZES, st.integers(0, 6), st.sampled_from(["x", "y", "z"])),
            min_size=3,
            max_size=7,
        ),
    ),
    min_size=1,
    max_size=4,
)


def sized(size: tuple[int, int]) -> dict[str, int]:
    return {"cpu": size[0], "memory": size[1]}


@given(
    crowds=CROWDS,
    budgets=st.lists(st.sampled_from(BUDGETS), unique_by=repr),
    size=SIZES,
    priority=st.integers(3, 7),
)
@settings(max_examples=200)
def test_victims_on_all_nodes_at_once_equal_those_on_each(
    crowds: list[Any], budgets: list[PodDisruptionBudget], size: tuple[int, int], priority: int
) -> None:
    columns = view(*budgets)
    for number, (room, pods) in enumerate(crowds):
        columns.put_node(node(f"n{number}", cpu=room[0], memory=room[1], pods=6))
        for index, (wants, importance, app) in enumerate(pods):
            columns.add_pod(
                pod(
                    f"p{number}-{index}",
                    node=f"n{number}",
                    requests=sized(wants),
                    priority=importance,
                    labels={"app": app} if app != "z" else None,
                )
            )
    wanted = columns.pods.incoming(pod("wanted", requests=sized(size), priority=priority))
    rules = profile(CheckNodeUnschedulable(), GeneralPredicates(), MatchInterPodAffinity())

    failed = FailedSearch(
        wanted, columns, plan_of(wanted.cls, rules).filters, columns.nodes.order, min_batch_rows=1
    )
    together = find_candidates(failed, pod_priority.POLICY)
    each = plain_v1_13(failed)

    assert batch_rows(
        wanted, columns, plan_of(wanted.cls, rules).filters, columns.nodes.order, min_batch_rows=1
    ).all()
    assert list(together) == list(each)
    assert {name: together[name] for name in together} == each
    assert choose(together, pod_priority.CRITERIA) == choose(each, pod_priority.CRITERIA)


def important(wanted: Pod) -> Pod:
    """The pod with a priority above that of all others."""
    spec = msgspec.structs.replace(wanted.spec, priority=20)
    return msgspec.structs.replace(wanted, spec=spec)
