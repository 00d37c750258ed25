"""v1.13 NoDiskConflict: which disks two pods on a node cannot share."""

from __future__ import annotations

import pytest

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
from podium.engine.rules.volumes.conflicts import NoDiskConflict
from podium.objects.kinds.pod import Volume

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
