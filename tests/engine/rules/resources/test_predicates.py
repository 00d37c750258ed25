"""v1.13 rules on resources: what fits, and utilization."""

from __future__ import annotations

import pytest

from builders import (
    BROKEN,
    Said,
    container,
    judged,
    node,
    pod,
    scored,
    term,
    view,
)
from podium.engine.rows.rows import ManyRows, OneRow, as_array
from podium.engine.rules.resources.predicates import (
    BalancedResourceAllocation,
    GeneralPredicates,
    LeastRequestedPriority,
    MostRequestedPriority,
    PodFitsResources,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.objects.kinds.pod import Pod

GPU = "example.com/gpu"
BIG = 1 << 62


def short_of(*names: str) -> tuple[str, ...]:
    return tuple(f"Insufficient {name}" for name in names)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(), (), id="a pod that wants nothing needs only a place"),
        pytest.param(pod(requests={"cpu": 2, "memory": 10}), (), id="an exact fit"),
        pytest.param(pod(requests={"cpu": "2001m"}), short_of("cpu"), id="one thousandth too many"),
        pytest.param(
            pod(requests={"cpu": 3, "memory": 11, "ephemeral-storage": 1, GPU: 2}),
            short_of("cpu", "memory", "ephemeral-storage", GPU),
            id="everything that falls short is reported",
        ),
        pytest.param(
            pod(requests={"example.com/z": 1, "example.com/a": 1}),
            short_of("example.com/a", "example.com/z"),
            id="other resources are reported by name",
        ),
        pytest.param(
            pod(requests={"cpu": 1}, init=[container({"cpu": 3})]),
            short_of("cpu"),
            id="the largest init container counts",
        ),
        pytest.param(
            pod(
                containers=[container({"cpu": 1}), container({"cpu": 1})],
                init=[container({"cpu": 2})],
            ),
            (),
            id="as a maximum, not in addition",
        ),
        pytest.param(
            pod(containers=[container({"cpu": "1.5"}), container({"cpu": 1})]),
            short_of("cpu"),
            id="containers add up",
        ),
        pytest.param(
            pod(requests={"storage": 100, "requests.example.com/x": 100}),
            (),
            id="names that are no resources of a node are ignored",
        ),
        pytest.param(
            pod(requests={"notkubernetes.io/x": 1}),
            short_of("notkubernetes.io/x"),
            id="a name that only contains the native prefix is counted",
        ),
    ],
)
def test_resources(wanted: Pod, expected: Said) -> None:
    columns = view(
        node("n", cpu=4, memory=30, resources={GPU: 1}),
        pod("x", node="n", requests={"cpu": 2, "memory": 20}),
    )

    assert judged(PodFitsResources(), wanted, columns)["n"] == expected


def test_what_runs_counts_its_regular_containers_only() -> None:
    running = pod(
        "x", node="n", requests={"cpu": 1}, limits={"cpu": 4}, init=[container({"cpu": 4})]
    )
    columns = view(node("n", cpu=4), running)

    assert judged(PodFitsResources(), pod(requests={"cpu": 3}), columns)["n"] == ()
    assert judged(PodFitsResources(), pod(requests={"cpu": "3001m"}), columns)["n"] == short_of(
        "cpu"
    )


def test_an_overcommitted_node_rejects_what_wants_anything() -> None:
    columns = view(node("n", cpu=1), pod("x", node="n", requests={"cpu": 2}))

    assert judged(PodFitsResources(), pod(), columns)["n"] == ()
    assert judged(PodFitsResources(), pod(requests={"cpu": 0}), columns)["n"] == ()
    assert judged(PodFitsResources(), pod(requests={"memory": 1}), columns)["n"] == short_of("cpu")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(requests={GPU: 0}), short_of("cpu"), id="a container that names it"),
        pytest.param(pod(init=[container({GPU: 0})]), (), id="an init container does not"),
    ],
)
def test_naming_a_resource_with_zero_is_wanting_something(wanted: Pod, expected: Said) -> None:
    columns = view(node("n", cpu=1), pod("x", node="n", requests={"cpu": 2}))

    assert judged(PodFitsResources(), wanted, columns)["n"] == expected


