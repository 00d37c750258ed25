"""Pods that were promised a node count there for the first of two looks."""

from __future__ import annotations

from builders import (
    BROKEN,
    decided,
    gce,
    node,
    pod,
    profile,
    service,
    simulation,
    term,
    view,
)
from cases import cases
from podium.cluster.cache.columns import Columns
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

X = {"app": "x"}
CPU = {"cpu": 1}
AFFINITY = "node(s) didn't match pod affinity/anti-affinity"
OWN = [AFFINITY, "node(s) didn't match pod affinity rules"]
OWN_ANTI = [AFFINITY, "node(s) didn't match pod anti-affinity rules"]
EXISTING = [AFFINITY, "node(s) didn't satisfy existing pods anti-affinity rules"]
SERVICE = "node(s) didn't match service affinity"


def failed(columns: Columns, wanted: Pod) -> list[str]:
    """The reasons against node n."""
    return decided(columns, wanted, profile()).failed().get("n", [])


@cases(
    ("promised", "wanted", "reasons"),
    {
        "an equal priority counts": (5, 5, ["Insufficient cpu"]),
        "so does a higher one": (6, 5, ["Insufficient cpu"]),
        "a lower one does not": (4, 5, []),
        "no priority is zero": (None, 0, ["Insufficient cpu"]),
    },
)
def test_whose_promise_counts(promised: int | None, wanted: int, reasons: list[str]) -> None:
    other = pod("other", nominated="n", priority=promised, requests=CPU)
    columns = view(node("n", cpu=1), other)

    assert failed(columns, pod(priority=wanted, requests=CPU)) == reasons


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    promised = pod("me", uid="u", nominated="n", requests=CPU)

    assert failed(view(node("n", cpu=1), promised), promised) == []


def test_a_promise_of_another_node_does_not_matter() -> None:
    other = pod("other", nominated="m", requests=CPU)
    columns = view(node("n", cpu=1), node("m", cpu=1), other)

    decision = decided(columns, pod(requests=CPU), profile())

    assert decision.feasible == ["n"]
    assert decision.failed() == {"m": ["Insufficient cpu"]}


def test_a_promise_of_a_node_that_is_gone_does_not_matter() -> None:
    columns = view(node("n", cpu=1), pod("other", nominated="gone", requests=CPU))

    assert failed(columns, pod(requests=CPU)) == []


@cases(
    ("promised", "wanted", "reason"),
    {
        "its host ports are taken": (
            pod("o", nominated="n", ports=[80]),
            pod(ports=[80]),
            "node(s) didn't have free ports for the requested pod ports",
        ),
        "its disks are taken": (
            pod("o", nominated="n", volumes=[gce("d")]),
            pod(volumes=[gce("d")]),
            "node(s) had no available disk",
        ),
    },
)
def test_what_a_promised_pod_takes(promised: Pod, wanted: Pod, reason: str) -> None:
    assert failed(view(node("n"), promised), wanted) == [reason]


@cases(
    ("promised", "wanted", "reasons"),
    {
        "its own anti-affinity is honoured": (
            pod("o", nominated="n", anti=[term(X)]),
            pod(labels=X),
            EXISTING,
        ),
        "it does not break the anti-affinity of others": (
            pod("o", nominated="n", labels=X),
            pod(anti=[term(X)]),
            [],
        ),
        "nor does it meet their affinity": (
            pod("o", nominated="n", labels=X),
            pod(affinity=[term(X)]),
            OWN,
        ),
        "so the first of a group is still the first": (
            pod("o", nominated="n", labels=X),
            pod(labels=X, affinity=[term(X)]),
            [],
        ),
        "an invalid selector of a promised pod is not an error": (
            pod("o", nominated="n", anti=[term(BROKEN)]),
            pod(labels=X),
            [],
        ),
        "anti-affinity of a lower promise is not honoured": (
            pod("o", nominated="n", anti=[term(X)], priority=-1),
            pod(labels=X),
            [],
        ),
    },
)
def test_affinity_and_promises(promised: Pod, wanted: Pod, reasons: list[str]) -> None:
    assert failed(view(node("n", labels={"zone": "1"}), promised), wanted) == reasons


