"""v1.13 NoVolumeZoneConflict: volumes that are used only in their zones."""

from __future__ import annotations

from builders import (
    REGION,
    ZONE,
    Said,
    claim,
    claim_volume,
    judged,
    node,
    pod,
    storage_class,
    view,
    volume,
)
from cases import cases
from podium.engine.rules.volumes.binding import CheckVolumeBinding
from podium.engine.rules.volumes.zones import NoVolumeZoneConflict
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

ZONED = ("node(s) had no available volume zone",)
WAIT = storage_class("wait")


def using(*claims: str) -> Pod:
    return pod(volumes=[claim_volume(name) for name in claims])


def said(rule: CheckVolumeBinding | NoVolumeZoneConflict, wanted: Pod, *items: Object) -> Said:
    """What the rule says of a node with an ssd, in zone z of region r."""
    one = node("n", labels={"disk": "ssd", ZONE: "z", REGION: "r"})
    return judged(rule, wanted, view(one, *items))["n"]


ZONES = NoVolumeZoneConflict()


@cases(
    ("labels", "fits"),
    {
        "a volume without zones": ({}, True),
        "in the zone": ({ZONE: "z"}, True),
        "in another": ({ZONE: "y"}, False),
        "in one of several": ({ZONE: "y__z"}, True),
        "blanks are trimmed": ({ZONE: " y __ z "}, True),
        "an empty part: the label is ignored": ({ZONE: "y__"}, True),
        "an empty label too": ({ZONE: ""}, True),
        "region and zone must both be right": ({ZONE: "z", REGION: "q"}, False),
        "a region alone": ({REGION: "r"}, True),
    },
)
def test_zones_of_volumes(labels: dict[str, str], fits: bool) -> None:
    found = said(ZONES, using("c"), volume("v", labels=labels), claim("c", volume="v"))

    assert found == (() if fits else ZONED)


def test_a_node_without_zones_takes_every_volume_and_looks_up_none() -> None:
    columns = view(
        node("plain"),
        node("zoned", labels={ZONE: "z"}),
        volume("v", labels={REGION: "r"}),
        claim("c", volume="v"),
    )

    # A node with a zone but no region is in no region at all.
    assert judged(ZONES, using("c"), columns) == {"plain": (), "zoned": ZONED}
    missing = 'persistentvolumeclaim "missing" not found'
    assert judged(ZONES, using("missing"), columns) == {"plain": (), "zoned": missing}


@cases(
    ("items", "name", "expected"),
    {
        "no name": ([], "", "PersistentVolumeClaim had no name"),
        "no claim": ([], "c", 'persistentvolumeclaim "c" not found'),
        "no volume": ([claim("c", volume="v")], "c", 'persistentvolume "v" not found'),
        "not bound": ([claim("c")], "c", 'PersistentVolumeClaim is not bound: "c"'),
        "waiting is fine": ([WAIT, claim("c", storage_class="wait")], "c", ()),
        "a class without a mode": (
            [storage_class("wait", mode=None), claim("c", storage_class="wait")],
            "c",
            'VolumeBindingMode not set for StorageClass "wait"',
        ),
    },
)
def test_errors_about_zones(items: list[Object], name: str, expected: Said) -> None:
    assert said(ZONES, using(name), *items) == expected


def test_a_conflict_before_an_error_wins() -> None:
    items = [volume("v", labels={ZONE: "y"}), claim("c", volume="v")]

    assert said(ZONES, using("c", "missing"), *items) == ZONED
    assert said(ZONES, using("missing", "c"), *items) == 'persistentvolumeclaim "missing" not found'
