"""A small shop in three zones: a workload that shows what a scheduler has to think about.

Twelve nodes of three sizes; two with GPUs and one for payments keep others away by taints. The
frontend spreads over zones, the cache keeps its copies apart, the API server of the shop likes to
be near the cache, an agent runs everywhere, reports fill what is left, and one training run asks
for more GPUs than any node has. A little later comes the checkout, which is worth more than
reports, and makes room for itself.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from podium.lab.contents.documents import Document, documents
from podium.lab.contents.many import node, zone_name
from podium.objects.kinds.meta import JsonObject

#: Seconds after the start at which the second act begins.
SECOND_ACT: Final = 6.0


def demo() -> list[Document]:
    """What is there at the start."""
    return [*(Document("", each) for each in _nodes()), *_read("demo.yaml")]


def checkout() -> list[Document]:
    """What comes a little later."""
    return _read("demo_checkout.yaml")


def _read(name: str) -> list[Document]:
    data = files("podium.lab.contents").joinpath(name).read_bytes()
    return list(documents(data))


def _nodes() -> list[JsonObject]:
    gpus = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    with_gpus: dict[str, Any] = {
        "labels": {"accelerator": "l4"},
        "taints": gpus,
        "extra": {"nvidia.com/gpu": "2"},
    }
    found = [
        node(f"{zone[-1]}{number}-{size}", zone, size)
        for zone in map(zone_name, range(3))
        for number, size in enumerate(("small", "medium", "large"), 1)
    ]
    found += [node(f"{zone[-1]}4-gpu", zone, "large", **with_gpus) for zone in ("zone-a", "zone-b")]
    dedicated = [{"key": "dedicated", "value": "payments", "effect": "NoSchedule"}]
    labels = {"dedicated": "payments"}
    found.append(node("c4-payments", "zone-c", "medium", labels=labels, taints=dedicated))
    return found
