"""How much a pod requests: sidecars, init containers, pod level, overhead, resizes, floors."""

from __future__ import annotations

from typing import Any

import pytest

from builders import container, node, pod
from builders_v1_36 import decision, named, sidecar, spec_with, status_with, view
from podium.engine.state.accounting import WholePod, pod_requests, rounded
from podium.objects.kinds.meta import RawQuantity
from podium.objects.kinds.pod import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    ResourceRequirements,
)

MEBI = 1024 * 1024


def cpu(amount: str | int) -> Container:
    return container({"cpu": amount})


def total(made: Pod, **options: Any) -> dict[str, int]:
    return {name: rounded(name, exact) for name, exact in pod_requests(made, **options).items()}


@pytest.mark.parametrize(
    ("containers", "init", "expected"),
    [
        pytest.param([cpu("1"), cpu("500m")], [], 1500, id="containers add up"),
        pytest.param([cpu("1")], [cpu("3")], 3000, id="an init container runs before all others"),
        pytest.param([cpu("2")], [cpu("1"), cpu("1")], 2000, id="one init container at a time"),
        pytest.param([cpu("1")], [sidecar(cpu("1"))], 2000, id="a sidecar stays"),
        pytest.param(
            [cpu("1")],
            [sidecar(cpu("2")), cpu("2")],
            4000,
            id="an init container runs beside the sidecars started before it",
        ),
        pytest.param(
            [cpu("1")],
            [cpu("2"), sidecar(cpu("2"))],
            3000,
            id="but not beside those started after it",
        ),
        pytest.param(
            [cpu("1")],
            [sidecar(cpu("1")), cpu("5"), sidecar(cpu("1")), cpu("3")],
            6000,
            id="the largest moment counts",
        ),
        pytest.param([cpu("0.1m")], [], 1, id="rounded up after all is added"),
        pytest.param([cpu("0.4m"), cpu("0.4m")], [], 1, id="not each for itself"),
    ],
)
def test_containers(containers: list[Container], init: list[Container], expected: int) -> None:
    assert total(pod(containers=containers, init=init))["cpu"] == expected


def at_pod_level(made: Pod, **requests: RawQuantity) -> Pod:
    return spec_with(made, resources=ResourceRequirements(requests))


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(
            {"cpu": "3"}, {"cpu": 3000, "memory": 5}, id="replaces what containers ask for"
        ),
        pytest.param({"cpu": "1"}, {"cpu": 1000, "memory": 5}, id="also by less"),
        pytest.param({"memory": 9}, {"cpu": 2000, "memory": 9}, id="only what it names"),
        pytest.param(
            {"cpu": "1", "example.com/gpu": 4},
            {"cpu": 1000, "memory": 5},
            id="other resources are not read there",
        ),
        pytest.param(
            {"example.com/gpu": 4},
            {"cpu": 2000, "memory": 5},
            id="not even if they are all there is",
        ),
        pytest.param(
            {"hugepages-2Mi": "4Mi"},
            {"cpu": 2000, "memory": 5, "hugepages-2Mi": 4 * MEBI},
            id="huge pages are",
        ),
    ],
)
def test_pod_level_requests(level: dict[str, Any], expected: dict[str, int]) -> None:
    made = spec_with(
        pod(containers=[container({"cpu": "2", "memory": 5})]),
        resources=ResourceRequirements(level),
    )

    assert total(made) == expected
    assert total(made, pod_level=False) == {"cpu": 2000, "memory": 5}


def test_overhead_comes_on_top_of_everything() -> None:
    made = spec_with(
        at_pod_level(pod(requests={"cpu": "2"}), cpu="1"), overhead={"cpu": "250m", "x/y": 1}
    )

    assert total(made) == {"cpu": 1250, "x/y": 1}


def test_limits_are_never_read() -> None:
    assert total(pod(limits={"cpu": "4"})) == {}


def reported(
    name: str, actual: dict[str, Any] | None, allocated: dict[str, Any] | None = None
) -> ContainerStatus:
    resources = ResourceRequirements(actual) if actual is not None else None
    return ContainerStatus(name, resources, allocated)


INFEASIBLE = PodCondition("PodResizePending", "True", "Infeasible")
DEFERRED = PodCondition("PodResizePending", "True", "Deferred")


