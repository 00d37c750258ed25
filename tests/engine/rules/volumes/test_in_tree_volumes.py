"""v1.36: in-tree volumes are counted and reached as volumes of their CSI drivers."""

from __future__ import annotations

from typing import Any

import msgspec

from builders import (
    azure,
    claim,
    claim_volume,
    ebs,
    expression,
    gce,
    node,
    node_term,
    pod,
    storage_class,
    volume,
)
from builders_v1_36 import ZONE, csi_node, decision, view
from builders_v1_36 import judged as judged_at_once
from cases import cases
from podium.engine.framework.causes import VolumeUnreachable
from podium.engine.framework.rule import FilterRule
from podium.engine.rows.rows import OneRow, as_int
from podium.engine.rules.volumes.binding import VolumeBinding
from podium.engine.rules.volumes.limits import NodeVolumeLimits
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import (
    AzureDisk,
    CinderVolume,
    NodeSelectorTerm,
    Pod,
    PortworxVolume,
    Volume,
)
from podium.objects.kinds.storage import CsiNode

EBS, GCE, AZURE = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"
CINDER, PORTWORX = "cinder.csi.openstack.org", "pxd.portworx.com"
FULL = "node(s) exceed max volume count"
UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
HANDED_OVER = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = (
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
)
GKE_ZONE, EBS_ZONE = "topology.gke.io/zone", "topology.ebs.csi.aws.com/zone"


def with_drivers(limits: dict[str, int], *, handed_over: str = "") -> CsiNode:
    """How many volumes of each driver the node takes, and what it has handed over to them."""
    annotations = {HANDED_OVER: handed_over} if handed_over else None
    metadata = ObjectMeta(name="n", annotations=annotations)
    return msgspec.structs.replace(csi_node("n", **limits), metadata=metadata)


def judged(rule: FilterRule, wanted: Pod, *items: Object) -> dict[str, Any]:
    """Node -> what the filter says; the same over all nodes at once and one by one."""
    together = judged_at_once(rule, wanted, *items)
    columns, alone = view(*items), {}
    for row in columns.nodes.order.tolist():
        at = OneRow(columns, row)
        code = as_int(rule.filter(columns.pods.incoming(wanted), at))
        alone[at.name] = at.errors.get(0, columns.verdicts[code].reasons)
    assert alone == together
    return together


def managed(uri: str, kind: str | None = "Managed") -> Volume:
    return Volume(azure_disk=AzureDisk("name", uri, kind))


def cinder(name: str) -> Volume:
    return Volume(cinder=CinderVolume(name))


def portworx(name: str) -> Volume:
    return Volume(portworx_volume=PortworxVolume(name))


def behind(name: str, source: Volume, **fields: Any) -> tuple[Object, Object]:
    """A claim and the volume it is bound to."""
    return claim(name, volume=f"pv-{name}"), volume(f"pv-{name}", source=source, **fields)


def holding(*volumes: Volume, name: str = "p", where: str = "") -> Pod:
    return pod(name, volumes=volumes, node=where)


@cases(
    ("driver", "one", "other"),
    {
        "GCE": (GCE, gce("d"), gce("e")),
        "EBS": (EBS, ebs("vol-1"), ebs("aws://zone/vol-2")),
        "Azure": (AZURE, managed("1"), managed("2", "managed")),
        "Cinder": (CINDER, cinder("1"), cinder("2")),
        "Portworx": (PORTWORX, portworx("1"), portworx("2")),
    },
)
def test_inline_disks_count_for_their_driver(driver: str, one: Volume, other: Volume) -> None:
    items = (node("n"), node("free"), with_drivers({driver: 1}))

    alone = judged(NodeVolumeLimits(), holding(one), *items)
    beside = judged(NodeVolumeLimits(), holding(one), *items, holding(other, name="e", where="n"))
    same = judged(NodeVolumeLimits(), holding(one), *items, holding(one, name="e", where="n"))

    assert alone == {"n": (), "free": ()}
    assert beside == {"n": (FULL,), "free": ()}
    assert same == {"n": (), "free": ()}


