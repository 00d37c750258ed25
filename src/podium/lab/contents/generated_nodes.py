"""Generated nodes of three sizes, spread evenly over zones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.lab.contents.documents import Document
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
