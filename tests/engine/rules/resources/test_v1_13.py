"""Resources, host ports, disks and volumes: what fits next to what is already there."""

from __future__ import annotations

import pytest

from builders import (
    PortLike,
    Said,
    azure,
    claim,
    claim_volume,
    container,
    decided,
    ebs,
    gce,
    iscsi,
    judged,
    node,
    pod,
    profile,
    rbd,
    simulation,
    view,
    volume,
)
from podium.engine.rules.ports.v1_13 import PodFitsHostPorts
from podium.engine.rules.resources.v1_13 import GeneralPredicates, PodFitsResources
from podium.engine.rules.volumes.conflicts.v1_13 import NoDiskConflict
from podium.engine.rules.volumes.limits.v1_13 import (
    Azure,
    Ebs,
    GcePd,
    MaxCSIVolumeCount,
    MaxVolumeCount,
    csi_limit_name,
)
from podium.objects.kinds.pod import Pod, Volume

GPU = "example.com/gpu"
BIG = 1 << 62


def short_of(*names: str) -> tuple[str, ...]:
    return tuple(f"Insufficient {name}" for name in names)


# Resources ----------------------------------------------------------------------------------------


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


# Wrap-around --------------------------------------------------------------------------------------


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


# Host ports ---------------------------------------------------------------------------------------

PORTS = ("node(s) didn't have free ports for the requested pod ports",)
ANY = "0.0.0.0"  # noqa: S104  nothing is bound
ONE, TWO = "10.0.0.1", "10.0.0.2"


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param([], [80], True, id="a free port"),
        pytest.param([80], [], True, id="no port wanted"),
        pytest.param([80], [80], False, id="the same port"),
        pytest.param([80], [81], True, id="another port"),
        pytest.param([80], [81, 80], False, id="one of several"),
        pytest.param([80], [("", "UDP", 80)], True, id="another protocol"),
        pytest.param([80], [("", "TCP", 80)], False, id="TCP is the default"),
        pytest.param([(ONE, "", 80)], [(TWO, "", 80)], True, id="another address"),
        pytest.param([(ONE, "", 80)], [(ONE, "", 80)], False, id="the same address"),
        pytest.param([(ONE, "", 80)], [80], False, id="all addresses are wanted"),
        pytest.param([80], [(ONE, "", 80)], False, id="all addresses are used"),
        pytest.param([(ANY, "TCP", 80)], [(TWO, "TCP", 80)], False, id="the wildcard by name"),
        pytest.param([0, -1], [0, -1], True, id="numbers below one are no ports"),
    ],
)
def test_host_ports(used: list[PortLike], wanted: list[PortLike], fits: bool) -> None:
    columns = view(node("n"), pod("x", node="n", ports=used))

    assert judged(PodFitsHostPorts(), pod(ports=wanted), columns)["n"] == (() if fits else PORTS)


def test_ports_of_one_pod_do_not_conflict_and_init_containers_have_none() -> None:
    columns = view(node("n"), pod("x", node="n", init=[container(ports=[80])]))

    assert judged(PodFitsHostPorts(), pod(ports=[80, 80]), columns)["n"] == ()


def test_used_ports_are_a_set() -> None:
    # Two pods hold the port (somebody placed them so); when one leaves, the port is free.
    columns = view(node("n"), pod("x", node="n", ports=[80]), pod("y", node="n", ports=[80]))

    columns.remove_pod("default/x")
    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns)["n"] == ()

    columns.remove_pod("default/y")
    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns)["n"] == ()


def test_a_port_freed_by_one_of_two_stays_used_elsewhere() -> None:
    columns = view(
        node("n"),
        node("m"),
        pod("x", node="n", ports=[80]),
        pod("y", node="n", ports=[80]),
        pod("z", node="m", ports=[80]),
    )

    columns.remove_pod("default/x")

    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns) == {"n": (), "m": PORTS}


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


# Disks --------------------------------------------------------------------------------------------

DISK = ("node(s) had no available disk",)


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param(gce("d"), gce("d"), False, id="a disk is used once"),
        pytest.param(gce("d", read_only=True), gce("d", read_only=True), True, id="or read by all"),
        pytest.param(gce("d", read_only=True), gce("d"), False, id="but not written by one"),
        pytest.param(gce("d"), gce("e"), True, id="another disk"),
        pytest.param(
            ebs("d", read_only=True), ebs("d", read_only=True), False, id="EBS never shares"
        ),
        pytest.param(gce("d"), ebs("d"), True, id="names of different kinds differ"),
        pytest.param(iscsi("q"), iscsi("q"), False, id="one iSCSI target, one user"),
        pytest.param(
            iscsi("q", read_only=True), iscsi("q", read_only=True), True, id="or readers only"
        ),
        pytest.param(
            rbd("m1", "m2", image="i"), rbd("m2", "m3", image="i"), False, id="monitors overlap"
        ),
        pytest.param(rbd("m1", image="i"), rbd("m2", image="i"), True, id="monitors do not"),
        pytest.param(
            rbd("m", image="i"), rbd("m", image="i", pool="other"), True, id="another pool"
        ),
        pytest.param(rbd("m", image="i"), rbd("m", image="j"), True, id="another image"),
        pytest.param(
            rbd("m", image="i", read_only=True),
            rbd("m", image="i", read_only=True),
            True,
            id="an image that all only read",
        ),
        pytest.param(azure("d"), azure("d"), True, id="other disks are not looked at"),
    ],
)
def test_disk_conflicts(used: Volume, wanted: Volume, fits: bool) -> None:
    columns = view(node("n"), pod("x", node="n", volumes=[used]))

    found = judged(NoDiskConflict(), pod(volumes=[wanted]), columns)

    assert found["n"] == (() if fits else DISK)


