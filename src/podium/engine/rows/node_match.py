"""Node selectors over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rows.rows import K
from podium.objects.selectors.selectors import NodeTerm

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from podium.engine.rows.rows import Flags, ManyRows, Rows
    from podium.objects.selectors.selectors import Selector


def selects(at: Rows[K], selector: Selector) -> Flags[K]:
    """Whether the labels of the rows meet a selector."""
    accepted = at.flags(not selector.nothing)
    for requirement in selector.requirements:
        accepted = accepted & at.accepts(requirement)
    return accepted


def selects_any_by_labels(at: Rows[K], terms: Iterable[NodeTerm]) -> Flags[K]:
    """Whether the labels meet some term, whatever it says of fields."""
    return selects_any(at, [NodeTerm(term.labels, None) for term in terms])


def selects_any(at: Rows[K], terms: Iterable[NodeTerm], *, fields: bool = True) -> Flags[K]:
    """Whether some term matches; without `fields` every field reads as the empty string."""
    accepted = at.flags(False)  # noqa: FBT003 - a column of False
    for term in terms:
        matched = at.flags(True) if term.labels is None else selects(at, term.labels)  # noqa: FBT003
        if term.fields is not None:
            matched = matched & (
                at.matches_fields(term.fields) if fields else term.fields.matches({})
            )
        accepted = accepted | matched
    return accepted


def label_keys(keys: Iterable[str], at: ManyRows) -> list[Hashable]:
    """The ids of the values that each row has for some label keys."""
    columns = [at.ids(at.view.nodes.label_column(key)).tolist() for key in keys]
    return list(zip(*columns, strict=True)) if columns else [()] * len(at)
