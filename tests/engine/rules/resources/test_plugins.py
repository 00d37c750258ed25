"""v1.36 NodeResourcesFit and NodeResourcesBalancedAllocation: worked examples."""

from __future__ import annotations

from typing import Any

from builders import container, node, pod
from builders_v1_36 import decision, judged, scores, spec_with
from cases import cases
from podium.engine.rules.resources.balanced_allocation import NodeResourcesBalancedAllocation
from podium.engine.rules.resources.fit import NodeResourcesFit, NodeResourcesFitScore
from podium.engine.state.verdicts import Verdict
from podium.objects.kinds.pod import Pod, ResourceRequirements

GPU, FPGA = "example.com/gpu", "vendor.io/fpga"
Requests = dict[str, Any]


# Fit ----------------------------------------------------------------------------------------------


@cases(
    ("requests", "reasons", "curable"),
    {
        "no place for one more pod": ({}, ("Too many pods",), True),
        "everything is told, in this order": (
            {"cpu": "2", "memory": 8, "ephemeral-storage": 3, GPU: 1},
            (
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
            ),
            True,
        ),
        "scalars by name; one that the node does not have at all is hopeless": (
            {FPGA: 1, GPU: 1, "hugepages-2Mi": 2},
            (
                "Too many pods",
                f"Insufficient {GPU}",
                "Insufficient hugepages-2Mi",
                f"Insufficient {FPGA}",
            ),
            False,
        ),
        "more than the whole node has is hopeless": (
            {"cpu": "5", "memory": 8},
            ("Too many pods", "Insufficient cpu", "Insufficient memory"),
            False,
        ),
        "zeros ask for nothing": ({"cpu": 0, "memory": 0, GPU: 0}, ("Too many pods",), True),
    },
)
def test_room(requests: Requests, reasons: tuple[str, ...], curable: bool) -> None:
    full = node(
        "n",
        cpu="4",
        memory=10,
        pods=1,
        resources={"ephemeral-storage": 5, GPU: 1, "hugepages-2Mi": 4},
    )
    there = pod(
        "there",
        node="n",
        requests={"cpu": "3", "memory": 5, "ephemeral-storage": 3, GPU: 1, "hugepages-2Mi": 4},
    )

    found = decision(pod(requests=requests), full, there)

    [verdict] = [found.verdict(code) for code in found.codes.tolist()]
    assert verdict == Verdict("NodeResourcesFit", reasons, curable)


@cases(
    ("rule", "requests", "reasons"),
    {
        "an extended resource": (NodeResourcesFit(), {GPU: 1}, (f"Insufficient {GPU}",)),
        "one that is ignored": (NodeResourcesFit(frozenset({GPU})), {GPU: 1}, ()),
        "its group": (NodeResourcesFit(frozenset(), frozenset({"example.com"})), {GPU: 1}, ()),
        "huge pages cannot be ignored": (
            NodeResourcesFit(frozenset({"hugepages-2Mi"})),
            {"hugepages-2Mi": 2},
            ("Insufficient hugepages-2Mi",),
        ),
        "nor can cpu": (
            NodeResourcesFit(frozenset({"cpu"})),
            {"cpu": "5000"},
            ("Insufficient cpu",),
        ),
    },
)
def test_ignored_resources(
    rule: NodeResourcesFit, requests: Requests, reasons: tuple[str, ...]
) -> None:
    assert judged(rule, pod(requests=requests), node("n")) == {"n": reasons}


def test_pod_level_requests_decide_what_fits() -> None:
    wanted = spec_with(pod(requests={"cpu": "2"}), resources=ResourceRequirements({"cpu": "4"}))

    assert decision(wanted, node("n", cpu="3")).node is None
    assert decision(wanted, node("n", cpu="4")).node == "n"


# Utilization --------------------------------------------------------------------------------------

HALF = pod("there", node="n", requests={"cpu": "2", "memory": 50})


@cases(
    ("rule", "requests", "expected"),
    {
        "least: what is left": (NodeResourcesFitScore(), {"cpu": "1", "memory": 25}, 25),
        "most: what is used": (
            NodeResourcesFitScore("MostAllocated"),
            {"cpu": "1", "memory": 25},
            75,
        ),
        "least: too much is 0": (NodeResourcesFitScore(), {"cpu": "3", "memory": 25}, 12),
        "most: no more than all": (
            NodeResourcesFitScore("MostAllocated"),
            {"cpu": "3", "memory": 25},
            87,
        ),
        "weights": (
            NodeResourcesFitScore(resources=(("cpu", 3), ("memory", 1))),
            {"cpu": "1", "memory": 50},
            18,
        ),
        "a scalar that the pod does not request is left out": (
            NodeResourcesFitScore(resources=(("cpu", 1), (GPU, 5))),
            {"cpu": "1"},
            25,
        ),
        "so is one that the node does not have": (
            NodeResourcesFitScore(resources=(("cpu", 1), ("nothing", 5))),
            {"cpu": "1"},
            25,
        ),
        "nothing left": (NodeResourcesFitScore(resources=(("nothing", 5),)), {"cpu": "1"}, 0),
        "a scalar counts what is requested on the node": (
            NodeResourcesFitScore(resources=(("cpu", 1), (GPU, 1))),
            {"cpu": "1", GPU: 1},
            37,
        ),
    },
)
def test_how_full(rule: NodeResourcesFitScore, requests: Requests, expected: int) -> None:
    made = node("n", cpu="4", memory=100, resources={GPU: 2})

    assert scores(rule, pod(requests=requests), made, HALF) == {"n": expected}


