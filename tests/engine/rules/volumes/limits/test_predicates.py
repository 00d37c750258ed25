"""v1.13 limits on volumes: how many of a kind a node takes."""

from __future__ import annotations

import pytest

from builders import (
    azure,
    claim,
    claim_volume,
    ebs,
    gce,
    judged,
    node,
    pod,
    view,
    volume,
)
from cases import cases
from podium.engine.rules.volumes.limits import (
    AZURE,
    EBS,
    GCE_PD,
    Disk,
    MaxCSIVolumeCount,
    MaxVolumeCount,
    csi_limit_name,
)
from podium.objects.kinds.pod import Volume

COUNT = ("node(s) exceed max volume count",)
TYPE = "beta.kubernetes.io/instance-type"


@cases(
    ("labels", "resources", "operator", "limit"),
    {
        "the general limit": ({}, {}, None, 39),
        "an older machine": ({TYPE: "m4.large"}, {}, None, 39),
        "a newer machine": ({TYPE: "m5.large"}, {}, None, 25),
        "another newer machine": ({TYPE: "z1d"}, {}, None, 25),
        "t3 anywhere in the name": ({TYPE: "not3"}, {}, None, 25),
        "the first part is anchored": ({TYPE: "xm5"}, {}, None, 39),
        "the operator's limit is stronger": ({TYPE: "m5"}, {}, 3, 3),
        "the node's strongest": ({TYPE: "m5"}, {"attachable-volumes-aws-ebs": 2}, 3, 2),
        "of another kind: no matter": ({}, {"attachable-volumes-gce-pd": 2}, None, 39),
        "none at all": ({}, {"attachable-volumes-aws-ebs": 0}, None, 0),
        "an operator's limit of zero is no limit": ({}, {}, 0, 39),
    },
)
def test_how_many_ebs_volumes(
    labels: dict[str, str], resources: dict[str, int], operator: int | None, limit: int
) -> None:
    columns = view(node("n", labels=labels, resources=resources))
    rule = MaxVolumeCount("MaxEBSVolumeCount", EBS, limit=operator)

    enough = pod(volumes=[ebs(f"v{i}") for i in range(limit)])
    many = pod(volumes=[ebs(f"v{i}") for i in range(limit + 1)])

    assert judged(rule, enough, columns)["n"] == ()
    assert judged(rule, many, columns)["n"] == COUNT


@pytest.mark.parametrize("disk", [GCE_PD, AZURE], ids=["GCE", "Azure"])
def test_other_disks_have_sixteen(disk: Disk) -> None:
    make = gce if disk is GCE_PD else azure
    rule = MaxVolumeCount("MaxVolumeCount", disk)
    columns = view(node("n", labels={TYPE: "m5"}))

    assert judged(rule, pod(volumes=[make(f"v{i}") for i in range(16)]), columns)["n"] == ()
    assert judged(rule, pod(volumes=[make(f"v{i}") for i in range(17)]), columns)["n"] == COUNT


@cases(
    ("used", "wanted", "fits"),
    {
        "two of two": ([ebs("a")], [ebs("b")], True),
        "three of two": ([ebs("a"), ebs("c")], [ebs("b")], False),
        "one that is there already": ([ebs("a"), ebs("c")], [ebs("a")], True),
        "another kind of disk": ([ebs("a"), ebs("c")], [gce("b")], True),
        "a node that is over its limit": ([ebs("a"), ebs("b"), ebs("c")], [gce("b")], True),
        "takes nothing again": ([ebs("a"), ebs("b"), ebs("c")], [ebs("a")], False),
        "a claim for a disk": ([ebs("a")], [claim_volume("bound")], True),
        "the same disk by its id": ([ebs("a"), ebs("disk")], [claim_volume("bound")], True),
        "a claim for another kind": ([ebs("a"), ebs("c")], [claim_volume("other")], True),
        "an unknown claim counts": ([ebs("a"), ebs("c")], [claim_volume("unknown")], False),
        "so does an unbound one": ([ebs("a"), ebs("c")], [claim_volume("unbound")], False),
        "or one whose volume is lost": ([ebs("a"), ebs("c")], [claim_volume("lost")], False),
        "but the same unknown claim only once": (
            [ebs("a"), claim_volume("unknown")],
            [claim_volume("unknown")],
            True,
        ),
    },
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
    rule = MaxVolumeCount("MaxEBSVolumeCount", EBS, limit=2)

    assert judged(rule, pod(volumes=wanted), columns)["n"] == (() if fits else COUNT)


def test_a_claim_without_a_name_is_an_error_on_either_side() -> None:
    rule = MaxVolumeCount("MaxEBSVolumeCount", EBS)
    text = "PersistentVolumeClaim had no name"
    columns = view(node("a"), node("b"), pod("x", node="a", volumes=[claim_volume("")]))

    assert judged(rule, pod(volumes=[claim_volume("")]), columns) == {"a": text, "b": text}
    assert judged(rule, pod(volumes=[ebs("v")]), columns) == {"a": text, "b": ()}
    assert judged(rule, pod(volumes=[gce("v")]), columns) == {"a": (), "b": ()}


DRIVER = "csi.example.com"
LIMIT = {csi_limit_name(DRIVER): 1}


@cases(
    ("used", "wanted", "limits", "fits"),
    {
        "no limits, any number": (["one"], ["two"], {}, True),
        "up to the limit": ([], ["one"], LIMIT, True),
        "beyond it": (["one"], ["two"], LIMIT, False),
        "the same handle again": (["one"], ["one"], LIMIT, True),
        "two of one pod": ([], ["one", "two"], LIMIT, False),
        "another driver": (["one"], ["other"], LIMIT, True),
        "equal handles of two drivers are one": (["one"], ["twin"], LIMIT, True),
        "unbound claims are skipped": (["one"], ["unbound"], LIMIT, True),
        "so are unknown ones": (["one"], ["unknown"], LIMIT, True),
        "another limit": (["one"], ["two"], {"attachable-volumes-x": 0}, True),
    },
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
