"""Priorities, by the worked values and quirks of the reference."""

from __future__ import annotations

import json

import pytest

from builders import (
    BROKEN,
    REGION,
    ZONE,
    container,
    controller,
    expression,
    node,
    node_term,
    pod,
    profile,
    replica_set,
    scored,
    selector,
    service,
    simulation,
    stateful_set,
    taint,
    term,
    tolerates,
    view,
)
from podium.engine.rows.many import ManyRows
from podium.engine.rows.one import OneRow
from podium.engine.rules.images.shared import tagged
from podium.engine.rules.images.v1_13 import ImageLocalityPriority
from podium.engine.rules.node_affinity.v1_13 import NodeAffinityPriority
from podium.engine.rules.nodes.v1_13 import (
    EqualPriority,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
)
from podium.engine.rules.pod_affinity.v1_13 import InterPodAffinityPriority
from podium.engine.rules.resources.v1_13 import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.engine.rules.service_affinity.v1_13 import ServiceAntiAffinity
from podium.engine.rules.spreading.v1_13 import SelectorSpreadPriority, ServiceSpreadingPriority
from podium.engine.rules.taints.v1_13 import TaintTolerationPriority
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod, Toleration

MEBIBYTE = 1 << 20
BIG = 1 << 62
Shape = tuple[tuple[int, int], ...]
FALLING: Shape = ((0, 10), (100, 0))
X = {"app": "x"}

# How full -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param("3", 5000, (3, 6, 7, 4), id="the worked value"),
        pytest.param("0", 0, (10, 0, 10, 10), id="an explicit zero stays zero"),
        pytest.param("4", 10000, (0, 10, 0, 0), id="full"),
        pytest.param("5", 0, (5, 0, 0, 5), id="more than there is of one"),
        pytest.param("2", 10000, (2, 7, 0, 2), id="half of one, all of the other"),
        pytest.param("200m", 500, (9, 0, 10, 10), id="five percent"),
    ],
)
def test_how_full(cpu: str, memory: int, expected: tuple[int, ...]) -> None:
    columns = view(node("n", cpu=4, memory=10000))
    wanted = pod(requests={"cpu": cpu, "memory": memory})
    rules = (
        LeastRequestedPriority(),
        MostRequestedPriority(),
        BalancedResourceAllocation(),
        RequestedToCapacityRatioPriority(),
    )

    assert tuple(scored(rule, wanted, columns)["n"] for rule in rules) == expected


