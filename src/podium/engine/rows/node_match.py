"""Node selectors over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.objects.selectors.selectors import NodeTerm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.rows.many import Rows
    from podium.engine.state.tallies import Flags
    from podium.objects.selectors.selectors import Selector


def selects(at: Rows, selector: Selector) -> Flags:
    """Whether the labels of the rows meet a selector."""
    accepted = at.full(not selector.nothing)
    for requirement in selector.requirements:
        accepted = accepted & at.accepts(requirement)
    return accepted


def selects_any_by_labels(at: Rows, terms: Iterable[NodeTerm]) -> Flags:
    """Whether the labels meet some term, whatever it says of fields."""
    return selects_any(at, [NodeTerm(term.labels, None) for term in terms])


def selects_any(at: Rows, terms: Iterable[NodeTerm], *, fields: bool = True) -> Flags:
    """Whether some term matches; without `fields` every field reads as the empty string."""
    accepted = at.full(False)  # noqa: FBT003 - a column of False
    for term in terms:
        matched = at.full(True) if term.labels is None else selects(at, term.labels)  # noqa: FBT003
        if term.fields is not None:
            matched = matched & (at.named(term.fields) if fields else term.fields.matches({}))
        accepted = accepted | matched
    return accepted
