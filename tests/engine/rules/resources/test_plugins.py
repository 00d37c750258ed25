"""v1.36 NodeResourcesFit and NodeResourcesBalancedAllocation: worked examples."""

from __future__ import annotations

from typing import Any

import pytest

from builders import container, node, pod
from builders_v1_36 import decision, judged, scores, spec_with
from podium.engine.rules.resources.balanced_allocation import NodeResourcesBalancedAllocation
from podium.engine.rules.resources.fit import NodeResourcesFit, NodeResourcesFitScore
from podium.engine.state.verdicts import Verdict
from podium.objects.kinds.pod import Pod, ResourceRequirements

GPU, FPGA = "example.com/gpu", "vendor.io/fpga"
Requests = dict[str, Any]


# Fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "reasons", "curable"),
    [
        pytest.param({}, ("Too many pods",), True, id="no place for one more pod"),
        pytest.param(
            {"cpu": "2", "memory": 8, "ephemeral-storage": 3, GPU: 1},
            (
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
            ),
            True,
            id="everything is told, in this order",
        ),
        pytest.param(
            {FPGA: 1, GPU: 1, "hugepages-2Mi": 2},
            (
                "Too many pods",
                f"Insufficient {GPU}",
                "Insufficient hugepages-2Mi",
                f"Insufficient {FPGA}",
            ),
            False,
            id="scalars by name; one that the node does not have at all is hopeless",
        ),
        pytest.param(
            {"cpu": "5", "memory": 8},
            ("Too many pods", "Insufficient cpu", "Insufficient memory"),
            False,
            id="more than the whole node has is hopeless",
        ),
        pytest.param(
            {"cpu": 0, "memory": 0, GPU: 0}, ("Too many pods",), True, id="zeros ask for nothing"
        ),
    ],
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