@cases(
    ("driver", "there", "wanted", "full"),
    {
        "EBS": (EBS, behind("c", ebs("aws:///vol-1")), ebs("vol-1"), False),
        "a disk without a zone": (GCE, behind("c", gce("d")), gce("d"), False),
        "a disk of a zone is not the disk of an unknown one": (
            GCE,
            behind("c", gce("d"), labels={ZONE: "us-east1-a"}),
            gce("d"),
            True,
        ),
        "a disk of two regions has no name and does not count": (
            GCE,
            behind("c", gce("d"), labels={ZONE: "us-east1-a__us-west1-b"}),
            gce("e"),
            False,
        ),
        "a disk of a region": (
            GCE,
            (
                claim("c", volume="pv"),
                volume("pv", csi=(GCE, "projects/UNSPECIFIED/regions/us-east1/disks/d")),
                claim("r", volume="pv-r"),
                volume("pv-r", source=gce("d"), labels={BETA_ZONE: "us-east1-a__us-east1-b"}),
            ),
            claim_volume("r"),
            False,
        ),
        "one yet to be made by the older provisioner": (
            GCE,
            (
                claim("c", storage_class="old"),
                storage_class("old", provisioner="kubernetes.io/gce-pd"),
            ),
            gce("d"),
            True,
        ),
        "shares of files are not counted": (
            "kubernetes.io/azure-file",
            (
                claim("c", storage_class="files"),
                storage_class("files", provisioner="kubernetes.io/azure-file"),
                claim("d", storage_class="files"),
            ),
            claim_volume("d"),
            False,
        ),
        "not managed": (AZURE, behind("c", managed("1", "Shared")), managed("2"), False),
    },
)
def test_claimed_disks_count_for_their_driver(
    driver: str, there: tuple[Object, ...], wanted: Volume, full: bool
) -> None:
    items = (node("n"), with_drivers({driver: 1}), *there)
    user = holding(claim_volume("c"), name="e", where="n")

    found = judged(NodeVolumeLimits(), holding(wanted), *items, user)

    assert found == {"n": (FULL,) if full else ()}


BAD = 'running "NodeVolumeLimits" filter plugin: converting volume(v) from inline to csi: '


@cases(
    ("source", "text"),
    {
        "not an EBS volume": (
            ebs("aws://zone/disk"),
            (
                "failed to translate Kubernetes ID to EBS Volume ID "
                "Invalid format for AWS volume (aws://zone/disk)"
            ),
        ),
        "not managed": (managed("1", "Shared"), "kind(Shared) is not supported in csi migration"),
    },
)
def test_a_disk_the_driver_cannot_name_is_an_error(source: Volume, text: str) -> None:
    disk = Volume("v", None, None, source.aws_elastic_block_store, source.azure_disk)
    items = (node("n"), node("free"), with_drivers({EBS: 5}))
    there = pod("e", volumes=[disk], node="n")

    wanted = judged(NodeVolumeLimits(), holding(disk), *items)
    beside = judged(NodeVolumeLimits(), holding(gce("d")), *items, there)
    elsewhere = judged(NodeVolumeLimits(), holding(disk), node("n"))

    assert wanted == beside == {"n": BAD + text, "free": ()}
    assert elsewhere == {"n": ()}


def in_zone(key: str, *zones: str) -> NodeSelectorTerm:
    return node_term(expression(key, "In", *zones))