def test_what_is_there_counts_with_a_floor_for_what_names_nothing() -> None:
    # 100 thousandths of cpu and 200 MiB for each container that names none, on both sides.
    columns = view(
        node("n", cpu="1", memory=1000 * MEBIBYTE),
        pod("x", node="n", containers=[container(), container({"cpu": "100m"})]),
    )

    found = scored(LeastRequestedPriority(), pod(), columns)["n"]

    assert found == ((1000 - 300) * 10 // 1000 + (1000 - 600) * 10 // 1000) // 2


def test_a_node_without_capacity() -> None:
    columns = view(node("n", cpu=0, memory=0))

    assert scored(LeastRequestedPriority(), pod(), columns)["n"] == 0
    assert scored(MostRequestedPriority(), pod(), columns)["n"] == 0
    assert scored(BalancedResourceAllocation(), pod(), columns)["n"] == 0
    assert scored(RequestedToCapacityRatioPriority(), pod(), columns)["n"] == 0


@pytest.mark.parametrize(
    ("shape", "used", "expected"),
    [
        pytest.param(FALLING, 0, 10, id="empty"),
        pytest.param(FALLING, 5, 10, id="truncation toward zero rounds up on the way down"),
        pytest.param(FALLING, 10, 9, id="a tenth"),
        pytest.param(FALLING, 11, 9, id="a bit more"),
        pytest.param(FALLING, 50, 5, id="half"),
        pytest.param(FALLING, 100, 0, id="full"),
        pytest.param(((0, 0), (100, 10)), 5, 0, id="on the way up it rounds down"),
        pytest.param(((0, 0), (100, 10)), 99, 9, id="nearly full"),
        pytest.param(((30, 2), (60, 8)), 10, 2, id="before the first point its score holds"),
        pytest.param(((30, 2), (60, 8)), 30, 2, id="at the first point"),
        pytest.param(((30, 2), (60, 8)), 31, 2, id="a little after"),
        pytest.param(((30, 2), (60, 8)), 45, 5, id="in the middle"),
        pytest.param(((30, 2), (60, 8)), 60, 8, id="at the last point"),
        pytest.param(((30, 2), (60, 8)), 90, 8, id="after the last point its score holds"),
        pytest.param(((50, 7),), 10, 7, id="a single point is a constant"),
        pytest.param(((50, 7),), 90, 7, id="on both sides"),
        pytest.param(((0, 0), (50, 10), (100, 0)), 25, 5, id="up"),
        pytest.param(((0, 0), (50, 10), (100, 0)), 50, 10, id="to the top"),
        pytest.param(((0, 0), (50, 10), (100, 0)), 51, 10, id="and down, rounded up"),
        pytest.param(((0, 0), (50, 10), (100, 0)), 75, 5, id="again"),
        pytest.param(((0, 0), (50, 10), (100, 0)), 101, 0, id="more than full counts as full"),
    ],
)
def test_broken_lines(shape: Shape, used: int, expected: int) -> None:
    columns = view(node("n", cpu="100", memory=100))
    wanted = pod(requests={"cpu": used, "memory": used})
    rule = RequestedToCapacityRatioPriority(shape)

    assert scored(rule, wanted, columns)["n"] == expected


def test_a_broken_line_over_two_resources() -> None:
    # g(50) = 5, g(100) = 0: the mean of the scores, not the score of the mean.
    columns = view(node("n", cpu=4, memory=1000))

    found = scored(
        RequestedToCapacityRatioPriority(), pod(requests={"cpu": 2, "memory": 1000}), columns
    )

    assert found["n"] == 2


def test_scores_wrap_at_64_bits() -> None:
    # What runs has wrapped to a negative number, so the node looks emptier than empty.
    columns = view(
        node("n", cpu=4, memory=1000),
        *(pod(f"x{i}", node="n", requests={"cpu": 0, "memory": BIG}) for i in range(2)),
    )
    wanted = pod(requests={"cpu": 0, "memory": 0})

    # capacity - requested = 1000 + 2^63 wraps to 1000 - 2^63; times 10 wraps to 10000.
    assert scored(LeastRequestedPriority(), wanted, columns)["n"] == (10 + 10) // 2
    # requested * 10 wraps to 0.
    assert scored(MostRequestedPriority(), wanted, columns)["n"] == 0
    balanced = scored(BalancedResourceAllocation(), wanted, columns)["n"]
    assert balanced == int((1 - (2.0**63 / 1000)) * 10)


def test_scores_that_do_not_fit_are_the_lowest_for_one_node_as_for_many() -> None:
    columns = view(
        node("n", cpu=4, memory=1),
        *(pod(f"x{i}", node="n", requests={"cpu": 0, "memory": BIG}) for i in range(2)),
    )
    wanted = columns.incoming(pod(requests={"cpu": 0, "memory": 0}))
    rule = BalancedResourceAllocation()

    assert rule.score(wanted, ManyRows(columns, columns.order)).tolist() == [-(2**63)]
    assert rule.score(wanted, OneRow(columns, int(columns.order[0]))) == -(2**63)


@pytest.mark.parametrize(
    ("limits", "init", "expected"),
    [
        pytest.param({}, {}, 0, id="no limits"),
        pytest.param({"cpu": 4}, {}, 1, id="cpu that is there"),
        pytest.param({"cpu": 5}, {}, 0, id="cpu that is not"),
        pytest.param({"cpu": 5, "memory": 1}, {}, 1, id="one of the two is enough"),
        pytest.param({"cpu": 0, "memory": 0}, {}, 0, id="zero is no limit"),
        pytest.param({"cpu": 1}, {"cpu": 5}, 0, id="the largest init container counts"),
        pytest.param({}, {"cpu": 4}, 1, id="even alone"),
    ],
)
def test_limits(limits: dict[str, int], init: dict[str, int], expected: int) -> None:
    wanted = pod(limits=limits, init=[container(limits=init)])
    rule = ResourceLimitsPriority()

    assert scored(rule, wanted, view(node("n", cpu=4, memory=10)))["n"] == expected
    assert scored(rule, wanted, view(node("n", cpu=0, memory=0)))["n"] == 0


# Spreading ----------------------------------------------------------------------------------------

A1 = node("a1", labels={ZONE: "a", "rack": "1"})
A2 = node("a2", labels={ZONE: "a", "rack": "2"})
B1 = node("b1", labels={ZONE: "b", "rack": "1"})
PLAIN = node("plain")


def on(where: str, count: int, **options: object) -> list[Pod]:
    labels = options.pop("labels", X)
    return [
        pod(f"{where}-{i}", node=where, labels=labels, **options)  # type: ignore[arg-type]
        for i in range(count)
    ]


def test_spreading_by_the_worked_value() -> None:
    # maxN = 3, n = 1 and maxZ = 3, cz = 2: 6.67 / 3 + 3.33 * 2 / 3 = 4.44.
    columns = view(A1, A2, B1, service("s", X), *on("a1", 1), *on("a2", 1), *on("b1", 3))

    assert scored(SelectorSpreadPriority(), pod(labels=X), columns) == {"a1": 4, "a2": 4, "b1": 0}


def test_spreading_without_zones_and_next_to_them() -> None:
    columns = view(A1, B1, PLAIN, service("s", X), *on("a1", 2), *on("plain", 1))

    # A node without a zone is judged by its own pods alone.
    assert scored(SelectorSpreadPriority(), pod(labels=X), columns) == {
        "a1": 0,
        "b1": 10,
        "plain": 5,
    }


def test_zones_are_counted_over_feasible_nodes_only() -> None:
    columns = view(A1, A2, B1, service("s", X), *on("a2", 3), *on("b1", 1))
    wanted = pod(labels=X)

    # a1 is empty in a full zone, a third of ten; b1 holds one of at most three, twice.
    everywhere = scored(SelectorSpreadPriority(), wanted, columns)
    without = scored(SelectorSpreadPriority(), wanted, columns, among=["a1", "b1"])

    assert everywhere == {"a1": 3, "a2": 0, "b1": 6}
    assert without == {"a1": 10, "b1": 0}


def test_a_region_without_a_zone_is_a_zone() -> None:
    columns = view(
        node("r", labels={REGION: "r"}),
        node("s", labels={REGION: "s"}),
        service("s", X),
        *on("r", 1),
    )

    assert scored(SelectorSpreadPriority(), pod(labels=X), columns) == {"r": 0, "s": 10}


@pytest.mark.parametrize(
    ("others", "wanted", "counted"),
    [
        pytest.param([], pod(labels=X), None, id="nothing selects it: all nodes are as good"),
        pytest.param([service("s", X)], pod(labels=X), True, id="a service"),
        pytest.param([service("s", None)], pod(labels=X), None, id="a service without a selector"),
        pytest.param([service("s", {})], pod(labels=X), True, id="a service that selects all"),
        pytest.param([service("s", {})], pod(), True, id="even pods without labels"),
        pytest.param([controller("c", X)], pod(labels=X), True, id="a replication controller"),
        pytest.param([controller("c", {})], pod(labels=X), None, id="an empty controller selector"),
        pytest.param([replica_set("r", selector(X))], pod(labels=X), True, id="a replica set"),
        pytest.param([replica_set("r", selector())], pod(labels=X), None, id="an empty selector"),
        pytest.param([stateful_set("t", selector(X))], pod(labels=X), True, id="a stateful set"),
        pytest.param(
            [replica_set("r", selector(X)), replica_set("bad", BROKEN)],
            pod(labels=X),
            None,
            id="one invalid replica set and none of them count",
        ),
        pytest.param(
            [replica_set("bad", BROKEN), stateful_set("t", selector(X))],
            pod(labels=X),
            True,
            id="but stateful sets still do",
        ),
        pytest.param(
            [replica_set("r", selector(X)), replica_set("bad", BROKEN, namespace="other")],
            pod(labels=X),
            True,
            id="and invalid ones of another namespace do not matter",
        ),
        pytest.param(
            [service("s", X, namespace="other")], pod(labels=X), None, id="another namespace"
        ),
        pytest.param(
            [service("s", {"app": "-x"})],
            pod(labels={"app": "-x"}),
            True,
            id="an invalid value is compared as it is, and then counts everybody",
        ),
    ],
)
def test_who_is_spread(others: list[Object], wanted: Pod, counted: bool | None) -> None:
    columns = view(A1, PLAIN, *others, *on("a1", 1))
    expected = {"a1": 10, "plain": 10} if counted is None else {"a1": 0, "plain": 10}

    assert scored(SelectorSpreadPriority(), wanted, columns) == expected
    assert scored(ServiceSpreadingPriority(), wanted, columns) == expected


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(on("a1", 1, terminating=True), id="pods that are being deleted"),
        pytest.param(on("a1", 1, namespace="other"), id="pods of another namespace"),
        pytest.param(on("a1", 1, labels={"app": "y"}), id="pods of another service"),
    ],
)
def test_who_does_not_count_for_spreading(others: list[Pod]) -> None:
    columns = view(A1, PLAIN, service("s", X), *others)

    assert scored(SelectorSpreadPriority(), pod(labels=X), columns) == {"a1": 10, "plain": 10}


