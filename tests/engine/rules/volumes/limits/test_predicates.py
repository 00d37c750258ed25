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
