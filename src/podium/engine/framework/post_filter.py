"""What a post-filter is: a step that runs when no node fits a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from podium.engine.framework.decision import ClaimRelease, Preemption
    from podium.engine.framework.extenders import Extender
    from podium.engine.framework.rule import Positioned, Refused
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


class FailedSearch(msgspec.Struct):
    """A pod for which no node was found, and what is known of it."""

    pod: Incoming
    view: View
    #: The filter rules that take part in this attempt.
    rules: Sequence[Positioned]
    #: Rows on which the pod may fit once pods are evicted, in node order.
    potential: np.ndarray
    #: The rule that refused the pod before any node was looked at.
    refused: Refused | None = None
    #: The rows that were filtered, and the verdict code of each.
    rows: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    codes: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, np.int32))
    #: Names of the plugins whose pre-filter saw the pod.
    prepared: frozenset[str] = frozenset()
    extenders: tuple[Extender, ...] = ()
    #: Rows with pods removed are filtered in a batch if there are at least so many.
    min_batch_rows: int = 8
    #: Whether what is found on rows may be kept for later pods of the class, and used.
    may_keep: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """What a post-filter achieved."""

    #: `Success`, `UnschedulableAndUnresolvable` and `Error` end the stage; after `Unschedulable`
    #: the next post-filter runs. Empty in v1.13, where the stage ends and reports no status.
    code: str
    reason: str = ""
    preemption: Preemption | None = None
    #: The claim of the pod that is given back, or deleted, so that the pod gets other devices.
    released: ClaimRelease | None = None


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
