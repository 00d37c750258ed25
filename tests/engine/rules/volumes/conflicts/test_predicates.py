"""v1.13 NoDiskConflict: which disks two pods on a node cannot share."""

from __future__ import annotations

from builders import (
    azure,
    ebs,
    gce,
    iscsi,
    judged,
    node,
    pod,
    rbd,
    view,
)
from cases import cases
from podium.engine.rules.volumes.conflicts import NoDiskConflict
from podium.objects.kinds.pod import Volume

DISK = ("node(s) had no available disk",)


@cases(
    ("used", "wanted", "fits"),
    {
        "a disk is used once": (gce("d"), gce("d"), False),
        "or read by all": (gce("d", read_only=True), gce("d", read_only=True), True),
        "but not written by one": (gce("d", read_only=True), gce("d"), False),
        "another disk": (gce("d"), gce("e"), True),
        "EBS never shares": (ebs("d", read_only=True), ebs("d", read_only=True), False),
        "names of different kinds differ": (gce("d"), ebs("d"), True),
        "one iSCSI target, one user": (iscsi("q"), iscsi("q"), False),
        "or readers only": (iscsi("q", read_only=True), iscsi("q", read_only=True), True),
        "monitors overlap": (rbd("m1", "m2", image="i"), rbd("m2", "m3", image="i"), False),
        "monitors do not": (rbd("m1", image="i"), rbd("m2", image="i"), True),
        "another pool": (rbd("m", image="i"), rbd("m", image="i", pool="other"), True),
        "another image": (rbd("m", image="i"), rbd("m", image="j"), True),
        "an image that all only read": (
            rbd("m", image="i", read_only=True),
            rbd("m", image="i", read_only=True),
            True,
        ),
        "other disks are not looked at": (azure("d"), azure("d"), True),
    },
)
def test_disk_conflicts(used: Volume, wanted: Volume, fits: bool) -> None:
    columns = view(node("n"), pod("x", node="n", volumes=[used]))

    found = judged(NoDiskConflict(), pod(volumes=[wanted]), columns)

    assert found["n"] == (() if fits else DISK)
