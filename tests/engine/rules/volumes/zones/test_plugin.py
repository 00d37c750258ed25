"""v1.36 VolumeZone: volumes that are used only in their zones."""

from __future__ import annotations

from typing import Any

import pytest

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
from podium.engine.rules.volumes.zones import VolumeZone
from podium.objects.kinds.pod import Pod

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


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