def test_a_pod_of_several_services_counts_once() -> None:
    columns = view(
        A1,
        PLAIN,
        service("s", X),
        service("t", {"tier": "t"}),
        *on("a1", 1, labels={**X, "tier": "t"}),
        *on("plain", 2),
    )

    found = scored(SelectorSpreadPriority(), pod(labels={**X, "tier": "t"}), columns)

    # a1: 5 by itself, and the only zone, which is as full as zones get.
    assert found == {"a1": 1, "plain": 0}


def test_service_anti_affinity() -> None:
    columns = view(A1, A2, B1, PLAIN, service("s", X), *on("a1", 1), *on("a2", 2), *on("plain", 1))

    # Four pods in all: rack 1 holds 1, rack 2 holds 2; nodes without a rack get 0.
    found = scored(ServiceAntiAffinity("rack"), pod(labels=X), columns)

    assert found == {"a1": 7, "a2": 5, "b1": 7, "plain": 0}


def test_service_anti_affinity_of_the_first_pod() -> None:
    columns = view(A1, PLAIN, service("s", X))

    assert scored(ServiceAntiAffinity("rack"), pod(labels=X), columns) == {"a1": 10, "plain": 0}
    assert scored(ServiceAntiAffinity("rack"), pod(), columns) == {"a1": 10, "plain": 0}


