"""The map of the cluster for the page, in few bytes per node and pod, and the details of a node.

Nodes are rows. A page that has a map already sends its cursor and gets the rows that changed since.
Zones, workloads and taints are numbered, and each is sent once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from podium.cluster.cache.node_tree import ZONE_LABELS
from podium.errors import InputError
from podium.render.plain import format_amount
from podium.scheduler.state.cluster_copy import StaleRows, written_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.engine.state.pod_class import PodClass, Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod
    from podium.past.replay.recorded_past import Moment

Data = dict[str, Any]

#: Loads are thousandths of what is allocatable, and no load is larger than `_MOST`.
FULL: Final = 1000
_MOST: Final = 9999
#: Bits of a node's flags.
CORDONED, NOT_READY, GHOST = 1, 2, 4


class Vocabulary:
    """A numbered list of distinct values."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value; a new value gets the next number."""
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found


class ClusterMap:
    """Keeps what is costly to derive per row, and updates the rows that the journal names."""

    def __init__(self) -> None:
        self._stale: StaleRows | None = None
        #: The number of the current view: a cursor belongs to one of them.
        self._views = 0
        self._forget()

    def _forget(self) -> None:
        self._zones, self._workloads, self._taints = Vocabulary(), Vocabulary(), Vocabulary()
        self._workload_of: dict[int, int] = {}
        self._cells: dict[int, list[int]] = {}
        self._facts: dict[int, tuple[int, int, int]] = {}

    def since(self, view: View, cursor: str = "") -> Data:
        """The whole map, or what changed since the *cursor* of an earlier one."""
        self.read(view)
        known = _read(cursor)
        whole = known is None or known[:2] != (self._views, view.journal.epoch)
        whole = whole or (known is not None and known[2] < view.journal.rows.start)
        if known is None or whole:
            rows = [*view.nodes.order.tolist(), *view.pods.unknown_nodes_by_name()]
            sent = (0, 0, 0)
        else:
            rows = sorted(_rows_noted(view, known[2]))
            sent = known[3:]
        return self._rows(view, rows, sent) | {"whole": whole}

    def read(self, view: View, most: int | None = None) -> int:
        """Derive what is kept of rows that changed, at most so many rows; how many are left."""
        if self._stale is None or self._stale.view is not view:
            self._stale = StaleRows(view)
            self._views += 1
            self._forget()
        if self._stale.note():
            self._cells.clear()
            self._facts.clear()
        for row in self._stale.take(most):
            self._cells[row] = [self._workload(each.cls) for each in view.pods.residents[row]]
            self._facts[row] = self._facts_of(view, row)
        return len(self._stale)

    def _workload(self, cls: PodClass) -> int:
        found = self._workload_of.get(cls.id)
        if found is None:
            found = self._workloads.number(workload(cls.sample))
            self._workload_of[cls.id] = found
        return found

    def _facts_of(self, view: View, row: int) -> tuple[int, int, int]:
        """The numbers of zone and taints, and the flags of a row."""
        node = view.nodes.objects[row]
        if node is None:
            return self._zones.number(("", "")), self._taints.number(()), GHOST
        taints = tuple((t.key, t.value, t.effect) for t in node.spec.taints or ())
        flags = CORDONED if node.spec.unschedulable else 0
        ready = {c.status for c in node.status.conditions or () if c.type == "Ready"}
        if ready and ready != {"True"}:
            flags |= NOT_READY
        return self._zones.number(zone(node.labels)), self._taints.number(taints), flags

    def _rows(self, view: View, rows: list[int], sent: tuple[int, int, int]) -> Data:
        index = np.array(rows, np.int64)
        resources = shown_resources(view)
        loads = [_loads(view, view.nodes.resources[name], index).tolist() for name in resources]
        room = view.nodes.allowed_pods[index]
        loads.append(_thousandths(view.pods.counts[index], room).tolist())
        facts = [self._facts[row] for row in rows]
        cursor = (self._views, view.journal.epoch, view.journal.changes, *map(len, self._words()))
        return {
            "cursor": "-".join(map(str, cursor)),
            "resources": [*resources, "pods"],
            "words": {
                "from": list(sent),
                "zones": self._zones.values[sent[0] :],
                "workloads": self._workloads.values[sent[1] :],
                "taints": self._taints.values[sent[2] :],
            },
            "nodes": {
                "row": rows,
                "name": [view.nodes.names[row] for row in rows],
                "zone": [fact[0] for fact in facts],
                "taints": [fact[1] for fact in facts],
                "flags": [fact[2] for fact in facts],
                "load": loads,
                "pods": [self._cells[row] for row in rows],
            },
            "totals": totals(view),
        }

    def _words(self) -> tuple[list[Any], list[Any], list[Any]]:
        return self._zones.values, self._workloads.values, self._taints.values


