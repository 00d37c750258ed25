"""How much a pod requests: sidecars, init containers, pod level, overhead, resizes, floors."""

from __future__ import annotations

from typing import Any

from builders import container, node, pod
from builders_v1_36 import decision, named, sidecar, spec_with, status_with, view
from cases import cases
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


@cases(
    ("containers", "init", "expected"),
    {
        "containers add up": ([cpu("1"), cpu("500m")], [], 1500),
        "an init container runs before all others": ([cpu("1")], [cpu("3")], 3000),
        "one init container at a time": ([cpu("2")], [cpu("1"), cpu("1")], 2000),
        "a sidecar stays": ([cpu("1")], [sidecar(cpu("1"))], 2000),
        "an init container runs beside the sidecars started before it": (
            [cpu("1")],
            [sidecar(cpu("2")), cpu("2")],
            4000,
        ),
        "but not beside those started after it": ([cpu("1")], [cpu("2"), sidecar(cpu("2"))], 3000),
        "the largest moment counts": (
            [cpu("1")],
            [sidecar(cpu("1")), cpu("5"), sidecar(cpu("1")), cpu("3")],
            6000,
        ),
        "rounded up after all is added": ([cpu("0.1m")], [], 1),
        "not each for itself": ([cpu("0.4m"), cpu("0.4m")], [], 1),
    },
)
def test_containers(containers: list[Container], init: list[Container], expected: int) -> None:
    assert total(pod(containers=containers, init=init))["cpu"] == expected


def at_pod_level(made: Pod, **requests: RawQuantity) -> Pod:
    return spec_with(made, resources=ResourceRequirements(requests))


@cases(
    ("level", "expected"),
    {
        "replaces what containers ask for": ({"cpu": "3"}, {"cpu": 3000, "memory": 5}),
        "also by less": ({"cpu": "1"}, {"cpu": 1000, "memory": 5}),
        "only what it names": ({"memory": 9}, {"cpu": 2000, "memory": 9}),
        "other resources are not read there": (
            {"cpu": "1", "example.com/gpu": 4},
            {"cpu": 1000, "memory": 5},
        ),
        "not even if they are all there is": ({"example.com/gpu": 4}, {"cpu": 2000, "memory": 5}),
        "huge pages are": (
            {"hugepages-2Mi": "4Mi"},
            {"cpu": 2000, "memory": 5, "hugepages-2Mi": 4 * MEBI},
        ),
    },
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


@cases(
    ("status", "conditions", "expected"),
    {
        "what it really has, if more": (reported("c", {"cpu": "3"}), [], 3000),
        "what it asks for, if more": (reported("c", {"cpu": "1"}), [], 2000),
        "what it was promised, if more": (reported("c", {"cpu": "1"}, {"cpu": "4"}), [], 4000),
        "a promise without a report is not read": (reported("c", None, {"cpu": "4"}), [], 2000),
        "another container's report": (reported("other", {"cpu": "9"}), [], 2000),
        "a resize that cannot be done does not count": (
            reported("c", {"cpu": "1"}),
            [INFEASIBLE],
            1000,
        ),
        "one that may still happen does": (reported("c", {"cpu": "1"}), [DEFERRED], 2000),
        "nothing is left of it when nothing is reported": (reported("c", {}), [INFEASIBLE], 0),
    },
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


@cases(
    ("made", "expected"),
    {
        "a container that names nothing": (pod(), (100, 200 * MEBI)),
        "each of three": (
            pod(containers=[container(), container(), container()]),
            (300, 600 * MEBI),
        ),
        "nothing is not none": (pod(requests={"cpu": 0}), (0, 200 * MEBI)),
        "an init container alone has defaults too": (
            pod(requests={"cpu": "1"}, init=[container({"cpu": "50m"})]),
            (1000, 200 * MEBI),
        ),
        "where they may be the largest": (
            pod(requests={"cpu": 0, "memory": 0}, init=[container()]),
            (100, 200 * MEBI),
        ),
        "pod level names one of the two": (at_pod_level(pod(), cpu="1"), (1000, 200 * MEBI)),
        "pod level names both": (at_pod_level(pod(), cpu="1", memory=5), (1000, 5)),
        "with pod level, a resource that some container names has no floor anywhere": (
            at_pod_level(pod(containers=[container({"memory": 7}), container()]), cpu="1"),
            (1000, 7),
        ),
        "overhead on top": (spec_with(pod(), overhead={"cpu": "50m"}), (150, 200 * MEBI)),
    },
)
def test_floors_for_scores(made: Pod, expected: tuple[int, int]) -> None:
    assert WholePod().nonzero_requests(made) == expected


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    made = pod(
        containers=[container(ports=[1])],
        init=[sidecar(container(ports=[2])), container(ports=[3])],
    )

    assert [port[2] for port in WholePod().ports(made)] == [1, 2]
