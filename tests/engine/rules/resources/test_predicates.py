"""v1.13 rules on resources: what fits, and utilization."""

from __future__ import annotations

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
from cases import cases
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


@cases(
    ("wanted", "expected"),
    {
        "a pod that wants nothing needs only a place": (pod(), ()),
        "an exact fit": (pod(requests={"cpu": 2, "memory": 10}), ()),
        "one thousandth too many": (pod(requests={"cpu": "2001m"}), short_of("cpu")),
        "everything that falls short is reported": (
            pod(requests={"cpu": 3, "memory": 11, "ephemeral-storage": 1, GPU: 2}),
            short_of("cpu", "memory", "ephemeral-storage", GPU),
        ),
        "other resources are reported by name": (
            pod(requests={"example.com/z": 1, "example.com/a": 1}),
            short_of("example.com/a", "example.com/z"),
        ),
        "the largest init container counts": (
            pod(requests={"cpu": 1}, init=[container({"cpu": 3})]),
            short_of("cpu"),
        ),
        "as a maximum, not in addition": (
            pod(
                containers=[container({"cpu": 1}), container({"cpu": 1})],
                init=[container({"cpu": 2})],
            ),
            (),
        ),
        "containers add up": (
            pod(containers=[container({"cpu": "1.5"}), container({"cpu": 1})]),
            short_of("cpu"),
        ),
        "names that are no resources of a node are ignored": (
            pod(requests={"storage": 100, "requests.example.com/x": 100}),
            (),
        ),
        "a name that only contains the native prefix is counted": (
            pod(requests={"notkubernetes.io/x": 1}),
            short_of("notkubernetes.io/x"),
        ),
    },
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


@cases(
    ("wanted", "expected"),
    {
        "a container that names it": (pod(requests={GPU: 0}), short_of("cpu")),
        "an init container does not": (pod(init=[container({GPU: 0})]), ()),
    },
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


@cases(
    ("used", "wanted", "expected"),
    {
        "up to the largest number": ([BIG], BIG - 1, short_of("memory")),
        "beyond it the sum is negative, and fits": ([BIG], BIG, ()),
        "what runs may be negative already": ([BIG, BIG], 1, ()),
        "four times a quarter is nothing": ([BIG, BIG, BIG, BIG], 1, ()),
        "just below the wrap": ([BIG - 1], BIG, short_of("memory")),
    },
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


@cases(
    ("others", "wanted", "expected"),
    {
        "left to the extender": ([], pod(requests={"example.com/gpu": 1}), FITS),
        "only extended resources can be left to it": (
            [],
            pod(requests={"hugepages-2Mi": "2Mi"}),
            ("Insufficient hugepages-2Mi",),
        ),
        "checked after all next to a pod on an unknown node": (
            [STRANGER],
            pod(requests={"example.com/gpu": 1}),
            NO_GPU,
        ),
        "checked after all when the pod's own selector is invalid": (
            [pod("x", node="a")],
            pod(requests={"example.com/gpu": 1}, anti=[term(BROKEN)]),
            NO_GPU,
        ),
        "checked after all when the selector of a placed pod is invalid": (
            [pod("x", node="a", anti=[term(BROKEN)])],
            pod(requests={"example.com/gpu": 1}),
            NO_GPU,
        ),
    },
)
def test_resources_left_to_an_extender(others: list[Pod], wanted: Pod, expected: Said) -> None:
    assert judged(IGNORING, wanted, view(A, *others))["a"] == expected


MEBIBYTE = 1 << 20
Shape = tuple[tuple[int, int], ...]
FALLING: Shape = ((0, 10), (100, 0))


@cases(
    ("cpu", "memory", "expected"),
    {
        "the worked value": ("3", 5000, (3, 6, 7, 4)),
        "an explicit zero stays zero": ("0", 0, (10, 0, 10, 10)),
        "full": ("4", 10000, (0, 10, 0, 0)),
        "more than there is of one": ("5", 0, (5, 0, 0, 5)),
        "half of one, all of the other": ("2", 10000, (2, 7, 0, 2)),
        "five percent": ("200m", 500, (9, 0, 10, 10)),
    },
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


@cases(
    ("shape", "used", "expected"),
    {
        "empty": (FALLING, 0, 10),
        "truncation toward zero rounds up on the way down": (FALLING, 5, 10),
        "a tenth": (FALLING, 10, 9),
        "a bit more": (FALLING, 11, 9),
        "half": (FALLING, 50, 5),
        "full": (FALLING, 100, 0),
        "on the way up it rounds down": (((0, 0), (100, 10)), 5, 0),
        "nearly full": (((0, 0), (100, 10)), 99, 9),
        "before the first point its score holds": (((30, 2), (60, 8)), 10, 2),
        "at the first point": (((30, 2), (60, 8)), 30, 2),
        "a little after": (((30, 2), (60, 8)), 31, 2),
        "in the middle": (((30, 2), (60, 8)), 45, 5),
        "at the last point": (((30, 2), (60, 8)), 60, 8),
        "after the last point its score holds": (((30, 2), (60, 8)), 90, 8),
        "a single point is a constant": (((50, 7),), 10, 7),
        "on both sides": (((50, 7),), 90, 7),
        "up": (((0, 0), (50, 10), (100, 0)), 25, 5),
        "to the top": (((0, 0), (50, 10), (100, 0)), 50, 10),
        "and down, rounded up": (((0, 0), (50, 10), (100, 0)), 51, 10),
        "again": (((0, 0), (50, 10), (100, 0)), 75, 5),
        "more than full counts as full": (((0, 0), (50, 10), (100, 0)), 101, 0),
    },
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


@cases(
    ("limits", "init", "expected"),
    {
        "no limits": ({}, {}, 0),
        "cpu that is there": ({"cpu": 4}, {}, 1),
        "cpu that is not": ({"cpu": 5}, {}, 0),
        "one of the two is enough": ({"cpu": 5, "memory": 1}, {}, 1),
        "zero is no limit": ({"cpu": 0, "memory": 0}, {}, 0),
        "the largest init container counts": ({"cpu": 1}, {"cpu": 5}, 0),
        "even alone": ({}, {"cpu": 4}, 1),
    },
)
def test_limits(limits: dict[str, int], init: dict[str, int], expected: int) -> None:
    wanted = pod(limits=limits, init=[container(limits=init)])
    rule = ResourceLimitsPriority()

    assert scored(rule, wanted, view(node("n", cpu=4, memory=10)))["n"] == expected
    assert scored(rule, wanted, view(node("n", cpu=0, memory=0)))["n"] == 0
