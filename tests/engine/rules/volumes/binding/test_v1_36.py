"""Volumes: claims for one pod at a time, limits, zones, binding."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import (
    claim,
    claim_volume,
    ebs,
    expression,
    gce,
    iscsi,
    node,
    node_term,
    pod,
    rbd,
    selector,
    storage_class,
    volume,
)
from builders_v1_36 import (
    HOST,
    ZONE,
    attachment,
    csi_capacity,
    csi_driver,
    csi_node,
    current,
    decision,
    exclusive,
    judged,
)
from podium.engine.rules.volumes.binding.v1_36 import VolumeBinding
from podium.engine.rules.volumes.conflicts.v1_36 import VolumeRestrictions
from podium.engine.rules.volumes.limits.v1_36 import NodeVolumeLimits
from podium.engine.rules.volumes.zones.v1_36 import VolumeZone
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, Volume
from podium.objects.kinds.storage import TopologySelectorTerm

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


# VolumeRestrictions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict"),
    [
        pytest.param(gce("d"), gce("d"), True, id="the same disk"),
        pytest.param(gce("d"), gce("e"), False, id="another disk"),
        pytest.param(
            gce("d", read_only=True), gce("d", read_only=True), False, id="both only read it"
        ),
        pytest.param(gce("d", read_only=True), gce("d"), True, id="one of them writes"),
        pytest.param(
            ebs("d", read_only=True), ebs("d", read_only=True), True, id="EBS is never shared"
        ),
        pytest.param(iscsi("q"), iscsi("q", read_only=True), True, id="an iSCSI target"),
        pytest.param(
            rbd("m1", "m2", image="i"), rbd("m2", "m3", image="i"), True, id="one monitor in common"
        ),
        pytest.param(rbd("m1", image="i"), rbd("m2", image="i"), False, id="no monitor in common"),
        pytest.param(
            rbd("m1", image="i", pool="a"), rbd("m1", image="i", pool="b"), False, id="another pool"
        ),
    ],
)
def test_disks(ours: Volume, theirs: Volume, conflict: bool) -> None:
    items = (node("n"), node("m"), pod("there", node="n", volumes=[theirs]))

    found = judged(VolumeRestrictions(), pod(volumes=[ours]), *items)

    assert found == {"n": (DISK,) if conflict else (), "m": ()}


ONLY: tuple[Object, ...] = (exclusive(claim("only", volume="v")), volume("v"))


def test_an_exclusive_claim_in_use_keeps_pods_from_every_node() -> None:
    user = using("only", name="user", node="a")

    found = decision(using("only"), node("a"), node("b"), *ONLY, user)

    assert found.message.startswith(f"0/2 nodes are available: 2 {IN_USE}.")


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(using("only", name="user", node="a", namespace="other"), id="of a namesake"),
        pytest.param(
            using("only", name="user", node="a", phase="Succeeded"), id="of a finished pod"
        ),
        pytest.param(using("only", name="user", node="gone"), id="of a pod whose node is gone"),
    ],
)
def test_use_that_does_not_count(user: Pod) -> None:
    other = exclusive(claim("only", volume="w", namespace="other"))

    assert (
        decision(using("only"), node("a"), node("b"), *ONLY, other, volume("w"), user).node == "a"
    )


def test_evicting_the_user_helps_on_its_node_only() -> None:
    user = using("only", name="user", node="b")
    items = (node("a"), node("b"), *ONLY, user, pod("other", node="a"))

    found = decision(using("only", priority=5), *items)

    assert found.preemption is not None
    assert found.preemption.node == "b"
    assert list(found.preemption.candidates) == ["b"]
    assert found.preemption.candidates["b"].pods == ("default/user",)


def test_with_two_users_evicting_one_is_not_enough_only_if_both_claims_are_in_use() -> None:
    # Counted per claim at first: two users of one claim count once, and one eviction will do.
    users = [using("only", name="u1", node="a"), using("only", name="u2", node="b")]

    found = decision(using("only", priority=5), node("a"), node("b"), *ONLY, *users)

    assert found.preemption is not None
    assert sorted(found.preemption.candidates) == ["a", "b"]


def test_users_of_two_claims_on_two_nodes_cannot_be_evicted_together() -> None:
    items = (
        *ONLY,
        exclusive(claim("too", volume="w")),
        volume("w"),
        using("only", name="u1", node="a"),
        using("too", name="u2", node="b"),
    )

    found = decision(using("only", "too", priority=5), node("a"), node("b"), *items)

    assert found.preemption is not None
    assert found.preemption.node is None
    assert found.post_message.endswith(f"0/2 nodes are available: 2 {IN_USE}.")


def test_a_claim_named_twice_by_its_user_counts_twice_when_it_goes() -> None:
    # One claim in use, two references given back: the count goes below nothing, which is fine.
    user = using("only", "only", name="user", node="a")

    found = decision(using("only", priority=5), node("a"), *ONLY, user)

    assert found.preemption is not None
    assert found.preemption.node == "a"


def test_claims_of_namesakes_in_other_namespaces_are_given_back_too() -> None:
    # By name only: evicting a stranger with a claim of the same name seems to help.
    user = using("only", name="user", node="a")
    stranger = using("only", name="stranger", node="b", namespace="other")
    other = (exclusive(claim("only", volume="w", namespace="other")), volume("w"))

    found = decision(using("only", priority=5), node("a"), node("b"), *ONLY, *other, user, stranger)

    assert found.preemption is not None
    assert sorted(found.preemption.candidates) == ["a", "b"]


def test_the_disk_is_told_before_the_claim() -> None:
    wanted = pod(volumes=[gce("d"), claim_volume("only")])
    user = pod("user", node="a", volumes=[gce("d"), claim_volume("only")])

    found = judged(VolumeRestrictions(), wanted, node("a"), node("b"), *ONLY, user)

    assert found == {"a": (DISK,), "b": (IN_USE,)}


# NodeVolumeLimits ---------------------------------------------------------------------------------

CSI = "disk.example.com"


def csi(name: str) -> tuple[Object, Object]:
    return claim(name, volume=f"pv-{name}"), volume(f"pv-{name}", csi=(CSI, name))


FULL = "node(s) exceed max volume count"
MADE = storage_class("made", provisioner=CSI)


@pytest.mark.parametrize(
    ("wanted", "items", "reasons"),
    [
        pytest.param(using("a"), csi("a"), (), id="room for one"),
        pytest.param(using("a", "b"), (*csi("a"), *csi("b")), (FULL,), id="not for two"),
        pytest.param(using("a", "a"), csi("a"), (), id="the same one twice is one"),
        pytest.param(
            using("a"),
            (*csi("a"), *csi("b"), using("b", name="there", node="n")),
            (FULL,),
            id="beside one that is there",
        ),
        pytest.param(
            using("a"),
            (*csi("a"), using("a", name="there", node="n")),
            (),
            id="the one that is there",
        ),
        pytest.param(
            using("a"),
            (*csi("a"), *csi("b"), attachment("at", "n", CSI, "pv-b")),
            (FULL,),
            id="beside one attached for nobody",
        ),
        pytest.param(
            using("a"),
            (*csi("a"), *csi("b"), attachment("at", "elsewhere", CSI, "pv-b")),
            (),
            id="attached elsewhere",
        ),
        pytest.param(
            using("a"),
            (*csi("a"), attachment("at", "n", CSI, "pv-a")),
            (FULL,),
            id="attached already for nobody, it counts once more as new",
        ),
        pytest.param(
            using("a", "c"),
            (*csi("a"), claim("c", storage_class="made"), MADE),
            (FULL,),
            id="one yet to be made counts for its class's driver",
        ),
        pytest.param(
            using("a", "c"),
            (*csi("a"), claim("c", storage_class="made")),
            (),
            id="without its class it does not count",
        ),
        pytest.param(
            using("a", "c"),
            (*csi("a"), claim("c", volume="pv-c"), volume("pv-c", source=gce("d"))),
            (),
            id="other volumes do not count",
        ),
    ],
)
def test_limits(wanted: Pod, items: tuple[Object, ...], reasons: tuple[str, ...]) -> None:
    limited = (node("n"), node("free"), csi_node("n", disk=1))

    assert judged(NodeVolumeLimits(), wanted, *limited, *items) == {"n": reasons, "free": ()}


# VolumeZone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "key", "zones", "fits"),
    [
        pytest.param({ZONE: "a"}, ZONE, "a", True, id="the zone"),
        pytest.param({ZONE: "a"}, ZONE, "b", False, id="another zone"),
        pytest.param({ZONE: "a"}, ZONE, "b__a", True, id="one of its zones"),
        pytest.param({ZONE: "a"}, ZONE, "b__ a", True, id="blanks are trimmed"),
        pytest.param({ZONE: "a"}, ZONE, "b__", True, id="an empty zone: the label is not read"),
        pytest.param({}, ZONE, "b", True, id="a node without any zone label takes all"),
        pytest.param(
            {"topology.kubernetes.io/region": "r"}, ZONE, "b", False, id="a region is a zone label"
        ),
        pytest.param({ZONE: "a"}, BETA_ZONE, "a", True, id="an old label on the volume"),
        pytest.param(
            {ZONE: "b", BETA_ZONE: "a"},
            BETA_ZONE,
            "a",
            True,
            id="looked up under the old key first",
        ),
        pytest.param(
            {BETA_ZONE: "a"}, ZONE, "a", False, id="a new label is not looked up under the old key"
        ),
    ],
)
def test_zones(labels: dict[str, str], key: str, zones: str, fits: bool) -> None:
    items = (node("n", labels=labels), claim("c", volume="v"), volume("v", labels={key: zones}))

    found = judged(VolumeZone(), using("c"), *items)

    assert found == {"n": () if fits else ("node(s) had no available volume zone",)}


# VolumeBinding ------------------------------------------------------------------------------------

AT_N = [node_term(expression(HOST, "In", "n"))]
N, M = (node(name, labels={HOST: name, "disk": name}) for name in "nm")
LATE = storage_class("late")


def made_in(*names: str) -> TopologySelectorTerm:
    return TopologySelectorTerm([expression(HOST, "In", *names)])


@pytest.mark.parametrize(
    ("wanted", "items", "expected"),
    [
        pytest.param(
            using("c"),
            (claim("c", volume="v"), volume("v", reachable=AT_N)),
            {"m": (UNREACHABLE,)},
            id="a bound volume that m cannot reach",
        ),
        pytest.param(
            using("c"), (claim("c", volume="v"),), {"n": (LOST,), "m": (LOST,)}, id="no such volume"
        ),
        pytest.param(
            using("c", "d"),
            (claim("c", volume="v"), volume("v", reachable=AT_N), claim("d", volume="w")),
            {"n": (LOST,), "m": (UNREACHABLE,)},
            id="the first bound claim that fails is the last one looked at",
        ),
        pytest.param(
            using("c"),
            (LATE, claim("c", storage_class="late")),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="nothing to bind, and nobody to make it",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
            id="a free volume",
        ),
        pytest.param(
            using("c", "d"),
            (
                LATE,
                claim("c", storage_class="late"),
                claim("d", storage_class="late"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="one volume for two claims",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="too small",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
            id="the volume meant for the claim, or none",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late", storage="2Gi"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {},
            id="unless that one is too small",
        ),
        pytest.param(
            using("c"),
            (
                storage_class("made", provisioner="x", topologies=[made_in("n")]),
                claim("c", storage_class="made"),
            ),
            {"m": (NO_VOLUME,)},
            id="made on some nodes only",
        ),
        pytest.param(
            using("c"),
            (
                storage_class("made", provisioner="x"),
                claim(
                    "c",
                    storage_class="made",
                    annotations={"volume.kubernetes.io/selected-node": "m"},
                ),
            ),
            {"n": (NO_VOLUME,)},
            id="being made for m",
        ),
        pytest.param(
            using("c", "d"),
            (
                claim("c", volume="v"),
                volume("v", reachable=AT_N),
                LATE,
                claim("d", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (UNREACHABLE, NO_VOLUME)},
            id="both kinds are told",
        ),
    ],
)
def test_binding(
    wanted: Pod, items: tuple[Object, ...], expected: dict[str, tuple[str, ...]]
) -> None:
    found = judged(VolumeBinding(), wanted, N, M, *items)

    assert {name: reasons for name, reasons in found.items() if reasons} == expected


TRACKED = storage_class("made", provisioner="x")


@pytest.mark.parametrize(
    ("items", "rejected"),
    [
        pytest.param([], set(), id="without a driver nobody tracks capacity"),
        pytest.param([csi_driver("x", tracks=False)], set(), id="a driver that does not"),
        pytest.param([csi_driver("x", tracks=True)], {"n", "m"}, id="tracked, and none reported"),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector({HOST: "n"}))],
            {"m"},
            id="enough on n",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector())],
            set(),
            id="enough everywhere",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", None)],
            {"n", "m"},
            id="reported for nowhere",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1023Mi", selector())],
            {"n", "m"},
            id="not enough",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "other", "1Gi", selector())],
            {"n", "m"},
            id="of another class",
        ),
        pytest.param(
            [
                csi_driver("x", tracks=True),
                msgspec.structs.replace(
                    csi_capacity("1", "made", "9Gi", selector()), maximum_volume_size="1Mi"
                ),
            ],
            {"n", "m"},
            id="the largest volume is what counts, if it is told",
        ),
    ],
)
def test_capacity(items: list[Object], rejected: set[str]) -> None:
    found = judged(
        VolumeBinding(), using("c"), N, M, TRACKED, claim("c", storage_class="made"), *items
    )

    assert found == {name: (NO_SPACE,) if name in rejected else () for name in "nm"}


def test_the_smallest_volume_that_suits_is_promised_and_taken_from_then_on() -> None:
    made = current(
        N,
        LATE,
        claim("c", storage_class="late"),
        claim("d", storage_class="late"),
        volume("large", storage_class="late", storage="9Gi"),
        volume("small", storage_class="late", storage="2Gi"),
    )

    first, second = made.run([using("c", name="p"), using("d", name="q")])

    assert first.decision.volumes is not None
    assert first.decision.volumes.bind == {"c": "small"}
    assert second.decision.volumes is not None
    assert second.decision.volumes.bind == {"d": "large"}