def test_service_anti_affinity_takes_the_first_service() -> None:
    both = {**X, "tier": "t"}
    columns = view(
        A1,
        A2,
        service("s", {"tier": "t"}),
        service("t", X),
        *on("a1", 2),
        *on("a2", 1, labels=both),
    )

    assert scored(ServiceAntiAffinity("rack"), pod(labels=both), columns) == {"a1": 10, "a2": 0}


# Preferences --------------------------------------------------------------------------------------

SSD = node_term(expression("disk", "In", "ssd"))
BIGGER = node_term(expression("size", "Gt", "5"))


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param([], [0, 0, 0], id="no preference"),
        pytest.param([(1, SSD)], [10, 0, 0], id="the best gets ten, whatever the weight"),
        pytest.param([(2, SSD), (1, BIGGER)], [10, 3, 0], id="weights add up"),
        pytest.param([(5, node_term())], [0, 0, 0], id="an empty preference matches nothing"),
        pytest.param(
            [(5, node_term(fields=[expression("metadata.name", "In", "c")]))],
            [0, 0, 0],
            id="fields are not looked at",
        ),
        pytest.param(
            [(5, node_term(expression("x", "DoesNotExist")))], [10, 10, 10], id="all alike"
        ),
    ],
)
def test_node_affinity(preferred: list, expected: list[int]) -> None:  # type: ignore[type-arg]
    columns = view(
        node("a", labels={"disk": "ssd", "size": "9"}), node("b", labels={"size": "7"}), node("c")
    )

    found = scored(NodeAffinityPriority(), pod(prefers_nodes=preferred), columns)

    assert list(found.values()) == expected


