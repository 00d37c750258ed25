"""How much of each node and each zone the pods on it request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.what_if.plan.results import Balance, Usage

if TYPE_CHECKING:
    from podium.cluster.cache.columns import Columns

ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
NO_ZONE: Final = "<none>"


def balance(columns: Columns) -> Balance:
    """The use of all nodes of a scheduler's cache, and of their zones."""
    nodes, pods = columns.nodes, columns.pods
    resources = [
        (name, column)
        for name, column in nodes.resources.items()
        if name in {"cpu", "memory"} or bool(nodes.allocatable[column].any())
    ]
    found: list[Usage] = []
    zones: dict[str, Usage] = {}
    for name, row in sorted(nodes.row_of.items()):
        node = nodes.objects[row]
        if node is None:
            continue
        usage = Usage(
            name=name,
            nodes=1,
            pods=pods.counts.item(row),
            requested={key: pods.requested[column].item(row) for key, column in resources},
            allocatable={key: nodes.allocatable[column].item(row) for key, column in resources},
        )
        found.append(usage)
        zone = next((node.labels[key] for key in ZONE_LABELS if key in node.labels), NO_ZONE)
        total = zones.setdefault(
            zone, Usage(name=zone, nodes=0, pods=0, requested={}, allocatable={})
        )
        total.nodes += 1
        total.pods += usage.pods
        for into, amounts in (
            (total.requested, usage.requested),
            (total.allocatable, usage.allocatable),
        ):
            for key, amount in amounts.items():
                into[key] = into.get(key, 0) + amount
    return Balance(zones=[zones[name] for name in sorted(zones)], nodes=found)