@pytest.mark.parametrize(
    ("rule", "requests", "reasons"),
    [
        pytest.param(
            NodeResourcesFit(), {GPU: 1}, (f"Insufficient {GPU}",), id="an extended resource"
        ),
        pytest.param(NodeResourcesFit(frozenset({GPU})), {GPU: 1}, (), id="one that is ignored"),
        pytest.param(
            NodeResourcesFit(frozenset(), frozenset({"example.com"})), {GPU: 1}, (), id="its group"
        ),
        pytest.param(
            NodeResourcesFit(frozenset({"hugepages-2Mi"})),
            {"hugepages-2Mi": 2},
            ("Insufficient hugepages-2Mi",),
            id="huge pages cannot be ignored",
        ),
        pytest.param(
            NodeResourcesFit(frozenset({"cpu"})),
            {"cpu": "5000"},
            ("Insufficient cpu",),
            id="nor can cpu",
        ),
    ],
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


@pytest.mark.parametrize(
    ("rule", "requests", "expected"),
    [
        pytest.param(
            NodeResourcesFitScore(), {"cpu": "1", "memory": 25}, 25, id="least: what is left"
        ),
        pytest.param(
            NodeResourcesFitScore("MostAllocated"),
            {"cpu": "1", "memory": 25},
            75,
            id="most: what is used",
        ),
        pytest.param(
            NodeResourcesFitScore(), {"cpu": "3", "memory": 25}, 12, id="least: too much is 0"
        ),
        pytest.param(
            NodeResourcesFitScore("MostAllocated"),
            {"cpu": "3", "memory": 25},
            87,
            id="most: no more than all",
        ),
        pytest.param(
            NodeResourcesFitScore(resources=(("cpu", 3), ("memory", 1))),
            {"cpu": "1", "memory": 50},
            18,
            id="weights",
        ),
        pytest.param(
            NodeResourcesFitScore(resources=(("cpu", 1), (GPU, 5))),
            {"cpu": "1"},
            25,
            id="a scalar that the pod does not request is left out",
        ),
        pytest.param(
            NodeResourcesFitScore(resources=(("cpu", 1), ("nothing", 5))),
            {"cpu": "1"},
            25,
            id="so is one that the node does not have",
        ),
        pytest.param(
            NodeResourcesFitScore(resources=(("nothing", 5),)), {"cpu": "1"}, 0, id="nothing left"
        ),
        pytest.param(
            NodeResourcesFitScore(resources=(("cpu", 1), (GPU, 1))),
            {"cpu": "1", GPU: 1},
            37,
            id="a scalar counts what is requested on the node",
        ),
    ],
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


@pytest.mark.parametrize(
    ("rule", "requests", "expected"),
    [
        pytest.param(ratio((0, 0), (100, 10)), {"cpu": "333m"}, 33, id="rising"),
        pytest.param(
            ratio((0, 10), (100, 0)), {"cpu": "333m"}, 67, id="falling: 100 - 33, exactly"
        ),
        pytest.param(
            ratio((0, 10), (70, 0)),
            {"cpu": "333m"},
            53,
            id="falling: truncation toward zero rounds up (100 - 47.14)",
        ),
        pytest.param(ratio((20, 3), (40, 9)), {"cpu": "100m"}, 30, id="below the first point"),
        pytest.param(ratio((20, 3), (40, 9)), {"cpu": "900m"}, 90, id="beyond the last point"),
        pytest.param(ratio((20, 3), (40, 9)), {"cpu": "400m"}, 90, id="at a point"),
        pytest.param(ratio((0, 0), (100, 10)), {"cpu": "2"}, 100, id="more than there is"),
        pytest.param(
            ratio((0, 0), (100, 10), cpu=1, memory=1),
            {"cpu": "250m", "memory": 0},
            25,
            id="a resource that scores nothing does not pull the mean down",
        ),
        pytest.param(
            ratio((0, 0), (100, 10), cpu=1, memory=1),
            {"cpu": "250m", "memory": 30},
            28,
            id="a half is rounded up (27.5)",
        ),
        pytest.param(
            ratio((0, 0), (100, 10), cpu=2, memory=1),
            {"cpu": "250m", "memory": 30},
            27,
            id="less than a half is not (26.7 is)",
        ),
        pytest.param(
            ratio((0, 0), (100, 10)), {"cpu": 0, "memory": 0}, 0, id="nothing scored at all"
        ),
    ],
)
def test_ratio(rule: NodeResourcesFitScore, requests: Requests, expected: int) -> None:
    assert scores(rule, pod(requests=requests), node("n", cpu="1", memory=100)) == {"n": expected}


# Balance ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "there", "requests", "expected"),
    [
        pytest.param(("cpu",), {}, {"cpu": "2"}, 75, id="one resource is always even"),
        pytest.param(
            ("cpu", "memory"),
            {},
            {"cpu": "2", "memory": 50},
            75,
            id="two that rise together change nothing",
        ),
        pytest.param(
            ("cpu", "memory"),
            {},
            {"cpu": "4"},
            50,
            id="all of one, none of the other: from 100 to 50",
        ),
        pytest.param(
            ("cpu", "memory"),
            {"cpu": "4"},
            {"memory": 100},
            100,
            id="a skewed node that becomes even: from 50 to 100",
        ),
        pytest.param(
            ("cpu", "memory"), {"cpu": "1"}, {"cpu": "1"}, 69, id="25 to 50 percent apart: 87 to 75"
        ),
        pytest.param(
            ("cpu", "memory"), {"cpu": "4"}, {"cpu": "4"}, 75, id="beyond all there is no more"
        ),
        pytest.param(
            ("cpu", "memory", GPU),
            {},
            {"cpu": "4", "memory": 50, GPU: 1},
            59,
            id="three: 100, 50 and 25 percent deviate by 31.18 in the mean: from 100 to 68",
        ),
        pytest.param(
            ("cpu", "memory", GPU),
            {},
            {"cpu": "4", "memory": 0},
            50,
            id="a scalar that is not requested is left out: two",
        ),
        pytest.param(
            ("cpu", "memory", "ephemeral-storage"),
            {},
            {"cpu": "4"},
            50,
            id="a resource that the node lacks is left out: two",
        ),
    ],
)
def test_how_even(
    resources: tuple[str, ...], there: Requests, requests: Requests, expected: int
) -> None:
    made = node("n", cpu="4", memory=100, resources={GPU: 4})
    placed = pod("there", node="n", requests=there)

    found = scores(NodeResourcesBalancedAllocation(resources), pod(requests=requests), made, placed)

    assert found == {"n": expected}


@pytest.mark.parametrize(
    ("wanted", "scored"),
    [
        pytest.param(pod(), False, id="a pod that requests neither is left out"),
        pytest.param(pod(requests={"cpu": 0}), False, id="so is one that requests nothing of it"),
        pytest.param(pod(requests={GPU: 1}), False, id="or something else"),
        pytest.param(pod(requests={"memory": 1}), True, id="one of the two is enough"),
        pytest.param(
            spec_with(pod(), resources=ResourceRequirements({"cpu": "1"})),
            True,
            id="pod level counts",
        ),
        pytest.param(spec_with(pod(), overhead={"cpu": "1"}), True, id="and overhead"),
        pytest.param(
            pod(containers=[], init=[container({"cpu": "1"})]), True, id="and init containers"
        ),
    ],
)
def test_who_is_scored_for_evenness(wanted: Pod, scored: bool) -> None:
    found = decision(wanted, node("a", resources={GPU: 1}), node("b", resources={GPU: 1}))

    names = [column.name for column in found.scores]
    assert ("NodeResourcesBalancedAllocation" in names) is scored
