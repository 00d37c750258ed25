"""What the plugins have in common: reasons that end a search, and what a first look may tell.

Before any node is looked at, a plugin may see the pod once (`prepare`): it can refuse it
everywhere, or name the only nodes in question; and it can step aside for the whole attempt
(`skips`), trials with other pods included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.predicates import BitPredicate
from podium.engine.rules.priorities import NodePriority

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class Refused:
    """No node will do, for this reason."""

    plugin: str
    reason: str
    curable: bool = False
    #: Every plugin that took part: this one, or those that leave no node together.
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """A refusal by one plugin is of that plugin alone."""
        if self.plugin and not self.plugins:
            object.__setattr__(self, "plugins", (self.plugin,))


@dataclass(frozen=True, slots=True)
class OnlyNodes:
    """No other nodes than these will do."""

    names: frozenset[str]


class FilterPlugin(BitPredicate):
    """A predicate that may have something to say before any node is looked at."""

    always = Scope.NODE

    def prepare(self, pod: Incoming, view: View) -> Refused | OnlyNodes | None:  # noqa: ARG002
        """Nothing against the pod as such."""
        return None

    def quiet(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Whether `prepare` can have nothing against any pod of this class, nor name nodes."""
        return type(self).prepare is FilterPlugin.prepare

    def skips(self, pod: Incoming, view: View) -> bool:  # noqa: ARG002
        """Whether it has nothing to do in this attempt."""
        return self.scope(pod.cls) is Scope.NONE


class ScorePlugin(NodePriority):
    """A priority that may leave itself out, and may fail before it comes to scores."""

    def unready(self, pod: Incoming, view: View) -> str:  # noqa: ARG002
        """Why it cannot score pods of this class at all; nothing if it can."""
        return ""

    def skips(self, pod: Incoming, at: Rows) -> bool:  # noqa: ARG002
        """Whether it gives no scores for this pod."""
        return False


def normalized(at: Rows, raw: Ints, *, reverse: bool = False) -> Ints:
    """Scores scaled so that the largest becomes 100; `reverse` turns them upside down."""
    highest = at.highest(raw)
    if highest == 0:
        return at.full(MAX_SCORE) if reverse else raw
    scaled = at.divide(raw * MAX_SCORE, highest)
    return MAX_SCORE - scaled if reverse else scaled
