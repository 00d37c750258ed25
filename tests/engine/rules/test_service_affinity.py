"""v1.13 rules that keep the pods of a service together or apart."""

from __future__ import annotations

from builders import (
    ZONE,
    decided,
    judged,
    node,
    on,
    pod,
    profile,
    scored,
    service,
    view,
)
from cases import cases
from podium.engine.rules.service_affinity import CheckServiceAffinity, ServiceAntiAffinity
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

SERVICE = ("node(s) didn't match service affinity",)
A = node("a", labels={"zone": "1", "rack": "r1", "disk": "ssd"})
B = node("b", labels={"zone": "2", "rack": "r1", "disk": "ssd"})
C = node("c")
X = {"app": "x"}
Y = {"app": "y"}
TOGETHER = CheckServiceAffinity(["zone"])
WEB = service("web", X)


@cases(
    ("others", "wanted", "expected"),
    {
        "the first pod is free": ([WEB], pod(labels=X), {"a": (), "b": (), "c": ()}),
        "later pods go where the first one is": (
            [WEB, pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
        ),
        "the first pod is the one on the first node, not the oldest": (
            [WEB, pod("late", node="b", labels=X), pod("early", node="a", labels=X)],
            pod(labels=X),
            {"a": (), "b": SERVICE, "c": SERVICE},
        ),
        "without a service there is nothing to stay together for": (
            [pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
        ),
        "the service must select the pod": (
            [service("web", Y), pod("x", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
        ),
        "pods with all labels of the pod are alike, others may have more": (
            [WEB, pod("x", node="b", labels={**X, "more": "labels"})],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
        ),
        "pods that lack one of its labels are not": (
            [WEB, pod("x", node="b", labels=X)],
            pod(labels={**X, "more": "labels"}),
            {"a": (), "b": (), "c": ()},
        ),
        "nor are those of another namespace": (
            [WEB, pod("x", namespace="other", node="b", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
        ),
        "a label that the pod selects itself is not looked up": (
            [WEB, pod("x", node="b", labels=X)],
            pod(labels=X, node_selector={"zone": "1"}),
            {"a": (), "b": SERVICE, "c": SERVICE},
        ),
        "a first pod on a node without the label has no effect": (
            [WEB, pod("x", node="c", labels=X)],
            pod(labels=X),
            {"a": (), "b": (), "c": ()},
        ),
        "a pod that is being deleted still leads": (
            [WEB, pod("x", node="b", labels=X, terminating=True)],
            pod(labels=X),
            {"a": SERVICE, "b": (), "c": SERVICE},
        ),
    },
)
def test_service_affinity(
    others: list[Object], wanted: Pod, expected: dict[str, tuple[str, ...]]
) -> None:
    assert judged(TOGETHER, wanted, view(A, B, C, *others)) == expected


def test_the_first_pod_of_a_service_follows_positions_on_the_node() -> None:
    # Two pods on one node are the same choice; after the first leaves, the last takes its place.
    columns = view(A, B, WEB, *(pod(n, node="a", labels=X) for n in "uvw"), pod("z", node="b"))
    columns.remove_pod("default/u")

    assert [resident.key for resident in columns.pods.residents[0]] == ["default/w", "default/v"]
    assert judged(TOGETHER, pod(labels=X), columns) == {"a": (), "b": SERVICE}


def test_a_first_pod_on_an_unknown_node_is_an_error() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X))

    decision = decided(columns, pod(labels=X), profile(TOGETHER))

    assert decision.error == 'node "ghost" not found (repeated 2 times)'
    assert decision.preemption is None


def test_pods_on_known_nodes_come_before_those_on_unknown_ones() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X), pod("y", node="b", labels=X))

    assert judged(TOGETHER, pod(labels=X), columns) == {"a": SERVICE, "b": ()}


def test_no_label_to_look_up_means_no_first_pod() -> None:
    columns = view(A, B, WEB, pod("x", node="ghost", labels=X))

    found = judged(TOGETHER, pod(labels=X, node_selector={"zone": "2"}), columns)

    assert found == {"a": SERVICE, "b": ()}


A1 = node("a1", labels={ZONE: "a", "rack": "1"})
A2 = node("a2", labels={ZONE: "a", "rack": "2"})
B1 = node("b1", labels={ZONE: "b", "rack": "1"})
PLAIN = node("plain")


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
