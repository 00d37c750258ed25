"""A view as plain values, to be compared with itself later."""

from __future__ import annotations

from typing import Any

from podium.cluster.cache.columns import Columns


def snapshot(columns: Columns) -> dict[str, Any]:
    """Everything of a view that a rule must not change."""
    used = len(columns.nodes.names)
    return {
        "names": list(columns.nodes.names),
        "order": columns.nodes.order.tolist(),
        "known": columns.nodes.known[:used].tolist(),
        "ghosts": set(columns.pods.unknown_nodes),
        "allocatable": {
            name: columns.nodes.allocatable[column][:used].tolist()
            for name, column in columns.nodes.resources.items()
            if columns.nodes.allocatable[column].any()
        },
        "requested": {
            name: columns.pods.requested[column][:used].tolist()
            for name, column in columns.nodes.resources.items()
            if columns.pods.requested[column].any()
        },
        "nonzero requested": [column[:used].tolist() for column in columns.pods.nonzero_requested],
        "places": (columns.pods.counts[:used].tolist(), columns.nodes.allowed_pods[:used].tolist()),
        "facts": [fact.ids[:used].tolist() for fact in columns.nodes.facts.columns()],
        "pods": [
            [(r.key, r.uid, r.terminating, r.row) for r in pods] for pods in columns.pods.residents
        ],
        "ports": [sorted(ports) for ports in columns.pods.ports],
        "port rows": {port: sorted(rows) for port, rows in columns.pods.port_rows.items()},
        "volume rows": dict(columns.pods.volume_rows),
        "images": {
            name: (image.size, dict(image.counts)) for name, image in columns.nodes.images.items()
        },
        "nominated": {row: [r.key for r in pods] for row, pods in columns.pods.nominated.items()},
        "journal": (
            len(columns.journal.rows.entries),
            columns.journal.rows.start,
            columns.journal.epoch,
        ),
        "pods in all": columns.pods.total,
        "promises": (
            dict(columns.catalog.promised_volumes),
            dict(columns.catalog.provisioning),
            columns.catalog.selections.changes,
        ),
    }
