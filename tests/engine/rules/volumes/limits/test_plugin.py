"""v1.36 NodeVolumeLimits: how many volumes of a CSI driver a node takes."""

from __future__ import annotations

from typing import Any

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
from cases import cases
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


@cases(
    ("wanted", "items", "reasons"),
    {
        "room for one": (using("a"), csi("a"), ()),
        "not for two": (using("a", "b"), (*csi("a"), *csi("b")), (FULL,)),
        "the same one twice is one": (using("a", "a"), csi("a"), ()),
        "beside one that is there": (
            using("a"),
            (*csi("a"), *csi("b"), using("b", name="there", node="n")),
            (FULL,),
        ),
        "the one that is there": (using("a"), (*csi("a"), using("a", name="there", node="n")), ()),
        "beside one attached without a pod": (
            using("a"),
            (*csi("a"), *csi("b"), attachment("at", "n", CSI, "pv-b")),
            (FULL,),
        ),
        "attached elsewhere": (
            using("a"),
            (*csi("a"), *csi("b"), attachment("at", "elsewhere", CSI, "pv-b")),
            (),
        ),
        "attached already without a pod, it counts once more as new": (
            using("a"),
            (*csi("a"), attachment("at", "n", CSI, "pv-a")),
            (FULL,),
        ),
        "one yet to be made counts for its class's driver": (
            using("a", "c"),
            (*csi("a"), claim("c", storage_class="made"), MADE),
            (FULL,),
        ),
        "without its class it does not count": (
            using("a", "c"),
            (*csi("a"), claim("c", storage_class="made")),
            (),
        ),
        "other volumes do not count": (
            using("a", "c"),
            (*csi("a"), claim("c", volume="pv-c"), volume("pv-c", source=gce("d"))),
            (),
        ),
    },
)
def test_limits(wanted: Pod, items: tuple[Object, ...], reasons: tuple[str, ...]) -> None:
    limited = (node("n"), node("free"), csi_node("n", disk=1))

    assert judged(NodeVolumeLimits(), wanted, *limited, *items) == {"n": reasons, "free": ()}
