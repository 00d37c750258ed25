"""The details of one node: resources, pods, labels, taints and conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.plain import format_amount
from podium.scheduler.state.cluster_copy import written_time
from podium.serving.page_data.cluster_map import shown_resources, workload, zone

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import View

Data = dict[str, Any]


def node_details(view: View, name: str) -> Data | None:
    """The details of a node; None when there is no node with that name."""
    row = view.nodes.row_of.get(name)
    if row is None:
        return None
    node = view.nodes.objects[row]
    found: Data = {
        "name": name,
        "known": node is not None,
        "room": _room(view, row),
        "pods": [_pod(view, resident) for resident in view.pods.residents[row]],
        "nominated": [resident.key for resident in view.pods.nominated.get(name, ())],
    }
    if node is not None:
        region, place = zone(node.labels)
        found |= {
            "region": region,
            "zone": place,
            "labels": dict(sorted(node.labels.items())),
            "taints": [
                {"key": taint.key, "value": taint.value, "effect": taint.effect}
                for taint in node.spec.taints or ()
            ],
            "unschedulable": node.spec.unschedulable,
            "conditions": {each.type: each.status for each in node.status.conditions or ()},
        }
    return found


def _room(view: View, row: int) -> list[Data]:
    found = [
        _load(name, view.pods.requested[column].item(row), view.nodes.allocatable[column].item(row))
        for name in shown_resources(view)
        for column in [view.nodes.resources[name]]
    ]
    return [*found, _load("pods", view.pods.counts.item(row), view.nodes.allowed_pods.item(row))]


def _load(name: str, used: int, there: int) -> Data:
    share = used / there if there else float(used > 0)
    return {
        "resource": name,
        "used": format_amount(name, used),
        "allocatable": format_amount(name, there),
        "load": round(share, 4),
    }


def _pod(view: View, resident: Resident) -> Data:
    cls = resident.cls
    names = {column: name for name, column in view.nodes.resources.items()}
    _, kind, name = workload(cls.sample)
    return {
        "pod": resident.key,
        "kind": kind,
        "workload": name,
        "priority": resident.priority,
        "started": written_time(resident.started),
        "leaving": resident.terminating,
        "requests": {
            names[column]: format_amount(names[column], amount) for column, amount in cls.taken
        },
    }
