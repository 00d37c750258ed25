"""v1.36 VolumeRestrictions: disks that cannot be shared, claims for one pod at a time."""

from __future__ import annotations

from typing import Any

from builders import (
    claim,
    claim_volume,
    ebs,
    gce,
    iscsi,
    node,
    pod,
    rbd,
    volume,
)
from builders_v1_36 import (
    decision,
    exclusive,
    judged,
)
from cases import cases
from podium.engine.rules.volumes.conflicts import VolumeRestrictions
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, Volume

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


@cases(
    ("ours", "theirs", "conflict"),
    {
        "the same disk": (gce("d"), gce("d"), True),
        "another disk": (gce("d"), gce("e"), False),
        "both only read it": (gce("d", read_only=True), gce("d", read_only=True), False),
        "one of them writes": (gce("d", read_only=True), gce("d"), True),
        "EBS is never shared": (ebs("d", read_only=True), ebs("d", read_only=True), True),
        "an iSCSI target": (iscsi("q"), iscsi("q", read_only=True), True),
        "one monitor in common": (rbd("m1", "m2", image="i"), rbd("m2", "m3", image="i"), True),
        "no monitor in common": (rbd("m1", image="i"), rbd("m2", image="i"), False),
        "another pool": (rbd("m1", image="i", pool="a"), rbd("m1", image="i", pool="b"), False),
    },
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


@cases(
    "user",
    {
        "of a namesake": using("only", name="user", node="a", namespace="other"),
        "of a finished pod": using("only", name="user", node="a", phase="Succeeded"),
        "of a pod whose node is gone": using("only", name="user", node="gone"),
    },
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