SOFT = "PreferNoSchedule"


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([[], [], []], [], [10, 10, 10], id="no taints"),
        pytest.param([0, 1, 2], [], [10, 5, 0], id="the worked value"),
        pytest.param([0, 1, 3], [], [10, 7, 0], id="thirds, truncated before they are turned over"),
        pytest.param([1, 1, 1], [], [0, 0, 0], id="all alike is all bad"),
        pytest.param([0, 1, 2], [tolerates("t0", "Exists")], [10, 10, 0], id="tolerated ones"),
        pytest.param(
            [0, 1, 2],
            [tolerates("t0", "Exists", effect="NoSchedule")],
            [10, 5, 0],
            id="a toleration of another effect is no help",
        ),
        pytest.param(
            [[taint("x")], [taint("y", effect="NoExecute")], []],
            [],
            [10, 10, 10],
            id="hard taints are another rule's matter",
        ),
    ],
)
def test_soft_taints(
    taints: list[int | list[Taint]], tolerations: list[Toleration], expected: list[int]
) -> None:
    columns = view(
        *(
            node(
                f"n{i}",
                taints=given
                if isinstance(given, list)
                else [taint(f"t{j}", effect=SOFT) for j in range(given)],
            )
            for i, given in enumerate(taints)
        )
    )

    found = scored(TaintTolerationPriority(), pod(tolerations=tolerations), columns)

    assert list(found.values()) == expected


@pytest.mark.parametrize(
    ("presence", "expected"), [(True, [10, 10, 0]), (False, [0, 0, 10])], ids=["has", "lacks"]
)
def test_node_label(presence: bool, expected: list[int]) -> None:
    columns = view(node("a", labels={"x": "1"}), node("b", labels={"x": ""}), node("c"))

    found = scored(NodeLabelPriority("x", presence=presence, name="x"), pod(), columns)

    assert list(found.values()) == expected


def test_equal() -> None:
    assert scored(EqualPriority(), pod(), view(node("a"), node("b"))) == {"a": 1, "b": 1}


# Pods that like pods ------------------------------------------------------------------------------

Z1 = node("z1", labels={"zone": "1"})
Z2 = node("z2", labels={"zone": "2"})