@pytest.mark.parametrize(
    ("status", "conditions", "expected"),
    [
        pytest.param(reported("c", {"cpu": "3"}), [], 3000, id="what it really has, if more"),
        pytest.param(reported("c", {"cpu": "1"}), [], 2000, id="what it asks for, if more"),
        pytest.param(
            reported("c", {"cpu": "1"}, {"cpu": "4"}), [], 4000, id="what it was promised, if more"
        ),
        pytest.param(
            reported("c", None, {"cpu": "4"}),
            [],
            2000,
            id="a promise without a report is not read",
        ),
        pytest.param(reported("other", {"cpu": "9"}), [], 2000, id="another container's report"),
        pytest.param(
            reported("c", {"cpu": "1"}),
            [INFEASIBLE],
            1000,
            id="a resize that cannot be done does not count",
        ),
        pytest.param(
            reported("c", {"cpu": "1"}), [DEFERRED], 2000, id="one that may still happen does"
        ),
        pytest.param(
            reported("c", {}), [INFEASIBLE], 0, id="nothing is left of it when nothing is reported"
        ),
    ],
)
def test_a_resized_pod_on_a_node(
    status: ContainerStatus, conditions: list[PodCondition], expected: int
) -> None:
    made = status_with(
        pod(containers=[named(cpu("2"), "c")]), container_statuses=[status], conditions=conditions
    )

    assert total(made, status=True).get("cpu", 0) == expected
    assert total(made)["cpu"] == 2000, "what it must find free is what it asks for"


def test_a_resized_sidecar_counts_like_a_container_but_an_init_container_does_not() -> None:
    made = status_with(
        pod(
            containers=[cpu("1")],
            init=[sidecar(named(cpu("1"), "stays")), named(cpu("1"), "goes")],
        ),
        init_container_statuses=[reported("stays", {"cpu": "3"}), reported("goes", {"cpu": "9"})],
    )

    assert total(made, status=True)["cpu"] == 4000


def test_a_resize_at_pod_level() -> None:
    made = status_with(
        at_pod_level(pod(requests={"cpu": "1"}), cpu="2"),
        resources=ResourceRequirements({"cpu": "3"}),
        allocated_resources={"cpu": "4"},
    )

    assert total(made, status=True)["cpu"] == 4000
    assert total(made)["cpu"] == 2000


def test_what_pods_on_the_node_really_have_is_what_is_taken() -> None:
    grown = status_with(
        pod("grown", node="n", containers=[named(cpu("1"), "c")]),
        container_statuses=[reported("c", {"cpu": "3"})],
    )

    assert decision(pod(requests={"cpu": "1"}), node("n", cpu="4"), grown).node == "n"
    assert decision(pod(requests={"cpu": "2"}), node("n", cpu="4"), grown).node is None


def test_resized_pods_are_not_taken_for_others_of_their_kind() -> None:
    plain = pod("plain", node="n", containers=[named(cpu("1"), "c")])
    grown = status_with(
        pod("grown", node="n", containers=[named(cpu("1"), "c")]),
        container_statuses=[reported("c", {"cpu": "3"})],
    )
    hopeless = status_with(grown, conditions=[INFEASIBLE])

    columns = view(node("n"), plain, grown)
    assert columns.pods.requested[0][columns.nodes.row_of["n"]] == 4000
    assert columns.pods.incoming(hopeless).cls is not columns.pods.incoming(grown).cls


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(pod(), (100, 200 * MEBI), id="a container that names nothing"),
        pytest.param(
            pod(containers=[container(), container(), container()]),
            (300, 600 * MEBI),
            id="each of three",
        ),
        pytest.param(pod(requests={"cpu": 0}), (0, 200 * MEBI), id="nothing is not none"),
        pytest.param(
            pod(requests={"cpu": "1"}, init=[container({"cpu": "50m"})]),
            (1000, 200 * MEBI),
            id="an init container alone has defaults too",
        ),
        pytest.param(
            pod(requests={"cpu": 0, "memory": 0}, init=[container()]),
            (100, 200 * MEBI),
            id="where they may be the largest",
        ),
        pytest.param(
            at_pod_level(pod(), cpu="1"), (1000, 200 * MEBI), id="pod level names one of the two"
        ),
        pytest.param(at_pod_level(pod(), cpu="1", memory=5), (1000, 5), id="pod level names both"),
        pytest.param(
            at_pod_level(pod(containers=[container({"memory": 7}), container()]), cpu="1"),
            (1000, 7),
            id="with pod level, a resource that some container names has no floor anywhere",
        ),
        pytest.param(
            spec_with(pod(), overhead={"cpu": "50m"}), (150, 200 * MEBI), id="overhead on top"
        ),
    ],
)
def test_floors_for_scores(made: Pod, expected: tuple[int, int]) -> None:
    assert WholePod().nonzero_requests(made) == expected


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    made = pod(
        containers=[container(ports=[1])],
        init=[sidecar(container(ports=[2])), container(ports=[3])],
    )

    assert [port[2] for port in WholePod().ports(made)] == [1, 2]
