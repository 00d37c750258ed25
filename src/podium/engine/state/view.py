"""The cluster as the engine reads it.

A view is composed of parts, and each of them says what writes it:

    nodes     one row per node: names, labels, allocatable resources, facts, images
    pods      the pods on these rows, and counts of them
    journal   which rows changed, and how far each reader has to catch up
    catalog   services, controllers, claims, budgets and the other objects that rules look up
    verdicts  the answers of predicates as small numbers

Rules and the engine only read. Nodes and pods are written by `cluster.cache.columns.Columns`, the
subclass that a cache owns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from podium.engine.state.catalog import Catalog
from podium.engine.state.journal import DEFAULT_LIMIT, Journal
from podium.engine.state.node_columns import NodeColumns
from podium.engine.state.pod_index import PodIndex
from podium.engine.state.tallies import SPARSE, SparseLimits
from podium.engine.state.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.state.accounting import Accounting
    from podium.engine.state.tallies import CarriedTerm, LabelSet

T = TypeVar("T")


class View:
    """Nodes, pods and other objects of a cluster at one point in time."""

    def __init__(
        self,
        accounting: Accounting,
        *,
        catalog: Catalog | None = None,
        capacity: int = 64,
        journal_limit: int = DEFAULT_LIMIT,
        sparse: SparseLimits = SPARSE,
    ) -> None:
        """There is room for *capacity* rows at first.

        *journal_limit* bounds the logs of the journal; *sparse* says which tallies keep columns.
        """
        self.nodes = NodeColumns(capacity)
        self.pods = PodIndex(accounting, self.nodes, sparse)
        self.journal = Journal(journal_limit)
        self.catalog = Catalog() if catalog is None else catalog
        self.verdicts = Verdicts()
        #: The time of the decision under way, in seconds since 1970; the caller sets it.
        self.decided_at = 0.0
        #: What is derived from the view and kept between decisions; `KeptInView` reads and writes.
        self.ledgers: dict[object, Any] = {}

    def terms_selecting(self, labels: LabelSet) -> list[CarriedTerm]:
        """The affinity terms of placed pods that select pods with these labels."""
        return labels.terms_selecting(self.pods.carried, self.catalog.namespaces)


class KeptInView(Generic[T]):
    """Values that are derived from a view and kept with it between decisions, by a key."""

    __slots__ = ()

    def of(self, view: View, key: object, find: Callable[[], T], state: object = None) -> T:
        """The value of the key; found again when the state is another one."""
        known = view.ledgers.get((self, key))
        if known is None or known[0] != state:
            known = view.ledgers[self, key] = (state, find())
        found: T = known[1]
        return found