def test_places_for_pods() -> None:
    columns = view(
        node("full", pods=1),
        node("room", pods=2),
        node("none", pods=None),
        pod("x", node="full"),
        pod("y", node="room", terminating=True),
    )

    found = judged(PodFitsResources(), pod(), columns)

    assert found == {"full": short_of("pods"), "room": (), "none": short_of("pods")}


def test_finished_pods_are_invisible() -> None:
    columns = view(node("n", pods=1), pod("x", node="n", phase="Succeeded"))

    assert judged(PodFitsResources(), pod(), columns)["n"] == ()


@pytest.mark.parametrize(
    ("used", "wanted", "expected"),
    [
        pytest.param([BIG], BIG - 1, short_of("memory"), id="up to the largest number"),
        pytest.param([BIG], BIG, (), id="beyond it the sum is negative, and fits"),
        pytest.param([BIG, BIG], 1, (), id="what runs may be negative already"),
        pytest.param([BIG, BIG, BIG, BIG], 1, (), id="four times a quarter is nothing"),
        pytest.param([BIG - 1], BIG, short_of("memory"), id="just below the wrap"),
    ],
)
def test_sums_wrap_at_64_bits(used: list[int], wanted: int, expected: Said) -> None:
    columns = view(
        node("n", memory=BIG),
        *(pod(f"x{i}", node="n", requests={"memory": size}) for i, size in enumerate(used)),
    )

    assert judged(PodFitsResources(), pod(requests={"memory": wanted}), columns)["n"] == expected


PORTS = ("node(s) didn't have free ports for the requested pod ports",)


def test_the_basics_report_all_four_together() -> None:
    columns = view(
        node("n", cpu=0, pods=0),
        pod("x", node="n", ports=[80]),
    )
    wanted = pod(node="elsewhere", requests={"cpu": 1}, ports=[80], node_selector={"x": "y"})

    assert judged(GeneralPredicates(), wanted, columns)["n"] == (
        *short_of("pods", "cpu"),
        "node(s) didn't match the requested hostname",
        *PORTS,
        "node(s) didn't match node selector",
    )


FITS = ()
A = node("a", labels={"zone": "1", "rack": "r1", "disk": "ssd"})
STRANGER = pod("stranger", node="ghost")
IGNORING = PodFitsResources(ignored=frozenset({"example.com/gpu", "hugepages-2Mi"}))
NO_GPU = ("Insufficient example.com/gpu",)


@pytest.mark.parametrize(
    ("others", "wanted", "expected"),
    [
        pytest.param([], pod(requests={"example.com/gpu": 1}), FITS, id="left to the extender"),
        pytest.param(
            [],
            pod(requests={"hugepages-2Mi": "2Mi"}),
            ("Insufficient hugepages-2Mi",),
            id="only extended resources can be left to it",
        ),
        pytest.param(
            [STRANGER],
            pod(requests={"example.com/gpu": 1}),
            NO_GPU,
            id="checked after all next to a pod on an unknown node",
        ),
        pytest.param(
            [pod("x", node="a")],
            pod(requests={"example.com/gpu": 1}, anti=[term(BROKEN)]),
            NO_GPU,
            id="checked after all when the pod's own selector is invalid",
        ),
        pytest.param(
            [pod("x", node="a", anti=[term(BROKEN)])],
            pod(requests={"example.com/gpu": 1}),
            NO_GPU,
            id="checked after all when the selector of a placed pod is invalid",
        ),
    ],
)
def test_resources_left_to_an_extender(others: list[Pod], wanted: Pod, expected: Said) -> None:
    assert judged(IGNORING, wanted, view(A, *others))["a"] == expected


MEBIBYTE = 1 << 20
Shape = tuple[tuple[int, int], ...]
FALLING: Shape = ((0, 10), (100, 0))


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
    wanted = columns.pods.incoming(pod(requests={"cpu": 0, "memory": 0}))
    rule = BalancedResourceAllocation()

    assert as_array(rule.score(wanted, ManyRows(columns, columns.nodes.order))).tolist() == [
        -(2**63)
    ]
    assert rule.score(wanted, OneRow(columns, int(columns.nodes.order[0]))) == -(2**63)


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
