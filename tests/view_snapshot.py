"""A view as plain values, to be compared with itself later."""

from __future__ import annotations

from typing import Any

from podium.cluster.cache.columns import Columns


def snapshot(columns: Columns) -> dict[str, Any]:
    """Everything of a view that a rule must not change."""
    used = len(columns.names)
    return {
        "names": list(columns.names),
        "order": columns.order.tolist(),
        "known": columns.known[:used].tolist(),
        "ghosts": set(columns.ghosts),
        "allocatable": {
            name: columns.allocatable[column][:used].tolist()
            for name, column in columns.resources.items()
            if columns.allocatable[column].any()
        },
        "requested": {
            name: columns.requested[column][:used].tolist()
            for name, column in columns.resources.items()
            if columns.requested[column].any()
        },
        "assumed": [column[:used].tolist() for column in columns.assumed],
        "places": (columns.pod_count[:used].tolist(), columns.allowed_pods[:used].tolist()),
        "facts": [fact.ids[:used].tolist() for fact in columns.facts.columns()],
        "pods": [
            [(r.key, r.uid, r.terminating, r.row) for r in pods] for pods in columns.residents
        ],
        "ports": [sorted(ports) for ports in columns.ports],
        "port rows": {port: sorted(rows) for port, rows in columns.port_rows.items()},
        "volume rows": dict(columns.volume_rows),
        "images": {name: dict(states) for name, states in columns.images.items()},
        "nominated": {row: [r.key for r in pods] for row, pods in columns.nominated.items()},
        "journal": (len(columns.journal), columns.journal_start, columns.epoch),
        "pods in all": columns.pod_total,
        "promises": (
            dict(columns.catalog.promised_volumes),
            dict(columns.catalog.provisioning),
            columns.catalog.selection_version(),
        ),
    }