# Volume counts ------------------------------------------------------------------------------------

COUNT = ("node(s) exceed max volume count",)
TYPE = "beta.kubernetes.io/instance-type"


@pytest.mark.parametrize(
    ("labels", "resources", "operator", "limit"),
    [
        pytest.param({}, {}, None, 39, id="the general limit"),
        pytest.param({TYPE: "m4.large"}, {}, None, 39, id="an older machine"),
        pytest.param({TYPE: "m5.large"}, {}, None, 25, id="a newer machine"),
        pytest.param({TYPE: "z1d"}, {}, None, 25, id="another newer machine"),
        pytest.param({TYPE: "not3"}, {}, None, 25, id="t3 anywhere in the name"),
        pytest.param({TYPE: "xm5"}, {}, None, 39, id="the first part is anchored"),
        pytest.param({TYPE: "m5"}, {}, 3, 3, id="the operator's limit is stronger"),
        pytest.param(
            {TYPE: "m5"}, {"attachable-volumes-aws-ebs": 2}, 3, 2, id="the node's strongest"
        ),
        pytest.param(
            {}, {"attachable-volumes-gce-pd": 2}, None, 39, id="of another kind: no matter"
        ),
        pytest.param({}, {"attachable-volumes-aws-ebs": 0}, None, 0, id="none at all"),
        pytest.param({}, {}, 0, 39, id="an operator's limit of zero is no limit"),
    ],
)
def test_how_many_ebs_volumes(
    labels: dict[str, str], resources: dict[str, int], operator: int | None, limit: int
) -> None:
    columns = view(node("n", labels=labels, resources=resources))
    rule = MaxVolumeCount("MaxEBSVolumeCount", Ebs(), limit=operator)

    enough = pod(volumes=[ebs(f"v{i}") for i in range(limit)])
    many = pod(volumes=[ebs(f"v{i}") for i in range(limit + 1)])

    assert judged(rule, enough, columns)["n"] == ()
    assert judged(rule, many, columns)["n"] == COUNT


@pytest.mark.parametrize("disk", [GcePd(), Azure()], ids=["GCE", "Azure"])
def test_other_disks_have_sixteen(disk: GcePd | Azure) -> None:
    make = gce if isinstance(disk, GcePd) else azure
    rule = MaxVolumeCount("MaxVolumeCount", disk)
    columns = view(node("n", labels={TYPE: "m5"}))

    assert judged(rule, pod(volumes=[make(f"v{i}") for i in range(16)]), columns)["n"] == ()
    assert judged(rule, pod(volumes=[make(f"v{i}") for i in range(17)]), columns)["n"] == COUNT


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param([ebs("a")], [ebs("b")], True, id="two of two"),
        pytest.param([ebs("a"), ebs("c")], [ebs("b")], False, id="three of two"),
        pytest.param([ebs("a"), ebs("c")], [ebs("a")], True, id="one that is there already"),
        pytest.param([ebs("a"), ebs("c")], [gce("b")], True, id="another kind of disk"),
        pytest.param(
            [ebs("a"), ebs("b"), ebs("c")], [gce("b")], True, id="a node that is over its limit"
        ),
        pytest.param([ebs("a"), ebs("b"), ebs("c")], [ebs("a")], False, id="takes nothing again"),
        pytest.param([ebs("a")], [claim_volume("bound")], True, id="a claim for a disk"),
        pytest.param(
            [ebs("a"), ebs("disk")], [claim_volume("bound")], True, id="the same disk by its id"
        ),
        pytest.param(
            [ebs("a"), ebs("c")], [claim_volume("other")], True, id="a claim for another kind"
        ),
        pytest.param(
            [ebs("a"), ebs("c")], [claim_volume("unknown")], False, id="an unknown claim counts"
        ),
        pytest.param(
            [ebs("a"), ebs("c")], [claim_volume("unbound")], False, id="so does an unbound one"
        ),
        pytest.param(
            [ebs("a"), ebs("c")], [claim_volume("lost")], False, id="or one whose volume is lost"
        ),
        pytest.param(
            [ebs("a"), claim_volume("unknown")],
            [claim_volume("unknown")],
            True,
            id="but the same unknown claim only once",
        ),
    ],
)
def test_counting_volumes(used: list[Volume], wanted: list[Volume], fits: bool) -> None:
    columns = view(
        node("n"),
        pod("x", node="n", volumes=used),
        volume("pv", source=ebs("disk")),
        volume("gce", source=gce("disk")),
        claim("bound", volume="pv"),
        claim("other", volume="gce"),
        claim("unbound"),
        claim("lost", volume="gone"),
    )
    rule = MaxVolumeCount("MaxEBSVolumeCount", Ebs(), limit=2)

    assert judged(rule, pod(volumes=wanted), columns)["n"] == (() if fits else COUNT)


