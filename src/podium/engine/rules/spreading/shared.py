"""Counts of the pods that spreading rules keep apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.state.selector_index import anchor_of_any
from podium.objects.selectors.selectors import Selector

if TYPE_CHECKING:
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.view import View


def living(view: View, namespace: str, selectors: tuple[Selector, ...]) -> Tally:
    """Pods of a namespace, not being deleted, that at least one selector matches."""
    return view.tally(
        ("living", namespace, selectors),
        lambda labels: _lives(labels, namespace, selectors),
        lambda: anchor_of_any(selectors),
    )


def _lives(labels: LabelSet, namespace: str, selectors: tuple[Selector, ...]) -> bool:
    return (
        labels.namespace == namespace
        and not labels.terminating
        and any(selector.matches(labels.labels) for selector in selectors)
    )
