"""How spread constraints read a trial: rows with pods added and taken away."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.tallies import Ints, LabelSet
    from podium.objects.selectors.selectors import Selector

#: More pods than any domain has.
MANY = 1 << 62


def gained(namespace: str, selector: Selector, at: Rows) -> Ints:
    """How many pods the trial added. Those being deleted count; an empty selector means all."""
    return at.gained_labels((namespace, selector), partial(_is_meant, namespace, selector))


def _is_meant(namespace: str, selector: Selector, labels: LabelSet) -> bool:
    return labels.namespace == namespace and selector.matches(labels.labels)


def lowest_with(domains: np.ndarray, counts: np.ndarray, key: str, at: Rows, here: Ints) -> Ints:
    """The fewest pods of any of the domains, when the row's own one has `here`."""
    inside = np.zeros(len(counts), np.bool_)
    inside[domains] = True
    numbers = counts[domains]
    first = int(np.argmin(numbers))
    fewest, others = int(numbers[first]), int(np.delete(numbers, first).min(initial=MANY))
    elsewhere = at.where(at.label_ids(key) == int(domains[first]), others, at.full(fewest))
    least = at.where(here < elsewhere, here, elsewhere)
    return at.where(at.look_up(inside, key), least, at.full(fewest))
