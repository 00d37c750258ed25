"""v1.13 SelectorSpreadPriority, by the worked values and quirks of the reference."""

from __future__ import annotations

from builders import (
    BROKEN,
    REGION,
    ZONE,
    controller,
    node,
    on,
    pod,
    replica_set,
    scored,
    selector,
    service,
    stateful_set,
    view,
)
from cases import cases
from podium.engine.rules.spreading import (
    SelectorSpreadPriority,
    ServiceSpreadingPriority,
)
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

X = {"app": "x"}
A1 = node("a1", labels={ZONE: "a", "rack": "1"})
A2 = node("a2", labels={ZONE: "a", "rack": "2"})
B1 = node("b1", labels={ZONE: "b", "rack": "1"})
PLAIN = node("plain")


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


@cases(
    ("others", "wanted", "counted"),
    {
        "nothing selects it: all nodes are as good": ([], pod(labels=X), None),
        "a service": ([service("s", X)], pod(labels=X), True),
        "a service without a selector": ([service("s", None)], pod(labels=X), None),
        "a service that selects all": ([service("s", {})], pod(labels=X), True),
        "even pods without labels": ([service("s", {})], pod(), True),
        "a replication controller": ([controller("c", X)], pod(labels=X), True),
        "an empty controller selector": ([controller("c", {})], pod(labels=X), None),
        "a replica set": ([replica_set("r", selector(X))], pod(labels=X), True),
        "an empty selector": ([replica_set("r", selector())], pod(labels=X), None),
        "a stateful set": ([stateful_set("t", selector(X))], pod(labels=X), True),
        "one invalid replica set and none of them count": (
            [replica_set("r", selector(X)), replica_set("bad", BROKEN)],
            pod(labels=X),
            None,
        ),
        "but stateful sets still do": (
            [replica_set("bad", BROKEN), stateful_set("t", selector(X))],
            pod(labels=X),
            True,
        ),
        "and invalid ones of another namespace do not matter": (
            [replica_set("r", selector(X)), replica_set("bad", BROKEN, namespace="other")],
            pod(labels=X),
            True,
        ),
        "another namespace": ([service("s", X, namespace="other")], pod(labels=X), None),
        "an invalid value is compared as it is, and then counts every pod": (
            [service("s", {"app": "-x"})],
            pod(labels={"app": "-x"}),
            True,
        ),
    },
)
def test_who_is_spread(others: list[Object], wanted: Pod, counted: bool | None) -> None:
    columns = view(A1, PLAIN, *others, *on("a1", 1))
    expected = {"a1": 10, "plain": 10} if counted is None else {"a1": 0, "plain": 10}

    assert scored(SelectorSpreadPriority(), wanted, columns) == expected
    assert scored(ServiceSpreadingPriority(), wanted, columns) == expected


@cases(
    "others",
    {
        "pods that are being deleted": on("a1", 1, terminating=True),
        "pods of another namespace": on("a1", 1, namespace="other"),
        "pods of another service": on("a1", 1, labels={"app": "y"}),
    },
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