@pytest.mark.parametrize(
    ("others", "wanted", "expected"),
    [
        pytest.param([], pod(prefers=[(5, term(X))]), [0, 0, 0], id="nobody there"),
        pytest.param(on("z1", 1), pod(prefers=[(5, term(X))]), [10, 0, 0], id="one that it likes"),
        pytest.param(
            on("z1", 1), pod(avoids=[(5, term(X))]), [0, 10, 10], id="one that it dislikes"
        ),
        pytest.param(
            [*on("z1", 1), *on("z2", 2)],
            pod(prefers=[(5, term(X))]),
            [5, 10, 0],
            id="more is better",
        ),
        pytest.param(
            [*on("z1", 1), *on("z2", 1, labels={"app": "y"})],
            pod(prefers=[(4, term(X))], avoids=[(1, term({"app": "y"}))]),
            [10, 0, 2],
            id="zero lies in between",
        ),
        pytest.param(
            on("z1", 1, labels={}, prefers=[(3, term(X))]),
            pod(labels=X),
            [10, 0, 0],
            id="being liked",
        ),
        pytest.param(
            on("z1", 1, labels={}, avoids=[(3, term(X))]),
            pod(labels=X),
            [0, 10, 10],
            id="being disliked",
        ),
        pytest.param(
            on("z1", 1, labels={}, affinity=[term(X)]),
            pod(labels=X),
            [10, 0, 0],
            id="being required, at the weight of the profile",
        ),
        pytest.param(
            on("z1", 1, labels={}, anti=[term(X)]),
            pod(labels=X),
            [0, 0, 0],
            id="required distance is the predicate's matter",
        ),
        pytest.param(
            on("z1", 1), pod(prefers=[(5, term(X, ""))]), [0, 0, 0], id="an empty key never matches"
        ),
        pytest.param(
            on("plain", 1), pod(prefers=[(5, term(X))]), [0, 0, 0], id="nor does a missing one"
        ),
        pytest.param(
            on("z1", 1, terminating=True),
            pod(prefers=[(5, term(X))]),
            [10, 0, 0],
            id="pods that are being deleted count",
        ),
        pytest.param(
            on("z1", 1), pod(prefers=[(5, term(None))]), [0, 0, 0], id="no selector, no pods"
        ),
        pytest.param(
            on("z1", 1), pod(prefers=[(5, term({}))]), [10, 0, 0], id="an empty one, all pods"
        ),
    ],
)
def test_preferred_pod_affinity(others: list[Pod], wanted: Pod, expected: list[int]) -> None:
    found = scored(InterPodAffinityPriority(), wanted, view(Z1, Z2, PLAIN, *others))

    assert list(found.values()) == expected


def test_equal_positive_counts_are_all_best() -> None:
    columns = view(Z1, Z2, *on("z1", 1), *on("z2", 1))

    assert scored(InterPodAffinityPriority(), pod(prefers=[(5, term(X))]), columns) == {
        "z1": 10,
        "z2": 10,
    }


def test_required_affinity_weighs_against_preferences() -> None:
    liking = on("z1", 1, labels={}, affinity=[term(X)])
    preferring = on("z2", 1, labels={}, prefers=[(4, term(X))])
    columns = view(Z1, Z2, *liking, *preferring)

    assert scored(InterPodAffinityPriority(1), pod(labels=X), columns) == {"z1": 2, "z2": 10}
    assert scored(InterPodAffinityPriority(8), pod(labels=X), columns) == {"z1": 10, "z2": 5}
    assert scored(InterPodAffinityPriority(0), pod(labels=X), columns) == {"z1": 0, "z2": 10}


def test_counts_come_from_all_nodes_but_scores_go_to_feasible_ones() -> None:
    far = node("far", labels={"zone": "1"})
    columns = view(Z1, Z2, far, *on("far", 1))

    found = scored(
        InterPodAffinityPriority(), pod(prefers=[(5, term(X))]), columns, among=["z1", "z2"]
    )

    assert found == {"z1": 10, "z2": 0}


# Avoided pods -------------------------------------------------------------------------------------


def avoiding(*controllers: object) -> str:
    entries = [{"podSignature": {"podController": each}} for each in controllers]
    return json.dumps({"preferAvoidPods": entries})


@pytest.mark.parametrize(
    ("annotation", "owner", "expected"),
    [
        pytest.param("", ("ReplicaSet", "u"), 10, id="no annotation"),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "u"), 0, id="meant"
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "v"}, {"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicaSet", "u"),
            0,
            id="meant by one of several",
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "v"), 10, id="another uid"
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicationController", "u"),
            10,
            id="another kind",
        ),
        pytest.param(
            avoiding({"kind": "StatefulSet", "uid": "u"}),
            ("StatefulSet", "u"),
            10,
            id="a kind that cannot be meant",
        ),
        pytest.param(avoiding({"kind": "ReplicaSet", "uid": "u"}), None, 10, id="no controller"),
        pytest.param("{", ("ReplicaSet", "u"), 10, id="not to be read"),
        pytest.param("[]", ("ReplicaSet", "u"), 10, id="of another shape"),
    ],
)
def test_nodes_that_avoid_pods(
    annotation: str, owner: tuple[str, str] | None, expected: int
) -> None:
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    columns = view(node("n", annotations={key: annotation} if annotation else None), node("m"))

    found = scored(NodePreferAvoidPodsPriority(), pod(owner=owner), columns)

    assert found == {"n": expected, "m": 10}


