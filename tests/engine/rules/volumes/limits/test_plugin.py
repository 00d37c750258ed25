"""v1.36 NodeVolumeLimits: how many volumes of a CSI driver a node takes."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    claim,
    claim_volume,
    gce,
    node,
    pod,
    storage_class,
    volume,
)
from builders_v1_36 import (
    attachment,
    csi_node,
    judged,
)
from podium.engine.rules.volumes.limits import NodeVolumeLimits
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


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
            id="beside one attached without a pod",
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
            id="attached already without a pod, it counts once more as new",
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