@cases(
    ("labels", "source", "fields", "fits"),
    {
        "old": ({ZONE: "a"}, gce("d"), {"reachable": [in_zone(ZONE, "a")]}, False),
        "GCE": ({GKE_ZONE: "a"}, gce("d"), {"reachable": [in_zone(ZONE, "a")]}, True),
        "EBS": ({EBS_ZONE: "a"}, ebs("d"), {"reachable": [in_zone(BETA_ZONE, "a")]}, True),
        "Cinder": (
            {"topology.cinder.csi.openstack.org/zone": "a"},
            cinder("d"),
            {"reachable": [in_zone(ZONE, "b", "a")]},
            True,
        ),
        "Azure": ({ZONE: "a"}, managed("d"), {"reachable": [in_zone(ZONE, "a")]}, True),
        "Portworx": ({ZONE: "a"}, portworx("d"), {"reachable": [in_zone(ZONE, "a")]}, True),
        "a label": ({GKE_ZONE: "b"}, gce("d"), {"labels": {ZONE: "a"}}, False),
        "a label of two zones": ({EBS_ZONE: "b"}, ebs("d"), {"labels": {ZONE: "a__ b"}}, True),
        "an empty label": ({GKE_ZONE: "b"}, gce("d"), {"labels": {ZONE: ""}}, True),
        "a key without values stays, and the label is added": (
            {ZONE: "b", GKE_ZONE: "a"},
            gce("d"),
            {"labels": {ZONE: "a"}, "reachable": [node_term(expression(ZONE, "Exists"))]},
            True,
        ),
        "an old region is looked up under today's key": (
            {EBS_ZONE: "a", REGION: "r"},
            ebs("d"),
            {
                "reachable": [
                    node_term(expression(BETA_ZONE, "In", "a"), expression(BETA_REGION, "In", "r"))
                ]
            },
            True,
        ),
    },
)
def test_where_a_disk_that_was_handed_over_is_reached(
    labels: dict[str, str], source: Volume, fields: dict[str, Any], fits: bool
) -> None:
    kinds = ("aws-ebs", "gce-pd", "cinder", "azure-disk", "portworx-volume")
    drivers = with_drivers({}, handed_over=",".join(f"kubernetes.io/{kind}" for kind in kinds))
    items = (node("n", labels=labels), *behind("c", source, **fields))

    found = judged(VolumeBinding(), holding(claim_volume("c")), *items, drivers)

    assert found == {"n": () if fits else (UNREACHABLE,)}


def test_each_disk_out_of_reach_is_told_by_its_own_terms() -> None:
    """Terms in the driver's words are made for one question, and another list may take its id."""
    zones = {f"c{number}": f"zone-{number}" for number in range(8)}
    items = [each for c, z in zones.items() for each in behind(c, gce(c), labels={ZONE: z})]
    columns = view(node("n"), *items, with_drivers({}, handed_over="kubernetes.io/gce-pd"))
    wanted = columns.pods.incoming(holding(*map(claim_volume, zones)))

    found = VolumeBinding().causes(wanted, OneRow(columns, columns.nodes.row_of["n"]), {})

    told = {each.claim: each.failed for each in found if isinstance(each, VolumeUnreachable)}
    assert {claim: [one.values for one in failed] for claim, failed in told.items()} == {
        f"default/{c}": [(z,)] for c, z in zones.items()
    }


@cases(
    "drivers",
    {
        "no drivers": (),
        "drivers": (with_drivers({GCE: 1}),),
        "others": (with_drivers({}, handed_over="kubernetes.io/aws-ebs"),),
    },
)
def test_a_node_that_handed_nothing_over_is_asked_in_the_old_words(
    drivers: tuple[Object, ...],
) -> None:
    items = behind("c", gce("d"), reachable=[in_zone(ZONE, "a")])
    there = node("n", labels={ZONE: "a", GKE_ZONE: "b"})

    assert judged(VolumeBinding(), holding(claim_volume("c")), there, *items, *drivers) == {"n": ()}


def test_a_claimed_disk_the_driver_cannot_name_fails_the_attempt() -> None:
    items = behind("c", gce("d"), labels={ZONE: "us-east1-a__b"})
    drivers = with_drivers({}, handed_over="kubernetes.io/gce-pd")
    wrong = "zone in unexpected format, expected: {locale}-{region}-{zone}, got: b"

    found = decision(holding(claim_volume("c")), node("n"), *items, drivers)

    assert found.error == (
        'running "VolumeBinding" filter plugin: could not translate pv: '
        f"failed to get region from zones: {wrong}"
    )


def test_a_disk_without_a_kind_is_named_by_its_address() -> None:
    items = (node("n"), with_drivers({AZURE: 0}))

    assert judged(NodeVolumeLimits(), holding(azure("d")), *items) == {"n": (FULL,)}
