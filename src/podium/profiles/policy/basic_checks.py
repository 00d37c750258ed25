"""Checks of a pod before any node is looked at (podPassesBasicChecks in kube-scheduler)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


def claims_exist(incoming: Incoming, view: View) -> str:
    """The error of the first claim that is missing or being deleted; empty if there is none."""
    for name in incoming.cls.claims:
        claim = view.catalog.claims.get(name, incoming.cls.namespace)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return ""