def test_a_claim_without_a_name_is_an_error_on_either_side() -> None:
    rule = MaxVolumeCount("MaxEBSVolumeCount", Ebs())
    text = "PersistentVolumeClaim had no name"
    columns = view(node("a"), node("b"), pod("x", node="a", volumes=[claim_volume("")]))

    assert judged(rule, pod(volumes=[claim_volume("")]), columns) == {"a": text, "b": text}
    assert judged(rule, pod(volumes=[ebs("v")]), columns) == {"a": text, "b": ()}
    assert judged(rule, pod(volumes=[gce("v")]), columns) == {"a": (), "b": ()}


DRIVER = "csi.example.com"
LIMIT = {csi_limit_name(DRIVER): 1}


@pytest.mark.parametrize(
    ("used", "wanted", "limits", "fits"),
    [
        pytest.param(["one"], ["two"], {}, True, id="no limits, any number"),
        pytest.param([], ["one"], LIMIT, True, id="up to the limit"),
        pytest.param(["one"], ["two"], LIMIT, False, id="beyond it"),
        pytest.param(["one"], ["one"], LIMIT, True, id="the same handle again"),
        pytest.param([], ["one", "two"], LIMIT, False, id="two of one pod"),
        pytest.param(["one"], ["other"], LIMIT, True, id="another driver"),
        pytest.param(["one"], ["twin"], LIMIT, True, id="equal handles of two drivers are one"),
        pytest.param(["one"], ["unbound"], LIMIT, True, id="unbound claims are skipped"),
        pytest.param(["one"], ["unknown"], LIMIT, True, id="so are unknown ones"),
        pytest.param(["one"], ["two"], {"attachable-volumes-x": 0}, True, id="another limit"),
    ],
)
def test_counting_csi_volumes(
    used: list[str], wanted: list[str], limits: dict[str, int], fits: bool
) -> None:
    columns = view(
        node("n", resources=limits),
        pod("x", node="n", volumes=[claim_volume(name) for name in used]),
        *(volume(name, csi=(DRIVER, name)) for name in ("one", "two")),
        volume("other", csi=("other.example.com", "other")),
        volume("twin", csi=("other.example.com", "one")),
        *(claim(name, volume=name) for name in ("one", "two", "other", "twin")),
        claim("unbound"),
    )

    found = judged(MaxCSIVolumeCount(), pod(volumes=[claim_volume(n) for n in wanted]), columns)

    assert found["n"] == (() if fits else COUNT)


def test_a_long_driver_name_is_shortened_by_its_hash() -> None:
    assert csi_limit_name("short") == "attachable-volumes-csi-short"
    assert csi_limit_name("d" * 39) == "attachable-volumes-csi-" + "d" * 39
    assert csi_limit_name("d" * 40) == "attachable-volumes-csi-" + "d" * 23 + "4e99f0e6374ba7bf"


# Always checking everything -----------------------------------------------------------------------


def test_all_predicates_are_merged_when_asked_for() -> None:
    columns = view(
        node("a", cpu=0, unschedulable=True),
        node("b", cpu=0),
        pod("x", node="b", volumes=[gce("d")]),
    )
    wanted = pod(requests={"cpu": 1}, volumes=[gce("d")])

    short = decided(columns, wanted, profile())
    whole = decided(columns, wanted, profile(always_check_all=True))

    assert short.failed() == {"a": ["node(s) were unschedulable"], "b": ["Insufficient cpu"]}
    assert whole.failed() == {
        "a": ["node(s) were unschedulable", "Insufficient cpu"],
        "b": ["Insufficient cpu", *DISK],
    }
    assert whole.message == (
        "0/2 nodes are available: 1 node(s) had no available disk, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_one_incurable_reason_among_many_rules_preemption_out() -> None:
    low = pod("low", node="a", requests={"cpu": 1}, priority=0)
    columns = view(node("a", cpu=1, unschedulable=True), low)
    wanted = pod(requests={"cpu": 1}, priority=1)

    whole = decided(columns, wanted, profile(GeneralPredicates(), always_check_all=True))
    assert whole.preemption is not None
    assert whole.preemption.potential == ("a",)

    whole = decided(columns, wanted, profile(always_check_all=True))
    assert whole.preemption is not None
    assert whole.preemption.potential == ()


def test_a_placed_pod_is_there_for_the_next_one() -> None:
    made = simulation(node("n", cpu=1))

    steps = list(made.run([pod("a", requests={"cpu": 1}), pod("b", requests={"cpu": 1})]))

    assert [step.decision.node for step in steps] == ["n", None]