def test_anti_affinity_of_a_promised_pod_counts_on_its_node_only() -> None:
    columns = view(
        node("n", labels={"zone": "1"}),
        node("m", labels={"zone": "1"}),
        pod("o", nominated="n", anti=[term(X)]),
    )

    decision = decided(columns, pod(labels=X), profile())

    assert decision.failed() == {"n": EXISTING}
    assert decision.feasible == ["m"]


@cases(
    "others",
    {
        "nobody else": [],
        "a placed one on another node": [pod("x", node="m", labels=X)],
    },
)
def test_the_second_look_is_without_promised_pods(others: list[Object]) -> None:
    # Whether the affinity can be met must not rest on a pod that may never come.
    columns = view(
        node("n", labels={"zone": "1"}),
        node("m", labels={"zone": "2"}),
        pod("o", nominated="n", labels=X),
        *others,
    )

    decision = decided(columns, pod(affinity=[term(X)]), profile())

    assert decision.failed()["n"] == OWN
    assert (decision.node == "m") == bool(others)


def test_only_the_first_failing_look_is_reported() -> None:
    # With the promised pod cpu and memory fall short, without it memory alone does.
    columns = view(
        node("n", cpu=1, memory=10),
        pod("x", node="n", requests={"memory": 10}),
        pod("o", nominated="n", requests=CPU),
    )

    assert failed(columns, pod(requests={"cpu": 1, "memory": 1})) == [
        "Insufficient cpu",
        "Insufficient memory",
    ]


def test_a_promised_pod_may_lead_a_service_and_has_no_node_then() -> None:
    columns = view(
        node("n", labels={"zone": "1"}), service("s", X), pod("o", nominated="n", labels=X)
    )

    decision = decided(columns, pod(labels=X), profile(CheckServiceAffinity(["zone"])))

    assert decision.error == 'node "" not found'


def test_a_promised_pod_comes_after_placed_ones_in_a_service() -> None:
    columns = view(
        node("n", labels={"zone": "1"}),
        node("m", labels={"zone": "2"}),
        service("s", X),
        pod("o", nominated="n", labels=X),
        pod("x", node="m", labels=X),
    )

    decision = decided(columns, pod(labels=X), profile(CheckServiceAffinity(["zone"])))

    assert decision.failed() == {"n": [SERVICE]}
    assert decision.node == "m"


def test_everything_is_checked_in_both_looks_when_asked_for() -> None:
    columns = view(
        node("n", cpu=1),
        pod("x", node="n", volumes=[gce("d")]),
        pod("o", nominated="n", requests=CPU),
    )
    wanted = pod(requests=CPU, volumes=[gce("d")])

    whole = decided(columns, wanted, profile(always_check_all=True))

    assert whole.failed() == {"n": ["Insufficient cpu", "node(s) had no available disk"]}


def test_promises_do_not_count_for_scores() -> None:
    columns = view(node("n"), node("m"), pod("o", nominated="n", requests={"cpu": 900}))

    decision = decided(columns, pod(), profile(GeneralPredicates()))

    assert decision.feasible == ["n", "m"]
    assert decision.node == "n"


# In a simulation ----------------------------------------------------------------------------------


def test_a_promise_ends_when_the_pod_is_placed() -> None:
    promised = pod("o", nominated="n", requests=CPU)
    made = simulation(node("n", cpu=1), node("m", cpu=2))

    steps = list(made.run([promised, pod("p", requests={"cpu": 2})]))

    assert [step.decision.node for step in steps] == ["n", "m"]
    assert made.cache.columns.pods.nominated == {}


def test_a_waiting_pod_keeps_its_promise_while_others_are_tried() -> None:
    waiting = pod("o", nominated="n", requests=CPU)
    made = simulation(node("n", cpu=1), waiting)

    [step] = made.run([pod("p", requests=CPU)])

    assert step.decision.node is None
    assert step.decision.message == "0/1 nodes are available: 1 Insufficient cpu."
