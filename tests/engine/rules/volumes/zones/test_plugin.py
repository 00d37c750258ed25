"""v1.36 VolumeZone: volumes that are used only in their zones."""

from __future__ import annotations

from typing import Any

from builders import (
    claim,
    claim_volume,
    node,
    pod,
    volume,
)
from builders_v1_36 import (
    ZONE,
    judged,
)
from cases import cases
from podium.engine.rules.volumes.zones import VolumeZone
from podium.objects.kinds.pod import Pod

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


@cases(
    ("labels", "key", "zones", "fits"),
    {
        "the zone": ({ZONE: "a"}, ZONE, "a", True),
        "another zone": ({ZONE: "a"}, ZONE, "b", False),
        "one of its zones": ({ZONE: "a"}, ZONE, "b__a", True),
        "blanks are trimmed": ({ZONE: "a"}, ZONE, "b__ a", True),
        "an empty zone: the label is not read": ({ZONE: "a"}, ZONE, "b__", True),
        "a node without any zone label takes all": ({}, ZONE, "b", True),
        "a region is a zone label": ({"topology.kubernetes.io/region": "r"}, ZONE, "b", False),
        "an old label on the volume": ({ZONE: "a"}, BETA_ZONE, "a", True),
        "looked up under the old key first": ({ZONE: "b", BETA_ZONE: "a"}, BETA_ZONE, "a", True),
        "a new label is not looked up under the old key": ({BETA_ZONE: "a"}, ZONE, "a", False),
    },
)
def test_zones(labels: dict[str, str], key: str, zones: str, fits: bool) -> None:
    items = (node("n", labels=labels), claim("c", volume="v"), volume("v", labels={key: zones}))

    found = judged(VolumeZone(), using("c"), *items)

    assert found == {"n": () if fits else ("node(s) had no available volume zone",)}
