"""What a post-filter is: a step that runs when no node fits a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import numpy as np

    from podium.engine.framework.decision import Preemption
    from podium.engine.framework.extenders import Extender
    from podium.engine.framework.rule import Positioned
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


@dataclass(slots=True)
class FailedSearch:
    """A pod for which no node was found, and what is known of it."""

    pod: Incoming
    view: View
    #: The filter rules that take part in this attempt.
    rules: Sequence[Positioned]
    #: Rows on which the pod may fit once pods are evicted, in node order.
    potential: np.ndarray
    #: Names of the plugins whose pre-filter saw the pod.
    prepared: frozenset[str] = frozenset()
    extenders: tuple[Extender, ...] = ()
    #: Rows with pods removed are filtered in a batch if there are at least so many.
    min_batch_rows: int = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a post-filter achieved."""

    #: `Success`, `UnschedulableAndUnresolvable` and `Error` end the stage; after `Unschedulable`
    #: the next post-filter runs. Empty in v1.13, where the stage ends and reports no status.
    code: str
    reason: str = ""
    preemption: Preemption | None = None


class PostFilter(Protocol):
    """A step that runs when no node fits the pod."""

    @property
    def name(self) -> str:
        """The name by which it is configured."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of objects that it looks up in the catalogue."""

    @property
    def evicts_pods(self) -> bool:
        """Whether it may evict pods of lower priority."""

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Try to help the pod; questions to extenders are yielded and their replies sent back."""
