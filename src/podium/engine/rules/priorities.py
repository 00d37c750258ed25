"""What most priorities have in common, and the reduce step several share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

MAX_SCORE = 10


class NodePriority:
    """A score per row without a reduce step; subclasses add what they need."""

    name: str
    always: Scope = Scope.NODE
    #: Whether the final scores depend on all feasible rows together.
    reduces = False

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002 - subclasses look at the class
        """What the raw score depends on."""
        return self.always

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """Not known to be the same everywhere."""
        return None

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """The raw score."""
        raise NotImplementedError

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:  # noqa: ARG002
        """The raw score is final."""
        return raw


def normalized(at: Rows, raw: Ints, *, reverse: bool = False) -> Ints:
    """Scores scaled so that the largest becomes 10; `reverse` turns them upside down."""
    highest = at.highest(raw)
    if highest == 0:
        return at.full(MAX_SCORE) if reverse else raw
    scaled = at.divide(raw * MAX_SCORE, highest)
    return MAX_SCORE - scaled if reverse else scaled
