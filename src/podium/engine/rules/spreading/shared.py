"""Tallies of the pods that spreading rules count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.state.selector_index import anchor_of_any
from podium.objects.selectors.selectors import Selector

if TYPE_CHECKING:
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.view import View


def tally_live_pods(view: View, namespace: str, selectors: tuple[Selector, ...]) -> Tally:
    """A tally of the pods of a namespace, not being deleted, that some selector matches."""
    return view.pods.tally(
        ("living", namespace, selectors),
        lambda labels: _is_live_match(labels, namespace, selectors),
        lambda: anchor_of_any(selectors),
    )


def _is_live_match(labels: LabelSet, namespace: str, selectors: tuple[Selector, ...]) -> bool:
    return (
        labels.namespace == namespace
        and not labels.terminating
        and any(selector.matches(labels.labels) for selector in selectors)
    )