# Images -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("a/b@sha256:0", "a/b@sha256:0"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    assert tagged(image) == name


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(46, 0, id="below the least: half of 46 MiB is 23"),
        pytest.param(250, 1, id="the worked value"),
        pytest.param(2000, 10, id="the most"),
        pytest.param(9000, 10, id="more than the most"),
    ],
)
def test_image_sizes(size: int, expected: int) -> None:
    columns = view(node("a", images={"i:1": size * MEBIBYTE}), node("b"))

    assert scored(ImageLocalityPriority(), pod(image="i:1"), columns) == {"a": expected, "b": 0}


def test_containers_count_each_and_init_containers_not() -> None:
    columns = view(node("a", images={"i:latest": 250 * MEBIBYTE}), node("b"))
    rule = ImageLocalityPriority()
    twice = pod(containers=[container(image="i"), container(image="i:latest")])

    assert scored(rule, twice, columns)["a"] == 10 * (250 - 23) // 977
    assert scored(rule, pod(init=[container(image="i")]), columns)["a"] == 0


class TestImageHistory:
    """A node remembers how many nodes held an image when it was itself last updated."""

    def scores(self, made: object, **options: object) -> dict[str, int]:
        return scored(ImageLocalityPriority(), pod(image="i:1"), made, **options)  # type: ignore[arg-type]

    def holding(self, name: str, size: int = 900) -> Node:
        return node(name, images={"i:1": size * MEBIBYTE})

    def test_nodes_that_came_later_know_of_more(self) -> None:
        columns = view(*(self.holding(name) for name in "abc"))

        expected = [10 * (900 * known // 3 - 23) // 977 for known in (1, 2, 3)]
        assert list(self.scores(columns).values()) == expected == [2, 5, 8]

    def test_an_update_refreshes_the_count(self) -> None:
        columns = view(*(self.holding(name) for name in "abc"))

        columns.put_node(self.holding("a"))

        assert self.scores(columns) == {"a": 8, "b": 5, "c": 8}

    def test_a_node_that_leaves_is_still_remembered(self) -> None:
        columns = view(*(self.holding(name) for name in "abc"))

        columns.drop_node("b")

        # Two nodes now; c still believes in three holders.
        assert self.scores(columns) == {"a": 10 * (450 - 23) // 977, "c": 10}

    def test_the_first_size_counts_until_nobody_has_the_image(self) -> None:
        columns = view(self.holding("a", 100), self.holding("b", 900))
        assert self.scores(columns) == {"a": 0, "b": 0}

        columns.drop_node("a")
        columns.put_node(self.holding("c", 900))
        # The size is still the one that a reported.
        assert self.scores(columns) == {"b": 0, "c": 0}

        columns.put_node(node("b"))
        columns.put_node(node("c"))
        columns.put_node(self.holding("c", 900))
        assert self.scores(columns) == {"b": 0, "c": 10 * (450 - 23) // 977}

    def test_all_names_of_an_image_count(self) -> None:
        columns = view(node("a", images={"i:1": 900 * MEBIBYTE, "other:1": 900 * MEBIBYTE}))

        assert self.scores(columns) == {"a": 8}

    def test_placing_pods_refreshes_nothing(self) -> None:
        made = simulation(
            *(self.holding(name) for name in "abc"),
            profile=profile(priorities=[ImageLocalityPriority()]),
        )
        before = self.scores(made.cache.columns)

        list(made.run([pod("x", image="i:1"), pod("y", image="i:1")]))

        assert self.scores(made.cache.columns) == before
