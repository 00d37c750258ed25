"""The demo clusters: an online shop in three zones that uses most rules of the scheduler.

There are twelve nodes of three sizes; two with GPUs and one for payments are tainted. The frontend
spreads over zones. The replicas of the cache have anti-affinity to each other, and the API server
has affinity to the cache. An agent is a daemon set. Low-priority reports fill the remaining
resources. One training pod asks for more GPUs than any node has. In the GPU corner pods get devices
by resource claims; one claim asks for more memory than any device has. The checkout is created some
seconds later; its priority is higher than that of the reports, which it preempts.

The shop for predicates and priorities has the same nodes. Its frontend spreads by its service, its
web server holds a host port, its search prefers large nodes, and nothing claims devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from podium.lab.contents.documents import Document, documents
from podium.lab.controllers.device_driver import DeviceSet
from podium.objects.kinds.meta import JsonObject

REGION: Final = "lab"
OLDER_LABELS: Final = "failure-domain.beta.kubernetes.io"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
SIZES: Final = {
    "small": {"cpu": "2", "memory": "8Gi", "pods": "110", "ephemeral-storage": "50Gi"},
    "medium": {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"},
    "large": {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "200Gi"},
}
#: The devices of the nodes with GPUs.
DEMO_DEVICES: Final = DeviceSet(
    4,
    label=("accelerator", "l4"),
    attributes={"model": {"string": "l4"}},
    capacity={"memory": "24Gi"},
)
#: Seconds after the start of the lab at which the checkout is created.
CHECKOUT_SECONDS: Final = 6.0


def generate_nodes(count: int, zones: int) -> Iterator[Document]:
    """So many nodes over so many zones; the nodes of a zone have all sizes in turn."""
    width = len(str(max(count - 1, 0)))
    sizes = list(SIZES)
    for number in range(count):
        size = sizes[number // zones % len(sizes)]
        yield Document(
            "", node_manifest(f"node-{number:0{width}d}", zone_name(number % zones), size)
        )


def zone_name(number: int) -> str:
    """The name of a zone: zone-a to zone-z, then zone-aa and so on."""
    letters = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return f"zone-{letters}"


def node_manifest(
    name: str,
    zone: str,
    size: str,
    *,
    labels: dict[str, str] | None = None,
    taints: list[JsonObject] | None = None,
    extra: dict[str, str] | None = None,
) -> JsonObject:
    """A node in a zone; *extra* are resources besides those of its size."""
    resources = {**SIZES[size], **(extra or {})}
    topology = {
        ZONE_LABEL: zone,
        REGION_LABEL: REGION,
        # The labels that v1.13 reads.
        f"{OLDER_LABELS}/zone": zone,
        f"{OLDER_LABELS}/region": REGION,
        TYPE_LABEL: size,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**topology, **(labels or {})}},
        "spec": {"taints": taints} if taints else {},
        "status": {"capacity": resources, "allocatable": dict(resources)},
    }


@dataclass(frozen=True, slots=True)
class Demo:
    """A shop: the file with its objects, and that with objects that claim devices, if any."""

    objects: str
    claims: str = ""

    def documents(self) -> list[Document]:
        """The objects at the start of the lab."""
        return [*(Document("", each) for each in _nodes()), *_read(self.objects)]

    def claim_documents(self) -> list[Document]:
        """The objects that claim devices; their selectors are CEL expressions."""
        return _read(self.claims) if self.claims else []


#: For plugins, and for predicates and priorities.
SHOP: Final = Demo("demo.yaml", claims="demo_devices.yaml")
OLDER_SHOP: Final = Demo("demo_older.yaml")


def checkout() -> list[Document]:
    """The objects of the checkout."""
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
        node_manifest(f"{zone[-1]}{number}-{size}", zone, size)
        for zone in map(zone_name, range(3))
        for number, size in enumerate(("small", "medium", "large"), 1)
    ]
    found += [
        node_manifest(f"{zone[-1]}4-gpu", zone, "large", **with_gpus)
        for zone in ("zone-a", "zone-b")
    ]
    dedicated = [{"key": "dedicated", "value": "payments", "effect": "NoSchedule"}]
    labels = {"dedicated": "payments"}
    found.append(node_manifest("c4-payments", "zone-c", "medium", labels=labels, taints=dedicated))
    return found