def test_pod_level_requests_of_the_pod_itself_do_not_score() -> None:
    wanted = spec_with(
        pod(requests={"cpu": "1", "memory": 10}),
        resources=ResourceRequirements({"cpu": "4", "memory": 100}),
    )

    assert scores(NodeResourcesFitScore(), wanted, node("n", cpu="4", memory=100)) == {"n": 82}


def ratio(*shape: tuple[int, int], **resources: int) -> NodeResourcesFitScore:
    weights = tuple(resources.items()) or (("cpu", 1),)
    return NodeResourcesFitScore("RequestedToCapacityRatio", weights, shape)


@cases(
    ("rule", "requests", "expected"),
    {
        "rising": (ratio((0, 0), (100, 10)), {"cpu": "333m"}, 33),
        "falling: 100 - 33, exactly": (ratio((0, 10), (100, 0)), {"cpu": "333m"}, 67),
        "falling: truncation toward zero rounds up (100 - 47.14)": (
            ratio((0, 10), (70, 0)),
            {"cpu": "333m"},
            53,
        ),
        "below the first point": (ratio((20, 3), (40, 9)), {"cpu": "100m"}, 30),
        "beyond the last point": (ratio((20, 3), (40, 9)), {"cpu": "900m"}, 90),
        "at a point": (ratio((20, 3), (40, 9)), {"cpu": "400m"}, 90),
        "more than there is": (ratio((0, 0), (100, 10)), {"cpu": "2"}, 100),
        "a resource that scores nothing does not pull the mean down": (
            ratio((0, 0), (100, 10), cpu=1, memory=1),
            {"cpu": "250m", "memory": 0},
            25,
        ),
        "a half is rounded up (27.5)": (
            ratio((0, 0), (100, 10), cpu=1, memory=1),
            {"cpu": "250m", "memory": 30},
            28,
        ),
        "less than a half is not (26.7 is)": (
            ratio((0, 0), (100, 10), cpu=2, memory=1),
            {"cpu": "250m", "memory": 30},
            27,
        ),
        "nothing scored at all": (ratio((0, 0), (100, 10)), {"cpu": 0, "memory": 0}, 0),
    },
)
def test_ratio(rule: NodeResourcesFitScore, requests: Requests, expected: int) -> None:
    assert scores(rule, pod(requests=requests), node("n", cpu="1", memory=100)) == {"n": expected}


# Balance ------------------------------------------------------------------------------------------


@cases(
    ("resources", "there", "requests", "expected"),
    {
        "one resource is always even": (("cpu",), {}, {"cpu": "2"}, 75),
        "two that rise together change nothing": (
            ("cpu", "memory"),
            {},
            {"cpu": "2", "memory": 50},
            75,
        ),
        "all of one, none of the other: from 100 to 50": (("cpu", "memory"), {}, {"cpu": "4"}, 50),
        "a skewed node that becomes even: from 50 to 100": (
            ("cpu", "memory"),
            {"cpu": "4"},
            {"memory": 100},
            100,
        ),
        "25 to 50 percent apart: 87 to 75": (("cpu", "memory"), {"cpu": "1"}, {"cpu": "1"}, 69),
        "beyond all there is no more": (("cpu", "memory"), {"cpu": "4"}, {"cpu": "4"}, 75),
        "three: 100, 50 and 25 percent deviate by 31.18 in the mean: from 100 to 68": (
            ("cpu", "memory", GPU),
            {},
            {"cpu": "4", "memory": 50, GPU: 1},
            59,
        ),
        "a scalar that is not requested is left out: two": (
            ("cpu", "memory", GPU),
            {},
            {"cpu": "4", "memory": 0},
            50,
        ),
        "a resource that the node lacks is left out: two": (
            ("cpu", "memory", "ephemeral-storage"),
            {},
            {"cpu": "4"},
            50,
        ),
    },
)
def test_how_even(
    resources: tuple[str, ...], there: Requests, requests: Requests, expected: int
) -> None:
    made = node("n", cpu="4", memory=100, resources={GPU: 4})
    placed = pod("there", node="n", requests=there)

    found = scores(NodeResourcesBalancedAllocation(resources), pod(requests=requests), made, placed)

    assert found == {"n": expected}


@cases(
    ("wanted", "scored"),
    {
        "a pod that requests neither is left out": (pod(), False),
        "so is one that requests nothing of it": (pod(requests={"cpu": 0}), False),
        "or something else": (pod(requests={GPU: 1}), False),
        "one of the two is enough": (pod(requests={"memory": 1}), True),
        "pod level counts": (spec_with(pod(), resources=ResourceRequirements({"cpu": "1"})), True),
        "and overhead": (spec_with(pod(), overhead={"cpu": "1"}), True),
        "and init containers": (pod(containers=[], init=[container({"cpu": "1"})]), True),
    },
)
def test_who_is_scored_for_evenness(wanted: Pod, scored: bool) -> None:
    found = decision(wanted, node("a", resources={GPU: 1}), node("b", resources={GPU: 1}))

    names = [column.name for column in found.scores]
    assert ("NodeResourcesBalancedAllocation" in names) is scored