def cluster_at(moment: Moment) -> Data:
    """The whole map at a moment of a history, and how many pods waited."""
    told = {"at": moment.at, "pending": moment.pending}
    if moment.view is None:
        raise InputError("nothing was recorded at that time", hint="choose a later one")
    return ClusterMap().since(moment.view) | told


def _read(cursor: str) -> tuple[int, int, int, int, int, int] | None:
    """The parts of a cursor; None when the text is no cursor."""
    parts = cursor.split("-")
    if len(parts) != 6 or not all(part.isdecimal() for part in parts):
        return None
    view, epoch, changes, zones, workloads, taints = map(int, parts)
    return view, epoch, changes, zones, workloads, taints


def _rows_noted(view: View, since: int) -> set[int]:
    """The rows that the journal names after so many changes, without those that were freed."""
    entries: Iterable[int] = view.journal.rows.entries[since - view.journal.rows.start :]
    rows = {entry if entry >= 0 else ~entry for entry in entries}
    return {row for row in rows if view.nodes.known[row] or row in view.pods.unknown_nodes}


def _loads(view: View, column: int, rows: np.ndarray) -> np.ndarray:
    return _thousandths(view.pods.requested[column][rows], view.nodes.allocatable[column][rows])


def _thousandths(used: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The used part in thousandths; where nothing is allocatable, 0 or more than full."""
    share = used.astype(np.float64) * FULL / np.maximum(there, 1)
    found: np.ndarray = np.clip(np.rint(share), 0, _MOST).astype(np.int64)
    return found


def shown_resources(view: View) -> list[str]:
    """The resources that some node has; cpu and memory are always included."""
    return [
        name
        for name, column in view.nodes.resources.items()
        if name in {"cpu", "memory"} or view.nodes.allocatable[column].any()
    ]


def totals(view: View) -> Data:
    """The numbers of nodes and pods, and the load per resource of the whole cluster."""
    rows = view.nodes.order
    load = {}
    for name in shown_resources(view):
        column = view.nodes.resources[name]
        used = float(view.pods.requested[column][rows].sum(dtype=np.float64))
        there = float(view.nodes.allocatable[column][rows].sum(dtype=np.float64))
        load[name] = round(used / there, 4) if there else 0.0
    return {"nodes": len(rows), "pods": view.pods.total, "load": load}


def zone(labels: Mapping[str, str]) -> tuple[str, str]:
    """Region and zone of a node, by the stable labels or else the beta ones."""
    region, name = (
        next((labels[key] for key in reversed(keys) if key in labels), "") for keys in ZONE_LABELS
    )
    return region, name


def workload(pod: Pod) -> tuple[str, str, str]:
    """Namespace, kind and name of the workload that a pod belongs to."""
    owner = pod.metadata.controller()
    if owner is None:
        name = pod.labels.get("app.kubernetes.io/name") or pod.labels.get("app") or ""
        return pod.namespace, "Pod", name
    made = pod.labels.get("pod-template-hash", "")
    if owner.kind == "ReplicaSet" and made and owner.name.endswith(f"-{made}"):
        return pod.namespace, "Deployment", owner.name.removesuffix(f"-{made}")
    return pod.namespace, owner.kind, owner.name


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
